//! Trusts annotations only where a status that tenants cannot write confirms them.
//!
//! A user that may edit a namespace may write every annotation and label of its pods and Gangs, and may create pods that have a
//! `spec.nodeName`. So an annotation is only a hint. What counts is the status of the Gang, the status of the pod, or what
//! this process itself has done; `docs/kubernetes.md` has the table of all annotations.
//!
//! Not here: pods on nodes that Muster did not bind, see `schedule::bound_elsewhere`.

use std::sync::Arc;

use crate::cache::store::Key;
use crate::gang::identity::GangSource;
use crate::host::Host;
use crate::objects::pod::Pod;
use crate::schedule::placement::placement_of;

/// A pod whose scheduling gate Muster has removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Released {
    pub(crate) uid: String,
    /// The only node that its scheduler may choose.
    pub(crate) node: Arc<str>,
}

impl Host {
    /// Whether Muster binds a pod, or has released it to another scheduler.
    pub(crate) fn is_served(&self, key: &Key, pod: &Pod) -> bool {
        self.config.serves(pod) || self.assigned_node_of(key, pod).is_some()
    }

    /// The node that Muster has released a pod to, if it did: this process has removed the gate, or a previous leader has
    /// recorded so. The annotation alone proves nothing.
    pub(crate) fn assigned_node_of<'a>(&self, key: &Key, pod: &'a Pod) -> Option<&'a str> {
        let node = pod.assigned_node().filter(|_| !pod.has_gate() && !self.config.binds(pod))?;
        let known = self.gangs.gang_of(key).and_then(|(_, record)| record.released.get(key));
        let is_known = known.is_some_and(|known| {
            *known.node == *node && pod.metadata.uid.as_deref() == Some(&*known.uid)
        });
        (is_known || self.is_placement_recorded(key, pod, node)).then_some(node)
    }

    /// Whether the status of a pod's gang has a member on this node that no other pod was released to. A single pod has no
    /// Gang; its own status has the node.
    fn is_placement_recorded(&self, key: &Key, pod: &Pod, node: &str) -> bool {
        let source = self.source_of(pod);
        if let GangSource::Pod { .. } = source {
            return pod.is_seated_on(node);
        }
        let name = source.gang_name();
        let Some(object) = self.gang_object(&name) else { return false };
        let placement = placement_of(object);
        let here = placement.iter().filter(|one| one.node == node);
        let seats: i64 = here.map(|one| i64::from(one.members)).sum();
        let others = self.gangs.get(&name).map_or(0, |record| {
            let released = record.released.iter();
            released.filter(|(other, one)| *other != key && *one.node == *node).count()
        });
        (others as i64) < seats
    }

    /// A pod as its owner created it: without the node selector that Muster added when it removed the gate. Equal members stay
    /// equal, although each was released to another node.
    pub(crate) fn without_added_selector(&self, key: &Key, pod: &Arc<Pod>) -> Arc<Pod> {
        if !pod.has_added_selector() || self.assigned_node_of(key, pod).is_none() {
            return pod.clone();
        }
        let mut pod = Pod::clone(pod);
        pod.remove_added_selector();
        Arc::new(pod)
    }
}
