//! Authenticates the head of a request into a [`Caller`], and checks the caller's role against the route.

use axum::http::uri::Authority;
use axum::http::{HeaderMap, Method, Uri, header};

use crate::auth::tokens::{LOCAL, TokenDigest};
use crate::config::Server;
use crate::error::{ApiError, ErrorCode};
use crate::{Caller, Rights};

/// The role that a route requires.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum RequiredRole {
    /// No credential, for liveness probes.
    Anyone,
    /// Any known caller.
    Viewer,
    /// A caller with the role `user` or `admin`. The host checks the queue itself.
    User,
    /// Admins only.
    Admin,
}

/// An authenticated caller, and the digest of its token.
#[derive(Debug)]
pub(crate) struct Authenticated {
    pub(crate) caller: Caller,
    pub(crate) pass: Option<TokenDigest>,
}

/// Authenticates a request. `None` for routes that need no credential.
pub(crate) fn authenticate(
    server: &Server,
    role: RequiredRole,
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<Option<Authenticated>, ApiError> {
    if role == RequiredRole::Anyone {
        return Ok(None);
    }
    match server.tokens.is_none() {
        true => Ok(Some(Authenticated { caller: local(uri, headers)?, pass: None })),
        false => known(server, method, uri, headers).map(Some),
    }
}

/// Checks whether the caller's role is sufficient for a route.
pub(crate) fn authorize(caller: &Caller, role: RequiredRole) -> Result<(), ApiError> {
    let refused = match (&caller.rights, role) {
        (Rights::Admin, _) | (_, RequiredRole::Viewer | RequiredRole::Anyone) => return Ok(()),
        (Rights::User(_), RequiredRole::User) => return Ok(()),
        (Rights::Viewer, _) => format!("{} may only read", caller.name),
        (Rights::User(_), RequiredRole::Admin) => {
            format!("only admins may do this, not {}", caller.name)
        }
    };
    Err(ApiError::new(ErrorCode::Forbidden, refused))
}

const SHOW: &str =
    "a credential is needed: Authorization: Bearer TOKEN, or the sign-in link of `muster up`";

fn known(
    server: &Server,
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<Authenticated, ApiError> {
    let unknown = |why| ApiError::new(ErrorCode::Unauthorized, why);
    let found = match headers.get(header::AUTHORIZATION) {
        Some(shown) => {
            let text = shown.to_str().unwrap_or_default();
            let (scheme, token) = text.split_once(' ').unwrap_or_default();
            if !scheme.eq_ignore_ascii_case("bearer") {
                return Err(unknown("only bearer tokens are known: Authorization: Bearer TOKEN"));
            }
            server.tokens.caller(token.trim())
        }
        None => {
            let pass = server.sessions.pass(headers).ok_or_else(|| unknown(SHOW))?;
            of_our_page(method, uri, headers)?;
            server.tokens.of(pass)
        }
    };
    let unknown = || unknown("this token is not known, or has expired");
    let (caller, pass) = found.ok_or_else(unknown)?;
    Ok(Authenticated { caller, pass: Some(pass) })
}

/// Browsers attach the cookie to requests from any page on any port of this host. The cookie counts only for pages of
/// this server, and a changing request must prove its origin.
fn of_our_page(method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<(), ApiError> {
    let site = text(headers, "sec-fetch-site");
    let foreign = site.is_some_and(|site| !matches!(site, "same-origin" | "none"));
    let host = uri.authority().map(Authority::as_str).or(text(headers, "host"));
    let origin = text(headers, "origin");
    let ours = origin.is_some_and(|origin| is_of(origin, host));
    let told = ours || (origin.is_none() && site == Some("same-origin"));
    if foreign || (origin.is_some() && !ours) || (!method.is_safe() && !told) {
        let why = "a cookie counts only for pages of this server: send the token in a header";
        return Err(ApiError::new(ErrorCode::Forbidden, why));
    }
    Ok(())
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).map(|value| value.to_str().unwrap_or("?"))
}

fn is_of(origin: &str, host: Option<&str>) -> bool {
    let rest = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    rest.is_some() && rest == host
}

/// Without tokens every local process is an admin, but not every page in a local browser: a page from elsewhere sends
/// its own origin, and a page that rebinds its DNS name to this host sends that name.
fn local(uri: &Uri, headers: &HeaderMap) -> Result<Caller, ApiError> {
    let host = uri.authority().map(Authority::as_str).or(text(headers, "host"));
    if !host.is_none_or(is_loopback) {
        let why = "without tokens only requests to localhost are answered";
        return Err(ApiError::new(ErrorCode::Forbidden, why));
    }
    if !text(headers, "origin").is_none_or(|origin| is_of(origin, host)) {
        let why = "without tokens no requests of other web pages are answered";
        return Err(ApiError::new(ErrorCode::Forbidden, why));
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

    fn head(headers: &[(&'static str, &str)]) -> HeaderMap {
        let pairs =
            headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        pairs.collect()
    }

    fn local(headers: &[(&'static str, &str)]) -> bool {
        super::local(&Uri::from_static("/v1/apply"), &head(headers)).is_ok()
    }

    #[test]
    fn cookie_is_accepted_only_from_pages_of_this_server() {
        let counts = |method: Method, headers: &[(&'static str, &str)]| {
            of_our_page(&method, &Uri::from_static("/v1/apply"), &head(headers)).is_ok()
        };
        let host = ("host", "localhost:7480");
        assert!(counts(Method::GET, &[host]));
        assert!(counts(Method::POST, &[host, ("origin", "http://localhost:7480")]));
        assert!(counts(Method::POST, &[host, ("sec-fetch-site", "same-origin")]));
        assert!(!counts(Method::POST, &[host]), "it does not prove its origin");
        assert!(!counts(Method::POST, &[host, ("origin", "http://localhost:3000")]));
        assert!(!counts(Method::GET, &[host, ("origin", "http://localhost:3000")]));
        assert!(!counts(Method::GET, &[host, ("sec-fetch-site", "same-site")]));
        assert!(!counts(Method::POST, &[host, ("origin", "null")]));
    }

    #[test]
    fn without_tokens_requests_of_foreign_pages_are_refused() {
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
