//! Which changes may mean something to those who have ties.

use kube::api::DynamicObject;

use crate::cache::kinds::KindRole;
use crate::cache::store::{Key, Moved};
use crate::constraints::volumes::index::hostname;
use crate::host::Host;
use crate::objects::node::Node;
use crate::objects::pod::Pod;

impl Host {
    /// A pod counts when it is somewhere: where it is, what it is called, whom it minds.
    pub(crate) fn pod_may_invalidate(&mut self, moved: &Moved<Pod>) {
        let counts = |pod: &Pod| {
            let labels = pod.metadata.labels.clone();
            pod.node()
                .filter(|_| !pod.is_over())
                .map(|node| (node.to_owned(), labels, pod.is_leaving()))
        };
        if moved.was.as_deref().and_then(counts) != moved.is.as_deref().and_then(counts) {
            self.constraints.invalidate();
        }
    }

    /// A node counts by its labels and taints, and by whether it is there.
    pub(crate) fn node_may_invalidate(&mut self, moved: &Moved<Node>) {
        let counts =
            |node: &Node| (node.metadata.labels.clone(), node.spec.taints.clone(), node.is_ready());
        if moved.was.as_deref().map(counts) != moved.is.as_deref().map(counts) {
            self.constraints.invalidate();
        }
    }

    /// A volume counts wherever it can be reached, and on the node where it is alone.
    pub(crate) fn observe_volume(&mut self, moved: &Moved<DynamicObject>) {
        let hostnames = self.constraints.volumes.update(moved);
        self.constraints.invalidate();
        self.recheck_volume_binding();
        if hostnames.is_empty() {
            return;
        }
        let nodes = self.cache.nodes.iter().filter(|(_, node)| hostnames.contains(hostname(node)));
        let nodes: Vec<Key> = nodes.map(|(name, _)| name.clone()).collect();
        self.dirty.nodes.extend(nodes);
    }

    /// What a node can attach counts with what is attached there.
    pub(crate) fn observe_attach_limits(&mut self, moved: &Moved<DynamicObject>) {
        if self.constraints.attach_limits.update(&moved.key, moved.is.as_deref()) {
            self.constraints.invalidate();
            self.dirty.nodes.insert(moved.key.clone());
        }
    }

    /// Takes in all volumes, and all that nodes can attach, as they are.
    pub(crate) fn load_volumes(&mut self) {
        for moved in self.all_of(KindRole::Volume) {
            self.constraints.volumes.update(&moved);
        }
        for moved in self.all_of(KindRole::CsiNode) {
            self.constraints.attach_limits.update(&moved.key, moved.is.as_deref());
        }
    }
}
