//! Reads a foreign object field by field.
//!
//! Other systems' objects are read leniently where Muster's own are read strictly: unknown fields are ignored, and
//! `null` is absent. A field that is read and invalid is a finding with its name.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Display;

use serde_json::Value;

use crate::read::finding::shortened;
use crate::yaml::value::join;

/// The largest number of members of a group, as in Muster's own manifests.
pub(crate) const MAX_MEMBERS: u32 = 1_000_000;
/// The longest finding, in characters: the user's text is part of it, and may have megabytes.
const LONGEST: usize = 400;

/// Collects the findings about one object.
#[derive(Debug, Default)]
pub(crate) struct Findings(RefCell<Vec<String>>);

impl Findings {
    /// Records what is wrong with a field. Fields may be read several times, and are reported once.
    pub(crate) fn push(&self, field: &str, reason: impl Display) {
        let finding = shortened(&format!("{field}: {reason}"), LONGEST);
        let mut findings = self.0.borrow_mut();
        if !findings.contains(&finding) {
            findings.push(finding);
        }
    }
    /// Adds findings of another reader.
    pub(crate) fn extend(&self, findings: Vec<String>) {
        self.0.borrow_mut().extend(findings);
    }
    /// The result, if there are no findings.
    pub(crate) fn settle<T>(self, read: T) -> Result<T, Vec<String>> {
        let findings = self.0.into_inner();
        if findings.is_empty() { Ok(read) } else { Err(findings) }
    }
}

/// A value of a foreign object, its path, and the collector of its findings.
#[derive(Clone, Debug)]
pub(crate) struct Json<'a> {
    value: &'a Value,
    path: String,
    findings: &'a Findings,
}

impl<'a> Json<'a> {
    /// The object itself.
    pub(crate) fn root(value: &'a Value, findings: &'a Findings) -> Self {
        Self { value, path: String::new(), findings }
    }
    /// The raw value.
    pub(crate) fn value(&self) -> &'a Value {
        self.value
    }
    /// The path from the object to this value.
    pub(crate) fn path(&self) -> &str {
        if self.path.is_empty() { "(object)" } else { &self.path }
    }
    /// The path of a field of this mapping.
    pub(crate) fn path_of(&self, name: &str) -> String {
        join(&self.path, name)
    }
    /// The collector of its findings.
    pub(crate) fn findings(&self) -> &'a Findings {
        self.findings
    }
    /// Records what is wrong with this value.
    pub(crate) fn error(&self, reason: impl Display) {
        self.findings.push(self.path(), reason);
    }
    /// Records that a required field of this mapping is missing.
    pub(crate) fn missing(&self, name: &str) {
        self.findings.push(&self.path_of(name), "is missing");
    }

    /// A field; `None` when it is absent or null.
    pub(crate) fn get(&self, name: &str) -> Option<Json<'a>> {
        let Some(map) = self.value.as_object() else { return self.expected("a mapping") };
        let value = map.get(name).filter(|value| !value.is_null())?;
        Some(Json { value, path: self.path_of(name), findings: self.findings })
    }
    /// A field several levels down.
    pub(crate) fn at(&self, path: &[&str]) -> Option<Json<'a>> {
        path.iter().try_fold(self.clone(), |here, name| here.get(name))
    }
    /// A required field.
    pub(crate) fn need(&self, name: &str) -> Option<Json<'a>> {
        let found = self.get(name);
        if found.is_none() && self.value.is_object() {
            self.missing(name);
        }
        found
    }
    /// The items of a list; none if it is absent.
    pub(crate) fn list(&self, name: &str) -> Vec<Json<'a>> {
        let Some(list) = self.get(name) else { return Vec::new() };
        let Some(items) = list.value.as_array() else {
            list.expected::<()>("a list");
            return Vec::new();
        };
        let item = |(index, value): (usize, &'a Value)| Json {
            value,
            path: format!("{}[{index}]", list.path),
            findings: self.findings,
        };
        items.iter().enumerate().map(item).collect()
    }
    /// The entries of a mapping; none if it is absent.
    pub(crate) fn pairs(&self, name: &str) -> Vec<(&'a str, Json<'a>)> {
        let Some(map) = self.get(name) else { return Vec::new() };
        let Some(entries) = map.value.as_object() else {
            map.expected::<()>("a mapping");
            return Vec::new();
        };
        let entry = |(key, value): (&'a String, &'a Value)| {
            (key.as_str(), Json { value, path: map.path_of(key), findings: self.findings })
        };
        entries.iter().map(entry).collect()
    }

    /// The labels and annotations of an object.
    pub(crate) fn labels_and_annotations(
        &self,
    ) -> (BTreeMap<String, String>, BTreeMap<String, String>) {
        let metadata = self.get("metadata");
        let read = |name| metadata.as_ref().map(|at| at.texts(name)).unwrap_or_default();
        (read("labels"), read("annotations"))
    }
    /// A mapping of texts; other values are left out, with a finding.
    pub(crate) fn texts(&self, name: &str) -> BTreeMap<String, String> {
        let mut texts = BTreeMap::new();
        for (key, value) in self.pairs(name) {
            match value.value.as_str() {
                Some(text) => {
                    texts.insert(key.to_owned(), text.to_owned());
                }
                None => value.expected("text").unwrap_or_default(),
            }
        }
        texts
    }

    /// Text; `None` also if it is empty, which Kubernetes treats as absent.
    pub(crate) fn text(&self, name: &str) -> Option<&'a str> {
        let field = self.get(name)?;
        let Some(text) = field.value.as_str() else { return field.expected("text") };
        (!text.is_empty()).then_some(text)
    }
    /// `true` or `false`.
    pub(crate) fn flag(&self, name: &str) -> Option<bool> {
        let field = self.get(name)?;
        field.value.as_bool().or_else(|| field.expected("true or false"))
    }
    /// An integer that fits `T`.
    pub(crate) fn whole<T: TryFrom<i64>>(&self, name: &str) -> Option<T> {
        let field = self.get(name)?;
        let number = field.value.as_i64().and_then(|number| T::try_from(number).ok());
        number.or_else(|| field.expected("a whole number in range"))
    }
    /// A number of members.
    pub(crate) fn count(&self, name: &str) -> Option<u32> {
        let field = self.get(name)?;
        match field.value.as_u64().and_then(|number| u32::try_from(number).ok()) {
            Some(number) if number <= MAX_MEMBERS => Some(number),
            _ => field.expected(&format!("a whole number from 0 to {MAX_MEMBERS}")),
        }
    }

    fn expected<T>(&self, what: &str) -> Option<T> {
        let written = shortened(&self.value.to_string(), 60);
        self.error(format!("must be {what}, not {written}"));
        None
    }
}

/// Parses a number of members.
pub(crate) fn count(text: &str, field: &str, findings: &Findings) -> Option<u32> {
    let number = text.trim().parse::<u32>().ok().filter(|number| *number <= MAX_MEMBERS);
    if number.is_none() {
        let reason = format!("must be a whole number from 0 to {MAX_MEMBERS}, not `{text}`");
        findings.push(field, reason);
    }
    number
}
