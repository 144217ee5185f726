//! Pods on nodes that Muster did not bind: their room is taken, but no queue gives them more than its limit.
//!
//! Whoever may create pods may write `spec.nodeName` into them, and the kubelet runs them. As long as the limits of their
//! queue allow it such pods are a gang like any other: it is charged, and may be preempted. Beyond the limits they are what
//! pods of other schedulers are, usage of their nodes: the gang is not admitted, gets no further member bound, and an Event
//! says why. After a change of leader recorded gangs come first, so nobody loses a place to pods that went around the queue.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::runtime::events::EventType;
use muster_core::Event;
use muster_core::event::Sitting;
use muster_core::gang::Phase;
use muster_core::id::GangId;
use muster_core::time::Time;

use crate::cache::store::Key;
use crate::constraints::pod_constraints::nowhere;
use crate::gang::identity::BuiltGang;
use crate::gang::record::GangRecord;
use crate::host::Host;

/// How often it is looked whether a limit allows by now what it did not.
const AGAIN: Duration = Duration::from_secs(10);

impl Host {
    /// The pods of a group that are on a node, and not only told to go there.
    pub(crate) fn pods_on_nodes(&self, record: &GangRecord) -> Vec<(Key, Arc<str>)> {
        let pods = record.pods.iter().filter_map(|key| Some((key, self.cache.pods.get(key)?)));
        pods.filter(|(_, pod)| !pod.is_over())
            .filter_map(|(key, pod)| Some((key.clone(), pod.node()?.into())))
            .collect()
    }

    /// Tells the World where members of a gang are, unless its queue's limits do not allow it as many. Whether it was told.
    pub(crate) fn seat_observed_pods(
        &mut self,
        name: &Arc<str>,
        gang: GangId,
        since: Time,
        sitting: Vec<Sitting>,
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

    /// The World knows a gang as one that is placed nowhere: it is told what the gang really is.
    fn resubmit_within_limits(&mut self, name: &Arc<str>) {
        if self.world.is_synced()
            && let Ok(built) = self.build_for_submit(name)
        {
            self.submit_or_update(name, built);
        }
    }

    /// Pods of a gang are on nodes that its queue does not allow it. Said once.
    fn reject_beyond_limits(&mut self, name: &Arc<str>, gang: GangId) {
        let queue = self.world.gang(gang).map(|gang| gang.spec.queue.clone()).unwrap_or_default();
        let was_said = self.gangs.get(name).is_none_or(|record| record.is_limit_event_recorded);
        if self.world.gang(gang).is_some_and(|gang| gang.phase == Phase::Waiting) {
            self.set_bound_beyond_limits(name, true);
        }
        if let Some(record) = self.gangs.get_mut(name).filter(|_| !was_said) {
            record.is_limit_event_recorded = true;
            let words =
                format!("{OUTSIDE} and the limits of queue {queue} do not allow: {COUNTED}");
            tracing::info!(gang = &**name, "{words}");
            self.record_event(name, EventType::Warning, ("BoundOutsideQueue", "Admit"), &words);
        }
    }

    /// Marks a gang as one whose pods are usage of their nodes and nothing else, or as an ordinary one, and counts their nodes
    /// again.
    pub(crate) fn set_bound_beyond_limits(&mut self, name: &Arc<str>, is_outside: bool) {
        let Some(record) = self.gangs.get_mut(name) else { return };
        if record.is_bound_beyond_limits == is_outside {
            return;
        }
        record.is_bound_beyond_limits = is_outside;
        record.is_limit_event_recorded &= is_outside;
        match is_outside {
            true => drop(self.bound_elsewhere.insert(name.clone())),
            false => drop(self.bound_elsewhere.remove(name)),
        }
        let record = self.gangs.get(name).expect("just seen");
        let nodes: Vec<Arc<str>> =
            self.pods_on_nodes(record).into_iter().map(|(_, node)| node).collect();
        match self.world.is_synced() {
            true => {
                self.dirty.nodes.extend(nodes);
                self.dirty.gangs.insert(name.clone());
            }
            // What is found next must see what is left of them.
            false => nodes.iter().for_each(|node| self.reconcile_node(node)),
        }
    }

    /// Before the World is told who sits where, pods that no record speaks of are usage of their nodes.
    pub(crate) fn hold_unrecorded(&mut self) -> Vec<Arc<str>> {
        let mut found: Vec<(Time, Arc<str>)> = Vec::new();
        for name in self.gangs.names() {
            let record = self.gangs.get(name).expect("named");
            let is_unknown = self.world.gang_named(name).is_some() && !self.has_placement(name);
            if is_unknown && !self.pods_on_nodes(record).is_empty() {
                found.push((self.made_at(record), name.clone()));
            }
        }
        found.sort();
        let names: Vec<Arc<str>> = found.into_iter().map(|(_, name)| name).collect();
        names.iter().for_each(|name| self.set_bound_beyond_limits(name, true));
        names
    }

    /// A gang some of whose pods are on nodes that its queue does not allow it is placed nowhere.
    pub(crate) fn hold_beyond_limits(&self, name: &str, built: &mut BuiltGang) {
        if self.gangs.get(name).is_some_and(|record| record.is_bound_beyond_limits) {
            built.spec.roles.iter_mut().for_each(|role| nowhere(&mut role.constraints));
            built.wait_reason =
                Some(format!("{OUTSIDE} beyond the limits of its queue: {COUNTED}"));
        }
    }

    /// Limits may allow by now what they did not.
    pub(crate) fn reconcile_bound_elsewhere(&mut self) {
        if self.bound_elsewhere.is_empty()
            || self.bound_elsewhere_checked_at.is_some_and(|at| at.elapsed() < AGAIN)
        {
            return;
        }
        self.bound_elsewhere_checked_at = Some(Instant::now());
        self.dirty.gangs.extend(self.bound_elsewhere.iter().cloned());
    }
}

const OUTSIDE: &str = "some of its pods are on nodes that Muster did not bind them to,";
const COUNTED: &str =
    "they count as usage of their nodes, and no further member is bound until the limits do";
