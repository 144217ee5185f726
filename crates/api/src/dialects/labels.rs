//! The labels and annotations of a pod or a group.

use std::collections::BTreeMap;

use crate::foreign::json::{Findings, count};

/// The labels and annotations of a pod or a group, by which most dialects declare groups.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meta<'a> {
    pub(crate) labels: &'a BTreeMap<String, String>,
    pub(crate) annotations: &'a BTreeMap<String, String>,
}

impl<'a> Meta<'a> {
    /// A label that is not empty.
    pub(crate) fn label(self, name: &str) -> Option<&'a str> {
        self.labels.get(name).map(String::as_str).filter(|text| !text.is_empty())
    }
    /// An annotation that is not empty.
    pub(crate) fn annotation(self, name: &str) -> Option<&'a str> {
        self.annotations.get(name).map(String::as_str).filter(|text| !text.is_empty())
    }
    /// The annotation of that name, or else the label.
    pub(crate) fn either(self, name: &str) -> Option<&'a str> {
        self.annotation(name).or_else(|| self.label(name))
    }
    /// A number of members, from an annotation or a label.
    pub(crate) fn count(self, name: &str, findings: &Findings) -> Option<u32> {
        count(self.either(name)?, &field(name), findings)
    }
    /// `true` or `false`, from an annotation or a label.
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

/// The field name of an annotation in findings.
pub(crate) fn field(name: &str) -> String {
    format!("metadata.annotations[{name}]")
}
