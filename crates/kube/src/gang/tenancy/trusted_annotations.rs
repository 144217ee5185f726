//! Which marks are believed: those that Muster wrote where tenants cannot write.
//!
//! Whoever may edit a namespace may write every annotation and label of its pods and Gangs, and may create pods that have a
//! `spec.nodeName`. So an annotation only says where to look. What counts is the status of the Gang, the status of the pod, or
//! what this process itself has done; `docs/kubernetes.md` has the table of all marks.
//!
//! Not here: pods that are on nodes without Muster having put them there, see `outside`.

use std::sync::Arc;

use crate::cache::store::Key;
use crate::gang::identity::GangSource;
use crate::host::Host;
use crate::objects::pod::Pod;
use crate::schedule::placement::placement_of;

/// A pod whose gate Muster has lifted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Released {
    pub(crate) uid: String,
    /// The only node that its scheduler may choose.
    pub(crate) node: Arc<str>,
}

impl Host {
    /// Whether a pod is Muster's to bind, or was released by it to another scheduler.
    pub(crate) fn is_served(&self, key: &Key, pod: &Pod) -> bool {
        self.config.serves(pod) || self.assigned_node_of(key, pod).is_some()
    }

    /// The node that Muster has released a pod to, if it did: this process has lifted the gate, or the one before it has
    /// recorded so. The annotation alone proves nothing.
    pub(crate) fn assigned_node_of<'a>(&self, key: &Key, pod: &'a Pod) -> Option<&'a str> {
        let seat = pod.seat().filter(|_| !pod.has_gate() && !self.config.binds(pod))?;
        let known = self.gangs.gang_of(key).and_then(|(_, record)| record.released.get(key));
        let is_known = known.is_some_and(|known| {
            *known.node == *seat && pod.metadata.uid.as_deref() == Some(&*known.uid)
        });
        (is_known || self.is_placement_recorded(key, pod, seat)).then_some(seat)
    }

    /// Whether the status of a pod's gang has a member on this node that no other pod was released to. A pod that stands for
    /// itself has no Gang; its own status says it.
    fn is_placement_recorded(&self, key: &Key, pod: &Pod, seat: &str) -> bool {
        let source = self.source_of(pod);
        if let GangSource::Pod { .. } = source {
            return pod.is_said_to_sit_on(seat);
        }
        let name = source.gang_name();
        let Some(object) = self.gang_seen(&name) else { return false };
        let placement = placement_of(object);
        let here = placement.iter().filter(|one| one.node == seat);
        let seats: i64 = here.map(|one| i64::from(one.members)).sum();
        let others = self.gangs.get(&name).map_or(0, |record| {
            let released = record.released.iter();
            released.filter(|(other, one)| *other != key && *one.node == *seat).count()
        });
        (others as i64) < seats
    }

    /// A pod as its owner made it: without the node selector that Muster added when it lifted the gate. Members that are
    /// alike stay alike, although each of them was given another node.
    pub(crate) fn without_added_selector(&self, key: &Key, pod: &Arc<Pod>) -> Arc<Pod> {
        if !pod.is_pinned() || self.assigned_node_of(key, pod).is_none() {
            return pod.clone();
        }
        let mut pod = Pod::clone(pod);
        pod.unpin();
        Arc::new(pod)
    }
}
