//! Holds board updates until the commit: nothing is published that a crash could undo.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use muster_api::crd::Stamp;
use muster_server::{Board, Kind, Note};
use serde_json::Value;

enum Update {
    Set(Kind, Arc<str>, Arc<Value>),
    /// A gang, encoded at the commit, so that thousands of encoded gangs are not in memory at once.
    Gang(Arc<str>),
    Remove(Kind, Arc<str>),
    Note(Note),
}

/// Updates that wait for the commit, and the board they go to.
pub(crate) struct Outbox {
    board: Arc<Board>,
    updates: Vec<(Stamp, Update)>,
    /// Objects that are on the board, or will be.
    there: BTreeMap<Kind, BTreeSet<Arc<str>>>,
}

impl Outbox {
    pub(crate) fn new(board: Arc<Board>) -> Self {
        let mut there: BTreeMap<Kind, BTreeSet<Arc<str>>> = BTreeMap::new();
        for kind in [Kind::Gang, Kind::Queue, Kind::Pool, Kind::Node, Kind::Order] {
            let (listed, _) = board.list(kind, "", usize::MAX, |_, _| true);
            there.insert(kind, listed.into_iter().map(|(name, _)| name).collect());
        }
        Self { board, updates: Vec::new(), there }
    }

    pub(crate) fn set(&mut self, at: Stamp, kind: Kind, name: &Arc<str>, object: Value) {
        self.there.entry(kind).or_default().insert(name.clone());
        self.updates.push((at, Update::Set(kind, name.clone(), Arc::new(object))));
    }

    /// Publishes a gang as it is at the end of the turn.
    pub(crate) fn set_gang(&mut self, at: Stamp, name: &Arc<str>) {
        self.there.entry(Kind::Gang).or_default().insert(name.clone());
        self.updates.push((at, Update::Gang(name.clone())));
    }

    pub(crate) fn remove(&mut self, at: Stamp, kind: Kind, name: &Arc<str>) {
        if self.there.get_mut(&kind).is_some_and(|there| there.remove(name)) {
            self.updates.push((at, Update::Remove(kind, name.clone())));
        }
    }

    /// Removes objects that are not in this set.
    pub(crate) fn keep_only(&mut self, at: Stamp, kind: Kind, here: &BTreeSet<Arc<str>>) {
        let there = self.there.get(&kind).into_iter().flatten();
        let gone: Vec<Arc<str>> = there.filter(|name| !here.contains(*name)).cloned().collect();
        gone.iter().for_each(|name| self.remove(at, kind, name));
    }

    pub(crate) fn note(&mut self, at: Stamp, said: Note) {
        self.updates.push((at, Update::Note(said)));
    }

    /// An object as it will be published.
    pub(crate) fn latest(&self, kind: Kind, name: &str) -> Option<Arc<Value>> {
        for (_, updates) in self.updates.iter().rev() {
            match updates {
                Update::Set(of, known, object) if *of == kind && **known == *name => {
                    return Some(object.clone());
                }
                Update::Remove(of, known) if *of == kind && **known == *name => return None,
                _ => {}
            }
        }
        self.board.get(kind, name)
    }

    /// Takes the outbox out, so that its owner can be borrowed beside it. An empty one takes its place until it is put
    /// back.
    pub(crate) fn take(&mut self) -> Self {
        let Self { board, updates, there } = self;
        Self {
            board: board.clone(),
            updates: std::mem::take(updates),
            there: std::mem::take(there),
        }
    }

    /// Publishes everything, after the commit. `gang` encodes a gang as it is now.
    pub(crate) fn publish(&mut self, gang: impl Fn(&str) -> Option<Value>) {
        for (at, updates) in std::mem::take(&mut self.updates) {
            match updates {
                Update::Gang(name) => {
                    if let Some(object) = gang(&name) {
                        self.board.set(at, Kind::Gang, &name, object);
                    }
                }
                Update::Set(kind, name, object) => {
                    self.board.set(at, kind, &name, Arc::unwrap_or_clone(object));
                }
                Update::Remove(kind, name) => self.board.remove(at, kind, &name),
                Update::Note(said) => self.board.note(at, said),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use muster_core::time::Time;
    use serde_json::json;

    use super::*;

    #[test]
    fn board_is_unchanged_until_the_outbox_is_published() {
        let board = Arc::new(Board::new(0));
        let mut outbox = Outbox::new(board.clone());
        let (at, name): (Stamp, Arc<str>) = (Stamp(Time(0)), "a".into());
        outbox.set(at, Kind::Node, &name, json!({"a": 1}));
        assert_eq!(board.get(Kind::Node, "a"), None);
        assert_eq!(outbox.latest(Kind::Node, "a").as_deref(), Some(&json!({"a": 1})));
        outbox.publish(|_| None);
        assert_eq!(board.get(Kind::Node, "a").as_deref(), Some(&json!({"a": 1})));
        outbox.keep_only(at, Kind::Node, &BTreeSet::new());
        assert!(board.get(Kind::Node, "a").is_some() && outbox.latest(Kind::Node, "a").is_none());
        outbox.publish(|_| None);
        assert_eq!(board.get(Kind::Node, "a"), None);
        outbox.set_gang(at, &name);
        outbox.publish(|name| Some(json!(name)));
        assert_eq!(board.get(Kind::Gang, "a").as_deref(), Some(&json!("a")));
    }
}
