//! What a request asks for, read off its method and path.

use std::time::Instant;

use http::Method;
use http::request::Parts;

/// What is asked. Bindings are told from other things that are made: they are what must not happen twice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Verb {
    Discover,
    List,
    Watch,
    Get,
    Create,
    Bind,
    Change,
    Delete,
}

impl Verb {
    pub(crate) fn writes(self) -> bool {
        matches!(self, Self::Create | Self::Bind | Self::Change | Self::Delete)
    }
}

/// One request.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) at: Instant,
    pub(crate) verb: Verb,
    /// The plural of a kind, with its subresource; empty for none.
    pub(crate) resource: String,
    /// Path and query.
    pub(crate) path: String,
}

impl Asked {
    pub(crate) fn read(request: &Parts) -> Self {
        let (path, query) = (request.uri.path(), request.uri.query().unwrap_or_default());
        let mut parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        // `/api/v1` or `/apis/group/version`; then a namespace, where there is one.
        let root = if parts.first() == Some(&"api") { 2 } else { 3 };
        parts.drain(..root.min(parts.len()));
        if parts.first() == Some(&"namespaces") && parts.len() > 2 {
            parts.drain(..2);
        }
        let (kind, sub) = (parts.first().copied().unwrap_or_default(), parts.get(2).copied());
        let verb = match request.method {
            Method::POST if sub == Some("binding") => Verb::Bind,
            Method::POST => Verb::Create,
            Method::PUT | Method::PATCH => Verb::Change,
            Method::DELETE => Verb::Delete,
            _ if kind.is_empty() => Verb::Discover,
            _ if query.contains("watch=true") => Verb::Watch,
            _ if parts.len() == 1 => Verb::List,
            _ => Verb::Get,
        };
        let resource = sub.map_or(kind.to_owned(), |sub| format!("{kind}/{sub}"));
        let path = request.uri.path_and_query().map(ToString::to_string).unwrap_or_default();
        Self { at: Instant::now(), verb, resource, path }
    }
}

/// The most requests that were made within any one second.
pub(crate) fn busiest_second(asked: &[Asked]) -> usize {
    let within = |first: &Asked| {
        let second = |one: &&Asked| one.at >= first.at && (one.at - first.at).as_millis() < 1_000;
        asked.iter().filter(second).count()
    };
    asked.iter().map(within).max().unwrap_or(0)
}

/// How many of each, for who wants to know what was asked.
pub(crate) fn summary(asked: &[Asked]) -> String {
    let mut counts = std::collections::BTreeMap::<(Verb, &str), usize>::new();
    for one in asked {
        *counts.entry((one.verb, &one.resource)).or_default() += 1;
    }
    let each = counts.iter().map(|((verb, kind), count)| format!("{count} {verb:?} {kind}"));
    each.collect::<Vec<_>>().join(", ")
}
