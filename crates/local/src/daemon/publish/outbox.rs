//! What is to be on the board, until it is written down: nobody is shown what a crash could take back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use muster_api::crd::Stamp;
use muster_server::{Board, Kind, Note};
use serde_json::Value;

enum Update {
    Set(Kind, Arc<str>, Arc<Value>),
    /// A gang as it is when everything is written down: made then, so that thousands of them are not there at once.
    Gang(Arc<str>),
    Remove(Kind, Arc<str>),
    Note(Note),
}

/// News that wait for the commit, and the board they go to.
pub(crate) struct Outbox {
    board: Arc<Board>,
    updates: Vec<(Stamp, Update)>,
    /// What is on the board, or will be.
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

    /// A gang is shown as it will be at the end of the turn.
    pub(crate) fn set_gang(&mut self, at: Stamp, name: &Arc<str>) {
        self.there.entry(Kind::Gang).or_default().insert(name.clone());
        self.updates.push((at, Update::Gang(name.clone())));
    }

    pub(crate) fn remove(&mut self, at: Stamp, kind: Kind, name: &Arc<str>) {
        if self.there.get_mut(&kind).is_some_and(|there| there.remove(name)) {
            self.updates.push((at, Update::Remove(kind, name.clone())));
        }
    }

    /// Takes off what is not among these.
    pub(crate) fn keep_only(&mut self, at: Stamp, kind: Kind, here: &BTreeSet<Arc<str>>) {
        let there = self.there.get(&kind).into_iter().flatten();
        let gone: Vec<Arc<str>> = there.filter(|name| !here.contains(*name)).cloned().collect();
        gone.iter().for_each(|name| self.remove(at, kind, name));
    }

    pub(crate) fn note(&mut self, at: Stamp, said: Note) {
        self.updates.push((at, Update::Note(said)));
    }

    /// An object as it will be shown.
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

    /// All of it, for whoever needs the rest of the control plane beside it. An empty one stays behind until it is back.
    pub(crate) fn take(&mut self) -> Self {
        let Self { board, updates, there } = self;
        Self {
            board: board.clone(),
            updates: std::mem::take(updates),
            there: std::mem::take(there),
        }
    }

    /// Everything is written down: it may be shown. `gang` makes a gang as it is now.
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
    fn nothing_is_on_the_board_before_it_is_published() {
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
