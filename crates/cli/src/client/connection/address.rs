//! Paths and queries of the API.

use std::fmt::Write;

use muster_server::Kind;

/// The path of all objects of a kind.
pub(crate) fn path_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Gang => "/v1/gangs",
        Kind::Queue => "/v1/queues",
        Kind::Pool => "/v1/pools",
        Kind::Node => "/v1/nodes",
        Kind::Order => "/v1/orders",
    }
}

/// The path of a gang by its full name, or of one of its subresources.
pub(crate) fn gang_path(name: &str, what: &str) -> String {
    let (namespace, name) = name.split_once('/').unwrap_or(("default", name));
    let slash = if what.is_empty() { "" } else { "/" };
    format!("/v1/namespaces/{}/gangs/{}{slash}{what}", encode(namespace), encode(name))
}

/// A text, percent-encoded as one part of an address.
pub(crate) fn encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(byte));
            }
            _ => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

/// The query of an address.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Query(Vec<(&'static str, String)>);

impl Query {
    /// Adds a parameter.
    #[expect(clippy::needless_pass_by_value, reason = "numbers and texts read better unborrowed")]
    pub(crate) fn with(mut self, name: &'static str, value: impl ToString) -> Self {
        self.0.push((name, value.to_string()));
        self
    }

    /// Adds a parameter if it has a value.
    pub(crate) fn maybe(self, name: &'static str, value: Option<impl ToString>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// The path with this query.
    pub(crate) fn on(&self, path: &str) -> String {
        let mut out = path.to_owned();
        for (at, (name, value)) in self.0.iter().enumerate() {
            let sign = if at == 0 { '?' } else { '&' };
            let _ = write!(out, "{sign}{name}={}", encode(value));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_percent_encoded_in_addresses() {
        assert_eq!(gang_path("a/b?c", "why"), "/v1/namespaces/a/gangs/b%3Fc/why");
        assert_eq!(gang_path("b/../c", ""), "/v1/namespaces/b/gangs/..%2Fc");
        let query =
            Query::default().with("queue", "a&b=c").maybe("user", None::<&str>).with("n", 7);
        assert_eq!(query.on("/v1/gangs"), "/v1/gangs?queue=a%26b%3Dc&n=7");
    }
}
