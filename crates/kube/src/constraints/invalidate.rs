//! Decides which changes of pods, nodes and volumes invalidate the resolved constraints of waiting gangs.

use kube::api::DynamicObject;

use crate::cache::kinds::KindRole;
use crate::cache::store::{Key, ObjectChange};
use crate::constraints::volumes::index::hostname;
use crate::host::Host;
use crate::objects::node::Node;
use crate::objects::pod::Pod;

impl Host {
    /// A pod matters while it is on a node: by its node, its labels, and whether it is being deleted.
    pub(crate) fn pod_may_invalidate(&mut self, moved: &ObjectChange<Pod>) {
        let counts = |pod: &Pod| {
            let labels = pod.metadata.labels.clone();
            pod.node()
                .filter(|_| !pod.is_finished())
                .map(|node| (node.to_owned(), labels, pod.is_terminating()))
        };
        if moved.was.as_deref().and_then(counts) != moved.is.as_deref().and_then(counts) {
            self.constraints.invalidate();
        }
    }

    /// A node matters by its labels and taints, and by whether it exists and is ready.
    pub(crate) fn node_may_invalidate(&mut self, moved: &ObjectChange<Node>) {
        let counts =
            |node: &Node| (node.metadata.labels.clone(), node.spec.taints.clone(), node.is_ready());
        if moved.was.as_deref().map(counts) != moved.is.as_deref().map(counts) {
            self.constraints.invalidate();
        }
    }

    /// A volume matters to every gang that could use it; a node-local one also changes the tokens of its node.
    pub(crate) fn observe_volume(&mut self, moved: &ObjectChange<DynamicObject>) {
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

    /// A changed attach limit of a node changes its tokens.
    pub(crate) fn observe_attach_limits(&mut self, moved: &ObjectChange<DynamicObject>) {
        if self.constraints.attach_limits.update(&moved.key, moved.is.as_deref()) {
            self.constraints.invalidate();
            self.dirty.nodes.insert(moved.key.clone());
        }
    }

    /// Loads all volumes and all attach limits from the cache, after a restart.
    pub(crate) fn load_volumes(&mut self) {
        for moved in self.all_objects(KindRole::Volume) {
            self.constraints.volumes.update(&moved);
        }
        for moved in self.all_objects(KindRole::CsiNode) {
            self.constraints.attach_limits.update(&moved.key, moved.is.as_deref());
        }
    }
}
