//! Nodes are ready when somebody is put on them.

use std::collections::BTreeMap;
use std::time::Instant;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, NodeCondition};

use super::doubts::{Doubts, LATE, Moment};
use super::seen::Seen;

/// Pods that were put on nodes which were not known to be ready then.
#[derive(Default)]
pub(super) struct Ready {
    doubts: Doubts<Put>,
    /// When each node was last seen to be ready no more, or to be gone: whoever has put somebody there by then may not
    /// have heard of it.
    lapsed: BTreeMap<String, Instant>,
}

struct Put {
    pod: String,
    node: String,
}

impl Ready {
    /// A node changes, or is no more.
    pub(super) fn node(&mut self, name: &str, was: Option<&Node>, is: Option<&Node>, now: Moment) {
        let is_ready = |node: Option<&Node>| node.and_then(ready_since).is_some();
        if is_ready(was) && !is_ready(is) {
            self.lapsed.insert(name.to_owned(), now.tick);
        }
    }

    pub(super) fn bound(&mut self, pod: &str, node: &str, now: Moment) {
        self.doubts.add(now, Put { pod: pod.to_owned(), node: node.to_owned() });
    }

    pub(super) fn look(&mut self, seen: &Seen, now: Moment) -> Vec<String> {
        let lapsed = &self.lapsed;
        self.doubts.settle(now, |since, Put { pod, node }| {
            let long =
                lapsed.get(node).and_then(|lapsed| since.tick.checked_duration_since(*lapsed));
            if long.is_some_and(|long| long <= LATE) {
                return None;
            }
            let why = match seen.nodes.get(node).map(ready_since) {
                Some(Some(ready)) if ready <= since.stamp => return None,
                Some(Some(ready)) => format!("ready only since {ready}"),
                Some(None) => "not ready".to_owned(),
                None => "not there".to_owned(),
            };
            Some(format!("{pod} was bound to {node} at {}, which was {why}", since.stamp))
        })
    }

    pub(super) fn is_settled(&self) -> bool {
        self.doubts.is_empty()
    }
}

/// Since when a node is ready. Servers tell it to the second.
pub(crate) fn ready_since(node: &Node) -> Option<Timestamp> {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    let ready = |one: &&NodeCondition| one.type_ == "Ready" && one.status == "True";
    Some(conditions?.iter().find(ready)?.last_transition_time.as_ref()?.0)
}
