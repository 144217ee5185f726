//! What goes wrong between the command and the control plane, in words that say what to do.

use muster_api::{Finding, Severity};
use serde::Deserialize;

/// Why there is no good answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AskError {
    /// The address is none.
    #[error("{0} is no address of a control plane: write http://HOST:PORT or https://HOST:PORT")]
    Address(String),
    /// Nobody is there.
    #[error("nothing answers at {url}: {why}{hint}")]
    Unreachable {
        /// The address.
        url: String,
        /// What the network says.
        why: String,
        /// What may help.
        hint: &'static str,
    },
    /// It is there, and cannot be trusted or does not speak TLS.
    #[error("no TLS with {url}: {why}{hint}")]
    Tls {
        /// The address.
        url: String,
        /// What is wrong.
        why: String,
        /// What may help.
        hint: &'static str,
    },
    /// A file with certificates is of no use.
    #[error("{0}")]
    Certificates(String),
    /// It was there, and is not any more.
    #[error("the connection to {0} is lost: {1}")]
    Lost(String, String),
    /// It takes too long.
    #[error("{0} did not answer in time")]
    Slow(String),
    /// It says no.
    #[error("{}", said(.0))]
    Said(Refusal),
    /// What answers is no control plane, or one of another age.
    #[error("{0} answered something that is not understood: {1}")]
    Odd(String, String),
}

/// How a control plane says no.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Refusal {
    /// The status of the answer.
    pub(crate) status: u16,
    /// Why, in a sentence.
    pub(crate) message: String,
    /// What is wrong with manifests.
    pub(crate) findings: Vec<Finding>,
}

impl AskError {
    /// Whether the same request may be answered well in a moment.
    pub(crate) fn is_passing(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Lost(..) | Self::Slow(_) => true,
            Self::Said(refusal) => matches!(refusal.status, 408 | 429 | 502..=504),
            Self::Address(_) | Self::Tls { .. } | Self::Certificates(_) | Self::Odd(..) => false,
        }
    }

    /// Whether there is no such thing.
    pub(crate) fn is_missing(&self) -> bool {
        matches!(self, Self::Said(refusal) if refusal.status == 404)
    }

    /// Whether the caller wrote something that makes no sense, whoever is asked.
    pub(crate) fn is_misuse(&self) -> bool {
        match self {
            Self::Address(_) | Self::Certificates(_) => true,
            Self::Said(refusal) => matches!(refusal.status, 400 | 413 | 415 | 422),
            _ => false,
        }
    }
}

fn said(refusal: &Refusal) -> String {
    let Refusal { status, message, findings: _ } = refusal;
    match status {
        401 => format!(
            "{message}: show a token with MUSTER_TOKEN, --token-file or `muster context set`"
        ),
        403 => format!("{message} (`muster whoami` says who you are)"),
        500.. => format!("the control plane failed ({status}): {message}"),
        _ => message.clone(),
    }
}

#[derive(Deserialize)]
struct Body {
    error: Told,
}

#[derive(Deserialize)]
struct Told {
    message: String,
    #[serde(default)]
    findings: Vec<FindingTold>,
}

#[derive(Deserialize)]
struct FindingTold {
    file: String,
    line: usize,
    column: usize,
    field: String,
    reason: String,
    severity: String,
}

impl Refusal {
    /// Reads the body of an answer that is an error; of another server's as well, as far as that goes.
    pub(crate) fn read(status: u16, body: &[u8]) -> Self {
        let Ok(Body { error: Told { message, findings } }) = serde_json::from_slice(body) else {
            let text = String::from_utf8_lossy(body);
            let first = text.lines().next().unwrap_or_default().chars().take(200);
            let message = format!("HTTP {status} {}", first.collect::<String>());
            return Self { status, message: message.trim_end().to_owned(), findings: Vec::new() };
        };
        let findings = findings.into_iter().map(FindingTold::finding).collect();
        Self { status, message, findings }
    }
}

impl FindingTold {
    fn finding(self) -> Finding {
        let Self { file, line, column, field, reason, severity } = self;
        let severity = if severity == "warning" { Severity::Warning } else { Severity::Error };
        Finding { file: file.into(), line, column, field, reason, severity }
    }
}

#[cfg(test)]
mod tests {
    use crate::client::connection::error::*;

    #[test]
    fn an_error_is_read_with_its_findings_and_one_of_a_stranger_as_well_as_it_goes() {
        let body = r#"{"error": {"code": "invalid", "message": "1 findings", "findings": [
            {"file": "m", "line": 3, "column": 1, "field": "spec", "reason": "r", "severity": "warning"}]}}"#;
        let known = Refusal::read(422, body.as_bytes());
        assert_eq!((known.findings[0].line, known.findings[0].severity), (3, Severity::Warning));
        let strange = Refusal::read(502, b"<html>\nBad Gateway");
        assert_eq!(strange.message, "HTTP 502 <html>");
        assert!(AskError::Said(strange).is_passing());
    }

    #[test]
    fn whoever_is_not_known_is_told_how_to_be() {
        let refusal = Refusal { status: 401, message: "who are you".to_owned(), findings: vec![] };
        assert!(AskError::Said(refusal).to_string().contains("MUSTER_TOKEN"));
    }
}
