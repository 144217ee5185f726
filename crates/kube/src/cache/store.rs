//! All objects of one kind, as they were last observed.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::ResourceExt;
use kube::runtime::watcher::Event;
use rustc_hash::FxHashSet;

use crate::api::watch::watches::key_of;

/// `namespace/name`, or only a name.
pub(crate) type Key = Arc<str>;

/// Splits `namespace/name`. A name without a namespace is in `default`.
pub(crate) fn split_key(key: &str) -> (&str, &str) {
    key.split_once('/').unwrap_or(("default", key))
}

/// One object before and after a change.
#[derive(Debug)]
pub(crate) struct ObjectChange<T> {
    pub(crate) key: Key,
    /// The object before. `None` if it was created.
    pub(crate) was: Option<Arc<T>>,
    /// The object now. `None` if it was deleted.
    pub(crate) is: Option<Arc<T>>,
}

/// Objects by key. Complete once a list has ended.
#[derive(Debug)]
pub(crate) struct Store<T> {
    items: BTreeMap<Key, Arc<T>>,
    /// The keys that the list in progress has brought so far.
    listing: Option<FxHashSet<Key>>,
    is_complete: bool,
}

impl<T> Default for Store<T> {
    fn default() -> Self {
        Self { items: BTreeMap::new(), listing: None, is_complete: false }
    }
}

impl<T: ResourceExt> Store<T> {
    /// Whether everything was listed once.
    pub(crate) fn is_complete(&self) -> bool {
        self.is_complete
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Arc<T>> {
        self.items.get(key)
    }

    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Key, &Arc<T>)> {
        self.items.iter()
    }

    /// Applies an event of a watch, and returns what that changed.
    pub(crate) fn apply(&mut self, event: Event<T>) -> Vec<ObjectChange<T>> {
        match event {
            Event::Apply(object) => self.put(object),
            Event::Delete(object) => self.remove(&key_of(&object)).into_iter().collect(),
            Event::Init => {
                self.listing = Some(FxHashSet::default());
                Vec::new()
            }
            Event::InitApply(object) => {
                if let Some(listing) = &mut self.listing {
                    listing.insert(key_of(&object).into());
                }
                self.put(object)
            }
            Event::InitDone => self.end_list(),
        }
    }

    /// Keeps the older version of an object whose current version is omitted.
    pub(crate) fn keep_old(&mut self, key: &str) {
        if let Some(listing) = &mut self.listing {
            listing.insert(key.into());
        }
    }

    /// Omits an object from now on.
    pub(crate) fn omit(&mut self, key: &str) -> Option<ObjectChange<T>> {
        self.remove(key)
    }

    /// Adds an object. One of the same name with another UID is the deletion of the first and the creation of a second, whether or
    /// not the deletion was observed.
    fn put(&mut self, object: T) -> Vec<ObjectChange<T>> {
        let key: Key = key_of(&object).into();
        let is = Arc::new(object);
        let was = self.items.insert(key.clone(), is.clone());
        match was {
            Some(was) if was.uid() != is.uid() => vec![
                ObjectChange { key: key.clone(), was: Some(was), is: None },
                ObjectChange { key, was: None, is: Some(is) },
            ],
            was => vec![ObjectChange { key, was, is: Some(is) }],
        }
    }

    fn remove(&mut self, key: &str) -> Option<ObjectChange<T>> {
        let (key, was) = self.items.remove_entry(key)?;
        Some(ObjectChange { key, was: Some(was), is: None })
    }

    /// Ends a list: objects that it did not bring were deleted before it.
    fn end_list(&mut self) -> Vec<ObjectChange<T>> {
        self.is_complete = true;
        let Some(listed) = self.listing.take() else { return Vec::new() };
        let gone: Vec<Key> =
            self.items.keys().filter(|key| !listed.contains(&**key)).cloned().collect();
        gone.iter().filter_map(|key| self.remove(key)).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::cache::store::*;
    use crate::objects::node::Node;

    fn node(name: &str) -> Node {
        let json = serde_json::json!({"metadata": {"name": name}});
        serde_json::from_value(json).expect("a node")
    }

    fn names(store: &Store<Node>) -> Vec<&str> {
        store.iter().map(|(key, _)| &**key).collect()
    }

    #[test]
    fn object_missing_from_a_second_list_is_deleted() {
        let mut store = Store::default();
        store.apply(Event::Init);
        store.apply(Event::InitApply(node("a")));
        store.apply(Event::InitApply(node("b")));
        assert!(!store.is_complete());
        assert!(store.apply(Event::InitDone).is_empty());
        assert!(store.is_complete());
        store.apply(Event::Apply(node("c")));
        store.apply(Event::Init);
        assert_eq!(names(&store), ["a", "b", "c"]);
        store.apply(Event::InitApply(node("b")));
        let gone = store.apply(Event::InitDone);
        assert_eq!(gone.iter().map(|moved| &*moved.key).collect::<Vec<_>>(), ["a", "c"]);
        assert_eq!(names(&store), ["b"]);
    }

    #[test]
    fn object_with_another_uid_is_a_deletion_and_a_creation() {
        let with_uid = |uid: &str| -> Node {
            let json = serde_json::json!({"metadata": {"name": "a", "uid": uid}});
            serde_json::from_value(json).expect("a node")
        };
        let mut store = Store::default();
        store.apply(Event::Apply(with_uid("1")));
        assert_eq!(store.apply(Event::Apply(with_uid("1"))).len(), 1);
        store.apply(Event::Init);
        let moved = store.apply(Event::InitApply(with_uid("2")));
        let sides: Vec<_> =
            moved.iter().map(|moved| (moved.was.is_some(), moved.is.is_some())).collect();
        assert_eq!(sides, [(true, false), (false, true)]);
        assert!(store.apply(Event::InitDone).is_empty());
        assert_eq!(names(&store), ["a"]);
    }

    #[test]
    fn deletion_of_an_unobserved_object_changes_nothing() {
        let mut store = Store::default();
        assert!(store.apply(Event::Delete(node("a"))).is_empty());
    }
}
