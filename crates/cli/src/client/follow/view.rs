//! A local view of objects: lists, kept up to date by events.

use std::collections::BTreeMap;

use muster_server::Kind;
use serde_json::Value;

use crate::client::follow::events::StreamEvent;

/// Objects of some kinds, by name.
#[derive(Debug, Default)]
pub(crate) struct View {
    objects: BTreeMap<(Kind, String), Value>,
    /// The newest event that the list of each kind includes.
    newest: BTreeMap<Kind, u64>,
}

/// The change that an event makes to a view.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum ViewChange {
    /// An object was created or changed.
    Changed(Kind, String),
    /// An object was removed.
    Gone(Kind, String),
    /// No change.
    Same,
    /// Events were missed: the lists must be read again.
    Stale,
}

/// The full name of an object; that of a gang includes its namespace.
pub(crate) fn name_of(kind: Kind, object: &Value) -> String {
    let text = |field: &str| object.pointer(field).and_then(Value::as_str);
    let name = text("/metadata/name").unwrap_or_default();
    match kind {
        Kind::Gang => format!("{}/{name}", text("/metadata/namespace").unwrap_or("default")),
        _ => name.to_owned(),
    }
}

impl View {
    /// Replaces all objects of a kind by a list, and returns the differences.
    pub(crate) fn replace(
        &mut self,
        kind: Kind,
        items: Vec<Value>,
        newest: u64,
    ) -> Vec<ViewChange> {
        self.newest.insert(kind, newest);
        let all = std::mem::take(&mut self.objects).into_iter();
        let (before, others): (BTreeMap<_, _>, _) = all.partition(|((of, _), _)| *of == kind);
        self.objects = others;
        let before = before.into_iter().map(|((_, name), object)| (name, object));
        let mut before: BTreeMap<String, Value> = before.collect();
        let mut steps = Vec::new();
        for object in items {
            let name = name_of(kind, &object);
            if before.remove(&name).as_ref() != Some(&object) {
                steps.push(ViewChange::Changed(kind, name.clone()));
            }
            self.objects.insert((kind, name), object);
        }
        steps.extend(before.into_keys().map(|name| ViewChange::Gone(kind, name)));
        steps
    }

    /// Applies an event. An event that the lists include already changes nothing.
    pub(crate) fn take(&mut self, news: StreamEvent) -> ViewChange {
        let is_old =
            |kind: Kind, seq: u64| self.newest.get(&kind).is_none_or(|newest| seq <= *newest);
        match news {
            StreamEvent::Gap { .. } => ViewChange::Stale,
            StreamEvent::Set { seq, kind, name, object } if !is_old(kind, seq) => {
                self.objects.insert((kind, name.clone()), object);
                ViewChange::Changed(kind, name)
            }
            StreamEvent::Gone { seq, kind, name } if !is_old(kind, seq) => {
                match self.objects.remove(&(kind, name.clone())) {
                    Some(_) => ViewChange::Gone(kind, name),
                    None => ViewChange::Same,
                }
            }
            StreamEvent::Set { .. } | StreamEvent::Gone { .. } | StreamEvent::Message { .. } => {
                ViewChange::Same
            }
        }
    }

    /// One object.
    pub(crate) fn get(&self, kind: Kind, name: &str) -> Option<&Value> {
        self.objects.get(&(kind, name.to_owned()))
    }

    /// All of a kind, by name.
    pub(crate) fn all(&self, kind: Kind) -> impl Iterator<Item = (&str, &Value)> {
        let of_kind = self.objects.range((kind, String::new())..);
        of_kind
            .take_while(move |((of, _), _)| *of == kind)
            .map(|((_, name), object)| (&**name, object))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn queue(name: &str, weight: u32) -> Value {
        json!({"metadata": {"name": name}, "spec": {"weight": weight}})
    }

    fn set(seq: u64, name: &str, weight: u32) -> StreamEvent {
        StreamEvent::Set {
            seq,
            kind: Kind::Queue,
            name: name.to_owned(),
            object: queue(name, weight),
        }
    }

    fn names(view: &View) -> Vec<&str> {
        view.all(Kind::Queue).map(|(name, _)| name).collect()
    }

    #[test]
    fn events_included_in_the_list_change_nothing() {
        let mut view = View::default();
        view.replace(Kind::Queue, vec![queue("a", 2)], 10);
        assert_eq!(view.take(set(10, "a", 1)), ViewChange::Same);
        assert_eq!(view.get(Kind::Queue, "a"), Some(&queue("a", 2)));
        assert_eq!(view.take(set(11, "b", 1)), ViewChange::Changed(Kind::Queue, "b".to_owned()));
        let gone = |seq| StreamEvent::Gone { seq, kind: Kind::Queue, name: "a".to_owned() };
        assert_eq!(view.take(gone(9)), ViewChange::Same);
        assert_eq!(view.take(gone(12)), ViewChange::Gone(Kind::Queue, "a".to_owned()));
        assert_eq!(view.take(gone(13)), ViewChange::Same);
        assert_eq!(names(&view), ["b"]);
        let pool = StreamEvent::Gone { seq: 20, kind: Kind::Pool, name: "a".to_owned() };
        assert_eq!(view.take(pool), ViewChange::Same, "a kind that was not listed");
    }

    #[test]
    fn list_after_a_gap_returns_the_missed_changes() {
        let mut view = View::default();
        view.replace(Kind::Queue, vec![queue("a", 1), queue("b", 1), queue("c", 1)], 10);
        assert_eq!(view.take(StreamEvent::Gap { seq: 40 }), ViewChange::Stale);
        let steps =
            view.replace(Kind::Queue, vec![queue("a", 1), queue("b", 2), queue("d", 1)], 40);
        let changed = |name: &str| ViewChange::Changed(Kind::Queue, name.to_owned());
        let expected = [changed("b"), changed("d"), ViewChange::Gone(Kind::Queue, "c".to_owned())];
        assert_eq!(steps, expected);
        assert_eq!(names(&view), ["a", "b", "d"]);
    }

    #[test]
    fn gang_names_include_the_namespace() {
        let gang = json!({"metadata": {"name": "a", "namespace": "research"}});
        assert_eq!(name_of(Kind::Gang, &gang), "research/a");
        assert_eq!(name_of(Kind::Pool, &gang), "a");
    }
}
