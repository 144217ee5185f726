//! The errors of requests to a control plane, in words that say what to do.

use muster_api::{Finding, Severity};
use serde::Deserialize;

/// The reason why a request failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestError {
    /// The address is not valid.
    #[error(
        "{0} is not an address of a control plane: write http://HOST:PORT or https://HOST:PORT"
    )]
    Address(String),
    /// The connection cannot be opened.
    #[error("no connection to {url}: {why}{hint}")]
    Unreachable {
        /// The address.
        url: String,
        /// The network's error.
        why: String,
        /// A remedy.
        hint: &'static str,
    },
    /// The TLS handshake fails: the certificate is not trusted, or the server does not speak TLS.
    #[error("TLS with {url} fails: {why}{hint}")]
    Tls {
        /// The address.
        url: String,
        /// The error of the handshake.
        why: String,
        /// A remedy.
        hint: &'static str,
    },
    /// A file of CA certificates cannot be used.
    #[error("{0}")]
    Certificates(String),
    /// The connection was lost.
    #[error("the connection to {0} is lost: {1}")]
    Lost(String, String),
    /// The answer takes too long.
    #[error("{0} did not answer in time")]
    TimedOut(String),
    /// The control plane refused the request.
    #[error("{}", refusal_text(.0))]
    Refused(Refusal),
    /// The answer cannot be parsed: the server is not a control plane, or has another version.
    #[error("the answer of {0} cannot be parsed: {1}")]
    Malformed(String, String),
}

/// A refusal of the control plane.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Refusal {
    /// The status code of the answer.
    pub(crate) status: u16,
    /// The reason, as a sentence.
    pub(crate) message: String,
    /// Findings in the manifests.
    pub(crate) findings: Vec<Finding>,
}

impl RequestError {
    /// Whether a retry of the same request can succeed.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Lost(..) | Self::TimedOut(_) => true,
            Self::Refused(refusal) => matches!(refusal.status, 408 | 429 | 502..=504),
            Self::Address(_) | Self::Tls { .. } | Self::Certificates(_) | Self::Malformed(..) => {
                false
            }
        }
    }

    /// Whether the object does not exist.
    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, Self::Refused(refusal) if refusal.status == 404)
    }

    /// Whether the input is wrong, independently of the state of the control plane.
    pub(crate) fn is_usage_error(&self) -> bool {
        match self {
            Self::Address(_) | Self::Certificates(_) => true,
            Self::Refused(refusal) => matches!(refusal.status, 400 | 413 | 415 | 422),
            _ => false,
        }
    }
}

fn refusal_text(refusal: &Refusal) -> String {
    let Refusal { status, message, findings: _ } = refusal;
    match status {
        401 => format!(
            "{message}: give a token with MUSTER_TOKEN, --token-file or `muster context set`"
        ),
        403 => format!("{message} (`muster whoami` shows your rights)"),
        500.. => format!("the control plane failed ({status}): {message}"),
        _ => message.clone(),
    }
}

#[derive(Deserialize)]
struct ErrorAnswer {
    error: ErrorBody,
}

#[derive(Deserialize)]
struct ErrorBody {
    message: String,
    #[serde(default)]
    findings: Vec<FindingBody>,
}

#[derive(Deserialize)]
struct FindingBody {
    file: String,
    line: usize,
    column: usize,
    field: String,
    reason: String,
    severity: String,
}

impl Refusal {
    /// Reads the body of an error; of a server that is not a control plane, its first line.
    pub(crate) fn read(status: u16, body: &[u8]) -> Self {
        let Ok(ErrorAnswer { error: ErrorBody { message, findings } }) =
            serde_json::from_slice(body)
        else {
            let text = String::from_utf8_lossy(body);
            let first = text.lines().next().unwrap_or_default().chars().take(200);
            let message = format!("HTTP {status} {}", first.collect::<String>());
            return Self { status, message: message.trim_end().to_owned(), findings: Vec::new() };
        };
        let findings = findings.into_iter().map(FindingBody::finding).collect();
        Self { status, message, findings }
    }
}

impl FindingBody {
    fn finding(self) -> Finding {
        let Self { file, line, column, field, reason, severity } = self;
        let severity = if severity == "warning" { Severity::Warning } else { Severity::Error };
        Finding { file: file.into(), line, column, field, reason, severity }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_bodies_are_parsed_with_findings_and_foreign_ones_by_first_line() {
        let body = r#"{"error": {"code": "invalid", "message": "1 findings", "findings": [
            {"file": "m", "line": 3, "column": 1, "field": "spec", "reason": "r", "severity": "warning"}]}}"#;
        let known = Refusal::read(422, body.as_bytes());
        assert_eq!((known.findings[0].line, known.findings[0].severity), (3, Severity::Warning));
        let strange = Refusal::read(502, b"<html>\nBad Gateway");
        assert_eq!(strange.message, "HTTP 502 <html>");
        assert!(RequestError::Refused(strange).is_transient());
    }

    #[test]
    fn unauthorized_error_names_the_token_options() {
        let refusal = Refusal { status: 401, message: "who are you".to_owned(), findings: vec![] };
        assert!(RequestError::Refused(refusal).to_string().contains("MUSTER_TOKEN"));
    }
}
