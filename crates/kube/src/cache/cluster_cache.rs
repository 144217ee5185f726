//! Everything that was seen, by kind, and the few indexes that are asked for often.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::api::DynamicObject;
use rustc_hash::FxHashMap;

use crate::api::watch::decode::Omission;
use crate::api::watch::watches::{Change, Source, Which};
use crate::cache::store::{Key, Moved, Store};
use crate::objects::node::Node;
use crate::objects::node_claim::NodeClaim;
use crate::objects::pod::Pod;

/// What changes brought, for who makes events of it.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    pub(crate) pods: Vec<Moved<Pod>>,
    pub(crate) nodes: Vec<Moved<Node>>,
    pub(crate) claims: Vec<Moved<NodeClaim>>,
    pub(crate) others: Vec<(Source, Moved<DynamicObject>)>,
    /// Objects that are not taken in as they are now.
    pub(crate) left_out: Vec<(Which, Omission)>,
}

/// How long a kind may take to be listed before it is said, and before those go on that can do without it.
const PATIENCE: Duration = Duration::from_secs(30);

/// A kind that is to be listed.
#[derive(Debug)]
struct Awaited {
    since: Instant,
    /// Whether the others can do without it.
    is_optional: bool,
    /// Whether it was said that it cannot be listed.
    is_told: bool,
}

impl Awaited {
    fn is_late(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.since) >= PATIENCE
    }
}

/// Everything that was seen.
#[derive(Debug, Default)]
pub(crate) struct ClusterCache {
    pub(crate) pods: Store<Pod>,
    pub(crate) nodes: Store<Node>,
    pub(crate) claims: Store<NodeClaim>,
    pub(crate) others: BTreeMap<Source, Store<DynamicObject>>,
    /// Whether claims are watched at all.
    pub(crate) has_claims: bool,
    /// Since when kinds are watched that were not listed when last looked at.
    awaited: BTreeMap<Source, Awaited>,
    by_node: FxHashMap<Arc<str>, BTreeSet<Key>>,
    /// Pods that others must keep away from.
    with_anti_affinity: BTreeSet<Key>,
    /// Pods by namespace and each of their labels.
    by_mark: FxHashMap<Mark, BTreeSet<Key>>,
}

/// A namespace, and a label with its value.
type Mark = (String, String, String);

impl ClusterCache {
    /// Another kind is watched from now on. Whether the others can do without it.
    pub(crate) fn add(&mut self, source: Source, is_optional: bool) {
        self.others.entry(source).or_default();
        let since = Instant::now();
        self.awaited.insert(source, Awaited { since, is_optional, is_told: false });
    }

    /// Kinds that are not listed although they were given time, each of them once.
    pub(crate) fn overdue(&mut self, now: Instant) -> Vec<Source> {
        let others = &self.others;
        let is_open = |source: &Source| !others.get(source).is_some_and(Store::is_complete);
        self.awaited.retain(|source, _| is_open(source));
        let late = self.awaited.iter_mut().filter(|(_, one)| !one.is_told && one.is_late(now));
        late.map(|(source, one)| {
            one.is_told = true;
            *source
        })
        .collect()
    }

    /// Whether every kind was listed once, but for those that others can do without and that take too long.
    pub(crate) fn is_complete(&self) -> bool {
        self.is_complete_at(Instant::now())
    }

    fn is_complete_at(&self, now: Instant) -> bool {
        let is_spared = |source: &Source| {
            self.awaited.get(source).is_some_and(|one| one.is_optional && one.is_late(now))
        };
        self.pods.is_complete()
            && self.nodes.is_complete()
            && (!self.has_claims || self.claims.is_complete())
            && self.others.iter().all(|(source, one)| one.is_complete() || is_spared(source))
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
            Change::Omission(which, left) => {
                self.stays(which, &left.key());
                touched.left_out.push((which, *left));
            }
            Change::Dropped(which, left) => {
                self.leave_out(which, &left.key(), touched);
                touched.left_out.push((which, *left));
            }
        }
    }

    fn stays(&mut self, which: Which, key: &str) {
        match which {
            Which::Pod => self.pods.stays(key),
            Which::Node => self.nodes.stays(key),
            Which::Claim => self.claims.stays(key),
            Which::Other(source) => self.others.entry(source).or_default().stays(key),
        }
    }

    fn leave_out(&mut self, which: Which, key: &str, touched: &mut Touched) {
        match which {
            Which::Pod => {
                if let Some(moved) = self.pods.leave_out(key) {
                    self.index(&moved);
                    touched.pods.push(moved);
                }
            }
            Which::Node => touched.nodes.extend(self.nodes.leave_out(key)),
            Which::Claim => touched.claims.extend(self.claims.leave_out(key)),
            Which::Other(source) => {
                let moved = self.others.entry(source).or_default().leave_out(key);
                touched.others.extend(moved.map(|moved| (source, moved)));
            }
        }
    }

    /// Whether an object is there, as it is now or as it was.
    pub(crate) fn has(&self, which: Which, key: &str) -> bool {
        match which {
            Which::Pod => self.pods.get(key).is_some(),
            Which::Node => self.nodes.get(key).is_some(),
            Which::Claim => self.claims.get(key).is_some(),
            Which::Other(source) => {
                self.others.get(&source).is_some_and(|one| one.get(key).is_some())
            }
        }
    }

    fn index(&mut self, moved: &Moved<Pod>) {
        if moved.is.as_deref().is_some_and(Pod::has_anti_affinity) {
            self.with_anti_affinity.insert(moved.key.clone());
        } else {
            self.with_anti_affinity.remove(&moved.key);
        }
        self.index_marks(moved);
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

    /// Whether the pod of that name is this one, and not another that came later.
    pub(crate) fn is_pod(&self, key: &str, uid: &str) -> bool {
        let is = self.pods.get(key).map(|pod| pod.metadata.uid.as_deref().unwrap_or_default());
        is == Some(uid)
    }

    fn index_marks(&mut self, moved: &Moved<Pod>) {
        let was = moved.was.as_ref().and_then(|pod| pod.metadata.labels.as_ref());
        let is = moved.is.as_ref().and_then(|pod| pod.metadata.labels.as_ref());
        if was == is {
            return;
        }
        let pod = moved.is.as_ref().or(moved.was.as_ref());
        let space = pod.and_then(|pod| pod.metadata.namespace.clone()).unwrap_or_default();
        for (key, value) in was.into_iter().flatten() {
            let mark = (space.clone(), key.clone(), value.clone());
            if let Some(pods) = self.by_mark.get_mut(&mark) {
                pods.remove(&moved.key);
                if pods.is_empty() {
                    self.by_mark.remove(&mark);
                }
            }
        }
        for (key, value) in is.into_iter().flatten() {
            let mark = (space.clone(), key.clone(), value.clone());
            self.by_mark.entry(mark).or_default().insert(moved.key.clone());
        }
    }

    /// Pods of a namespace that have a label with this value, if there are any.
    pub(crate) fn marked(&self, space: &str, label: &str, value: &str) -> Option<&BTreeSet<Key>> {
        self.by_mark.get(&(space.to_owned(), label.to_owned(), value.to_owned()))
    }

    /// Pods that others must keep away from, wherever they are.
    pub(crate) fn with_anti_affinity(&self) -> impl Iterator<Item = (&Key, &Arc<Pod>)> {
        self.with_anti_affinity.iter().filter_map(|key| Some((key, self.pods.get(key)?)))
    }

    /// Pods that were put on a node.
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
    fn a_kind_that_cannot_be_listed_stops_nobody_for_ever_unless_all_need_it() {
        let mut mirror = ClusterCache::default();
        let mut touched = Touched::default();
        mirror.take(Change::Pod(Box::new(Event::InitDone)), &mut touched);
        mirror.take(Change::Node(Box::new(Event::InitDone)), &mut touched);
        let (spare, needed) = (Source(0), Source(1));
        mirror.add(spare, true);
        mirror.add(needed, false);
        let later = Instant::now() + PATIENCE;
        assert!(!mirror.is_complete_at(later));
        assert_eq!(mirror.overdue(Instant::now()), []);
        assert_eq!(mirror.overdue(later), [spare, needed]);
        assert_eq!(mirror.overdue(later), [], "it is said once");
        mirror.take(Change::Other(needed, Box::new(Event::InitDone)), &mut touched);
        assert!(!mirror.is_complete());
        assert!(mirror.is_complete_at(later));
        mirror.take(Change::Other(spare, Box::new(Event::InitDone)), &mut touched);
        assert!(mirror.is_complete());
    }

    #[test]
    fn nothing_is_kept_of_nodes_and_labels_that_nobody_has() {
        let mut mirror = ClusterCache::default();
        let pod = |node: Option<&str>| -> Pod {
            let json = json!({"metadata": {"name": "a", "namespace": "n", "labels": {"app": "a"}},
                "spec": {"nodeName": node}});
            serde_json::from_value(json).expect("a pod")
        };
        mirror.take(Change::Pod(Box::new(Event::Apply(pod(Some("x"))))), &mut Touched::default());
        assert_eq!(mirror.pods_on("x").count(), 1);
        assert_eq!(mirror.marked("n", "app", "a").map(BTreeSet::len), Some(1));
        assert_eq!(mirror.marked("m", "app", "a"), None);
        mirror.take(Change::Pod(Box::new(Event::Delete(pod(Some("x"))))), &mut Touched::default());
        assert!(mirror.by_node.is_empty() && mirror.by_mark.is_empty());
    }
}
