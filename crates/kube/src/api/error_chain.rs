//! Puts an error and its causes in one line: "client error (Connect)" says nothing of the certificate that was refused.

use std::error::Error;

/// The longest line, in characters: servers and proxies may say a lot.
const LONGEST: usize = 600;

/// An error with what caused it, each said once.
pub fn with_causes(error: &dyn Error) -> String {
    let mut said = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let words = cause.to_string();
        if !said.contains(&words) {
            said = format!("{said}: {words}");
        }
        next = cause.source();
    }
    match said.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &said[..end]),
        None => said,
    }
}

#[cfg(test)]
mod tests {
    use crate::api::error_chain::*;

    #[derive(Debug, thiserror::Error)]
    #[error("client error (Connect)")]
    struct Outer(#[source] Inner);

    #[derive(Debug, thiserror::Error)]
    #[error("{said}")]
    struct Inner {
        said: String,
    }

    #[test]
    fn every_cause_is_said_once_and_not_at_any_length() {
        let outer = |said: &str| with_causes(&Outer(Inner { said: said.to_owned() }));
        assert_eq!(
            outer("invalid peer certificate"),
            "client error (Connect): invalid peer certificate"
        );
        assert_eq!(outer("Connect"), "client error (Connect)");
        assert_eq!(outer(&"x".repeat(10_000)).chars().count(), LONGEST + 1);
    }
}
