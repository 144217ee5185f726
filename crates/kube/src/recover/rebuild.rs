//! The World from what is seen: after a start, after a change of leader, and whenever it must be counted anew.
//!
//! Everything that was decided and not yet done is in objects. Gangs that were given seats get them again, whether all
//! their pods are bound by now or not; orders that were written down go on assembling; what cannot go on is undone.

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
use crate::cache::store::{Moved, Store};
use crate::gang::identity::GangSource;
use crate::gang::record::GangRecord;
use crate::gang::suspended_job::seats_after_move;
use crate::host::Host;
use crate::provision::karpenter::{MANAGED_BY, MUSTER, marks};
use crate::provision::order_object::{order_name, read};
use crate::recover::quarantine::Subject;
use crate::recover::timestamps::{instant, made};
use crate::schedule::phase::PodsByState;
use crate::schedule::placement::{is_recorded_running, placement_of};

/// Claims and orders are numbered by seconds since this instant, so that a process that has seen none of the old ones
/// does not give their numbers again: the first of January 2025.
const NUMBERS_SINCE: i64 = 1_735_689_600;

impl Host {
    /// Makes the World anew.
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
        self.find_queues_and_pools();
        self.recover_learned_state();
        self.recall_offerings();
        self.recover_requests();
        self.load_volumes();
        let reopened = self.find_gangs();
        self.remove_orphans();
        self.tell_pools();
        self.find_claims_and_nodes();
        let parts = self.recover_running_members();
        for queue in reopened {
            self.apply_event(&Event::QueueGone(queue));
        }
        self.find_orders();
        self.stop_parts(&parts);
        self.follow_claims();
        self.find_idle();
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

    fn find_queues_and_pools(&mut self) {
        self.apply_event(&Event::Epoch(0));
        self.apply_event(&Event::QueueSet(QueueSpec::open("default")));
        self.set_queues();
        for moved in self.all_of(KindRole::Pool) {
            self.subject = Some(Subject::Object(KindRole::Pool, moved.key.clone()));
            self.observe_pool(&moved);
        }
        self.subject = None;
    }

    /// Everything on a shelf, as if it had just been seen.
    pub(crate) fn all_of(&self, interest: KindRole) -> Vec<Moved<kube::api::DynamicObject>> {
        let shelf = self.sources.of(interest).and_then(|source| self.cache.others.get(&source));
        let objects = shelf.into_iter().flat_map(Store::iter);
        let now = Instant::now();
        let is_left_out =
            |key: &Arc<str>| self.quarantine.has(&Subject::Object(interest, key.clone()), now);
        objects
            .filter(|(key, _)| !is_left_out(key))
            .map(|(key, object)| Moved { key: key.clone(), was: None, is: Some(object.clone()) })
            .collect()
    }

    /// Gangs in the order they were submitted, at the time they were. Says which queues are there only for those who run in
    /// them, and take nobody else.
    fn find_gangs(&mut self) -> BTreeSet<Arc<str>> {
        self.register_merged_gangs();
        let mut pods: Vec<_> =
            self.cache.pods.iter().map(|(key, pod)| (key.clone(), pod.clone())).collect();
        // Of two gangs of one name the older comes first.
        pods.sort_by_key(|(_, pod)| made(&pod.metadata));
        for (key, pod) in pods {
            if self.handles(Subject::Pod(key.clone())) && self.is_managed(&pod) {
                self.add_to_gang(&key, &pod);
                self.observe_assigned_node(&key, &pod);
            }
        }
        self.subject = None;
        for moved in self.all_of(KindRole::Workload(WorkloadKind::Job)) {
            if let Some(origin) = moved.is.and_then(|job| self.source_of_job(&job)) {
                self.gangs.ensure(origin);
            }
        }
        for moved in self.all_of(KindRole::Gang) {
            self.subject = Some(Subject::Object(KindRole::Gang, moved.key.clone()));
            self.observe_templates(&moved);
        }
        for moved in self.all_of(KindRole::Group(Dialect::Volcano, 0)) {
            self.subject =
                Some(Subject::Object(KindRole::Group(Dialect::Volcano, 0), moved.key.clone()));
            self.observe_group_without_pods(&moved);
        }
        self.subject = None;
        let mut found: Vec<(Time, Arc<str>)> = Vec::new();
        for name in self.gangs.names() {
            let group = self.gangs.get(name).expect("named");
            found.push((self.made_at(group), name.clone()));
        }
        found.sort();
        let mut reopened = BTreeSet::new();
        for (at, name) in found {
            if !self.handles(Subject::Gang(name.clone())) {
                continue; // it is told when it is looked at
            }
            self.update_stage(&name);
            let group = self.gangs.get(&name).expect("named");
            if self.is_superseded(group) {
                continue;
            }
            // Those that are over are nobody's business any more.
            let standing = self.pods_by_state(group);
            let nobody = standing.bound.is_empty() && standing.unbound.is_empty();
            let is_request = matches!(group.source, GangSource::Request { .. });
            if nobody
                && !self.may_have_missing_members(group)
                && !self.is_job_unfinished(group)
                && !is_request
            {
                continue;
            }
            match self.build_for_submit(&name) {
                Ok(gathered) => {
                    let spec = gathered.spec.clone();
                    let has_seats = !standing.bound.is_empty() || self.has_placement(&name);
                    if has_seats && self.reopen_queue(&spec.queue) {
                        reopened.insert(spec.queue.clone());
                    }
                    let crowded = if has_seats { None } else { self.over_gang_limit(&name) };
                    if let Some(why) = crowded {
                        self.gangs.set_blocked(&name, Some(why));
                        continue;
                    }
                    let taken = self.apply_event(&Event::GangSubmitted(spec.clone()));
                    self.has_waited(&name, at);
                    let group = self.gangs.get_mut(&name).expect("named");
                    (group.pod_roles, group.pod_ranks) = (gathered.pod_roles, gathered.pod_ranks);
                    (group.pod_constraints, group.wait_reason) =
                        (gathered.pod_constraints, gathered.wait_reason);
                    (group.planned_from_template, group.missing_members) =
                        (gathered.planned_from_template, gathered.missing_members);
                    group.submitted_spec = taken.then_some(spec);
                }
                Err(why) => drop(self.gangs.set_blocked(&name, Some(why))),
            }
        }
        self.subject = None;
        reopened
    }

    /// Objects that Muster made of gangs that are no more, and that nobody else will remove: whoever should have was
    /// ended first.
    fn remove_orphans(&mut self) {
        for Moved { key, is, .. } in self.all_of(KindRole::Gang) {
            let Some(object) = is else { continue };
            let own = object.labels().get(MANAGED_BY).is_some_and(|by| by == MUSTER);
            if own && object.owner_references().is_empty() && self.gangs.get(&key).is_none() {
                self.remove_object(&key);
            }
        }
    }

    fn find_claims_and_nodes(&mut self) {
        let claims: Vec<_> = self.cache.claims.iter().map(|(_, claim)| claim.clone()).collect();
        for claim in &claims {
            if let Some(marks) = marks(claim) {
                self.find_node_claim(&marks, claim);
            }
        }
        self.recover_issued_requests();
        let nodes: Vec<Arc<str>> = self.cache.nodes.iter().map(|(key, _)| key.clone()).collect();
        for node in &nodes {
            if self.handles(Subject::Node(node.clone())) {
                self.reconcile_node(node);
            }
        }
        self.subject = None;
        self.reconcile_issued_requests();
    }

    /// What has become of claims while nobody looked. Who is on a node whose claim is leaving is told so, and must be known.
    fn follow_claims(&mut self) {
        let claims: Vec<_> = self.cache.claims.iter().map(|(_, claim)| claim.clone()).collect();
        for claim in claims {
            let key: Arc<str> = claim.metadata.name.clone().unwrap_or_default().into();
            if !self.handles(Subject::Claim(key.clone())) {
                continue;
            }
            self.observe_node_claim(&Moved { key, was: None, is: Some(claim) });
        }
        self.subject = None;
    }

    /// A gang that is found keeps its place in line, and what it has waited counts.
    pub(crate) fn has_waited(&mut self, name: &Arc<str>, submitted: Time) {
        let Some(gang) = self.world.gang_named(name) else { return };
        let told = self.gang_seen(name).and_then(|gang| {
            let since = gang.data.pointer("/status/waitingSince")?.as_str()?;
            muster_api::instant(since).ok()
        });
        // What is told may be of another that had its name.
        let since = told.filter(|since| *since >= submitted).unwrap_or(submitted);
        self.apply_event(&Event::GangWaits { gang, submitted, since });
        self.recall_orders(name, gang, submitted);
    }

    /// Since when those of a gang run that are somewhere. Members that were replaced meanwhile do not make it younger.
    fn runs_since(&self, standing: &PodsByState) -> Time {
        let pods = standing.bound.iter().filter_map(|(key, _)| self.cache.pods.get(key));
        let began = pods.filter_map(|pod| {
            pod.status.start_time.as_ref().map(instant).or_else(|| made(&pod.metadata))
        });
        began.min().unwrap_or_else(|| self.now())
    }

    /// Whether somebody was stopping a gang: too few of it would be left without those who are sent away.
    fn was_being_stopped(&self, group: &GangRecord, standing: &PodsByState) -> bool {
        let pods =
            standing.bound.iter().filter_map(|(key, _)| Some((key, self.cache.pods.get(key)?)));
        let (sent, stay): (Vec<_>, Vec<_>) = pods.partition(|(_, pod)| pod.is_sent_away());
        let Some(spec) = group.submitted_spec.as_ref().filter(|_| !sent.is_empty()) else {
            return false;
        };
        let of = |at: usize| {
            let mine = stay.iter().filter(move |(key, _)| {
                group.pod_roles.get(*key).is_some_and(|role| usize::from(*role) == at)
            });
            mine.count() as u32
        };
        spec.roles.iter().enumerate().any(|(at, role)| of(at) < role.min)
    }

    /// Gangs that have seats: where their placement says, or where their pods are. Says which cannot go on as they are.
    /// Pods that no placement speaks of come last: what is left of their queue's limits is all they get.
    fn recover_running_members(&mut self) -> Vec<GangId> {
        let mut parts = Vec::new();
        let unrecorded = self.hold_unrecorded();
        let mut names = self.seated_members_first();
        names.retain(|name| !unrecorded.contains(name));
        for name in names.into_iter().chain(unrecorded) {
            self.subject = Some(Subject::Gang(name.clone()));
            let Some(id) = self.world.gang_named(&name) else { continue };
            let mut sitting = self.recorded(&name).unwrap_or_default();
            let is_outdated = self.is_outdated(&name, id, &sitting);
            if is_outdated {
                tracing::info!(gang = &*name, "others have the room that was written down for it");
                sitting = Vec::new();
                self.write_final_status(&name, GangPhase::Waiting);
            }
            let restored_seats = self.restored_seats(&name, id).filter(|_| !is_outdated);
            let is_reseated = restored_seats.is_some();
            if let Some((spec, seats)) = restored_seats {
                let full = self.world.gang(id).expect("named").spec.clone();
                self.apply_event(&Event::GangChanged(spec));
                self.map_roles_to_seats(&name, &full);
                sitting = seats;
            }
            let group = self.gangs.get(&name).expect("named");
            let standing = self.pods_by_state(group);
            let is_request = matches!(group.source, GangSource::Request { .. });
            let was_recorded = !sitting.is_empty();
            if is_request && was_recorded {
                sitting = self.still_booked(&name, sitting);
                if sitting.is_empty() {
                    self.was_spent(&name, id);
                    continue;
                }
                // Its templates may ask for more by now than it was given.
                let is_allowed = self.world.is_within_limits(id, &sitting);
                if !is_allowed || !self.world.is_room_for(id, &sitting) {
                    let why = "what it asks for now is more than was kept for it";
                    self.fail(&name, "Changed", why);
                    continue;
                }
            }
            if !was_recorded && !is_request {
                sitting = self.occupied_seats(group, &self.pods_on_nodes(group));
            }
            if sitting.is_empty() {
                continue;
            }
            let there = self.occupied_seats(group, &self.pods_on_nodes(group));
            let gang = self.world.gang(id).expect("named");
            let mins: u32 = gang.spec.roles.iter().map(|role| role.min).sum();
            let seats = members(&sitting);
            let since = self.runs_since(&standing);
            let stops = self.was_being_stopped(group, &standing);
            match was_recorded {
                // It was checked against limits and room: see `is_outdated`.
                true => drop(self.apply_event(&Event::GangFound { gang: id, since, sitting })),
                false if !self.seat_observed_pods(&name, id, since, sitting) => continue,
                false => {}
            }
            // A pod that is on a node takes a place there, whatever was written down.
            let gang = self.world.gang(id).expect("named");
            let is_elsewhere = seats_after_move(&gang.seats, &there).filter(|_| !is_request);
            let is_moved = is_elsewhere.is_some();
            if let Some(sitting) = is_elsewhere {
                self.seat_observed_pods(&name, id, since, sitting);
            }
            if was_recorded && seats < mins {
                // Its submitter has thought again: what it is now counts when it starts anew.
                let spec = self.world.gang(id).expect("named").spec.clone();
                self.apply_event(&Event::GangChanged(spec));
            }
            let ran = self.gang_seen(&name).is_some_and(|gang| is_recorded_running(gang));
            let group = self.gangs.get_mut(&name).expect("named");
            (group.placement_written, group.was_fully_bound) = (!is_reseated && !is_outdated, ran);
            if is_reseated || is_outdated || is_moved {
                self.write_placement(&name, id);
            }
            let group = self.gangs.get(&name).expect("named");
            if group.pods.is_empty() && self.creates_pods_after_admission(group) {
                self.reserve_for_members(&name);
                self.request_members(&name);
            }
            // Part of a gang and no record of where the rest was to go, or of whom some were sent away already.
            let is_member_group = (stops || (seats < mins && !was_recorded)) && !is_request;
            parts.extend(is_member_group.then_some(id));
        }
        self.subject = None;
        parts
    }

    /// Who is seated before whom. What is written down may be out of date: whoever led before gave a gang's seats to another,
    /// and was ended before it could say so. So those who are somewhere have their places first, all of them; then those
    /// who were about to be put somewhere, and those last who are said to run and are nowhere. Of them all, those come later
    /// who may have to be seated otherwise than it was written down: they see what the others leave.
    fn seated_members_first(&mut self) -> Vec<Arc<str>> {
        let mut names: Vec<(bool, u8, Arc<str>)> = Vec::new();
        let mut in_part = Vec::new();
        for name in self.gangs.names() {
            let group = self.gangs.get(name).expect("named");
            let told = members(&self.recorded(name).unwrap_or_default());
            let standing = self.pods_by_state(group);
            let there = self.occupied_seats(group, &self.pods_on_nodes(group));
            let rank = match members(&there) {
                there if there >= told => 0,
                0 if self.gang_seen(name).is_some_and(|gang| is_recorded_running(gang)) => 3,
                0 => 2,
                _ => 1,
            };
            if rank == 1 {
                in_part.push((name.clone(), self.runs_since(&standing), there));
            }
            names.push((self.may_have_missing_members(group), rank, name.clone()));
        }
        for (name, since, sitting) in in_part {
            let Some(gang) = self.world.gang_named(&name) else { continue };
            self.apply_event(&Event::GangFound { gang, since, sitting });
        }
        names.sort();
        names.into_iter().map(|(_, _, name)| name).collect()
    }

    /// Whether a placement holds no more: others are by now where members were told to go, or members that are on no node yet
    /// are more than the limits of their queue allow. Pods that were replaced since may ask for more than the placement was
    /// made for.
    fn is_outdated(&self, name: &str, id: GangId, told: &[RoleSeats]) -> bool {
        let group = self.gangs.get(name).expect("named");
        if matches!(group.source, GangSource::Request { .. }) {
            return false; // whoever took its room has it rightly
        }
        let there = self.occupied_seats(group, &self.pods_on_nodes(group));
        let mut missing = told.to_vec();
        for one in &mut missing {
            let is_it = |other: &&RoleSeats| (other.role, other.node) == (one.role, one.node);
            let here: u16 = there.iter().filter(is_it).map(|other| other.members).sum();
            one.members = one.members.saturating_sub(here);
        }
        let is_whole = missing.iter().all(|one| one.members == 0);
        let is_allowed = is_whole || self.world.is_within_limits(id, told);
        !is_allowed || !self.world.is_room_for(id, &missing)
    }

    /// Gangs that cannot go on as they are start over as a whole, but for those who make way for an order: they are told
    /// when it is time, and it was written down for whom.
    fn stop_parts(&mut self, parts: &[GangId]) {
        for id in parts {
            let makes_way = |order: &Order| order.after.iter().any(|way| way.gang == *id);
            let waits = self.world.gang(*id).is_none_or(|gang| gang.phase == Phase::Waiting);
            if !waits && !self.world.orders().values().any(makes_way) {
                self.stop_gang(*id, StopReason::Moved);
            }
        }
    }

    /// The object of a gang, whoever made it.
    pub(crate) fn gang_seen(&self, name: &str) -> Option<&Arc<kube::api::DynamicObject>> {
        self.object_named(KindRole::Gang, name)
    }

    /// Whether it was written down where a gang's members go.
    pub(crate) fn has_placement(&self, name: &str) -> bool {
        self.gang_seen(name).is_some_and(|gang| !placement_of(gang).is_empty())
    }

    /// Where a gang's members were told to go, if that was written down and all of it is still there.
    pub(crate) fn recorded(&self, name: &str) -> Option<Vec<RoleSeats>> {
        let placement = placement_of(self.gang_seen(name)?);
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
        let (hands, order) = (self.writer.clone(), name.clone());
        self.ordered_writes.write(name, async move {
            let _ = hands.remove(&orders, &order).await;
        });
    }

    /// Orders that were written down, in the order they were.
    fn find_orders(&mut self) {
        let mut found: Vec<(OrderSpec, Time)> = Vec::new();
        for moved in self.all_of(KindRole::Order) {
            let Some(object) = moved.is else { continue };
            let spec = object.data.get("spec").cloned().unwrap_or_default();
            let placed = made(&object.metadata).unwrap_or_else(|| self.now());
            match serde_json::from_value(spec) {
                Ok(spec) => found.push((spec, placed)),
                Err(why) => {
                    // What it asked for is found by itself, and is nobody's.
                    tracing::warn!(order = &*moved.key, %why, "an order cannot be understood: removed");
                    self.remove_order(&moved.key);
                }
            }
        }
        found.sort_by_key(|(spec, _)| spec.number);
        for (spec, placed) in found {
            let id = muster_core::id::OrderId(spec.number);
            let top_ups = spec.replaced_claims;
            let order = read(&self.world, &spec);
            let goes_on = order.is_some_and(|order| {
                self.apply_event(&Event::OrderFound { order, placed, top_ups })
            });
            if goes_on {
                let gang = format!("{}/{}", spec.gang.namespace, spec.gang.name);
                self.order_by_gang.insert(gang.into(), id);
                // Some of its claims may never have been asked for.
                self.update_order(id);
            } else {
                tracing::info!(order = order_name(id), "cannot go on");
                self.close_order(id, "RolledBack");
            }
        }
    }
}

/// How many sit there.
fn members(sitting: &[RoleSeats]) -> u32 {
    sitting.iter().map(|one| u32::from(one.members)).sum()
}
