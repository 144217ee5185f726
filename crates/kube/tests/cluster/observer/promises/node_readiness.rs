//! Pods are bound to ready nodes only.

use std::collections::BTreeMap;
use std::time::Instant;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, NodeCondition};

use super::super::snapshot::Snapshot;
use super::super::suspected::{LATE, Moment, Suspected};

/// Pods bound to nodes that were not known to be ready then.
#[derive(Default)]
pub(crate) struct NodeReadiness {
    suspected: Suspected<Put>,
    /// When each node was last seen to become unready or to disappear: the controller may have bound a pod before it
    /// saw that.
    lapsed: BTreeMap<String, Instant>,
}

struct Put {
    pod: String,
    node: String,
}

impl NodeReadiness {
    /// A node has changed, or is gone.
    pub(crate) fn node(&mut self, name: &str, was: Option<&Node>, is: Option<&Node>, now: Moment) {
        let is_ready = |node: Option<&Node>| node.and_then(ready_since).is_some();
        if is_ready(was) && !is_ready(is) {
            self.lapsed.insert(name.to_owned(), now.tick);
        }
    }

    pub(crate) fn bound(&mut self, pod: &str, node: &str, now: Moment) {
        self.suspected.add(now, Put { pod: pod.to_owned(), node: node.to_owned() });
    }

    pub(crate) fn check(&mut self, snapshot: &Snapshot, now: Moment) -> Vec<String> {
        let lapsed = &self.lapsed;
        self.suspected.settle(now, |since, Put { pod, node }| {
            let long =
                lapsed.get(node).and_then(|lapsed| since.tick.checked_duration_since(*lapsed));
            if long.is_some_and(|long| long <= LATE) {
                return None;
            }
            let why = match snapshot.nodes.get(node).map(ready_since) {
                Some(Some(ready)) if ready <= since.stamp => return None,
                Some(Some(ready)) => format!("ready only since {ready}"),
                Some(None) => "not ready".to_owned(),
                None => "not there".to_owned(),
            };
            Some(format!("{pod} was bound to {node} at {}, which was {why}", since.stamp))
        })
    }

    pub(crate) fn is_settled(&self) -> bool {
        self.suspected.is_empty()
    }
}

/// Since when a node is ready, to the second.
pub(crate) fn ready_since(node: &Node) -> Option<Timestamp> {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    let ready = |one: &&NodeCondition| one.type_ == "Ready" && one.status == "True";
    Some(conditions?.iter().find(ready)?.last_transition_time.as_ref()?.0)
}
