//! Bounds the memory of each namespace's objects, and chooses which are omitted.
//!
//! In a namespace at its bound no newer object is kept; an older object replaces the newest. Other namespaces are not
//! affected. Cluster-scoped objects are written by administrators, and are not bounded here.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;
use tokio::sync::Notify;

use crate::api::watch::watches::ObjectKind;
use crate::cache::store::Key;

/// Objects of all kinds, by namespace.
#[derive(Clone, Debug)]
pub(crate) struct NamespaceBudget {
    /// Bytes of memory that the objects of one namespace may take.
    bound: usize,
    usage: Arc<Mutex<FxHashMap<Arc<str>, NamespaceUsage>>>,
}

/// The Unix time at which an object was created, its kind and its key: the order in which objects are kept.
type Age = (i64, ObjectKind, Key);

#[derive(Debug, Default)]
struct NamespaceUsage {
    total: usize,
    entries: FxHashMap<(ObjectKind, Key), Entry>,
    /// Entries that may be omitted.
    by_age: BTreeSet<Age>,
    /// Kinds with omitted objects, and how to have them listed again.
    waiting: FxHashMap<ObjectKind, Arc<Notify>>,
}

#[derive(Debug)]
struct Entry {
    made: i64,
    cost: usize,
    /// The last list that contained it.
    list: u64,
}

/// An object to be counted.
#[derive(Clone, Debug)]
pub(crate) struct BudgetRequest {
    pub(crate) which: ObjectKind,
    pub(crate) namespace: Arc<str>,
    pub(crate) key: Key,
    pub(crate) made: i64,
    pub(crate) cost: usize,
    pub(crate) list: u64,
    /// Whether it must be kept, whatever it costs.
    pub(crate) must_keep: bool,
}

/// Whether an object is kept.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BudgetDecision {
    /// It is kept, and these newer objects no longer are.
    Keep(Vec<(ObjectKind, Key)>),
    Omit,
}

impl NamespaceBudget {
    pub(crate) fn new(bound: usize) -> Self {
        Self { bound, usage: Arc::default() }
    }

    pub(crate) fn bound(&self) -> usize {
        self.bound
    }

    fn with<T>(&self, namespace: &Arc<str>, act: impl FnOnce(&mut NamespaceUsage) -> T) -> T {
        let mut all = self.usage.lock().unwrap_or_else(PoisonError::into_inner);
        let done = act(all.entry(namespace.clone()).or_default());
        if all.get(namespace).is_some_and(NamespaceUsage::is_empty) {
            all.remove(namespace);
        }
        done
    }

    /// Counts an object, or omits it. If it is omitted, `relist` is notified when the namespace has memory again.
    pub(crate) fn keep(&self, request: BudgetRequest, relist: &Arc<Notify>) -> BudgetDecision {
        let namespace = request.namespace.clone();
        self.with(&namespace, |usage| usage.keep(request, self.bound, relist))
    }

    /// An object was deleted.
    pub(crate) fn forget(&self, which: ObjectKind, namespace: &Arc<str>, key: &Key) {
        self.with(namespace, |usage| {
            usage.remove(which, key);
            usage.notify_if_free(self.bound);
        });
    }

    /// An object is omitted of which an earlier state may be kept.
    pub(crate) fn touch(&self, which: ObjectKind, namespace: &Arc<str>, key: &Key, list: u64) {
        self.with(namespace, |usage| {
            if let Some(entry) = usage.entries.get_mut(&(which, key.clone())) {
                entry.list = list;
            }
        });
    }

    /// A list of a kind has ended: objects that it did not contain are deleted.
    pub(crate) fn end_list(&self, which: ObjectKind, list: u64) {
        let mut all = self.usage.lock().unwrap_or_else(PoisonError::into_inner);
        for usage in all.values_mut() {
            let is_gone =
                |(at, entry): &(&(ObjectKind, Key), &Entry)| at.0 == which && entry.list < list;
            let gone: Vec<Key> =
                usage.entries.iter().filter(is_gone).map(|(at, _)| at.1.clone()).collect();
            gone.iter().for_each(|key| usage.remove(which, key));
        }
        all.retain(|_, usage| !usage.is_empty());
    }
}

impl NamespaceUsage {
    fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.waiting.is_empty()
    }

    fn remove(&mut self, which: ObjectKind, key: &Key) {
        if let Some(entry) = self.entries.remove(&(which, key.clone())) {
            self.total -= entry.cost;
            self.by_age.remove(&(entry.made, which, key.clone()));
        }
    }

    fn keep(
        &mut self,
        request: BudgetRequest,
        bound: usize,
        relist: &Arc<Notify>,
    ) -> BudgetDecision {
        let BudgetRequest { which, key, made, cost, list, must_keep, .. } = request;
        let age: Age = (made, which, key.clone());
        let before = self.entries.get(&(which, key.clone())).map_or(0, |entry| entry.cost);
        let mut newer: Vec<Age> = Vec::new();
        if !must_keep {
            let mut total = self.total - before + cost;
            for other in self.by_age.iter().rev() {
                if total <= bound || *other <= age {
                    break;
                }
                total -= self.entries.get(&(other.1, other.2.clone())).map_or(0, |one| one.cost);
                newer.push(other.clone());
            }
            if total > bound {
                self.waiting.insert(which, relist.clone());
                if let Some(entry) = self.entries.get_mut(&(which, key)) {
                    entry.list = list;
                }
                return BudgetDecision::Omit;
            }
        }
        self.remove(which, &key);
        for (_, which, key) in &newer {
            self.remove(*which, key);
        }
        if !must_keep {
            self.by_age.insert(age);
        }
        self.total += cost;
        self.entries.insert((which, key), Entry { made, cost, list });
        BudgetDecision::Keep(newer.into_iter().map(|(_, which, key)| (which, key)).collect())
    }

    /// Has the kinds with omitted objects listed again, when a tenth of the budget is free.
    fn notify_if_free(&mut self, bound: usize) {
        if self.total < bound - bound / 10 {
            self.waiting.drain().for_each(|(_, relist)| relist.notify_one());
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::api::watch::namespace_budget::*;

    const POD: ObjectKind = ObjectKind::Pod;

    fn object(namespace: &str, name: &str, made: i64, cost: usize) -> BudgetRequest {
        let key = format!("{namespace}/{name}").into();
        let namespace = namespace.into();
        BudgetRequest { which: POD, namespace, key, made, cost, list: 1, must_keep: false }
    }

    fn total(budget: &NamespaceBudget, namespace: &str) -> usize {
        budget.usage.lock().expect("a lock").get(namespace).map_or(0, |usage| usage.total)
    }

    #[test]
    fn full_namespace_keeps_no_newer_object_and_others_are_unaffected() {
        let (budget, relist) = (NamespaceBudget::new(100), Arc::default());
        let keep = |object| budget.keep(object, &relist);
        assert_eq!(keep(object("a", "old", 1, 60)), BudgetDecision::Keep(vec![]));
        assert_eq!(keep(object("a", "new", 2, 60)), BudgetDecision::Omit);
        assert_eq!(keep(object("b", "new", 3, 100)), BudgetDecision::Keep(vec![]));
        assert_eq!(total(&budget, "a"), 60);
        // An object may change as long as its new size is within the budget.
        assert_eq!(keep(object("a", "old", 1, 100)), BudgetDecision::Keep(vec![]));
        assert_eq!(keep(object("a", "old", 1, 101)), BudgetDecision::Omit);
        assert_eq!(total(&budget, "a"), 100);
    }

    #[test]
    fn older_object_replaces_the_newest_objects() {
        let (budget, relist) = (NamespaceBudget::new(100), Arc::default());
        for (name, made) in [("second", 2), ("third", 3), ("fourth", 4)] {
            assert_eq!(
                budget.keep(object("a", name, made, 30), &relist),
                BudgetDecision::Keep(vec![])
            );
        }
        let newest = BudgetDecision::Keep(vec![(POD, "a/fourth".into()), (POD, "a/third".into())]);
        assert_eq!(budget.keep(object("a", "first", 1, 60), &relist), newest);
        assert_eq!(total(&budget, "a"), 90);
    }

    #[test]
    fn objects_that_must_be_kept_are_kept_and_counted() {
        let (budget, relist) = (NamespaceBudget::new(100), Arc::default());
        for name in ["a", "b"] {
            let must = BudgetRequest { must_keep: true, ..object("a", name, 1, 80) };
            assert_eq!(budget.keep(must, &relist), BudgetDecision::Keep(vec![]));
        }
        assert_eq!(budget.keep(object("a", "c", 0, 1), &relist), BudgetDecision::Omit);
        assert_eq!(total(&budget, "a"), 160);
    }

    #[tokio::test]
    async fn omitted_objects_are_listed_again_when_the_budget_has_room() {
        let (budget, relist) = (NamespaceBudget::new(100), Arc::new(Notify::new()));
        budget.keep(object("a", "old", 1, 100), &relist);
        assert_eq!(budget.keep(object("a", "new", 2, 10), &relist), BudgetDecision::Omit);
        budget.forget(POD, &"a".into(), &"a/old".into());
        tokio::time::timeout(std::time::Duration::from_secs(5), relist.notified())
            .await
            .expect("it is listed relist");
        assert_eq!(total(&budget, "a"), 0);
        assert!(budget.usage.lock().expect("a lock").is_empty(), "no empty entry stays");
    }

    #[test]
    fn object_missing_in_a_list_is_no_longer_counted() {
        let (budget, relist) = (NamespaceBudget::new(100), Arc::default());
        budget.keep(object("a", "gone", 1, 50), &relist);
        budget.keep(BudgetRequest { list: 2, ..object("a", "there", 1, 50) }, &relist);
        budget.end_list(POD, 2);
        assert_eq!(total(&budget, "a"), 50);
    }
}
