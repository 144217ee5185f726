//! Which changes may mean something to those who have ties.

use super::super::Host;
use crate::objects::{Node, Pod};
use crate::shelf::Moved;

impl Host {
    /// A pod counts when it is somewhere: where it is, what it is called, whom it minds.
    pub(in super::super) fn pod_may_stir(&mut self, moved: &Moved<Pod>) {
        let counts = |pod: &Pod| {
            let labels = pod.metadata.labels.clone();
            pod.node()
                .filter(|_| !pod.is_over())
                .map(|node| (node.to_owned(), labels, pod.is_leaving()))
        };
        if moved.was.as_deref().and_then(counts) != moved.is.as_deref().and_then(counts) {
            self.ties.stir();
        }
    }

    /// A node counts by its labels and taints, and by whether it is there.
    pub(in super::super) fn node_may_stir(&mut self, moved: &Moved<Node>) {
        let counts =
            |node: &Node| (node.metadata.labels.clone(), node.spec.taints.clone(), node.is_ready());
        if moved.was.as_deref().map(counts) != moved.is.as_deref().map(counts) {
            self.ties.stir();
        }
    }
}
