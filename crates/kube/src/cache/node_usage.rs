//! What pods use of a node outside the seats of gangs.
//!
//! Most of it is used by pods of other schedulers. But members of gangs may use more than their seats as well: one was resized in
//! place, or bound by another component, or their gang has no seats because its order still assembles. Whatever runs is counted,
//! and no pod is bound on top of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use muster_core::gang::Request;
use muster_core::id::GangId;

use crate::cache::store::{Key, ObjectChange};
use crate::gang::build::labels_and_annotations;
use crate::host::Host;
use crate::objects::pod::Pod;
use crate::provision::node_spec::ForeignUsage;

/// Nodes on which members of gangs use more than their seats.
pub(crate) type ExcessUsage = BTreeSet<Arc<str>>;

impl Host {
    /// What is used of a node outside the seats of gangs.
    pub(crate) fn foreign_usage(&self, name: &str) -> ForeignUsage {
        let mut foreign = ForeignUsage::default();
        let mut own: BTreeMap<GangId, ForeignUsage> = BTreeMap::new();
        for (key, pod) in self.cache.pods_on(name).filter(|(_, pod)| !pod.is_finished()) {
            let record = self.gangs.gang_of(key).filter(|(_, record)| record.pods.contains(key));
            let is_outside = record.is_some_and(|(_, record)| record.is_bound_beyond_limits);
            match record.and_then(|(gang, _)| self.world.gang_named(gang)) {
                // During a rebuild no gang has seats yet.
                Some(_) if !self.world.is_synced() && !is_outside => {}
                Some(gang) => own.entry(gang).or_default().add(&self.pod_request(key, pod)),
                None => {
                    foreign.count_as_user(pod);
                    foreign.add_tokens(&self.foreign_tokens(pod));
                    foreign.add(&self.pod_request(key, pod));
                }
            }
        }
        for (gang, used) in own {
            foreign.add_excess(&used, &self.seated_usage(gang, name));
        }
        foreign
    }

    /// Pods on a node that belong to no gang.
    pub(crate) fn foreign_pods(&self, name: &str) -> impl Iterator<Item = (&Key, &Arc<Pod>)> {
        let is_foreign = |key: &Key| {
            let record = self.gangs.gang_of(key).filter(|(_, record)| record.pods.contains(key));
            record.is_none_or(|(gang, _)| self.world.gang_named(gang).is_none())
        };
        self.cache.pods_on(name).filter(move |(key, pod)| !pod.is_finished() && is_foreign(key))
    }

    /// What the seats of a gang on a node amount to.
    fn seated_usage(&self, gang: GangId, node: &str) -> ForeignUsage {
        let mut seated = ForeignUsage::default();
        let (gang, node) = (self.world.gang(gang), self.world.node_named(node));
        let Some((gang, node)) = gang.zip(node) else { return seated };
        for seat in gang.seats.iter().filter(|seat| seat.node == node) {
            let role = &gang.spec.roles[usize::from(seat.role)];
            (0..seat.members).for_each(|_| seated.add(&role.request));
        }
        seated
    }

    /// The requests of a pod. Invalid annotations are ignored, so that its other requests still count.
    fn pod_request(&self, key: &Key, pod: &Pod) -> Request {
        let gpus = &self.config.gpus;
        let request = pod.spec.request(labels_and_annotations(pod).1, gpus);
        let request = request.or_else(|why| {
            tracing::warn!(pod = &**key, ?why, "a pod's requests or annotations are invalid");
            pod.spec.request(&BTreeMap::new(), gpus)
        });
        request.unwrap_or_default()
    }

    /// Records whether members use more of a node than their seats.
    pub(crate) fn record_excess_usage(&mut self, name: &Arc<str>, foreign: &ForeignUsage) {
        match foreign.has_excess() {
            true => drop(self.excess_usage.insert(name.clone())),
            false => drop(self.excess_usage.remove(name)),
        }
    }

    /// Requeues nodes with excess usage: the seats of gangs may have changed.
    pub(crate) fn reconcile_excess_usage(&mut self) {
        self.dirty.nodes.extend(self.excess_usage.iter().cloned());
    }

    /// Requeues nodes with pods of gangs, which have their seats now.
    pub(crate) fn reconcile_nodes_of_gangs(&mut self) {
        let pods = self.cache.pods.iter().filter(|(key, _)| self.gangs.gang_of(key).is_some());
        let nodes = pods.filter_map(|(_, pod)| pod.node()).map(Arc::from);
        self.dirty.nodes.extend(nodes);
    }
}

/// Whether a pod's node or requests have changed. Since Kubernetes 1.33 the requests of a running pod may change.
pub(crate) fn usage_changed(moved: &ObjectChange<Pod>) -> bool {
    let node_of = |pod: &Option<Arc<Pod>>| {
        let pod = pod.as_deref().filter(|pod| !pod.is_finished());
        pod.and_then(Pod::node).map(str::to_owned)
    };
    let is_resized = || match (&moved.was, &moved.is) {
        (Some(was), Some(is)) => was.spec != is.spec,
        _ => false,
    };
    let (was, is) = (node_of(&moved.was), node_of(&moved.is));
    was != is || (is.is_some() && is_resized())
}
