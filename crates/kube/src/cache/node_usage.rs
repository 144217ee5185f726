//! What pods take of a node that no seat stands for.
//!
//! Most of it is what pods of others take. But members of gangs too may take more than their gang has seats for: somebody has
//! made one of them larger where it is, has put one on a node by hand, or their gang has no seats at all because its order
//! still assembles. Whatever runs is counted; nobody else is put on top of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use muster_core::gang::Request;
use muster_core::id::GangId;

use crate::cache::store::{Key, Moved};
use crate::gang::build::labels_and_annotations;
use crate::host::Host;
use crate::objects::pod::Pod;
use crate::provision::node_spec::Foreign;

/// Nodes on which members of gangs take more than their gangs have seats for.
pub(crate) type ExcessUsage = BTreeSet<Arc<str>>;

impl Host {
    /// What is taken of a node besides the seats that gangs have there.
    pub(crate) fn foreign_on(&self, name: &str) -> Foreign {
        let mut foreign = Foreign::default();
        let mut own: BTreeMap<GangId, Foreign> = BTreeMap::new();
        for (key, pod) in self.cache.pods_on(name).filter(|(_, pod)| !pod.is_over()) {
            let group = self.gangs.gang_of(key).filter(|(_, group)| group.pods.contains(key));
            let is_outside = group.is_some_and(|(_, group)| group.is_bound_beyond_limits);
            match group.and_then(|(gang, _)| self.world.gang_named(gang)) {
                // While all is counted anew no gang has seats yet.
                Some(_) if !self.world.is_synced() && !is_outside => {}
                Some(gang) => own.entry(gang).or_default().add(&self.request_of(key, pod)),
                None => {
                    foreign.stay(pod);
                    foreign.add_tokens(&self.foreign_tokens(pod));
                    foreign.add(&self.request_of(key, pod));
                }
            }
        }
        for (gang, takes) in own {
            foreign.add_beyond(&takes, &self.seated(gang, name));
        }
        foreign
    }

    /// Pods on a node that are of no gang.
    pub(crate) fn foreign_pods(&self, name: &str) -> impl Iterator<Item = (&Key, &Arc<Pod>)> {
        let is_foreign = |key: &Key| {
            let group = self.gangs.gang_of(key).filter(|(_, group)| group.pods.contains(key));
            group.is_none_or(|(gang, _)| self.world.gang_named(gang).is_none())
        };
        self.cache.pods_on(name).filter(move |(key, pod)| !pod.is_over() && is_foreign(key))
    }

    /// What a gang has seats for on a node.
    fn seated(&self, gang: GangId, node: &str) -> Foreign {
        let mut seated = Foreign::default();
        let (gang, node) = (self.world.gang(gang), self.world.node_named(node));
        let Some((gang, node)) = gang.zip(node) else { return seated };
        for seat in gang.seats.iter().filter(|seat| seat.node == node) {
            let role = &gang.spec.roles[usize::from(seat.role)];
            (0..seat.members).for_each(|_| seated.add(&role.request));
        }
        seated
    }

    /// What a pod takes. Marks that make no sense do not make it take nothing.
    fn request_of(&self, key: &Key, pod: &Pod) -> Request {
        let gpus = &self.config.gpus;
        let asked = pod.spec.request(labels_and_annotations(pod).1, gpus);
        let asked = asked.or_else(|why| {
            tracing::warn!(pod = &**key, ?why, "a pod's requests cannot be understood");
            pod.spec.request(&BTreeMap::new(), gpus)
        });
        asked.unwrap_or_default()
    }

    /// Notes whether members take more of a node than they have seats for.
    pub(crate) fn record_excess_usage(&mut self, name: &Arc<str>, foreign: &Foreign) {
        match foreign.is_beyond() {
            true => drop(self.excess_usage.insert(name.clone())),
            false => drop(self.excess_usage.remove(name)),
        }
    }

    /// Seats of gangs may have changed: what is beyond them is counted again.
    pub(crate) fn reconcile_excess_usage(&mut self) {
        self.dirty.nodes.extend(self.excess_usage.iter().cloned());
    }

    /// Nodes on which pods are that gangs have: those have their seats now.
    pub(crate) fn reconcile_nodes_of_gangs(&mut self) {
        let pods = self.cache.pods.iter().filter(|(key, _)| self.gangs.gang_of(key).is_some());
        let nodes = pods.filter_map(|(_, pod)| pod.node()).map(Arc::from);
        self.dirty.nodes.extend(nodes);
    }
}

/// Whether a pod takes something else, or elsewhere, than it did. Since Kubernetes 1.33 what a pod asks for may change while
/// it runs.
pub(crate) fn takes_otherwise(moved: &Moved<Pod>) -> bool {
    let takes = |pod: &Option<Arc<Pod>>| {
        let pod = pod.as_deref().filter(|pod| !pod.is_over());
        pod.and_then(Pod::node).map(str::to_owned)
    };
    let is_resized = || match (&moved.was, &moved.is) {
        (Some(was), Some(is)) => was.spec != is.spec,
        _ => false,
    };
    let (was, is) = (takes(&moved.was), takes(&moved.is));
    was != is || (is.is_some() && is_resized())
}
