//! Everything that was seen, by kind, and the few indexes that are asked for often.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube::api::DynamicObject;
use rustc_hash::FxHashMap;

use crate::objects::{Node, NodeClaim, Pod};
use crate::shelf::{Key, Moved, Shelf};
use crate::watch::{Change, Source};

/// What changes brought, for who makes events of it.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    pub(crate) pods: Vec<Moved<Pod>>,
    pub(crate) nodes: Vec<Moved<Node>>,
    pub(crate) claims: Vec<Moved<NodeClaim>>,
    pub(crate) others: Vec<(Source, Moved<DynamicObject>)>,
}

/// Everything that was seen.
#[derive(Debug, Default)]
pub(crate) struct Mirror {
    pub(crate) pods: Shelf<Pod>,
    pub(crate) nodes: Shelf<Node>,
    pub(crate) claims: Shelf<NodeClaim>,
    pub(crate) others: BTreeMap<Source, Shelf<DynamicObject>>,
    /// Whether claims are watched at all.
    pub(crate) has_claims: bool,
    by_node: FxHashMap<Arc<str>, BTreeSet<Key>>,
    /// Pods that others must keep away from.
    shy: BTreeSet<Key>,
}

impl Mirror {
    /// Another kind is watched from now on.
    pub(crate) fn add(&mut self, source: Source) {
        self.others.entry(source).or_default();
    }

    /// Whether every kind was listed once.
    pub(crate) fn is_complete(&self) -> bool {
        self.pods.is_complete()
            && self.nodes.is_complete()
            && (!self.has_claims || self.claims.is_complete())
            && self.others.values().all(Shelf::is_complete)
    }

    /// Takes a change in.
    pub(crate) fn take(&mut self, change: Change, touched: &mut Touched) {
        match change {
            Change::Pod(event) => {
                for moved in self.pods.take(*event) {
                    self.index(&moved);
                    touched.pods.push(moved);
                }
            }
            Change::Node(event) => touched.nodes.extend(self.nodes.take(*event)),
            Change::Claim(event) => touched.claims.extend(self.claims.take(*event)),
            Change::Other(source, event) => {
                let moved = self.others.entry(source).or_default().take(*event);
                touched.others.extend(moved.into_iter().map(|one| (source, one)));
            }
        }
    }

    fn index(&mut self, moved: &Moved<Pod>) {
        if moved.is.as_deref().is_some_and(Pod::is_shy) {
            self.shy.insert(moved.key.clone());
        } else {
            self.shy.remove(&moved.key);
        }
        let was = moved.was.as_deref().and_then(Pod::node);
        let is = moved.is.as_deref().and_then(Pod::node);
        if was == is {
            return;
        }
        if let Some(pods) = was.and_then(|node| self.by_node.get_mut(node)) {
            pods.remove(&moved.key);
        }
        if let Some(node) = is {
            self.by_node.entry(node.into()).or_default().insert(moved.key.clone());
        }
    }

    /// Pods that others must keep away from, wherever they are.
    pub(crate) fn shy(&self) -> impl Iterator<Item = (&Key, &Arc<Pod>)> {
        self.shy.iter().filter_map(|key| Some((key, self.pods.get(key)?)))
    }

    /// Pods that were put on a node.
    pub(crate) fn pods_on(&self, node: &str) -> impl Iterator<Item = (&Key, &Arc<Pod>)> {
        let keys = self.by_node.get(node).into_iter().flatten();
        keys.filter_map(|key| Some((key, self.pods.get(key)?)))
    }
}
