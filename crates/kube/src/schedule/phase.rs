//! Reconciles the phase of a gang in the World with what its pods do: bind, resize, end, stop.
//!
//! ```text
//!             planner orders nodes              planner admits
//!   Waiting ------------------------> Assembling -------------> Admitted
//!      |  ^                               |                        |
//!      |  |      order rolled back        |                        | minimum of every role is bound
//!      |  +-------------------------------+                        v
//!      |            planner admits, or pods are found bound     Running
//!      +------------------------------------------------------->   |
//!      ^                                                           | planner or host stops it
//!      |                no pod is left on a node                   v
//!      +------------------------------------------------------- Stopping
//! ```
//!
//! An admitted or running gang of which no pod is left, and none is to come, has ended.

use std::sync::Arc;

use muster_core::Event;
use muster_core::event::Sitting;
use muster_core::gang::Phase;
use muster_core::id::GangId;
use muster_core::plan::StopReason;

use crate::cache::store::Key;
use crate::gang::identity::GangSource;
use crate::gang::record::GangRecord;
use crate::host::Host;

/// The pods of a gang by what they do now.
#[derive(Debug, Default)]
pub(crate) struct PodsByState {
    /// Put on a node, and not over.
    pub(crate) bound: Vec<(Key, Arc<str>)>,
    /// Nowhere yet, and free to be told where to go.
    pub(crate) unbound: Vec<Key>,
}

impl Host {
    /// Holds what the World thinks of a gang against what its pods do.
    pub(crate) fn reconcile_phase(&mut self, name: &Arc<str>) {
        let Some(id) = self.world.gang_named(name) else { return };
        let Some(record) = self.gangs.get(name) else { return };
        if let GangSource::Request { .. } = record.source {
            return self.reconcile_request_phase(name, id);
        }
        let by_state = self.pods_by_state(record);
        let goes_on = self.is_job_unfinished(record)
            || self.awaits_members(record)
            || self.will_be_recreated(record);
        self.watch_external_binding(name, id);
        self.watch_binding(name, id, &by_state);
        match self.world.gang(id).expect("named").phase {
            Phase::Waiting => {
                self.seat_where_observed(name, id, &by_state);
                self.seat_bound_pods(name, id);
            }
            Phase::Assembling(_) => {}
            Phase::Admitted { .. } | Phase::Running { .. }
                if by_state.bound.is_empty() && by_state.unbound.is_empty() && !goes_on =>
            {
                // Done, or removed: nobody is left to hold seats for.
                self.apply_event(&Event::GangEnded(id));
                let record = self.gangs.get_mut(name).expect("just seen");
                (record.submitted_spec, record.placement_written, record.volume_binding) =
                    (None, false, None);
                record.members_requested_at = None;
                (record.job_seen_running, record.requested_suspend) = (false, None);
                self.constraints.forget(name);
                self.unwrite(name);
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

    /// The pods of a group by what they do now.
    pub(crate) fn pods_by_state(&self, record: &GangRecord) -> PodsByState {
        let mut by_state = PodsByState::default();
        for key in &record.pods {
            let Some(pod) = self.cache.pods.get(key) else { continue };
            if pod.is_over() {
                continue;
            }
            if let Some(node) = pod.node() {
                by_state.bound.push((key.clone(), node.into()));
            } else if let Some(node) = record.assigned_nodes.get(key) {
                by_state.bound.push((key.clone(), node.clone()));
            } else if !pod.is_leaving()
                && !pod.is_held()
                && (self.config.binds(pod) || pod.has_gate())
            {
                by_state.unbound.push(key.clone());
            }
        }
        by_state
    }

    /// A gang that waits and has members on nodes: it was not understood when they were found. They have their seats; if
    /// they are too few it starts over as a whole.
    fn seat_bound_pods(&mut self, name: &Arc<str>, id: GangId) {
        let record = self.gangs.get(name).expect("followed");
        let sitting = self.occupied_seats(record, &self.pods_on_nodes(record));
        let waits = matches!(self.world.gang(id).expect("followed").phase, Phase::Waiting);
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

    /// A gang has started when it is whole.
    fn start_if_fully_bound(&mut self, name: &Arc<str>, id: GangId) {
        if self.is_fully_bound(name, id) {
            self.apply_event(&Event::GangStarted(id));
            self.gangs.get_mut(name).expect("followed").api_refusal = None;
        }
    }

    /// Whether every role has its minimum bound, and has been seen to.
    pub(crate) fn is_fully_bound(&self, name: &str, id: GangId) -> bool {
        let record = self.gangs.get(name).expect("followed");
        let gang = self.world.gang(id).expect("followed");
        let seen = |key: &Key| self.cache.pods.get(key).is_some_and(|pod| pod.node().is_some());
        gang.spec.roles.iter().enumerate().all(|(at, role)| {
            let mine = record.pod_roles.iter().filter(|(_, of)| usize::from(**of) == at);
            mine.filter(|(key, _)| seen(key)).count() >= role.min as usize
        })
    }

    /// Where pods sit, by role and node, on nodes that are known.
    pub(crate) fn occupied_seats(
        &self,
        record: &GangRecord,
        bound: &[(Key, Arc<str>)],
    ) -> Vec<Sitting> {
        let mut sitting: Vec<Sitting> = Vec::new();
        for (key, node) in bound {
            let (Some(role), Some(node)) = (record.pod_roles.get(key), self.world.node_named(node))
            else {
                continue;
            };
            let same = |one: &&mut Sitting| one.role == *role && one.node == node;
            match sitting.iter_mut().find(same) {
                Some(one) => one.members += 1,
                None => sitting.push(Sitting { role: *role, node, members: 1 }),
            }
        }
        sitting
    }

    /// A gang has stopped when none of its pods is on a node any more.
    fn finish_stopping(&mut self, name: &Arc<str>, id: GangId, by_state: &PodsByState) {
        let held = self.suspend_job(name);
        if by_state.bound.is_empty() && held != Some(false) {
            self.apply_event(&Event::GangStopped(id));
            let record = self.gangs.get_mut(name).expect("followed");
            (record.placement_written, record.volume_binding) = (false, None);
            (record.job_seen_running, record.requested_suspend) = (false, None);
            record.deleting_pods.clear();
            // What it is tied to may have become something else while it ran.
            self.dirty.gangs.insert(name.clone());
            let record = self.gangs.get_mut(name).expect("followed");
            if self.world.gang(id).is_none() {
                record.submitted_spec = None;
            }
            self.clear_placement(name);
            self.hold_if_backing_off(name);
            return;
        }
        if held.is_some() {
            return; // the Job's controller sends them away
        }
        let grace = self.world.gang(id).expect("followed").spec.disruption.grace;
        self.evict_pods(name, &by_state.bound, grace);
    }
}
