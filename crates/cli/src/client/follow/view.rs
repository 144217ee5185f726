//! Objects as they are now: a list that events keep up to date.

use std::collections::BTreeMap;

use muster_server::Kind;
use serde_json::Value;

use crate::client::follow::events::News;

/// Objects of some kinds, by name.
#[derive(Debug, Default)]
pub(crate) struct View {
    objects: BTreeMap<(Kind, String), Value>,
    /// The newest event that each kind's list includes.
    newest: BTreeMap<Kind, u64>,
}

/// What an event does to a view.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// An object is another, or new.
    Changed(Kind, String),
    /// An object is no more.
    Gone(Kind, String),
    /// Nothing.
    Same,
    /// Something was missed: the lists must be read again.
    Behind,
}

/// The full name of an object: of a gang with its namespace.
pub(crate) fn name_of(kind: Kind, object: &Value) -> String {
    let text = |field: &str| object.pointer(field).and_then(Value::as_str);
    let name = text("/metadata/name").unwrap_or_default();
    match kind {
        Kind::Gang => format!("{}/{name}", text("/metadata/namespace").unwrap_or("default")),
        _ => name.to_owned(),
    }
}

impl View {
    /// Takes a whole list for what there is of a kind, and tells what is another than before.
    pub(crate) fn replace(&mut self, kind: Kind, items: Vec<Value>, newest: u64) -> Vec<Step> {
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
                steps.push(Step::Changed(kind, name.clone()));
            }
            self.objects.insert((kind, name), object);
        }
        steps.extend(before.into_keys().map(|name| Step::Gone(kind, name)));
        steps
    }

    /// Takes an event. What the lists include already changes nothing.
    pub(crate) fn take(&mut self, news: News) -> Step {
        let is_old =
            |kind: Kind, seq: u64| self.newest.get(&kind).is_none_or(|newest| seq <= *newest);
        match news {
            News::Gap { .. } => Step::Behind,
            News::Set { seq, kind, name, object } if !is_old(kind, seq) => {
                self.objects.insert((kind, name.clone()), object);
                Step::Changed(kind, name)
            }
            News::Gone { seq, kind, name } if !is_old(kind, seq) => {
                match self.objects.remove(&(kind, name.clone())) {
                    Some(_) => Step::Gone(kind, name),
                    None => Step::Same,
                }
            }
            News::Set { .. } | News::Gone { .. } | News::Said { .. } => Step::Same,
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

    use crate::client::follow::view::*;

    fn queue(name: &str, weight: u32) -> Value {
        json!({"metadata": {"name": name}, "spec": {"weight": weight}})
    }

    fn set(seq: u64, name: &str, weight: u32) -> News {
        News::Set { seq, kind: Kind::Queue, name: name.to_owned(), object: queue(name, weight) }
    }

    fn names(view: &View) -> Vec<&str> {
        view.all(Kind::Queue).map(|(name, _)| name).collect()
    }

    #[test]
    fn events_that_the_list_includes_change_nothing() {
        let mut view = View::default();
        view.replace(Kind::Queue, vec![queue("a", 2)], 10);
        assert_eq!(view.take(set(10, "a", 1)), Step::Same);
        assert_eq!(view.get(Kind::Queue, "a"), Some(&queue("a", 2)));
        assert_eq!(view.take(set(11, "b", 1)), Step::Changed(Kind::Queue, "b".to_owned()));
        let gone = |seq| News::Gone { seq, kind: Kind::Queue, name: "a".to_owned() };
        assert_eq!(view.take(gone(9)), Step::Same);
        assert_eq!(view.take(gone(12)), Step::Gone(Kind::Queue, "a".to_owned()));
        assert_eq!(view.take(gone(13)), Step::Same);
        assert_eq!(names(&view), ["b"]);
        let pool = News::Gone { seq: 20, kind: Kind::Pool, name: "a".to_owned() };
        assert_eq!(view.take(pool), Step::Same, "a kind that nobody listed");
    }

    #[test]
    fn after_a_gap_the_list_tells_what_was_missed() {
        let mut view = View::default();
        view.replace(Kind::Queue, vec![queue("a", 1), queue("b", 1), queue("c", 1)], 10);
        assert_eq!(view.take(News::Gap { seq: 40 }), Step::Behind);
        let steps =
            view.replace(Kind::Queue, vec![queue("a", 1), queue("b", 2), queue("d", 1)], 40);
        let changed = |name: &str| Step::Changed(Kind::Queue, name.to_owned());
        let expected = [changed("b"), changed("d"), Step::Gone(Kind::Queue, "c".to_owned())];
        assert_eq!(steps, expected);
        assert_eq!(names(&view), ["a", "b", "d"]);
    }

    #[test]
    fn gangs_are_named_with_their_namespace() {
        let gang = json!({"metadata": {"name": "a", "namespace": "research"}});
        assert_eq!(name_of(Kind::Gang, &gang), "research/a");
        assert_eq!(name_of(Kind::Pool, &gang), "a");
    }
}
