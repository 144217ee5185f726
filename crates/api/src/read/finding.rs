//! Findings: what is wrong with a manifest, and where.
//!
//! Readers never fail: they record a finding and continue, so that one run of `muster check` shows everything that must
//! be corrected.

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

/// Whether a finding prevents the use of the manifests.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The manifests are used nevertheless.
    Warning,
    /// None of the manifests is used.
    Error,
}

/// One remark on a manifest.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Finding {
    /// The file, by the name the caller gave.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The field, such as `spec.roles[0].min`; `(file)` or `(document)` when it is no single field.
    pub field: String,
    /// What is wrong with it, in one sentence.
    pub reason: String,
    /// Whether it prevents the use of the manifests.
    pub severity: Severity,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, column, field, reason, severity: _ } = self;
        write!(f, "{file}:{line}:{column}: {field}: {reason}")
    }
}

/// Sorts findings by file, then from top to bottom.
pub(crate) fn sort(findings: &mut [Finding]) {
    findings.sort_by(|a, b| (&a.file, a.line, a.column).cmp(&(&b.file, b.line, b.column)));
}

/// The longest field or reason printed, in characters. Both include the user's text, which may have megabytes.
const LONGEST: usize = 600;

/// The first `most` characters, with a mark if there were more.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.into(),
    }
}

/// A position in a file, both counted from 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Position {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

impl Position {
    /// The position of a finding about a whole file.
    pub(crate) const START: Self = Self { line: 1, column: 1 };
}

/// A field that can be reported after its document is gone.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    pub(crate) file: Arc<str>,
    pub(crate) at: Position,
    pub(crate) field: String,
}

impl Mark {
    /// A finding about this field that prevents the use of the manifests.
    pub(crate) fn error(&self, reason: impl Into<String>) -> Finding {
        self.finding(Severity::Error, &reason.into())
    }
    /// A finding about this field that does not.
    pub(crate) fn warning(&self, reason: impl Into<String>) -> Finding {
        self.finding(Severity::Warning, &reason.into())
    }

    fn finding(&self, severity: Severity, reason: &str) -> Finding {
        Finding {
            file: self.file.clone(),
            line: self.at.line,
            column: self.at.column,
            field: shortened(&self.field, LONGEST),
            reason: shortened(reason, LONGEST),
            severity,
        }
    }
}

impl fmt::Display for Mark {
    /// `file:line`, to refer from one finding to another position.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.at.line)
    }
}

/// The largest number of findings of one file; a file of garbage has one for every value, which is more than is useful.
const MOST: usize = 1_000;

/// Collects the findings of one file. Shared by all readers of the file, hence the cell.
#[derive(Debug)]
pub(crate) struct Sink {
    file: Arc<str>,
    findings: RefCell<Vec<Finding>>,
    /// Findings beyond the first [`MOST`]: their number, and one that reports it, as severe as the worst of them.
    beyond: RefCell<Option<(usize, Finding)>>,
}

impl Sink {
    /// An empty sink for this file.
    pub(crate) fn new(file: &str) -> Self {
        Self { file: file.into(), findings: RefCell::default(), beyond: RefCell::default() }
    }
    /// A field of this file, to report now or later.
    pub(crate) fn mark(&self, at: Position, field: String) -> Mark {
        Mark { file: self.file.clone(), at, field }
    }
    /// Records that the file as a whole cannot be used.
    pub(crate) fn file_error(&self, at: Position, reason: impl Into<String>) {
        self.push(self.mark(at, "(file)".into()).error(reason));
    }
    /// Records a finding.
    pub(crate) fn push(&self, finding: Finding) {
        let mut findings = self.findings.borrow_mut();
        if findings.len() < MOST {
            return findings.push(finding);
        }
        let (count, worst) = match self.beyond.take() {
            Some((count, known)) if known.severity >= finding.severity => (count, known),
            Some((count, _)) => (count, finding),
            None => (0, finding),
        };
        self.beyond.replace(Some((count + 1, worst)));
    }
    /// All recorded findings, up to a bound; if there were more, the last one gives their number.
    pub(crate) fn into_findings(self) -> Vec<Finding> {
        let mut findings = self.findings.into_inner();
        if let Some((count, worst)) = self.beyond.into_inner() {
            let reason = format!("{count} more findings of this file are not listed");
            findings.push(Finding { field: "(file)".into(), reason, ..worst });
        }
        findings
    }
}

#[cfg(test)]
mod tests {
    use crate::read::finding::*;

    #[test]
    fn findings_beyond_the_bound_are_counted_and_the_worst_severity_kept() {
        let sink = Sink::new("a.yaml");
        let mark = |line| sink.mark(Position { line, column: 1 }, "x".into());
        for line in 1..=MOST + 5 {
            sink.push(mark(line).warning("is odd"));
        }
        sink.push(mark(MOST + 6).error("is wrong"));
        sink.push(mark(MOST + 7).warning("is odd"));
        let findings = sink.into_findings();
        assert_eq!(findings.len(), MOST + 1);
        let last = findings.last().unwrap();
        assert_eq!(
            last.to_string(),
            "a.yaml:1006:1: (file): 7 more findings of this file are not listed"
        );
        assert_eq!(last.severity, Severity::Error);
    }
}
