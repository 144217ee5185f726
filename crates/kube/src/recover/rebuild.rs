//! Builds the World from observed objects: after a start, after a change of leader, and whenever it must be rebuilt.
//!
//! Everything that was decided and not yet done is in objects. Gangs with a recorded placement get their seats again, whether or
//! not all their pods are bound by now; stored orders go on assembling; what cannot go on is rolled back.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use kube::ResourceExt;
use muster_api::crd::{GangPhase, OrderSpec};
use muster_api::dialects::Dialect;
use muster_api::workloads::WorkloadKind;
use muster_core::event::RoleSeats;
use muster_core::gang::Phase;
use muster_core::id::GangId;
use muster_core::order::Order;
use muster_core::plan::StopReason;
use muster_core::queue::QueueSpec;
use muster_core::time::Time;
use muster_core::{Event, World};
use muster_plan::world_for;

use crate::cache::kinds::KindRole;
use crate::cache::store::{ObjectChange, Store};
use crate::gang::identity::GangSource;
use crate::gang::record::GangRecord;
use crate::gang::suspended_job::seats_after_move;
use crate::host::Host;
use crate::provision::karpenter::{MANAGED_BY, MUSTER, claim_identity};
use crate::provision::order_object::{order_from_manifest, order_name};
use crate::recover::quarantine::WorkItem;
use crate::recover::timestamps::{created_at, instant};
use crate::schedule::phase::PodsByState;
use crate::schedule::placement::{is_recorded_running, placement_of};

/// Claims and orders are numbered by seconds since the first of January 2025, so that a process that has observed none of the old
/// ones does not reuse their numbers.
const NUMBERS_SINCE: i64 = 1_735_689_600;

impl Host {
    /// Rebuilds the World.
    pub(crate) fn rebuild(&mut self) {
        self.world = self.empty_world();
        self.seen_nodes.clear();
        self.excess_usage.clear();
        self.order_by_gang.clear();
        self.orders_not_written.clear();
        self.gangs = crate::gang::registry::GangRegistry::default();
        self.constraints = crate::constraints::index::ConstraintIndex::default();
        (self.bound_elsewhere, self.gang_counts) = Default::default();
        self.verdicts.clear();
        self.expected_starts.clear();
        self.recover_queues_and_pools();
        self.recover_learned_state();
        self.recover_offering_health();
        self.recover_requests();
        self.load_volumes();
        let reopened = self.recover_gangs();
        self.delete_orphaned_gang_objects();
        self.apply_pools();
        self.recover_claims_and_nodes();
        let incomplete = self.recover_running_members();
        for queue in reopened {
            self.apply_event(&Event::QueueGone(queue));
        }
        self.recover_orders();
        self.stop_incomplete_gangs(&incomplete);
        self.reconcile_node_claims();
        self.recover_idle_since();
        let number = u32::try_from(self.now().0 / 1_000 - NUMBERS_SINCE).unwrap_or(0);
        self.apply_event(&Event::NumbersFrom(number));
        self.apply_event(&Event::Synced);
        self.reconcile_nodes_of_gangs();
        let all: Vec<Arc<str>> = self.gangs.names().cloned().collect();
        self.dirty.gangs.extend(all);
    }

    fn empty_world(&self) -> World {
        world_for(&self.policy, self.levels())
    }

    fn recover_queues_and_pools(&mut self) {
        self.apply_event(&Event::Epoch(0));
        self.apply_event(&Event::QueueSet(QueueSpec::open("default")));
        self.set_queues();
        for moved in self.all_objects(KindRole::Pool) {
            self.current_item = Some(WorkItem::Object(KindRole::Pool, moved.key.clone()));
            self.observe_pool(&moved);
        }
        self.current_item = None;
    }

    /// All objects of a kind that are not quarantined, as if they had just been created.
    pub(crate) fn all_objects(
        &self,
        kind_role: KindRole,
    ) -> Vec<ObjectChange<kube::api::DynamicObject>> {
        let store = self.sources.of(kind_role).and_then(|source| self.cache.others.get(&source));
        let objects = store.into_iter().flat_map(Store::iter);
        let now = Instant::now();
        let is_left_out =
            |key: &Arc<str>| self.quarantine.has(&WorkItem::Object(kind_role, key.clone()), now);
        objects
            .filter(|(key, _)| !is_left_out(key))
            .map(|(key, object)| ObjectChange {
                key: key.clone(),
                was: None,
                is: Some(object.clone()),
            })
            .collect()
    }

    /// Submits gangs in the order and at the time they were submitted. Returns the queues that were reopened only for gangs that
    /// run in them, and accept no others.
    fn recover_gangs(&mut self) -> BTreeSet<Arc<str>> {
        self.register_merged_gangs();
        let mut pods: Vec<_> =
            self.cache.pods.iter().map(|(key, pod)| (key.clone(), pod.clone())).collect();
        // Of two gangs of one name the older comes first.
        pods.sort_by_key(|(_, pod)| created_at(&pod.metadata));
        for (key, pod) in pods {
            if self.begin_item(WorkItem::Pod(key.clone())) && self.is_managed(&pod) {
                self.add_to_gang(&key, &pod);
                self.observe_assigned_node(&key, &pod);
            }
        }
        self.current_item = None;
        for moved in self.all_objects(KindRole::Workload(WorkloadKind::Job)) {
            if let Some(source) = moved.is.and_then(|job| self.source_of_job(&job)) {
                self.gangs.ensure(source);
            }
        }
        for moved in self.all_objects(KindRole::Gang) {
            self.current_item = Some(WorkItem::Object(KindRole::Gang, moved.key.clone()));
            self.observe_templates(&moved);
        }
        for moved in self.all_objects(KindRole::Group(Dialect::Volcano, 0)) {
            self.current_item =
                Some(WorkItem::Object(KindRole::Group(Dialect::Volcano, 0), moved.key.clone()));
            self.observe_group_without_pods(&moved);
        }
        self.current_item = None;
        let mut found: Vec<(Time, Arc<str>)> = Vec::new();
        for name in self.gangs.names() {
            let record = self.gangs.get(name).expect("named");
            found.push((self.gang_created_at(record), name.clone()));
        }
        found.sort();
        let mut reopened = BTreeSet::new();
        for (at, name) in found {
            if !self.begin_item(WorkItem::Gang(name.clone())) {
                continue; // the reason is reported when it is reconciled
            }
            self.update_stage(&name);
            let record = self.gangs.get(&name).expect("named");
            if self.is_superseded(record) {
                continue;
            }
            // Finished gangs are not submitted.
            let by_state = self.pods_by_state(record);
            let has_no_pods = by_state.bound.is_empty() && by_state.unbound.is_empty();
            let is_request = matches!(record.source, GangSource::Request { .. });
            if has_no_pods
                && !self.may_have_missing_members(record)
                && !self.is_job_unfinished(record)
                && !is_request
            {
                continue;
            }
            match self.build_for_submit(&name) {
                Ok(built) => {
                    let spec = built.spec.clone();
                    let has_seats = !by_state.bound.is_empty() || self.has_placement(&name);
                    if has_seats && self.reopen_queue(&spec.queue) {
                        reopened.insert(spec.queue.clone());
                    }
                    let crowded = if has_seats { None } else { self.over_gang_limit(&name) };
                    if let Some(why) = crowded {
                        self.gangs.set_blocked(&name, Some(why));
                        continue;
                    }
                    let taken = self.apply_event(&Event::GangSubmitted(spec.clone()));
                    self.recover_waiting_since(&name, at);
                    let record = self.gangs.get_mut(&name).expect("named");
                    (record.pod_roles, record.pod_ranks) = (built.pod_roles, built.pod_ranks);
                    (record.pod_constraints, record.wait_reason) =
                        (built.pod_constraints, built.wait_reason);
                    (record.planned_from_template, record.missing_members) =
                        (built.planned_from_template, built.missing_members);
                    record.submitted_spec = taken.then_some(spec);
                }
                Err(why) => drop(self.gangs.set_blocked(&name, Some(why))),
            }
        }
        self.current_item = None;
        reopened
    }

    /// Deletes Gang objects that Muster created for gangs that do not exist any more, and that no garbage collector deletes: the
    /// previous leader ended before it did.
    fn delete_orphaned_gang_objects(&mut self) {
        for ObjectChange { key, is, .. } in self.all_objects(KindRole::Gang) {
            let Some(object) = is else { continue };
            let own = object.labels().get(MANAGED_BY).is_some_and(|by| by == MUSTER);
            if own && object.owner_references().is_empty() && self.gangs.get(&key).is_none() {
                self.remove_object(&key);
            }
        }
    }

    fn recover_claims_and_nodes(&mut self) {
        let claims: Vec<_> = self.cache.claims.iter().map(|(_, claim)| claim.clone()).collect();
        for claim in &claims {
            if let Some(identity) = claim_identity(claim) {
                self.recover_node_claim(&identity, claim);
            }
        }
        self.recover_issued_requests();
        let nodes: Vec<Arc<str>> = self.cache.nodes.iter().map(|(key, _)| key.clone()).collect();
        for node in &nodes {
            if self.begin_item(WorkItem::Node(node.clone())) {
                self.reconcile_node(node);
            }
        }
        self.current_item = None;
        self.reconcile_issued_requests();
    }

    /// Applies changes of NodeClaims before the restart. It runs after gangs have their seats: those on a node whose NodeClaim is
    /// terminating get notice.
    fn reconcile_node_claims(&mut self) {
        let claims: Vec<_> = self.cache.claims.iter().map(|(_, claim)| claim.clone()).collect();
        for claim in claims {
            let key: Arc<str> = claim.metadata.name.clone().unwrap_or_default().into();
            if !self.begin_item(WorkItem::Claim(key.clone())) {
                continue;
            }
            self.observe_node_claim(&ObjectChange { key, was: None, is: Some(claim) });
        }
        self.current_item = None;
    }

    /// Restores a gang's place in the queue and how long it has waited.
    pub(crate) fn recover_waiting_since(&mut self, name: &Arc<str>, submitted: Time) {
        let Some(gang) = self.world.gang_named(name) else { return };
        let recorded = self.gang_object(name).and_then(|gang| {
            let since = gang.data.pointer("/status/waitingSince")?.as_str()?;
            muster_api::instant(since).ok()
        });
        // The status may be that of an earlier gang of the same name.
        let since = recorded.filter(|since| *since >= submitted).unwrap_or(submitted);
        self.apply_event(&Event::GangWaits { gang, submitted, since });
        self.recover_failed_orders(name, gang, submitted);
    }

    /// Since when a gang's bound pods run: since the oldest started. Members that were replaced meanwhile do not make it younger.
    fn running_since(&self, by_state: &PodsByState) -> Time {
        let pods = by_state.bound.iter().filter_map(|(key, _)| self.cache.pods.get(key));
        let began = pods.filter_map(|pod| {
            pod.status.start_time.as_ref().map(instant).or_else(|| created_at(&pod.metadata))
        });
        began.min().unwrap_or_else(|| self.now())
    }

    /// Whether a gang was being stopped: without its evicted pods too few would be left.
    fn was_being_stopped(&self, record: &GangRecord, by_state: &PodsByState) -> bool {
        let pods =
            by_state.bound.iter().filter_map(|(key, _)| Some((key, self.cache.pods.get(key)?)));
        let (sent, stay): (Vec<_>, Vec<_>) = pods.partition(|(_, pod)| pod.is_evicted_by_muster());
        let Some(spec) = record.submitted_spec.as_ref().filter(|_| !sent.is_empty()) else {
            return false;
        };
        let of = |at: usize| {
            let mine = stay.iter().filter(move |(key, _)| {
                record.pod_roles.get(*key).is_some_and(|role| usize::from(*role) == at)
            });
            mine.count() as u32
        };
        spec.roles.iter().enumerate().any(|(at, role)| of(at) < role.min)
    }

    /// Restores seats: where the placement says, or where the pods are. Returns the gangs that cannot go on as they are.
    /// Pods without a recorded placement come last: they get only what is left of their queue's limits.
    fn recover_running_members(&mut self) -> Vec<GangId> {
        let mut incomplete = Vec::new();
        let unrecorded = self.hold_unrecorded();
        let mut names = self.seated_members_first();
        names.retain(|name| !unrecorded.contains(name));
        for name in names.into_iter().chain(unrecorded) {
            self.current_item = Some(WorkItem::Gang(name.clone()));
            let Some(id) = self.world.gang_named(&name) else { continue };
            let mut sitting = self.recorded_seats(&name).unwrap_or_default();
            let is_stale = self.is_stale(&name, id, &sitting);
            if is_stale {
                tracing::info!(gang = &*name, "its recorded seats belong to other gangs now");
                sitting = Vec::new();
                self.write_final_status(&name, GangPhase::Waiting);
            }
            let restored_seats = self.restored_seats(&name, id).filter(|_| !is_stale);
            let is_reseated = restored_seats.is_some();
            if let Some((spec, seats)) = restored_seats {
                let full = self.world.gang(id).expect("named").spec.clone();
                self.apply_event(&Event::GangChanged(spec));
                self.map_roles_to_seats(&name, &full);
                sitting = seats;
            }
            let record = self.gangs.get(&name).expect("named");
            let by_state = self.pods_by_state(record);
            let is_request = matches!(record.source, GangSource::Request { .. });
            let was_recorded = !sitting.is_empty();
            if is_request && was_recorded {
                sitting = self.remaining_booking(&name, sitting);
                if sitting.is_empty() {
                    self.booking_was_consumed(&name, id);
                    continue;
                }
                // Its templates may request more by now than was booked.
                let is_allowed = self.world.is_within_limits(id, &sitting);
                if !is_allowed || !self.world.is_room_for(id, &sitting) {
                    let why = "its templates request more now than was booked";
                    self.fail_request(&name, "Changed", why);
                    continue;
                }
            }
            if !was_recorded && !is_request {
                sitting = self.occupied_seats(record, &self.pods_on_nodes(record));
            }
            if sitting.is_empty() {
                continue;
            }
            let there = self.occupied_seats(record, &self.pods_on_nodes(record));
            let gang = self.world.gang(id).expect("named");
            let mins: u32 = gang.spec.roles.iter().map(|role| role.min).sum();
            let seats = members(&sitting);
            let since = self.running_since(&by_state);
            let stops = self.was_being_stopped(record, &by_state);
            match was_recorded {
                // It was checked against limits and free capacity: see `is_stale`.
                true => drop(self.apply_event(&Event::GangFound { gang: id, since, sitting })),
                false if !self.seat_observed_pods(&name, id, since, sitting) => continue,
                false => {}
            }
            // A bound pod takes a seat on its node, whatever was recorded.
            let gang = self.world.gang(id).expect("named");
            let seats_elsewhere = seats_after_move(&gang.seats, &there).filter(|_| !is_request);
            let is_moved = seats_elsewhere.is_some();
            if let Some(sitting) = seats_elsewhere {
                self.seat_observed_pods(&name, id, since, sitting);
            }
            if was_recorded && seats < mins {
                // The workload was changed: its new spec counts when it starts again.
                let spec = self.world.gang(id).expect("named").spec.clone();
                self.apply_event(&Event::GangChanged(spec));
            }
            let ran = self.gang_object(&name).is_some_and(|gang| is_recorded_running(gang));
            let record = self.gangs.get_mut(&name).expect("named");
            (record.placement_written, record.was_fully_bound) = (!is_reseated && !is_stale, ran);
            if is_reseated || is_stale || is_moved {
                self.write_placement(&name, id);
            }
            let record = self.gangs.get(&name).expect("named");
            if record.pods.is_empty() && self.creates_pods_after_admission(record) {
                self.reserve_for_members(&name);
                self.request_members(&name);
            }
            // Part of a gang without a record of where the rest was to go, or a gang that was being stopped.
            let is_incomplete = (stops || (seats < mins && !was_recorded)) && !is_request;
            incomplete.extend(is_incomplete.then_some(id));
        }
        self.current_item = None;
        incomplete
    }

    /// The order in which gangs get their seats. A recorded placement may be stale: the previous leader gave a gang's seats to
    /// another and ended before it wrote that. So gangs whose pods are bound come first; then gangs with some pods bound, then
    /// gangs that were about to be bound, and last gangs that are recorded as running and have no bound pod. Gangs that may get
    /// other seats than recorded come after all of these: they see what the others leave.
    fn seated_members_first(&mut self) -> Vec<Arc<str>> {
        let mut names: Vec<(bool, u8, Arc<str>)> = Vec::new();
        let mut in_part = Vec::new();
        for name in self.gangs.names() {
            let record = self.gangs.get(name).expect("named");
            let recorded = members(&self.recorded_seats(name).unwrap_or_default());
            let by_state = self.pods_by_state(record);
            let there = self.occupied_seats(record, &self.pods_on_nodes(record));
            let rank = match members(&there) {
                there if there >= recorded => 0,
                0 if self.gang_object(name).is_some_and(|gang| is_recorded_running(gang)) => 3,
                0 => 2,
                _ => 1,
            };
            if rank == 1 {
                in_part.push((name.clone(), self.running_since(&by_state), there));
            }
            names.push((self.may_have_missing_members(record), rank, name.clone()));
        }
        for (name, since, sitting) in in_part {
            let Some(gang) = self.world.gang_named(&name) else { continue };
            self.apply_event(&Event::GangFound { gang, since, sitting });
        }
        names.sort();
        names.into_iter().map(|(_, _, name)| name).collect()
    }

    /// Whether a recorded placement is stale: other gangs have the seats of members that are not bound, or these members exceed
    /// the limits of their queue. Pods that were replaced since may request more than the placement was made for.
    fn is_stale(&self, name: &str, id: GangId, recorded: &[RoleSeats]) -> bool {
        let record = self.gangs.get(name).expect("named");
        if matches!(record.source, GangSource::Request { .. }) {
            return false; // gangs that took over its seats have them rightly
        }
        let there = self.occupied_seats(record, &self.pods_on_nodes(record));
        let mut missing = recorded.to_vec();
        for one in &mut missing {
            let is_same = |other: &&RoleSeats| (other.role, other.node) == (one.role, one.node);
            let here: u16 = there.iter().filter(is_same).map(|other| other.members).sum();
            one.members = one.members.saturating_sub(here);
        }
        let is_whole = missing.iter().all(|one| one.members == 0);
        let is_allowed = is_whole || self.world.is_within_limits(id, recorded);
        !is_allowed || !self.world.is_room_for(id, &missing)
    }

    /// Stops gangs that cannot go on as they are, so that they start over as a whole; except victims of an assembling order,
    /// which are stopped when the order is ready.
    fn stop_incomplete_gangs(&mut self, incomplete: &[GangId]) {
        for id in incomplete {
            let makes_way = |order: &Order| order.after.iter().any(|way| way.gang == *id);
            let waits = self.world.gang(*id).is_none_or(|gang| gang.phase == Phase::Waiting);
            if !waits && !self.world.orders().values().any(makes_way) {
                self.stop_gang(*id, StopReason::Moved);
            }
        }
    }

    /// The Gang object of a gang, created by Muster or by a user.
    pub(crate) fn gang_object(&self, name: &str) -> Option<&Arc<kube::api::DynamicObject>> {
        self.object_named(KindRole::Gang, name)
    }

    /// Whether a gang has a recorded placement.
    pub(crate) fn has_placement(&self, name: &str) -> bool {
        self.gang_object(name).is_some_and(|gang| !placement_of(gang).is_empty())
    }

    /// The seats of a gang's recorded placement, if all its roles and nodes still exist.
    pub(crate) fn recorded_seats(&self, name: &str) -> Option<Vec<RoleSeats>> {
        let placement = placement_of(self.gang_object(name)?);
        let gang = self.world.gang(self.world.gang_named(name)?)?;
        let one = |placement: &muster_api::crd::Placement| {
            let role = gang.spec.roles.iter().position(|role| *role.name == *placement.role)?;
            let node = self.world.node_named(&placement.node)?;
            let members = u16::try_from(placement.members).ok()?;
            Some(RoleSeats { role: u16::try_from(role).ok()?, node, members })
        };
        placement.iter().map(one).collect()
    }

    fn remove_order(&mut self, name: &Arc<str>) {
        let Some(orders) = self.api(KindRole::Order) else { return };
        let (writer, order) = (self.writer.clone(), name.clone());
        self.ordered_writes.write(name, async move {
            let _ = writer.delete_until_gone(&orders, &order).await;
        });
    }

    /// Restores stored orders, by number.
    fn recover_orders(&mut self) {
        let mut found: Vec<(OrderSpec, Time)> = Vec::new();
        for moved in self.all_objects(KindRole::Order) {
            let Some(object) = moved.is else { continue };
            let spec = object.data.get("spec").cloned().unwrap_or_default();
            let placed = created_at(&object.metadata).unwrap_or_else(|| self.now());
            match serde_json::from_value(spec) {
                Ok(spec) => found.push((spec, placed)),
                Err(why) => {
                    // Its claims are recovered by themselves, and belong to no order.
                    tracing::warn!(order = &*moved.key, %why, "an order is invalid: deleted");
                    self.remove_order(&moved.key);
                }
            }
        }
        found.sort_by_key(|(spec, _)| spec.number);
        for (spec, placed) in found {
            let id = muster_core::id::OrderId(spec.number);
            let top_ups = spec.replaced_claims;
            let order = order_from_manifest(&self.world, &spec);
            let goes_on = order.is_some_and(|order| {
                self.apply_event(&Event::OrderFound { order, placed, top_ups })
            });
            if goes_on {
                let gang = format!("{}/{}", spec.gang.namespace, spec.gang.name);
                self.order_by_gang.insert(gang.into(), id);
                // Some of its claims may never have been requested.
                self.update_order(id);
            } else {
                tracing::info!(order = order_name(id), "cannot go on");
                self.close_order(id, "RolledBack");
            }
        }
    }
}

/// The number of members in these seats.
fn members(sitting: &[RoleSeats]) -> u32 {
    sitting.iter().map(|one| u32::from(one.members)).sum()
}
