//! Reads `kind: Node`: nodes that exist from the start, for hosts without a cluster.

use muster_core::node::NodeSpec;

use crate::manifest::amounts::supply;
use crate::manifest::gang::constraints::{labels, taints};
use crate::read::finding::Mark;
use crate::read::object::Metadata;
use crate::yaml::fields::Fields;

/// The largest number of nodes that one object, and all objects together, can stand for.
pub(crate) const MAX_NODES: u32 = 1_000_000;

/// `count` nodes that differ in their names only.
#[derive(Debug)]
pub(crate) struct DeclaredNode {
    pub(crate) spec: NodeSpec,
    pub(crate) count: u32,
    pub(crate) name: Mark,
}

/// Reads a node's spec.
pub(crate) fn read(metadata: Metadata<'_>, spec: &Fields<'_>) -> DeclaredNode {
    let count = spec.get("count").map_or(Some(1), |value| value.count(1..=MAX_NODES));
    let (allocatable, gpu, gpus) = supply(spec);
    let node = NodeSpec {
        name: metadata.name.into(),
        labels: labels(spec, "labels"),
        taints: taints(spec, "taints"),
        allocatable,
        gpu,
        gpus,
        ready: true,
        claim: None,
        others: false,
    };
    DeclaredNode { spec: node, count: count.unwrap_or(1), name: metadata.mark }
}

impl DeclaredNode {
    /// The nodes, numbered from 0 if there are several.
    pub(crate) fn expand(self) -> impl Iterator<Item = NodeSpec> {
        let Self { spec, count, name: _ } = self;
        (0..count).map(move |number| {
            let mut node = spec.clone();
            if count > 1 {
                node.name = format!("{}-{number}", spec.name).into();
            }
            node
        })
    }
}
