//! Reads manifests into findings or core types.

mod bad_examples;
mod design;
mod disruption;
mod files;
mod gang_mistakes;
mod mistakes;
mod mutations;
mod nuances;
mod pool_mistakes;
mod queue_mistakes;

use muster_api::{Finding, Manifests, Severity, read_texts};

/// Reads one text as `a.yaml`.
fn read(text: &str) -> Result<Manifests, Vec<Finding>> {
    read_texts(&[("a.yaml", text)])
}

/// The errors of a text, one per line as printed; empty if it is valid.
fn errors(text: &str) -> Vec<String> {
    let findings = read(text).err().unwrap_or_default();
    let errors = findings.iter().filter(|finding| finding.severity == Severity::Error);
    errors.map(ToString::to_string).collect()
}

/// A text that must be valid.
fn good(text: &str) -> Manifests {
    read(text).unwrap_or_else(|findings| panic!("{findings:#?}"))
}
