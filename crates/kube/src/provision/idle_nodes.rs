//! Records on each bought node since when it is idle, in the annotation `muster.sh/idle-since`.
//!
//! Rule: a node is idle while no gang has a seat on it and no pod of another scheduler would miss it. The planner releases it
//! when it was idle for its pool's `idleAfter`. Were the start of that time only in memory, every new leader would count from
//! zero, and leaders that change more often than `idleAfter` would pay for idle nodes for ever.
//!
//! The annotation is removed when a gang gets a seat on the node. A leader that ends before it has removed it, and whose gang
//! ends before the next leader has started, leaves a time that is too early: the node may then be released before its idle time
//! is over, and never after.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::api::Api;
use muster_api::instant;
use muster_core::Event;
use muster_core::id::NodeIdx;
use muster_core::time::Time;
use rustc_hash::FxHashMap;
use serde_json::json;

use crate::api::retry::ApiError;
use crate::host::Host;
use crate::objects::node::Node;
use crate::provision::karpenter::IDLE_SINCE;

/// The time between two passes over all nodes. Idle times are minutes.
const WRITE_INTERVAL: Duration = Duration::from_secs(1);

/// The annotation of each bought node, as it is stored or being written.
#[derive(Debug, Default)]
pub(crate) struct IdleNodes {
    written: FxHashMap<Arc<str>, Option<Time>>,
    checked_at: Option<Instant>,
}

impl Host {
    /// Continues the idle times that the previous leader recorded.
    pub(crate) fn recover_idle_since(&mut self) {
        self.idle_nodes = IdleNodes::default();
        let names: Vec<Arc<str>> = self.bought_nodes().map(|(_, name)| name).collect();
        for name in names {
            let since = self.cache.nodes.get(&name).and_then(|node| recorded_idle_since(node));
            if let Some(since) = since {
                self.apply_event(&Event::NodeIdle { name: name.clone(), since });
            }
            self.idle_nodes.written.insert(name, since);
        }
    }

    /// Writes or removes the annotation of nodes that became idle or used.
    pub(crate) fn write_idle_since(&mut self) {
        if self.idle_nodes.checked_at.is_some_and(|at| at.elapsed() < WRITE_INTERVAL) {
            self.has_deferred_writes |= !self.world.claims().is_empty();
            return;
        }
        self.idle_nodes.checked_at = Some(Instant::now());
        let mut changed: Vec<(Arc<str>, Option<Time>)> = Vec::new();
        for (idx, name) in self.bought_nodes() {
            let node = self.world.node(idx).expect("it has joined");
            let since = (!node.is_used()).then_some(node.idle_since);
            if self.idle_nodes.written.get(&name).copied().flatten() != since {
                changed.push((name, since));
            }
        }
        for (name, since) in changed {
            self.annotate_idle_since(&name, since);
            self.idle_nodes.written.insert(name, since);
        }
        let nodes = &self.cache.nodes;
        self.idle_nodes.written.retain(|name, _| nodes.get(name).is_some());
    }

    /// The nodes of claims that have joined and are not being released.
    fn bought_nodes(&self) -> impl Iterator<Item = (NodeIdx, Arc<str>)> {
        let ready = self.world.claims().values().filter(|claim| !claim.releasing);
        ready.filter_map(|claim| {
            let node = claim.joined?;
            Some((node, self.world.node(node)?.name.clone()))
        })
    }

    fn annotate_idle_since(&mut self, name: &Arc<str>, since: Option<Time>) {
        let since = since.and_then(|since| jiff::Timestamp::from_millisecond(since.0).ok());
        let since = since.map(|since| since.to_string());
        let patch = json!({"metadata": {"annotations": {IDLE_SINCE: since}}});
        let write_key: Arc<str> = format!("idle {name}").into();
        let (writer, name) = (self.writer.clone(), name.clone());
        self.ordered_writes.write(&write_key, async move {
            writer.when_bindings_are_done().await;
            let nodes: Api<Node> = Api::all(writer.client.clone());
            match writer.patch(&nodes, &name, &patch).await {
                Ok(_) | Err(ApiError::NotFound | ApiError::NotLeader) => {}
                Err(error) => {
                    tracing::warn!(node = &*name, %error, "the idle time was not written");
                }
            }
        });
    }
}

fn recorded_idle_since(node: &Node) -> Option<Time> {
    instant(node.metadata.annotations.as_ref()?.get(IDLE_SINCE)?).ok()
}
