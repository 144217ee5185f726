//! Who asks: from the head of a request to a [`Caller`].

use axum::http::uri::Authority;
use axum::http::{HeaderMap, Uri, header};

use crate::failure::{Code, Failure};
use crate::{Caller, Rights, Tokens};

/// Who may ask for something.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Who {
    /// Whoever connects, for those who only ask whether the server lives.
    Anybody,
    /// Whoever is known.
    Viewer,
    /// Whoever may change something. Which queue's it is, is the host's to hold against them.
    User,
    /// Admins only.
    Admin,
}

/// What somebody is called who connects from this machine where there are no tokens.
const LOCAL: &str = "local";

/// Finds out who asks, and whether they may.
pub(crate) fn admit(
    tokens: &Tokens,
    who: Who,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<Option<Caller>, Failure> {
    if who == Who::Anybody {
        return Ok(None);
    }
    let caller = match tokens.is_none() {
        true => local(uri, headers)?,
        false => known(tokens, headers)?,
    };
    let refused = match (&caller.rights, who) {
        (Rights::Admin, _) | (_, Who::Viewer | Who::Anybody) => return Ok(Some(caller)),
        (Rights::User(_), Who::User) => return Ok(Some(caller)),
        (Rights::Viewer, _) => format!("{} may look, and change nothing", caller.name),
        (Rights::User(_), Who::Admin) => format!("only admins may do this, not {}", caller.name),
    };
    Err(Failure::new(Code::Forbidden, refused))
}

fn known(tokens: &Tokens, headers: &HeaderMap) -> Result<Caller, Failure> {
    let unknown = |why| Failure::new(Code::Unauthorized, why);
    let shown = headers.get(header::AUTHORIZATION);
    let shown = shown.ok_or_else(|| unknown("show a token: Authorization: Bearer TOKEN"))?;
    let text = shown.to_str().unwrap_or_default();
    let (scheme, token) = text.split_once(' ').unwrap_or_default();
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(unknown("only bearer tokens are known: Authorization: Bearer TOKEN"));
    }
    tokens.caller(token.trim()).ok_or_else(|| unknown("this token is not known"))
}

/// Whoever connects from this machine is an admin, but not every page in a browser on it is: a page from elsewhere shows
/// its own origin, and one that made its name point here shows that name.
fn local(uri: &Uri, headers: &HeaderMap) -> Result<Caller, Failure> {
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let host = uri.authority().map(Authority::as_str).or(text(header::HOST));
    if !host.is_none_or(is_loopback) {
        let why = "without tokens only requests to localhost are answered";
        return Err(Failure::new(Code::Forbidden, why));
    }
    let origin = text(header::ORIGIN);
    let of_ours = |origin: &str| {
        let rest = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        rest.is_some() && rest == host
    };
    if !origin.is_none_or(of_ours) {
        let why = "without tokens no requests of other web pages are answered";
        return Err(Failure::new(Code::Forbidden, why));
    }
    Ok(Caller::admin(LOCAL))
}

fn is_loopback(authority: &str) -> bool {
    let port = |rest: &str| rest.is_empty() || rest.starts_with(':');
    if let Some(rest) = authority.strip_prefix('[') {
        let address = rest.split_once(']').filter(|(_, rest)| port(rest));
        let address = address.and_then(|(address, _)| address.parse::<std::net::Ipv6Addr>().ok());
        return address.is_some_and(|address| address.is_loopback());
    }
    let name = authority.split_once(':').map_or(authority, |(name, _)| name);
    let address = name.parse::<std::net::Ipv4Addr>();
    name.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn local(headers: &[(&'static str, &str)]) -> bool {
        let pairs =
            headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        let headers: HeaderMap = pairs.collect();
        admit(&Tokens::none(), Who::Admin, &Uri::from_static("/v1/apply"), &headers).is_ok()
    }

    #[test]
    fn without_tokens_a_web_page_from_elsewhere_is_no_admin() {
        assert!(local(&[("host", "localhost:8080")]));
        assert!(local(&[("host", "127.0.0.1:8080"), ("origin", "http://127.0.0.1:8080")]));
        assert!(local(&[("host", "[::1]:8080")]));
        assert!(local(&[]));
        assert!(!local(&[("host", "evil.example:8080")]));
        assert!(!local(&[("host", "127.0.0.1.evil.example")]));
        assert!(!local(&[("host", "[::1]evil:8080")]));
        assert!(!local(&[("host", "localhost:8080"), ("origin", "https://evil.example")]));
        assert!(!local(&[("host", "localhost:8080"), ("origin", "null")]));
        assert!(!local(&[("host", "localhost:8080"), ("origin", "http://localhost:3000")]));
    }
}
