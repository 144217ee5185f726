//! Reconciles the phase of a gang in the World with what its pods do: bind, resize, end, stop.
//!
//! ```text
//!              order placed                        admitted
//!   Waiting --------------------> Assembling ------------------> Admitted ---+
//!    | | ^  <--------------------                                  ^   |     |
//!    | | |    order rolled back                                    |   |     | stopped
//!    | | |                                                         |   |     |
//!    | | |        admitted onto nodes that exist                   |   |     |
//!    | +-|---------------------------------------------------------+   |     |
//!    |   |                                                             |     |
//!    |   |                              minimum of every role is bound |     |
//!    |   |        pods are found on nodes                              v     |
//!    +---|---------------------------------------------------------> Running |
//!        |                                                             |     |
//!        |        no pod is left on a node                     stopped v     v
//!        +---------------------------------------------------------- Stopping
//! ```
//!
//! An admitted or running gang of which no pod is left, and none is to come, has ended.

use std::sync::Arc;

use muster_core::Event;
use muster_core::event::RoleSeats;
use muster_core::gang::Phase;
use muster_core::id::GangId;
use muster_core::plan::StopReason;

use crate::cache::store::Key;
use crate::gang::identity::GangSource;
use crate::gang::record::GangRecord;
use crate::host::Host;

/// The pods of a gang that are not over, by state.
#[derive(Debug, Default)]
pub(crate) struct PodsByState {
    /// On a node, or assigned to one.
    pub(crate) bound: Vec<(Key, Arc<str>)>,
    /// Not on a node, and ready to be bound or released.
    pub(crate) unbound: Vec<Key>,
}

impl Host {
    /// Reconciles the phase of a gang with its pods.
    pub(crate) fn reconcile_phase(&mut self, name: &Arc<str>) {
        let Some(id) = self.world.gang_named(name) else { return };
        let Some(record) = self.gangs.get(name) else { return };
        if let GangSource::Request { .. } = record.source {
            return self.reconcile_request_phase(name, id);
        }
        let by_state = self.pods_by_state(record);
        let continues = self.is_job_unfinished(record)
            || self.awaits_members(record)
            || self.will_be_recreated(record);
        self.watch_external_binding(name, id);
        self.watch_binding(name, id, &by_state);
        match self.world.gang(id).expect("the World has the gang").phase {
            Phase::Waiting => {
                self.seat_where_observed(name, id, &by_state);
                self.seat_bound_pods(name, id);
            }
            Phase::Assembling(_) => {}
            Phase::Admitted { .. } | Phase::Running { .. }
                if by_state.bound.is_empty() && by_state.unbound.is_empty() && !continues =>
            {
                // Finished or deleted: no pod is left that needs the seats.
                self.apply_event(&Event::GangEnded(id));
                let record = self.gangs.get_mut(name).expect("the gang has a record");
                (record.submitted_spec, record.placement_written, record.volume_binding) =
                    (None, false, None);
                record.members_requested_at = None;
                (record.job_seen_running, record.requested_suspend) = (false, None);
                self.constraints.forget(name);
                self.forget_status(name);
                self.clear_placement(name);
            }
            Phase::Admitted { .. } => {
                if !self.resume_job(name, id) {
                    return;
                }
                self.seat_where_observed(name, id, &by_state);
                if self.restart_if_changed(name, id, &by_state)
                    || self.leave_draining_nodes(name, id, &by_state)
                {
                    return;
                }
                if self.return_unwanted_seats(name, id, &by_state) {
                    return;
                }
                self.bind_members(name, id, &by_state);
                self.start_if_fully_bound(name, id);
            }
            Phase::Running { .. } => {
                if !self.resume_job(name, id) {
                    return;
                }
                self.seat_where_observed(name, id, &by_state);
                if self.restart_if_changed(name, id, &by_state)
                    || self.leave_draining_nodes(name, id, &by_state)
                {
                    return;
                }
                if self.return_unwanted_seats(name, id, &by_state) {
                    return;
                }
                self.bind_members(name, id, &by_state);
                self.resize(name, id, &by_state);
                self.release_finished_seats(name, id, &by_state);
                self.update_spare_seats(name, id);
            }
            Phase::Stopping => self.finish_stopping(name, id, &by_state),
        }
    }

    /// The pods of a gang by state.
    pub(crate) fn pods_by_state(&self, record: &GangRecord) -> PodsByState {
        let mut by_state = PodsByState::default();
        for key in &record.pods {
            let Some(pod) = self.cache.pods.get(key) else { continue };
            if pod.is_finished() {
                continue;
            }
            if let Some(node) = pod.node() {
                by_state.bound.push((key.clone(), node.into()));
            } else if let Some(node) = record.assigned_nodes.get(key) {
                by_state.bound.push((key.clone(), node.clone()));
            } else if !pod.is_terminating()
                && !pod.has_foreign_gate()
                && (self.config.binds(pod) || pod.has_gate())
            {
                by_state.unbound.push(key.clone());
            }
        }
        by_state
    }

    /// Gives seats to the bound pods of a gang that waits: it was not valid when they were found. If they are too few the gang
    /// is stopped and starts over as a whole.
    fn seat_bound_pods(&mut self, name: &Arc<str>, id: GangId) {
        let record = self.gangs.get(name).expect("the gang has a record");
        let sitting = self.occupied_seats(record, &self.pods_on_nodes(record));
        let waits =
            matches!(self.world.gang(id).expect("the World has the gang").phase, Phase::Waiting);
        if waits && sitting.is_empty() {
            self.set_bound_beyond_limits(name, false);
        }
        if !waits || sitting.is_empty() || !self.seat_observed_pods(name, id, self.now(), sitting) {
            return;
        }
        if self.is_fully_bound(name, id) {
            self.write_placement(name, id);
        } else {
            self.stop_gang(id, StopReason::Moved);
        }
        self.dirty.gangs.insert(name.clone());
    }

    /// Starts a gang when the minimum of every role is bound.
    fn start_if_fully_bound(&mut self, name: &Arc<str>, id: GangId) {
        if self.is_fully_bound(name, id) {
            self.apply_event(&Event::GangStarted(id));
            self.gangs.get_mut(name).expect("the gang has a record").api_refusal = None;
        }
    }

    /// Whether the minimum of every role is observed on nodes.
    pub(crate) fn is_fully_bound(&self, name: &str, id: GangId) -> bool {
        let record = self.gangs.get(name).expect("the gang has a record");
        let gang = self.world.gang(id).expect("the World has the gang");
        let is_on_node =
            |key: &Key| self.cache.pods.get(key).is_some_and(|pod| pod.node().is_some());
        gang.spec.roles.iter().enumerate().all(|(at, role)| {
            let mine = record.pod_roles.iter().filter(|(_, of)| usize::from(**of) == at);
            mine.filter(|(key, _)| is_on_node(key)).count() >= role.min as usize
        })
    }

    /// The seats that pods occupy, by role and node, on nodes that the World knows.
    pub(crate) fn occupied_seats(
        &self,
        record: &GangRecord,
        bound: &[(Key, Arc<str>)],
    ) -> Vec<RoleSeats> {
        let mut sitting: Vec<RoleSeats> = Vec::new();
        for (key, node) in bound {
            let (Some(role), Some(node)) = (record.pod_roles.get(key), self.world.node_named(node))
            else {
                continue;
            };
            let same = |one: &&mut RoleSeats| one.role == *role && one.node == node;
            match sitting.iter_mut().find(same) {
                Some(one) => one.members += 1,
                None => sitting.push(RoleSeats { role: *role, node, members: 1 }),
            }
        }
        sitting
    }

    /// Evicts the pods of a stopping gang, and reports it stopped when none is on a node any more.
    fn finish_stopping(&mut self, name: &Arc<str>, id: GangId, by_state: &PodsByState) {
        let suspended = self.suspend_job(name);
        if by_state.bound.is_empty() && suspended != Some(false) {
            self.apply_event(&Event::GangStopped(id));
            let record = self.gangs.get_mut(name).expect("the gang has a record");
            (record.placement_written, record.volume_binding) = (false, None);
            (record.job_seen_running, record.requested_suspend) = (false, None);
            record.deleting_pods.clear();
            // Its constraints may have changed while it ran.
            self.dirty.gangs.insert(name.clone());
            let record = self.gangs.get_mut(name).expect("the gang has a record");
            if self.world.gang(id).is_none() {
                record.submitted_spec = None;
            }
            self.clear_placement(name);
            self.hold_if_backing_off(name);
            return;
        }
        if suspended.is_some() {
            return; // the Job's controller deletes them
        }
        let grace = self.world.gang(id).expect("the World has the gang").spec.disruption.grace;
        self.evict_pods(name, &by_state.bound, grace);
    }
}
