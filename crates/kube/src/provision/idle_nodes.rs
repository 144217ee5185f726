//! Since when nobody has used a node that was bought, written on the node itself.
//!
//! A node goes when its pool's idle time is over. If that were only in memory every new leader would begin to count anew, and
//! leaders that change more often than the idle time is long would pay for idle nodes for ever. What is written is taken
//! off when somebody gets a seat there. A leader that ends before it has, and whose gang ends before the next leader has
//! looked, leaves an instant that is too early: the node may then go before its idle time is over, and never after.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::api::Api;
use muster_api::instant;
use muster_core::Event;
use muster_core::id::NodeIdx;
use muster_core::time::Time;
use rustc_hash::FxHashMap;
use serde_json::json;

use crate::api::retry::Said;
use crate::host::Host;
use crate::objects::node::Node;
use crate::provision::karpenter::IDLE_SINCE;

/// How often nodes are gone through. Idle times are minutes.
const PAUSE: Duration = Duration::from_secs(1);

/// What is written on nodes, or is being written.
#[derive(Debug, Default)]
pub(crate) struct IdleNodes {
    written: FxHashMap<Arc<str>, Option<Time>>,
    at: Option<Instant>,
}

impl Host {
    /// Takes up counting where whoever led before has left off.
    pub(crate) fn find_idle(&mut self) {
        self.idle_nodes = IdleNodes::default();
        let bought: Vec<Arc<str>> = self.bought().map(|(_, name)| name).collect();
        for name in bought {
            let since = self.cache.nodes.get(&name).and_then(|node| written(node));
            if let Some(since) = since {
                self.apply_event(&Event::NodeIdle { name: name.clone(), since });
            }
            self.idle_nodes.written.insert(name, since);
        }
    }

    /// Writes down since when nodes are idle, or that they are not, where that has changed.
    pub(crate) fn write_idle(&mut self) {
        if self.idle_nodes.at.is_some_and(|at| at.elapsed() < PAUSE) {
            self.has_deferred_writes |= !self.world.claims().is_empty();
            return;
        }
        self.idle_nodes.at = Some(Instant::now());
        let mut changed: Vec<(Arc<str>, Option<Time>)> = Vec::new();
        for (idx, name) in self.bought() {
            let node = self.world.node(idx).expect("it is there");
            let since = (!node.is_used()).then_some(node.idle_since);
            if self.idle_nodes.written.get(&name).copied().flatten() != since {
                changed.push((name, since));
            }
        }
        for (name, since) in changed {
            self.mark_idle(&name, since);
            self.idle_nodes.written.insert(name, since);
        }
        let known = &self.cache.nodes;
        self.idle_nodes.written.retain(|name, _| known.get(name).is_some());
    }

    /// Nodes that were bought and are there.
    fn bought(&self) -> impl Iterator<Item = (NodeIdx, Arc<str>)> {
        let ready = self.world.claims().values().filter(|claim| !claim.releasing);
        ready.filter_map(|claim| {
            let node = claim.joined?;
            Some((node, self.world.node(node)?.name.clone()))
        })
    }

    fn mark_idle(&mut self, name: &Arc<str>, since: Option<Time>) {
        let since = since.and_then(|since| jiff::Timestamp::from_millisecond(since.0).ok());
        let since = since.map(|since| since.to_string());
        let patch = json!({"metadata": {"annotations": {IDLE_SINCE: since}}});
        let lane: Arc<str> = format!("idle {name}").into();
        let (hands, name) = (self.writer.clone(), name.clone());
        self.ordered_writes.write(&lane, async move {
            hands.when_bindings_are_done().await;
            let nodes: Api<Node> = Api::all(hands.client.clone());
            match hands.patch(&nodes, &name, &patch).await {
                Ok(_) | Err(Said::Gone | Said::NotLeader) => {}
                Err(said) => {
                    tracing::warn!(node = &*name, %said, "since when it is idle was not written");
                }
            }
        });
    }
}

fn written(node: &Node) -> Option<Time> {
    instant(node.metadata.annotations.as_ref()?.get(IDLE_SINCE)?).ok()
}
