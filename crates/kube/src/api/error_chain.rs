//! Formats an error and its causes in one line: "client error (Connect)" does not name the certificate that was rejected.

use std::error::Error;

/// The longest line, in characters: servers and proxies may send long messages.
const LENGTH_MAX: usize = 600;

/// The message of an error and of its causes, without repetitions.
pub fn with_causes(error: &dyn Error) -> String {
    let mut line = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let message = cause.to_string();
        if !line.contains(&message) {
            line = format!("{line}: {message}");
        }
        next = cause.source();
    }
    match line.char_indices().nth(LENGTH_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use crate::api::error_chain::*;

    #[derive(Debug, thiserror::Error)]
    #[error("client error (Connect)")]
    struct Outer(#[source] Inner);

    #[derive(Debug, thiserror::Error)]
    #[error("{message}")]
    struct Inner {
        message: String,
    }

    #[test]
    fn each_cause_appears_once_and_the_line_is_bounded() {
        let outer = |message: &str| with_causes(&Outer(Inner { message: message.to_owned() }));
        assert_eq!(
            outer("invalid peer certificate"),
            "client error (Connect): invalid peer certificate"
        );
        assert_eq!(outer("Connect"), "client error (Connect)");
        assert_eq!(outer(&"x".repeat(10_000)).chars().count(), LENGTH_MAX + 1);
    }
}
