//! Reconciles gangs with observed pods: adds pods to gangs, submits gangs to the World, updates and removes them.
//!
//! Not here: what a gang is built from (`gang::build`), and what happens in each phase (`phase`).

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::runtime::events::EventType;
use muster_core::Event;
use muster_core::event::Refusal;
use muster_core::gang::{GangSpec, Phase, RoleSpec};
use muster_core::resource::TOKEN;

use crate::cache::node_usage::usage_changed;
use crate::cache::store::{Key, ObjectChange};
use crate::gang::identity::{BuiltGang, GangSource};
use crate::gang::tenancy::trusted_annotations::Released;
use crate::host::Host;
use crate::objects::pod::Pod;
use crate::provision::requests_served::handover::BookingState;
use crate::schedule::owner_resize::Size;
use crate::status::reasons::LEFT_OUT;

impl Host {
    /// Applies a change of a pod.
    pub(crate) fn observe_pod(&mut self, moved: &ObjectChange<Pod>) {
        #[cfg(any(test, feature = "cluster"))]
        crate::recover::injected_faults::strike(
            &self.config.faults,
            crate::recover::injected_faults::FaultPoint::Pod,
            &moved.key,
        );
        let nodes = [&moved.was, &moved.is].map(|pod| pod.as_deref().and_then(Pod::node));
        self.pod_may_invalidate(moved);
        let Some(pod) = &moved.is else {
            self.forget_pod_status(&moved.key);
            let gang = self.gangs.remove_pod(&moved.key);
            let is_known = gang.as_ref().is_some_and(|gang| self.world.gang_named(gang).is_some());
            if !is_known || nodes.iter().flatten().any(|node| self.excess_usage.contains(*node)) {
                self.dirty.nodes.extend(nodes.into_iter().flatten().map(Arc::from));
            }
            self.dirty.gangs.extend(gang);
            return;
        };
        if !self.is_managed(pod) {
            // Not managed by Muster, for example because a user removed Muster's gate: only its usage counts.
            if let Some(gang) = self.gangs.remove_pod(&moved.key) {
                self.dirty.gangs.insert(gang);
            }
            if usage_changed(moved) {
                self.dirty.nodes.extend(nodes.into_iter().flatten().map(Arc::from));
            }
            return;
        }
        let name = self.add_to_gang(&moved.key, pod);
        // A pod that is bound to its assigned node uses its seat.
        let assigned =
            self.gangs.get(&name).and_then(|record| record.assigned_nodes.get(&moved.key));
        let is_as_assigned =
            assigned.is_some_and(|node| nodes[0].is_none() && nodes[1] == Some(&**node));
        self.observe_assigned_node(&moved.key, pod);
        let has_excess = nodes.iter().flatten().any(|node| self.excess_usage.contains(*node));
        let is_elsewhere = usage_changed(moved) && !is_as_assigned && !pod.is_finished();
        if is_elsewhere || has_excess || self.world.gang_named(&name).is_none() {
            self.dirty.nodes.extend(nodes.into_iter().flatten().map(Arc::from));
        }
        if moved.was.is_none() && pod.node().is_none() {
            self.written_status.rewrite_pods(&name);
        }
        self.dirty.gangs.insert(name);
    }

    /// Updates the assigned node of a pod by what is observed of the pod.
    pub(crate) fn observe_assigned_node(&mut self, key: &Key, pod: &Pod) {
        let released_to: Option<Arc<str>> = self.assigned_node_of(key, pod).map(Arc::from);
        let Some(name) = self.gangs.gang_of(key).map(|(name, _)| name.clone()) else { return };
        let record = self.gangs.get_mut(&name).expect("the gang has a record");
        if let Some(node) = &released_to {
            let uid = pod.metadata.uid.clone().unwrap_or_default();
            record.released.insert(key.clone(), Released { uid, node: node.clone() });
        }
        match (pod.node(), released_to) {
            (Some(node), _)
                if record.assigned_nodes.get(key).is_some_and(|assigned| **assigned == *node) =>
            {
                record.assigned_nodes.remove(key);
            }
            // Its gate is removed: its scheduler has no other node to choose.
            (None, Some(node)) => drop(record.assigned_nodes.insert(key.clone(), node)),
            _ => {}
        }
    }

    /// Reconciles a gang whose pods, or the objects it is built from, have changed.
    pub(crate) fn reconcile_gang(&mut self, name: &Arc<str>) {
        #[cfg(any(test, feature = "cluster"))]
        if self.quarantine_reason(name).is_none() {
            crate::recover::injected_faults::strike(
                &self.config.faults,
                crate::recover::injected_faults::FaultPoint::Gang,
                name,
            );
        }
        if self.quarantine_reason(name).is_none() && self.regroup(name) {
            return;
        }
        let Some(record) = self.gangs.get(name) else { return };
        let has_no_pods = record.pods.is_empty() && record.successors.is_empty();
        if has_no_pods && !self.source_exists(&record.source) {
            return self.remove_gang(name);
        }
        if let Some(why) = self.quarantine_reason(name) {
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
                self.gangs.get_mut(name).expect("the gang has a record").preferences_refreshed =
                    false;
                self.submit_or_update(name, built);
                self.hand_over_booking(name);
            }
            Err(why) => {
                let record = self.gangs.get_mut(name).expect("the gang has a record");
                record.role_sizes.clear();
                // The refusal to create members explains more than that members are missing.
                let why = record.create_backoff.refusal().map_or(why, str::to_owned);
                if self.gangs.set_blocked(name, Some(why.clone())) {
                    tracing::info!(gang = &**name, why, "not a complete gang");
                }
                self.handle_incomplete(name);
            }
        }
        self.reconcile_phase(name);
    }

    /// Holds a gang whose handling caused a panic: it is not planned, bound or evicted, and its pods have the reason.
    fn hold_quarantined(&mut self, name: &Arc<str>, why: &str) {
        if self.gangs.set_blocked(name, Some(why.to_owned())) {
            self.record_event(name, EventType::Warning, (LEFT_OUT, "Schedule"), why);
        }
    }

    /// The gang as it is submitted, with its tokens and holds, or why it is none. A gang that names a booking that is not
    /// provisioned yet is not queued for other capacity.
    pub(crate) fn build_for_submit(&mut self, name: &Arc<str>) -> Result<BuiltGang, String> {
        if let Some(why) = self.quarantine_reason(name) {
            return Err(why);
        }
        if let BookingState::Pending(booking, why) = self.booking_state(name) {
            self.wait_for_booking(name, booking);
            return Err(why);
        }
        let record = self.gangs.get(name).expect("the gang has a record");
        let mut built = self.build_gang(record)?;
        self.register_tokens(name, &mut built);
        self.hold_during_backoff(name, &mut built);
        self.hold_beyond_limits(name, &mut built);
        Ok(built)
    }

    /// Submits a gang to the World, or updates it there, if its spec has changed.
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
        let record = self.gangs.get_mut(name).expect("the gang has a record");
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
                self.gangs.get_mut(name).expect("the gang has a record").submitted_spec =
                    Some(spec);
                if !known && was_refused {
                    // It has queued all the time that what it lacked did not exist.
                    let since =
                        self.gang_created_at(self.gangs.get(name).expect("the gang has a record"));
                    self.recover_waiting_since(name, since);
                }
                if !known {
                    self.record_unsupported(name, &unsupported);
                    self.gangs_without_object.insert(name.clone());
                    self.requeue_nodes_of(name);
                }
            }
            // The new spec is invalid, and the old one is no longer wanted.
            Err(refusal) if known && self.is_spec_invalid(name, &refusal) => {
                self.withdraw_from_planner(name);
                self.gangs.set_refused(name, refusal);
            }
            // Seats reserved for members that did not exist go to the members that were created.
            Err(_) if known && self.has_seats_for_other_members(name, &spec) => {
                self.reassign_seats_to_members(name, spec);
            }
            // An order for the old spec would start it in part, or hold nodes that no pod uses.
            Err(_) if known && self.is_order_outdated(name, &spec) => {
                tracing::info!(gang = &**name, "its order was made for another spec");
                self.resubmit_without_order(name, spec);
            }
            // A gang that has seats keeps the spec it was submitted with.
            Err(refusal) if known => {
                tracing::debug!(gang = &**name, %refusal, "not changed");
                self.map_roles_to_seats(name, &spec);
                let record = self.gangs.get(name).expect("the gang has a record");
                let waits = |key: &Key| {
                    let pod = self.cache.pods.get(key);
                    pod.is_some_and(|pod| !pod.is_finished() && pod.node().is_none())
                };
                let has_no_seat = |key: &Key| waits(key) && !record.pod_roles.contains_key(key);
                let differs = record.pods.iter().any(has_no_seat);
                self.gangs.get_mut(name).expect("the gang has a record").differs_from_seats =
                    differs;
            }
            Err(refusal) => self.gangs.set_refused(name, refusal),
        }
    }

    /// Whether a gang without seats is refused for its spec, and not for its phase.
    fn is_spec_invalid(&self, name: &str, refusal: &Refusal) -> bool {
        let gang = self.world.gang_named(name).and_then(|id| self.world.gang(id));
        let waits = |phase: &Phase| matches!(phase, Phase::Waiting | Phase::Assembling(_));
        !matches!(refusal, Refusal::Stale(_)) && gang.is_some_and(|gang| waits(&gang.phase))
    }

    /// Withdraws a gang without seats from the planner, with its order.
    fn withdraw_from_planner(&mut self, name: &Arc<str>) {
        let Some(id) = self.world.gang_named(name) else { return };
        self.roll_back_order(id);
        self.apply_event(&Event::GangCancelled(id));
        self.gangs.get_mut(name).expect("the gang has a record").submitted_spec = None;
    }

    /// Whether an order assembles for other members than a gang has now, or for another queue. Constraints are checked when
    /// the order is complete: they change with every pod that moves.
    fn is_order_outdated(&self, name: &str, now: &GangSpec) -> bool {
        let gang = self.world.gang_named(name).and_then(|id| self.world.gang(id));
        gang.is_some_and(|gang| {
            matches!(gang.phase, Phase::Assembling(_))
                && (!have_same_members(&gang.spec, now) || gang.spec.queue != now.queue)
        })
    }

    /// Rolls back the order of a gang whose spec has changed, and updates the gang in its old place in the queue.
    fn resubmit_without_order(&mut self, name: &Arc<str>, spec: GangSpec) {
        let Some(id) = self.world.gang_named(name) else { return };
        self.roll_back_order(id);
        if self.apply_event(&Event::GangChanged(spec.clone())) {
            self.gangs.get_mut(name).expect("the gang has a record").submitted_spec = Some(spec);
        }
    }

    /// Requeues the nodes of a newly submitted gang's pods: their usage was counted as that of foreign pods.
    fn requeue_nodes_of(&mut self, name: &Arc<str>) {
        let record = self.gangs.get(name).expect("the gang has a record");
        let pods = record.pods.iter().filter_map(|key| self.cache.pods.get(key));
        self.dirty.nodes.extend(pods.filter_map(|pod| pod.node()).map(Arc::from));
    }

    /// Maps the roles of pods to the roles of a gang that keeps its spec, by their names: the new spec may list them in
    /// another order. A pod that requests more than a seat of its role has gets no role.
    pub(crate) fn map_roles_to_seats(&mut self, name: &Arc<str>, now: &GangSpec) {
        let Some(id) = self.world.gang_named(name) else { return };
        let roles = &self.world.gang(id).expect("the World has the gang").spec.roles;
        let place = |at: &u16| {
            let of = now.roles.get(usize::from(*at))?;
            let named = |role: &&RoleSpec| role.name == of.name && fits_seat_of(role, of);
            // Shapes of one role are numbered, and the numbers change when one of them is done.
            let same = |role: &&RoleSpec| is_same_role(role, of) && fits_seat_of(role, of);
            let found = roles.iter().find(named).or_else(|| roles.iter().find(same))?;
            u16::try_from(roles.iter().position(|role| role.name == found.name)?).ok()
        };
        let record = self.gangs.get_mut(name).expect("the gang has a record");
        let before = std::mem::take(&mut record.pod_roles);
        record.pod_roles =
            before.into_iter().filter_map(|(pod, at)| Some((pod, place(&at)?))).collect();
        let mut sizes: BTreeMap<u16, Size> = BTreeMap::new();
        for (at, size) in &record.role_sizes {
            if let Some(place) = place(at) {
                sizes.entry(place).and_modify(|sum| sum.add(size)).or_insert(*size);
            }
        }
        // A role that no template has any more is unwanted.
        let is_known = record.role_sizes.values().all(|size| size.wanted.is_some());
        for (at, role) in (0..).zip(roles).filter(|_| is_known && !record.role_sizes.is_empty()) {
            if !now.roles.iter().any(|of| is_same_role(role, of)) {
                sizes.entry(at).or_insert(Size::UNWANTED);
            }
        }
        record.role_sizes = sizes;
    }

    /// Requeues gangs that could not be submitted, when an object they name may exist now.
    pub(crate) fn retry_blocked(&mut self) {
        let names: Vec<Arc<str>> = self.gangs.blocked().cloned().collect();
        self.dirty.gangs.extend(names);
    }

    /// Ends or cancels a gang in the World and forgets it.
    pub(crate) fn remove_gang(&mut self, name: &Arc<str>) {
        if let Some(id) = self.world.gang_named(name) {
            match self.world.gang(id).expect("the World has the gang").phase {
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
        self.forget_status(name);
        self.gangs.remove(name);
        self.served_requests.stop_waiting(name);
        self.constraints.forget(name);
    }
}

/// Whether two gangs have the same roles with the same minimum and requests, in whatever order. Constraints are ignored.
pub(crate) fn have_same_members(one: &GangSpec, other: &GangSpec) -> bool {
    let key = |role: &RoleSpec| {
        let amounts = role.request.amounts.iter().filter(|(name, _)| !name.starts_with(TOKEN));
        let amounts: Vec<(Arc<str>, u64)> = amounts.map(|(name, n)| (name.clone(), *n)).collect();
        (role.name.clone(), role.min, amounts, role.request.gpu.clone())
    };
    one.roles.len() == other.roles.len()
        && one.roles.iter().all(|role| other.roles.iter().any(|now| key(now) == key(role)))
}

/// Whether two roles have the same name apart from a number.
fn is_same_role(one: &RoleSpec, other: &RoleSpec) -> bool {
    let stem = |role: &RoleSpec| match role.name.rsplit_once('-') {
        Some((stem, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => stem.to_owned(),
        _ => role.name.to_string(),
    };
    stem(one) == stem(other)
}

/// Whether a member of one role fits on a seat of another: as many GPUs, and no more of the rest.
fn fits_seat_of(seat: &RoleSpec, member: &RoleSpec) -> bool {
    let asked = member.request.amounts.iter().filter(|(name, _)| !name.starts_with(TOKEN));
    let has = |name: &Arc<str>| seat.request.amounts.get(name).copied().unwrap_or(0);
    seat.request.gpu == member.request.gpu
        && asked.into_iter().all(|(name, amount)| *amount <= has(name))
}

/// Whether a gang is a single pod.
pub(crate) fn is_single_pod(spec: &GangSpec, source: &GangSource) -> bool {
    matches!(source, GangSource::Pod { .. }) && spec.roles.len() == 1 && spec.roles[0].max == 1
}
