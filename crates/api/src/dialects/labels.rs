//! The labels and annotations of a pod or a group.

use std::collections::BTreeMap;

use crate::foreign::json::{Findings, count};

/// Labels and annotations, by which most dialects mark pods.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Marks<'a> {
    pub(crate) labels: &'a BTreeMap<String, String>,
    pub(crate) annotations: &'a BTreeMap<String, String>,
}

impl<'a> Marks<'a> {
    /// A label that says something.
    pub(crate) fn label(self, name: &str) -> Option<&'a str> {
        self.labels.get(name).map(String::as_str).filter(|text| !text.is_empty())
    }
    /// An annotation that says something.
    pub(crate) fn annotation(self, name: &str) -> Option<&'a str> {
        self.annotations.get(name).map(String::as_str).filter(|text| !text.is_empty())
    }
    /// An annotation, or else the label of that name.
    pub(crate) fn either(self, name: &str) -> Option<&'a str> {
        self.annotation(name).or_else(|| self.label(name))
    }
    /// A number of members, by annotation or label.
    pub(crate) fn count(self, name: &str, findings: &Findings) -> Option<u32> {
        count(self.either(name)?, &field(name), findings)
    }
    /// `true` or `false`, by annotation or label.
    pub(crate) fn flag(self, name: &str, findings: &Findings) -> Option<bool> {
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
pub(crate) fn field(name: &str) -> String {
    format!("metadata.annotations[{name}]")
}
