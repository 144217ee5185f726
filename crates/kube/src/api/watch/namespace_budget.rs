//! What the objects of each namespace cost, and which of them are left out when that is too much.
//!
//! A namespace that has reached its bound takes in nothing that is newer than what it has; an older object takes the place
//! of the newest. What other namespaces have is not touched. Objects without a namespace are written by administrators, and
//! are not bounded here.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;
use tokio::sync::Notify;

use crate::api::watch::watches::Which;
use crate::cache::store::Key;

/// Objects of all kinds, by namespace.
#[derive(Clone, Debug)]
pub(crate) struct NamespaceBudget {
    /// Bytes of memory that the objects of one namespace may take.
    bound: usize,
    books: Arc<Mutex<FxHashMap<Arc<str>, Book>>>,
}

/// Seconds since 1970 at which an object was made, then what it is: the order in which objects are kept.
type Age = (i64, Which, Key);

#[derive(Debug, Default)]
struct Book {
    total: usize,
    entries: FxHashMap<(Which, Key), Entry>,
    /// Those that can be left out.
    by_age: BTreeSet<Age>,
    /// Kinds of which something was left out, and how they are listed again.
    waiting: FxHashMap<Which, Arc<Notify>>,
}

#[derive(Debug)]
struct Entry {
    made: i64,
    cost: usize,
    /// The list that has brought it last.
    list: u64,
}

/// An object that asks to be kept.
#[derive(Clone, Debug)]
pub(crate) struct Asking {
    pub(crate) which: Which,
    pub(crate) namespace: Arc<str>,
    pub(crate) key: Key,
    pub(crate) made: i64,
    pub(crate) cost: usize,
    pub(crate) list: u64,
    /// Whether it must be kept, whatever it costs.
    pub(crate) must: bool,
}

/// Whether an object is kept.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is, and these are not any more.
    Kept(Vec<(Which, Key)>),
    Omission,
}

impl NamespaceBudget {
    pub(crate) fn new(bound: usize) -> Self {
        Self { bound, books: Arc::default() }
    }

    pub(crate) fn bound(&self) -> usize {
        self.bound
    }

    fn with<T>(&self, namespace: &Arc<str>, act: impl FnOnce(&mut Book) -> T) -> T {
        let mut books = self.books.lock().unwrap_or_else(PoisonError::into_inner);
        let done = act(books.entry(namespace.clone()).or_default());
        if books.get(namespace).is_some_and(Book::is_empty) {
            books.remove(namespace);
        }
        done
    }

    /// Counts an object, or leaves it out. One that is left out is listed again when there is room.
    pub(crate) fn keep(&self, asking: Asking, again: &Arc<Notify>) -> Verdict {
        let namespace = asking.namespace.clone();
        self.with(&namespace, |book| book.keep(asking, self.bound, again))
    }

    /// An object is gone.
    pub(crate) fn forget(&self, which: Which, namespace: &Arc<str>, key: &Key) {
        self.with(namespace, |book| {
            book.remove(which, key);
            book.call(self.bound);
        });
    }

    /// An object is left out that may be kept as it was.
    pub(crate) fn touch(&self, which: Which, namespace: &Arc<str>, key: &Key, list: u64) {
        self.with(namespace, |book| {
            if let Some(entry) = book.entries.get_mut(&(which, key.clone())) {
                entry.list = list;
            }
        });
    }

    /// A list of a kind has ended: what it has not brought is gone.
    pub(crate) fn end_list(&self, which: Which, list: u64) {
        let mut books = self.books.lock().unwrap_or_else(PoisonError::into_inner);
        for book in books.values_mut() {
            let is_gone =
                |(at, entry): &(&(Which, Key), &Entry)| at.0 == which && entry.list < list;
            let gone: Vec<Key> =
                book.entries.iter().filter(is_gone).map(|(at, _)| at.1.clone()).collect();
            gone.iter().for_each(|key| book.remove(which, key));
        }
        books.retain(|_, book| !book.is_empty());
    }
}

impl Book {
    fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.waiting.is_empty()
    }

    fn remove(&mut self, which: Which, key: &Key) {
        if let Some(entry) = self.entries.remove(&(which, key.clone())) {
            self.total -= entry.cost;
            self.by_age.remove(&(entry.made, which, key.clone()));
        }
    }

    fn keep(&mut self, asking: Asking, bound: usize, again: &Arc<Notify>) -> Verdict {
        let Asking { which, key, made, cost, list, must, .. } = asking;
        let age: Age = (made, which, key.clone());
        let before = self.entries.get(&(which, key.clone())).map_or(0, |entry| entry.cost);
        let mut newer: Vec<Age> = Vec::new();
        if !must {
            let mut total = self.total - before + cost;
            for other in self.by_age.iter().rev() {
                if total <= bound || *other <= age {
                    break;
                }
                total -= self.entries.get(&(other.1, other.2.clone())).map_or(0, |one| one.cost);
                newer.push(other.clone());
            }
            if total > bound {
                self.waiting.insert(which, again.clone());
                if let Some(entry) = self.entries.get_mut(&(which, key)) {
                    entry.list = list;
                }
                return Verdict::Omission;
            }
        }
        self.remove(which, &key);
        for (_, which, key) in &newer {
            self.remove(*which, key);
        }
        if !must {
            self.by_age.insert(age);
        }
        self.total += cost;
        self.entries.insert((which, key), Entry { made, cost, list });
        Verdict::Kept(newer.into_iter().map(|(_, which, key)| (which, key)).collect())
    }

    /// Has kinds listed again of which something was left out, when a tenth of the room is free.
    fn call(&mut self, bound: usize) {
        if self.total < bound - bound / 10 {
            self.waiting.drain().for_each(|(_, again)| again.notify_one());
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::api::watch::namespace_budget::*;

    const POD: Which = Which::Pod;

    fn asking(namespace: &str, name: &str, made: i64, cost: usize) -> Asking {
        let key = format!("{namespace}/{name}").into();
        let namespace = namespace.into();
        Asking { which: POD, namespace, key, made, cost, list: 1, must: false }
    }

    fn total(ledger: &NamespaceBudget, namespace: &str) -> usize {
        ledger.books.lock().expect("books").get(namespace).map_or(0, |book| book.total)
    }

    #[test]
    fn a_full_namespace_takes_in_nothing_newer_and_no_other_namespace_notices() {
        let (ledger, again) = (NamespaceBudget::new(100), Arc::default());
        let keep = |asking| ledger.keep(asking, &again);
        assert_eq!(keep(asking("a", "old", 1, 60)), Verdict::Kept(vec![]));
        assert_eq!(keep(asking("a", "new", 2, 60)), Verdict::Omission);
        assert_eq!(keep(asking("b", "new", 3, 100)), Verdict::Kept(vec![]));
        assert_eq!(total(&ledger, "a"), 60);
        // It may change as long as there is room for what it has become.
        assert_eq!(keep(asking("a", "old", 1, 100)), Verdict::Kept(vec![]));
        assert_eq!(keep(asking("a", "old", 1, 101)), Verdict::Omission);
        assert_eq!(total(&ledger, "a"), 100);
    }

    #[test]
    fn an_older_object_takes_the_place_of_the_newest() {
        let (ledger, again) = (NamespaceBudget::new(100), Arc::default());
        for (name, made) in [("second", 2), ("third", 3), ("fourth", 4)] {
            assert_eq!(ledger.keep(asking("a", name, made, 30), &again), Verdict::Kept(vec![]));
        }
        let gone = Verdict::Kept(vec![(POD, "a/fourth".into()), (POD, "a/third".into())]);
        assert_eq!(ledger.keep(asking("a", "first", 1, 60), &again), gone);
        assert_eq!(total(&ledger, "a"), 90);
    }

    #[test]
    fn what_must_be_kept_is_kept_and_counts() {
        let (ledger, again) = (NamespaceBudget::new(100), Arc::default());
        for name in ["a", "b"] {
            let must = Asking { must: true, ..asking("a", name, 1, 80) };
            assert_eq!(ledger.keep(must, &again), Verdict::Kept(vec![]));
        }
        assert_eq!(ledger.keep(asking("a", "c", 0, 1), &again), Verdict::Omission);
        assert_eq!(total(&ledger, "a"), 160);
    }

    #[tokio::test]
    async fn what_was_left_out_is_listed_again_when_there_is_room() {
        let (ledger, again) = (NamespaceBudget::new(100), Arc::new(Notify::new()));
        ledger.keep(asking("a", "old", 1, 100), &again);
        assert_eq!(ledger.keep(asking("a", "new", 2, 10), &again), Verdict::Omission);
        ledger.forget(POD, &"a".into(), &"a/old".into());
        tokio::time::timeout(std::time::Duration::from_secs(5), again.notified())
            .await
            .expect("it is listed again");
        assert_eq!(total(&ledger, "a"), 0);
        assert!(ledger.books.lock().expect("books").is_empty(), "nothing is kept of nothing");
    }

    #[test]
    fn what_a_list_does_not_bring_costs_nothing_any_more() {
        let (ledger, again) = (NamespaceBudget::new(100), Arc::default());
        ledger.keep(asking("a", "gone", 1, 50), &again);
        ledger.keep(Asking { list: 2, ..asking("a", "there", 1, 50) }, &again);
        ledger.end_list(POD, 2);
        assert_eq!(total(&ledger, "a"), 50);
    }
}
