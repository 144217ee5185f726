//! Pods that are on nodes without a binding by Muster: they use capacity, but get no more than their queue's limits.
//!
//! A user that may create pods may write `spec.nodeName` into them, and the kubelet runs them. Within the limits of their
//! queue such pods are a gang like any other: it is charged, and may be preempted. Beyond the limits they count like pods of
//! other schedulers, as usage of their nodes: the gang is not admitted, no further member is bound, and an Event has the
//! reason. After a change of leader recorded gangs come first, so no gang loses its seats to pods that bypassed the queue.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::runtime::events::EventType;
use muster_core::Event;
use muster_core::event::RoleSeats;
use muster_core::gang::Phase;
use muster_core::id::GangId;
use muster_core::time::Time;

use crate::cache::store::Key;
use crate::constraints::pod_constraints::match_no_node;
use crate::gang::identity::BuiltGang;
use crate::gang::record::GangRecord;
use crate::host::Host;

/// How often limits are checked again.
const RETRY_INTERVAL: Duration = Duration::from_secs(10);

impl Host {
    /// The pods of a gang that are on a node, and not only assigned to one.
    pub(crate) fn pods_on_nodes(&self, record: &GangRecord) -> Vec<(Key, Arc<str>)> {
        let pods = record.pods.iter().filter_map(|key| Some((key, self.cache.pods.get(key)?)));
        pods.filter(|(_, pod)| !pod.is_finished())
            .filter_map(|(key, pod)| Some((key.clone(), pod.node()?.into())))
            .collect()
    }

    /// Gives a gang the seats that its pods occupy, unless its queue's limits do not allow as many. Returns whether it did.
    pub(crate) fn seat_observed_pods(
        &mut self,
        name: &Arc<str>,
        gang: GangId,
        since: Time,
        sitting: Vec<RoleSeats>,
    ) -> bool {
        if !self.world.is_within_limits(gang, &sitting) {
            self.reject_beyond_limits(name, gang);
            return false;
        }
        if self.gangs.get(name).is_some_and(|record| record.is_bound_beyond_limits) {
            self.set_bound_beyond_limits(name, false);
            self.resubmit_within_limits(name);
        }
        self.apply_event(&Event::GangFound { gang, since, sitting })
    }

    /// Submits a gang again that was held beyond the limits and is within them now.
    fn resubmit_within_limits(&mut self, name: &Arc<str>) {
        if self.world.is_synced()
            && let Ok(built) = self.build_for_submit(name)
        {
            self.submit_or_update(name, built);
        }
    }

    /// Marks a gang whose bound pods exceed its queue's limits, with one Event.
    fn reject_beyond_limits(&mut self, name: &Arc<str>, gang: GangId) {
        let queue = self.world.gang(gang).map(|gang| gang.spec.queue.clone()).unwrap_or_default();
        let was_recorded = self.gangs.get(name).is_none_or(|record| record.is_limit_event_recorded);
        if self.world.gang(gang).is_some_and(|gang| gang.phase == Phase::Waiting) {
            self.set_bound_beyond_limits(name, true);
        }
        if let Some(record) = self.gangs.get_mut(name).filter(|_| !was_recorded) {
            record.is_limit_event_recorded = true;
            let words = format!(
                "{NOT_BOUND_BY_MUSTER} and the limits of queue {queue} do not allow: {COUNTED_AS_USAGE}"
            );
            tracing::info!(gang = &**name, "{words}");
            self.record_event(name, EventType::Warning, ("BoundOutsideQueue", "Admit"), &words);
        }
    }

    /// Marks a gang as one whose pods only count as usage of their nodes, or as an ordinary one, and reconciles these nodes.
    pub(crate) fn set_bound_beyond_limits(&mut self, name: &Arc<str>, is_beyond: bool) {
        let Some(record) = self.gangs.get_mut(name) else { return };
        if record.is_bound_beyond_limits == is_beyond {
            return;
        }
        record.is_bound_beyond_limits = is_beyond;
        record.is_limit_event_recorded &= is_beyond;
        match is_beyond {
            true => drop(self.bound_elsewhere.insert(name.clone())),
            false => drop(self.bound_elsewhere.remove(name)),
        }
        let record = self.gangs.get(name).expect("the gang has a record");
        let nodes: Vec<Arc<str>> =
            self.pods_on_nodes(record).into_iter().map(|(_, node)| node).collect();
        match self.world.is_synced() {
            true => {
                self.dirty.nodes.extend(nodes);
                self.dirty.gangs.insert(name.clone());
            }
            // The pods that are seated next need the capacity that is left on these nodes.
            false => nodes.iter().for_each(|node| self.reconcile_node(node)),
        }
    }

    /// Before seats are restored, marks gangs with bound pods and no recorded placement: their pods only count as usage.
    pub(crate) fn hold_unrecorded(&mut self) -> Vec<Arc<str>> {
        let mut found: Vec<(Time, Arc<str>)> = Vec::new();
        for name in self.gangs.names() {
            let record = self.gangs.get(name).expect("the gang has a record");
            let is_unknown = self.world.gang_named(name).is_some() && !self.has_placement(name);
            if is_unknown && !self.pods_on_nodes(record).is_empty() {
                found.push((self.gang_created_at(record), name.clone()));
            }
        }
        found.sort();
        let names: Vec<Arc<str>> = found.into_iter().map(|(_, name)| name).collect();
        names.iter().for_each(|name| self.set_bound_beyond_limits(name, true));
        names
    }

    /// Holds a gang whose bound pods exceed its queue's limits: it is placed nowhere.
    pub(crate) fn hold_beyond_limits(&self, name: &str, built: &mut BuiltGang) {
        if self.gangs.get(name).is_some_and(|record| record.is_bound_beyond_limits) {
            built.spec.roles.iter_mut().for_each(|role| match_no_node(&mut role.constraints));
            built.wait_reason = Some(format!(
                "{NOT_BOUND_BY_MUSTER} beyond the limits of its queue: {COUNTED_AS_USAGE}"
            ));
        }
    }

    /// Requeues gangs beyond their limits from time to time: the limits may allow them now.
    pub(crate) fn reconcile_bound_elsewhere(&mut self) {
        if self.bound_elsewhere.is_empty()
            || self.bound_elsewhere_checked_at.is_some_and(|at| at.elapsed() < RETRY_INTERVAL)
        {
            return;
        }
        self.bound_elsewhere_checked_at = Some(Instant::now());
        self.dirty.gangs.extend(self.bound_elsewhere.iter().cloned());
    }
}

const NOT_BOUND_BY_MUSTER: &str = "some of its pods are on nodes that Muster did not bind them to,";
const COUNTED_AS_USAGE: &str =
    "they count as usage of their nodes, and no further member is bound until the limits do";
