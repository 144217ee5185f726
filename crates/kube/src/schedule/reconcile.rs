//! Pods become gangs, and gangs are followed: submitted, started, done, gone.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::runtime::events::EventType;
use muster_core::Event;
use muster_core::event::Refusal;
use muster_core::gang::{GangSpec, Phase, RoleSpec};
use muster_core::resource::TOKEN;

use crate::cache::node_usage::takes_otherwise;
use crate::cache::store::{Key, Moved};
use crate::gang::identity::{BuiltGang, GangSource};
use crate::gang::tenancy::trusted_annotations::Released;
use crate::host::Host;
use crate::objects::pod::Pod;
use crate::provision::requests_served::handover::Room;
use crate::schedule::owner_resize::Size;
use crate::status::gang::LEFT_OUT;

impl Host {
    /// Takes in a change of a pod.
    pub(crate) fn observe_pod(&mut self, moved: &Moved<Pod>) {
        #[cfg(any(test, feature = "cluster"))]
        crate::recover::injected_faults::strike(
            &self.config.faults,
            crate::recover::injected_faults::Spot::Pod,
            &moved.key,
        );
        let nodes = [&moved.was, &moved.is].map(|pod| pod.as_deref().and_then(Pod::node));
        self.pod_may_invalidate(moved);
        let Some(pod) = &moved.is else {
            self.unwrite_pod(&moved.key);
            let gang = self.gangs.remove_pod(&moved.key);
            let is_known = gang.as_ref().is_some_and(|gang| self.world.gang_named(gang).is_some());
            if !is_known || nodes.iter().flatten().any(|node| self.excess_usage.contains(*node)) {
                self.dirty.nodes.extend(nodes.into_iter().flatten().map(Arc::from));
            }
            self.dirty.gangs.extend(gang);
            return;
        };
        if !self.is_managed(pod) {
            // Somebody else's: what counts is what it takes. Who lifts Muster's gate by hand makes it so.
            if let Some(gang) = self.gangs.remove_pod(&moved.key) {
                self.dirty.gangs.insert(gang);
            }
            if takes_otherwise(moved) {
                self.dirty.nodes.extend(nodes.into_iter().flatten().map(Arc::from));
            }
            return;
        }
        let name = self.add_to_gang(&moved.key, pod);
        // Who goes where it was told takes what there is a seat for.
        let told = self.gangs.get(&name).and_then(|record| record.assigned_nodes.get(&moved.key));
        let is_told = told.is_some_and(|told| nodes[0].is_none() && nodes[1] == Some(&**told));
        self.observe_assigned_node(&moved.key, pod);
        let is_beyond = nodes.iter().flatten().any(|node| self.excess_usage.contains(*node));
        let is_elsewhere = takes_otherwise(moved) && !is_told && !pod.is_over();
        if is_elsewhere || is_beyond || self.world.gang_named(&name).is_none() {
            self.dirty.nodes.extend(nodes.into_iter().flatten().map(Arc::from));
        }
        if moved.was.is_none() && pod.node().is_none() {
            self.written_status.is_untold(&name);
        }
        self.dirty.gangs.insert(name);
    }

    /// Where a pod is, or will be: it was told so, and here it can be seen.
    pub(crate) fn observe_assigned_node(&mut self, key: &Key, pod: &Pod) {
        let seat: Option<Arc<str>> = self.assigned_node_of(key, pod).map(Arc::from);
        let Some(name) = self.gangs.gang_of(key).map(|(name, _)| name.clone()) else { return };
        let record = self.gangs.get_mut(&name).expect("just seen");
        if let Some(node) = &seat {
            let uid = pod.metadata.uid.clone().unwrap_or_default();
            record.released.insert(key.clone(), Released { uid, node: node.clone() });
        }
        match (pod.node(), seat) {
            (Some(node), _)
                if record.assigned_nodes.get(key).is_some_and(|told| **told == *node) =>
            {
                record.assigned_nodes.remove(key);
            }
            // Its gate is lifted: its scheduler has no other node to choose.
            (None, Some(seat)) => drop(record.assigned_nodes.insert(key.clone(), seat)),
            _ => {}
        }
    }

    /// Looks at a gang again: some of its pods have changed, or what says what it is has.
    pub(crate) fn reconcile_gang(&mut self, name: &Arc<str>) {
        #[cfg(any(test, feature = "cluster"))]
        if self.left_out(name).is_none() {
            crate::recover::injected_faults::strike(
                &self.config.faults,
                crate::recover::injected_faults::Spot::Gang,
                name,
            );
        }
        if self.left_out(name).is_none() && self.regroup(name) {
            return;
        }
        let Some(record) = self.gangs.get(name) else { return };
        let nobody = record.pods.is_empty() && record.successors.is_empty();
        if nobody && !self.source_exists(&record.source) {
            return self.remove_gang(name);
        }
        if let Some(why) = self.left_out(name) {
            return self.hold_quarantined(name, &why);
        }
        if let GangSource::Request { .. } = record.source {
            return self.reconcile_request(name);
        }
        if self.is_superseded(record) {
            return self.start_successor(name);
        }
        self.withdraw_unwanted_job(name);
        self.update_stage(name);
        self.create_members(name);
        match self.build_for_submit(name) {
            Ok(built) => {
                self.gangs.get_mut(name).expect("just seen").preferences_refreshed = false;
                self.submit_or_update(name, built);
                self.take_room(name);
            }
            Err(why) => {
                let record = self.gangs.get_mut(name).expect("just seen");
                record.role_sizes.clear();
                // That members are missing helps their owner less than why they are.
                let why = record.create_backoff.refusal().map_or(why, str::to_owned);
                if self.gangs.set_blocked(name, Some(why.clone())) {
                    tracing::info!(gang = &**name, why, "not a whole gang");
                }
                self.handle_incomplete(name);
            }
        }
        self.reconcile_phase(name);
    }

    /// A gang whose handling caused a panic is not planned, bound or evicted; its pods are told why.
    fn hold_quarantined(&mut self, name: &Arc<str>, why: &str) {
        if self.gangs.set_blocked(name, Some(why.to_owned())) {
            self.record_event(name, EventType::Warning, (LEFT_OUT, "Schedule"), why);
        }
    }

    /// A gang of pods that asks for its tokens by name, or why they are none. Whoever named room that is not there yet
    /// does not stand in line for other room.
    pub(crate) fn build_for_submit(&mut self, name: &Arc<str>) -> Result<BuiltGang, String> {
        if let Some(why) = self.left_out(name) {
            return Err(why);
        }
        if let Room::Awaited(booking, why) = self.room_of(name) {
            self.await_room(name, booking);
            return Err(why);
        }
        let record = self.gangs.get(name).expect("just seen");
        let mut built = self.build_gang(record)?;
        self.name_tokens(name, &mut built);
        self.hold_during_backoff(name, &mut built);
        self.hold_beyond_limits(name, &mut built);
        Ok(built)
    }

    /// Tells the World what a gang is, if it does not know.
    pub(crate) fn submit_or_update(&mut self, name: &Arc<str>, built: BuiltGang) {
        let BuiltGang {
            mut spec,
            pod_roles,
            pod_ranks,
            pod_constraints,
            wait_reason,
            planned_from_template,
            missing_members,
            wanted_members,
            unsupported,
        } = built;
        self.limit_growth_to_existing(name, &mut spec, &pod_roles);
        let record = self.gangs.get_mut(name).expect("just seen");
        record.planned_from_template = planned_from_template;
        record.missing_members = missing_members;
        record.role_sizes = Size::of_roles(&spec, &wanted_members);
        (record.pod_roles, record.pod_ranks) = (pod_roles, pod_ranks);
        (record.pod_constraints, record.wait_reason) = (pod_constraints, wait_reason);
        let same = record.submitted_spec.as_ref() == Some(&spec);
        let was_refused = record.world_refusal.is_some();
        (record.differs_from_seats, record.pods_missing_at_admission) = (false, false);
        self.gangs.set_blocked(name, None);
        if same {
            return;
        }
        let known = self.world.gang_named(name).is_some();
        if !known && let Some(why) = self.over_gang_limit(name) {
            self.gangs.set_blocked(name, Some(why));
            return;
        }
        let event = match known {
            false => Event::GangSubmitted(spec.clone()),
            true => Event::GangChanged(spec.clone()),
        };
        let now = self.now();
        match self.world.apply(now, &event) {
            Ok(()) => {
                self.world_changed = true;
                self.gangs.get_mut(name).expect("just seen").submitted_spec = Some(spec);
                if !known && was_refused {
                    // It has stood in line for as long as what it lacked was not there.
                    let since = self.made_at(self.gangs.get(name).expect("just seen"));
                    self.has_waited(name, since);
                }
                if !known {
                    self.record_unsupported(name, &unsupported);
                    self.gangs_without_object.insert(name.clone());
                    self.requeue_nodes_of(name);
                }
            }
            // Nobody can be what it would be now: as what it was nobody wants it any more.
            Err(refusal) if known && self.is_spec_invalid(name, &refusal) => {
                self.withdraw_from_planner(name);
                self.gangs.set_refused(name, refusal);
            }
            // Seats that were taken for members nobody had seen are for what they turn out to be.
            Err(_) if known && self.has_seats_for_other_members(name, &spec) => {
                self.reassign_seats_to_members(name, spec);
            }
            // An order for what it was would start it in part, or hold nodes that nobody uses.
            Err(_) if known && self.is_order_outdated(name, &spec) => {
                tracing::info!(gang = &**name, "it is another than its order was made for");
                self.resubmit_without_order(name, spec);
            }
            // What runs stays as it was taken in.
            Err(refusal) if known => {
                tracing::debug!(gang = &**name, %refusal, "not changed");
                self.map_roles_to_seats(name, &spec);
                let record = self.gangs.get(name).expect("just seen");
                let waits = |key: &Key| {
                    let pod = self.cache.pods.get(key);
                    pod.is_some_and(|pod| !pod.is_over() && pod.node().is_none())
                };
                let has_no_seat = |key: &Key| waits(key) && !record.pod_roles.contains_key(key);
                let is_unlike = record.pods.iter().any(has_no_seat);
                self.gangs.get_mut(name).expect("just seen").differs_from_seats = is_unlike;
            }
            Err(refusal) => self.gangs.set_refused(name, refusal),
        }
    }

    /// Whether a gang that has no seats yet is refused for what it says, and not for how far it is.
    fn is_spec_invalid(&self, name: &str, refusal: &Refusal) -> bool {
        let gang = self.world.gang_named(name).and_then(|id| self.world.gang(id));
        let waits = |phase: &Phase| matches!(phase, Phase::Waiting | Phase::Assembling(_));
        !matches!(refusal, Refusal::Stale(_)) && gang.is_some_and(|gang| waits(&gang.phase))
    }

    /// A gang that has no seats yet is planned no more, and holds nothing.
    fn withdraw_from_planner(&mut self, name: &Arc<str>) {
        let Some(id) = self.world.gang_named(name) else { return };
        self.roll_back_order(id);
        self.apply_event(&Event::GangCancelled(id));
        self.gangs.get_mut(name).expect("just seen").submitted_spec = None;
    }

    /// Whether an order assembles for other members than a gang has now, or in another queue's name. Where they may go is
    /// looked at when it is complete: that changes with everybody who moves.
    fn is_order_outdated(&self, name: &str, now: &GangSpec) -> bool {
        let gang = self.world.gang_named(name).and_then(|id| self.world.gang(id));
        gang.is_some_and(|gang| {
            matches!(gang.phase, Phase::Assembling(_))
                && (!have_same_members(&gang.spec, now) || gang.spec.queue != now.queue)
        })
    }

    /// Ends the order of a gang that has become another, and has it planned as what it is, in its old place.
    fn resubmit_without_order(&mut self, name: &Arc<str>, spec: GangSpec) {
        let Some(id) = self.world.gang_named(name) else { return };
        self.roll_back_order(id);
        if self.apply_event(&Event::GangChanged(spec.clone())) {
            self.gangs.get_mut(name).expect("just seen").submitted_spec = Some(spec);
        }
    }

    /// Nodes on which pods of a gang are that was not known are looked at again: what they take was counted as a
    /// stranger's.
    fn requeue_nodes_of(&mut self, name: &Arc<str>) {
        let record = self.gangs.get(name).expect("just seen");
        let pods = record.pods.iter().filter_map(|key| self.cache.pods.get(key));
        self.dirty.nodes.extend(pods.filter_map(|pod| pod.node()).map(Arc::from));
    }

    /// Members of a gang that stays as it was taken in play the roles it has, by their names: they may be listed in
    /// another order since some of them exist. Who takes more than there is on a seat of its role plays none.
    pub(crate) fn map_roles_to_seats(&mut self, name: &Arc<str>, now: &GangSpec) {
        let Some(id) = self.world.gang_named(name) else { return };
        let roles = &self.world.gang(id).expect("named").spec.roles;
        let place = |at: &u16| {
            let of = now.roles.get(usize::from(*at))?;
            let named = |role: &&RoleSpec| role.name == of.name && fits_seat_of(role, of);
            // Shapes of one role are told apart by numbers, which change when one of them is done.
            let alike = |role: &&RoleSpec| is_same_role(role, of) && fits_seat_of(role, of);
            let found = roles.iter().find(named).or_else(|| roles.iter().find(alike))?;
            u16::try_from(roles.iter().position(|role| role.name == found.name)?).ok()
        };
        let record = self.gangs.get_mut(name).expect("just seen");
        let played = std::mem::take(&mut record.pod_roles);
        record.pod_roles =
            played.into_iter().filter_map(|(pod, at)| Some((pod, place(&at)?))).collect();
        let mut sized: BTreeMap<u16, Size> = BTreeMap::new();
        for (at, size) in &record.role_sizes {
            if let Some(place) = place(at) {
                sized.entry(place).and_modify(|sum| sum.add(size)).or_insert(*size);
            }
        }
        // A role that no template names any more is wanted by nobody.
        let is_known = record.role_sizes.values().all(|size| size.wanted.is_some());
        for (at, role) in (0..).zip(roles).filter(|_| is_known && !record.role_sizes.is_empty()) {
            if !now.roles.iter().any(|of| is_same_role(role, of)) {
                sized.entry(at).or_insert(Size::UNWANTED);
            }
        }
        record.role_sizes = sized;
    }

    /// Gangs that could not be taken in are tried again when what they name may be there.
    pub(crate) fn retry_blocked(&mut self) {
        let names: Vec<Arc<str>> = self.gangs.blocked().cloned().collect();
        self.dirty.gangs.extend(names);
    }

    pub(crate) fn remove_gang(&mut self, name: &Arc<str>) {
        if let Some(id) = self.world.gang_named(name) {
            match self.world.gang(id).expect("named").phase {
                Phase::Waiting | Phase::Assembling(_) => {
                    self.apply_event(&Event::GangCancelled(id));
                    if self.world.gang(id).is_some() {
                        return; // its order is rolled back first
                    }
                }
                Phase::Admitted { .. } | Phase::Running { .. } | Phase::Stopping => {
                    self.apply_event(&Event::GangEnded(id));
                }
            }
        }
        self.clear_placement(name);
        self.unwrite(name);
        self.gangs.remove(name);
        self.served_requests.waits_no_more(name);
        self.constraints.forget(name);
    }
}

/// Whether two gangs need as many members that ask for the same, role by role, in whatever order. What they are tied to
/// aside.
pub(crate) fn have_same_members(one: &GangSpec, other: &GangSpec) -> bool {
    let asks = |role: &RoleSpec| {
        let amounts = role.request.amounts.iter().filter(|(name, _)| !name.starts_with(TOKEN));
        let amounts: Vec<(Arc<str>, u64)> = amounts.map(|(name, n)| (name.clone(), *n)).collect();
        (role.name.clone(), role.min, amounts, role.request.gpu.clone())
    };
    one.roles.len() == other.roles.len()
        && one.roles.iter().all(|role| other.roles.iter().any(|now| asks(now) == asks(role)))
}

/// Whether two roles have one name, but for a number.
fn is_same_role(one: &RoleSpec, other: &RoleSpec) -> bool {
    let stem = |role: &RoleSpec| match role.name.rsplit_once('-') {
        Some((stem, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => stem.to_owned(),
        _ => role.name.to_string(),
    };
    stem(one) == stem(other)
}

/// Whether a seat of a role is enough for a member of another: as many GPUs, and no less of the rest.
fn fits_seat_of(seat: &RoleSpec, member: &RoleSpec) -> bool {
    let asked = member.request.amounts.iter().filter(|(name, _)| !name.starts_with(TOKEN));
    let has = |name: &Arc<str>| seat.request.amounts.get(name).copied().unwrap_or(0);
    seat.request.gpu == member.request.gpu
        && asked.into_iter().all(|(name, amount)| *amount <= has(name))
}

/// Whether a gang is one pod that stands for itself.
pub(crate) fn is_single_pod(spec: &GangSpec, source: &GangSource) -> bool {
    matches!(source, GangSource::Pod { .. }) && spec.roles.len() == 1 && spec.roles[0].max == 1
}
