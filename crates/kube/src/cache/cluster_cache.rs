//! All observed objects, by kind, and indexes of pods by node, by label and by anti-affinity.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::api::DynamicObject;
use rustc_hash::FxHashMap;

use crate::api::watch::decode::Omission;
use crate::api::watch::watches::{Change, ObjectKind, SourceId};
use crate::cache::store::{Key, ObjectChange, Store};
use crate::objects::node::Node;
use crate::objects::node_claim::NodeClaim;
use crate::objects::pod::Pod;

/// The changes of one batch, from which the host makes events.
#[derive(Debug, Default)]
pub(crate) struct ObservedChanges {
    pub(crate) pods: Vec<ObjectChange<Pod>>,
    pub(crate) nodes: Vec<ObjectChange<Node>>,
    pub(crate) claims: Vec<ObjectChange<NodeClaim>>,
    pub(crate) others: Vec<(SourceId, ObjectChange<DynamicObject>)>,
    /// Objects whose current version is omitted from the cache.
    pub(crate) omitted: Vec<(ObjectKind, Omission)>,
}

/// How long a kind may take to be listed before that is logged, and before an optional kind is not waited for any more.
const LIST_TIMEOUT: Duration = Duration::from_secs(30);

/// A kind that is not listed yet.
#[derive(Debug)]
struct UnlistedKind {
    since: Instant,
    /// Whether decisions can be made without it.
    is_optional: bool,
    /// Whether it was logged that it cannot be listed.
    is_logged: bool,
}

impl UnlistedKind {
    fn is_late(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.since) >= LIST_TIMEOUT
    }
}

/// All observed objects.
#[derive(Debug, Default)]
pub(crate) struct ClusterCache {
    pub(crate) pods: Store<Pod>,
    pub(crate) nodes: Store<Node>,
    pub(crate) claims: Store<NodeClaim>,
    pub(crate) others: BTreeMap<SourceId, Store<DynamicObject>>,
    /// Whether NodeClaims are watched.
    pub(crate) has_claims: bool,
    /// Kinds that were not listed when last checked.
    unlisted: BTreeMap<SourceId, UnlistedKind>,
    by_node: FxHashMap<Arc<str>, BTreeSet<Key>>,
    /// Pods with required anti-affinity.
    with_anti_affinity: BTreeSet<Key>,
    /// Pods by namespace and each of their labels.
    by_label: FxHashMap<LabelKey, BTreeSet<Key>>,
}

/// A namespace, and a label with its value.
type LabelKey = (String, String, String);

impl ClusterCache {
    /// Adds a kind that is watched from now on, and whether decisions can be made without it.
    pub(crate) fn add(&mut self, source: SourceId, is_optional: bool) {
        self.others.entry(source).or_default();
        let since = Instant::now();
        self.unlisted.insert(source, UnlistedKind { since, is_optional, is_logged: false });
    }

    /// Kinds that are not listed after the timeout, each of them once.
    pub(crate) fn overdue(&mut self, now: Instant) -> Vec<SourceId> {
        let others = &self.others;
        let is_open = |source: &SourceId| !others.get(source).is_some_and(Store::is_complete);
        self.unlisted.retain(|source, _| is_open(source));
        let late = self.unlisted.iter_mut().filter(|(_, one)| !one.is_logged && one.is_late(now));
        late.map(|(source, one)| {
            one.is_logged = true;
            *source
        })
        .collect()
    }

    /// Whether every kind was listed once, except optional kinds after the timeout.
    pub(crate) fn is_complete(&self) -> bool {
        self.is_complete_at(Instant::now())
    }

    fn is_complete_at(&self, now: Instant) -> bool {
        let is_timed_out = |source: &SourceId| {
            self.unlisted.get(source).is_some_and(|one| one.is_optional && one.is_late(now))
        };
        self.pods.is_complete()
            && self.nodes.is_complete()
            && (!self.has_claims || self.claims.is_complete())
            && self.others.iter().all(|(source, one)| one.is_complete() || is_timed_out(source))
    }

    /// Applies a change.
    pub(crate) fn apply(&mut self, change: Change, touched: &mut ObservedChanges) {
        match change {
            Change::Pod(event) => {
                for moved in self.pods.apply(*event) {
                    self.index(&moved);
                    touched.pods.push(moved);
                }
            }
            Change::Node(event) => touched.nodes.extend(self.nodes.apply(*event)),
            Change::Claim(event) => touched.claims.extend(self.claims.apply(*event)),
            Change::Other(source, event) => {
                let moved = self.others.entry(source).or_default().apply(*event);
                touched.others.extend(moved.into_iter().map(|one| (source, one)));
            }
            Change::Omitted(which, left) => {
                self.keep_old(which, &left.key());
                touched.omitted.push((which, *left));
            }
            Change::Dropped(which, left) => {
                self.omit(which, &left.key(), touched);
                touched.omitted.push((which, *left));
            }
        }
    }

    fn keep_old(&mut self, which: ObjectKind, key: &str) {
        match which {
            ObjectKind::Pod => self.pods.keep_old(key),
            ObjectKind::Node => self.nodes.keep_old(key),
            ObjectKind::Claim => self.claims.keep_old(key),
            ObjectKind::Other(source) => self.others.entry(source).or_default().keep_old(key),
        }
    }

    fn omit(&mut self, which: ObjectKind, key: &str, touched: &mut ObservedChanges) {
        match which {
            ObjectKind::Pod => {
                if let Some(moved) = self.pods.omit(key) {
                    self.index(&moved);
                    touched.pods.push(moved);
                }
            }
            ObjectKind::Node => touched.nodes.extend(self.nodes.omit(key)),
            ObjectKind::Claim => touched.claims.extend(self.claims.omit(key)),
            ObjectKind::Other(source) => {
                let moved = self.others.entry(source).or_default().omit(key);
                touched.others.extend(moved.map(|moved| (source, moved)));
            }
        }
    }

    /// Whether an object is cached, in its current version or an older one.
    pub(crate) fn has(&self, which: ObjectKind, key: &str) -> bool {
        match which {
            ObjectKind::Pod => self.pods.get(key).is_some(),
            ObjectKind::Node => self.nodes.get(key).is_some(),
            ObjectKind::Claim => self.claims.get(key).is_some(),
            ObjectKind::Other(source) => {
                self.others.get(&source).is_some_and(|one| one.get(key).is_some())
            }
        }
    }

    fn index(&mut self, moved: &ObjectChange<Pod>) {
        if moved.is.as_deref().is_some_and(Pod::has_anti_affinity) {
            self.with_anti_affinity.insert(moved.key.clone());
        } else {
            self.with_anti_affinity.remove(&moved.key);
        }
        self.index_labels(moved);
        let was = moved.was.as_deref().and_then(Pod::node);
        let is = moved.is.as_deref().and_then(Pod::node);
        if was == is {
            return;
        }
        if let Some(node) = was
            && let Some(pods) = self.by_node.get_mut(node)
        {
            pods.remove(&moved.key);
            if pods.is_empty() {
                self.by_node.remove(node);
            }
        }
        if let Some(node) = is {
            self.by_node.entry(node.into()).or_default().insert(moved.key.clone());
        }
    }

    /// Whether the pod of that name is this one, and not a later one.
    pub(crate) fn is_pod(&self, key: &str, uid: &str) -> bool {
        let is = self.pods.get(key).map(|pod| pod.metadata.uid.as_deref().unwrap_or_default());
        is == Some(uid)
    }

    fn index_labels(&mut self, moved: &ObjectChange<Pod>) {
        let was = moved.was.as_ref().and_then(|pod| pod.metadata.labels.as_ref());
        let is = moved.is.as_ref().and_then(|pod| pod.metadata.labels.as_ref());
        if was == is {
            return;
        }
        let pod = moved.is.as_ref().or(moved.was.as_ref());
        let space = pod.and_then(|pod| pod.metadata.namespace.clone()).unwrap_or_default();
        for (key, value) in was.into_iter().flatten() {
            let label_key = (space.clone(), key.clone(), value.clone());
            if let Some(pods) = self.by_label.get_mut(&label_key) {
                pods.remove(&moved.key);
                if pods.is_empty() {
                    self.by_label.remove(&label_key);
                }
            }
        }
        for (key, value) in is.into_iter().flatten() {
            let label_key = (space.clone(), key.clone(), value.clone());
            self.by_label.entry(label_key).or_default().insert(moved.key.clone());
        }
    }

    /// Pods of a namespace with this label and value, if there are any.
    pub(crate) fn pods_with_label(
        &self,
        space: &str,
        label: &str,
        value: &str,
    ) -> Option<&BTreeSet<Key>> {
        self.by_label.get(&(space.to_owned(), label.to_owned(), value.to_owned()))
    }

    /// Pods with required anti-affinity, bound or not.
    pub(crate) fn with_anti_affinity(&self) -> impl Iterator<Item = (&Key, &Arc<Pod>)> {
        self.with_anti_affinity.iter().filter_map(|key| Some((key, self.pods.get(key)?)))
    }

    /// Pods that are bound to a node.
    pub(crate) fn pods_on(&self, node: &str) -> impl Iterator<Item = (&Key, &Arc<Pod>)> {
        let keys = self.by_node.get(node).into_iter().flatten();
        keys.filter_map(|key| Some((key, self.pods.get(key)?)))
    }
}

#[cfg(test)]
mod tests {
    use kube::runtime::watcher::Event;
    use serde_json::json;

    use crate::cache::cluster_cache::*;

    #[test]
    fn optional_kind_that_cannot_be_listed_blocks_only_until_the_timeout() {
        let mut cache = ClusterCache::default();
        let mut touched = ObservedChanges::default();
        cache.apply(Change::Pod(Box::new(Event::InitDone)), &mut touched);
        cache.apply(Change::Node(Box::new(Event::InitDone)), &mut touched);
        let (optional, needed) = (SourceId(0), SourceId(1));
        cache.add(optional, true);
        cache.add(needed, false);
        let later = Instant::now() + LIST_TIMEOUT;
        assert!(!cache.is_complete_at(later));
        assert_eq!(cache.overdue(Instant::now()), []);
        assert_eq!(cache.overdue(later), [optional, needed]);
        assert_eq!(cache.overdue(later), [], "it is logged once");
        cache.apply(Change::Other(needed, Box::new(Event::InitDone)), &mut touched);
        assert!(!cache.is_complete());
        assert!(cache.is_complete_at(later));
        cache.apply(Change::Other(optional, Box::new(Event::InitDone)), &mut touched);
        assert!(cache.is_complete());
    }

    #[test]
    fn indexes_drop_nodes_and_labels_without_pods() {
        let mut cache = ClusterCache::default();
        let pod = |node: Option<&str>| -> Pod {
            let json = json!({"metadata": {"name": "a", "namespace": "n", "labels": {"app": "a"}},
                "spec": {"nodeName": node}});
            serde_json::from_value(json).expect("a pod")
        };
        cache.apply(
            Change::Pod(Box::new(Event::Apply(pod(Some("x"))))),
            &mut ObservedChanges::default(),
        );
        assert_eq!(cache.pods_on("x").count(), 1);
        assert_eq!(cache.pods_with_label("n", "app", "a").map(BTreeSet::len), Some(1));
        assert_eq!(cache.pods_with_label("m", "app", "a"), None);
        cache.apply(
            Change::Pod(Box::new(Event::Delete(pod(Some("x"))))),
            &mut ObservedChanges::default(),
        );
        assert!(cache.by_node.is_empty() && cache.by_label.is_empty());
    }
}
