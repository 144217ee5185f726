//! The labels and annotations of a pod or a group.

use std::collections::BTreeMap;

use crate::json::{Findings, count};

/// Labels and annotations, by which most dialects mark pods.
#[derive(Clone, Copy, Debug)]
pub(super) struct Marks<'a> {
    pub(super) labels: &'a BTreeMap<String, String>,
    pub(super) annotations: &'a BTreeMap<String, String>,
}

impl<'a> Marks<'a> {
    /// A label that says something.
    pub(super) fn label(self, name: &str) -> Option<&'a str> {
        self.labels.get(name).map(String::as_str).filter(|text| !text.is_empty())
    }
    /// An annotation that says something.
    pub(super) fn annotation(self, name: &str) -> Option<&'a str> {
        self.annotations.get(name).map(String::as_str).filter(|text| !text.is_empty())
    }
    /// An annotation, or else the label of that name.
    pub(super) fn either(self, name: &str) -> Option<&'a str> {
        self.annotation(name).or_else(|| self.label(name))
    }
    /// A number of members, by annotation or label.
    pub(super) fn count(self, name: &str, findings: &Findings) -> Option<u32> {
        count(self.either(name)?, &field(name), findings)
    }
    /// `true` or `false`, by annotation or label.
    pub(super) fn flag(self, name: &str, findings: &Findings) -> Option<bool> {
        match self.either(name)? {
            "true" => Some(true),
            "false" => Some(false),
            other => {
                findings.push(&field(name), format!("must be `true` or `false`, not `{other}`"));
                None
            }
        }
    }
}

/// How a mark is named in findings.
pub(super) fn field(name: &str) -> String {
    format!("metadata.annotations[{name}]")
}
