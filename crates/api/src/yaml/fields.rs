//! A mapping with known fields: fields are read one by one, and a field that was not read is an error.
//!
//! The reads are the schema. A field that a reader forgets is rejected when a manifest has it, so nothing is ignored
//! silently.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use muster_core::time::Span;

use crate::read::finding::{Finding, Position, Sink};
use crate::yaml::hint::did_you_mean;
use crate::yaml::tree::{Content, Entry};
use crate::yaml::value::{Value, join};

/// The fields of one mapping.
#[derive(Debug)]
pub(crate) struct Fields<'a> {
    entries: &'a [Entry<'a>],
    path: Rc<str>,
    head: Position,
    read: RefCell<Vec<&'static str>>,
    sink: &'a Sink,
}

impl<'a> Fields<'a> {
    /// The fields of the mapping at `path`; reports those given twice.
    pub(crate) fn new(
        entries: &'a [Entry<'a>],
        path: Rc<str>,
        head: Position,
        sink: &'a Sink,
    ) -> Self {
        let mut first: HashMap<&str, Position> = HashMap::with_capacity(entries.len());
        for entry in entries {
            if let Some(before) = first.insert(&entry.key, entry.at) {
                let mark = sink.mark(entry.at, join(&path, &entry.key));
                sink.push(mark.error(format!("is given twice, first on line {}", before.line)));
            }
        }
        Self { entries, path, head, read: RefCell::default(), sink }
    }

    /// A field; `None` when it is absent or null, which mean the same.
    pub(crate) fn get(&self, name: &'static str) -> Option<Value<'a>> {
        self.read.borrow_mut().push(name);
        let entry = self.entries.iter().find(|entry| entry.key == name)?;
        (!matches!(entry.value.content, Content::Null)).then(|| self.value(entry))
    }
    /// A required field.
    pub(crate) fn need(&self, name: &'static str) -> Option<Value<'a>> {
        let value = self.get(name);
        if value.is_none() {
            self.missing(name);
        }
        value
    }
    /// Records that a field is missing.
    pub(crate) fn missing(&self, name: &str) {
        let written = self.entries.iter().find(|entry| entry.key == name);
        let at = written.map_or(self.head, |entry| entry.at);
        self.sink.push(self.sink.mark(at, join(&self.path, name)).error("is missing"));
    }
    /// Reports the first of two fields that exclude each other when both are given.
    pub(crate) fn exclusive(&self, one: &'static str, other: &'static str) {
        if let (Some(value), Some(_)) = (self.get(one), self.get(other)) {
            value.error(format!("give `{one}` or `{other}`, not both"));
        }
    }

    /// Text that is not empty.
    pub(crate) fn text(&self, name: &'static str) -> Option<&'a str> {
        self.get(name)?.text()
    }
    /// A duration.
    pub(crate) fn span(&self, name: &'static str) -> Option<Span> {
        self.get(name)?.parsed("a duration such as 90s, 15m or 1h30m")
    }
    /// A duration above zero.
    pub(crate) fn span_above_zero(&self, name: &'static str) -> Option<Span> {
        let span = self.span(name)?;
        if span == Span::ZERO {
            self.get(name)?.error("must be longer than 0");
        }
        Some(span)
    }
    /// A list, empty when absent.
    pub(crate) fn list(&self, name: &'static str) -> Vec<Value<'a>> {
        self.get(name).and_then(|value| value.list()).unwrap_or_default()
    }
    /// A list of texts, empty when absent.
    pub(crate) fn texts(&self, name: &'static str) -> Vec<&'a str> {
        self.list(name).iter().filter_map(Value::text).collect()
    }
    /// A mapping whose keys the user chooses, empty when absent.
    pub(crate) fn pairs(&self, name: &'static str) -> Vec<(&'a str, Value<'a>)> {
        self.get(name).and_then(|value| value.pairs()).unwrap_or_default()
    }

    /// Records findings that concern more than one field.
    pub(crate) fn report(&self, findings: Vec<Finding>) {
        findings.into_iter().for_each(|finding| self.sink.push(finding));
    }
    /// Ends the reading: every field that was not read is an error.
    pub(crate) fn done(self) {
        let read = self.read.borrow();
        #[cfg(test)]
        read_fields::note(&self.path, &read);
        for entry in self.entries.iter().filter(|entry| !read.contains(&&*entry.key)) {
            let reason = match &*entry.key {
                "<<" => "merge keys are not read: write the fields out".into(),
                key => format!("unknown field{}", did_you_mean(key, read.iter().copied())),
            };
            self.sink.push(self.sink.mark(entry.at, join(&self.path, &entry.key)).error(reason));
        }
    }
    /// Ends the reading of a mapping whose keys the user chooses.
    pub(crate) fn into_pairs(self) -> Vec<(&'a str, Value<'a>)> {
        self.entries.iter().map(|entry| (&*entry.key, self.value(entry))).collect()
    }

    fn value(&self, entry: &'a Entry<'a>) -> Value<'a> {
        Value::of_key(&entry.value, (&entry.key, entry.at), self.path.clone(), self.sink)
    }
}

/// Records every field that was read on this thread, by path, so that a test can compare them with a schema.
#[cfg(test)]
pub(crate) mod read_fields {
    use std::cell::RefCell;
    use std::collections::{BTreeMap, BTreeSet};

    /// Names of fields by the path of their mapping; indexes of lists are left out of the path.
    pub(crate) type ReadFields = BTreeMap<String, BTreeSet<String>>;

    thread_local! {
        static READ: RefCell<ReadFields> = RefCell::default();
    }

    pub(crate) fn note(path: &str, names: &[&'static str]) {
        let path: String = path.chars().filter(|c| !c.is_ascii_digit()).collect();
        let names = names.iter().map(ToString::to_string);
        READ.with_borrow_mut(|read| read.entry(path).or_default().extend(names));
    }

    /// All fields read so far; forgets them.
    pub(crate) fn take() -> ReadFields {
        READ.take()
    }
}
