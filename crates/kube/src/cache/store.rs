//! All objects of one kind, as they were last seen.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::ResourceExt;
use kube::runtime::watcher::Event;
use rustc_hash::FxHashSet;

use crate::api::watch::watches::key_of;

/// `namespace/name`, or only a name.
pub(crate) type Key = Arc<str>;

/// What a change did.
#[derive(Debug)]
pub(crate) struct Moved<T> {
    pub(crate) key: Key,
    /// What was there before.
    pub(crate) was: Option<Arc<T>>,
    /// What is there now.
    pub(crate) is: Option<Arc<T>>,
}

/// Objects by key. Complete once a list has ended.
#[derive(Debug)]
pub(crate) struct Store<T> {
    items: BTreeMap<Key, Arc<T>>,
    /// What a list has brought so far.
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

    /// Takes in what a watcher saw, and says what that changed.
    pub(crate) fn take(&mut self, event: Event<T>) -> Vec<Moved<T>> {
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

    /// An object could not be taken in as it is now: one that is there stays as it was.
    pub(crate) fn stays(&mut self, key: &str) {
        if let Some(listing) = &mut self.listing {
            listing.insert(key.into());
        }
    }

    /// An object is left out from now on.
    pub(crate) fn leave_out(&mut self, key: &str) -> Option<Moved<T>> {
        self.remove(key)
    }

    /// One of the same name that is another came after the first had gone, whether that was seen or not.
    fn put(&mut self, object: T) -> Vec<Moved<T>> {
        let key: Key = key_of(&object).into();
        let is = Arc::new(object);
        let was = self.items.insert(key.clone(), is.clone());
        match was {
            Some(was) if was.uid() != is.uid() => vec![
                Moved { key: key.clone(), was: Some(was), is: None },
                Moved { key, was: None, is: Some(is) },
            ],
            was => vec![Moved { key, was, is: Some(is) }],
        }
    }

    fn remove(&mut self, key: &str) -> Option<Moved<T>> {
        let (key, was) = self.items.remove_entry(key)?;
        Some(Moved { key, was: Some(was), is: None })
    }

    /// What the list did not bring went while nobody looked.
    fn end_list(&mut self) -> Vec<Moved<T>> {
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

    fn names(shelf: &Store<Node>) -> Vec<&str> {
        shelf.iter().map(|(key, _)| &**key).collect()
    }

    #[test]
    fn what_a_second_list_does_not_bring_is_gone() {
        let mut shelf = Store::default();
        shelf.take(Event::Init);
        shelf.take(Event::InitApply(node("a")));
        shelf.take(Event::InitApply(node("b")));
        assert!(!shelf.is_complete());
        assert!(shelf.take(Event::InitDone).is_empty());
        assert!(shelf.is_complete());
        shelf.take(Event::Apply(node("c")));
        shelf.take(Event::Init);
        assert_eq!(names(&shelf), ["a", "b", "c"]);
        shelf.take(Event::InitApply(node("b")));
        let gone = shelf.take(Event::InitDone);
        assert_eq!(gone.iter().map(|moved| &*moved.key).collect::<Vec<_>>(), ["a", "c"]);
        assert_eq!(names(&shelf), ["b"]);
    }

    #[test]
    fn another_of_the_same_name_comes_after_the_first_has_gone() {
        let is = |uid: &str| -> Node {
            let json = serde_json::json!({"metadata": {"name": "a", "uid": uid}});
            serde_json::from_value(json).expect("a node")
        };
        let mut shelf = Store::default();
        shelf.take(Event::Apply(is("1")));
        assert_eq!(shelf.take(Event::Apply(is("1"))).len(), 1);
        shelf.take(Event::Init);
        let moved = shelf.take(Event::InitApply(is("2")));
        let sides: Vec<_> =
            moved.iter().map(|moved| (moved.was.is_some(), moved.is.is_some())).collect();
        assert_eq!(sides, [(true, false), (false, true)]);
        assert!(shelf.take(Event::InitDone).is_empty());
        assert_eq!(names(&shelf), ["a"]);
    }

    #[test]
    fn the_end_of_what_was_never_seen_changes_nothing() {
        let mut shelf = Store::default();
        assert!(shelf.take(Event::Delete(node("a"))).is_empty());
    }
}
