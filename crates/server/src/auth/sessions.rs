//! Browser sign-in: a link with a token is exchanged for a cookie, as in Jupyter.
//!
//! The cookie is not the token but a random text that stands for it while the server runs, for half a day at most and
//! only while the token is valid. Browsers send cookies to every port of a host, so a leaked cookie should be worth
//! little.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use ring::rand::{SecureRandom, SystemRandom};
use serde::Deserialize;
use subtle::ConstantTimeEq;

use crate::auth::tokens::{TokenDigest, sha256};
use crate::config::Server;
use crate::error::{ApiError, ErrorCode};
use crate::handlers::query::query;

/// The name of the cookie.
const COOKIE: &str = "muster-session";
/// Where a browser is redirected after sign-in.
const HOME: &str = "/v1/whoami";
/// Concurrent sessions, at most. A new session evicts the oldest.
const MOST: usize = 64;
/// How long a session lasts.
const LASTS: Duration = Duration::from_secs(12 * 60 * 60);

/// Sessions of signed-in browsers.
#[derive(Debug, Default)]
pub(crate) struct Sessions(Mutex<VecDeque<Session>>);

#[derive(Debug)]
struct Session {
    digest: [u8; 32],
    pass: TokenDigest,
    until: Instant,
}

impl Sessions {
    /// Opens a session and returns its cookie.
    fn open(&self, pass: TokenDigest) -> Option<String> {
        let mut random = [0u8; 32];
        SystemRandom::new().fill(&mut random).ok()?;
        let text: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let digest = sha256(text.as_bytes());
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() == MOST {
            all.pop_front();
        }
        all.push_back(Session { digest, pass, until: Instant::now() + LASTS });
        Some(text)
    }

    /// The token digest of the session that these headers belong to.
    pub(crate) fn pass(&self, headers: &HeaderMap) -> Option<TokenDigest> {
        let cookies = headers.get_all(header::COOKIE).iter().filter_map(|text| text.to_str().ok());
        let pairs = cookies.flat_map(|text| text.split(';')).filter_map(|one| one.split_once('='));
        let mut mine = pairs.filter(|(name, _)| name.trim() == COOKIE);
        mine.find_map(|(_, value)| self.known(value.trim()))
    }

    fn known(&self, cookie: &str) -> Option<TokenDigest> {
        let shown = sha256(cookie.as_bytes());
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        all.retain(|session| now < session.until);
        all.iter().fold(None, |found, one| {
            let same = bool::from(one.digest.ct_eq(&shown));
            if same { Some(one.pass) } else { found }
        })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Login {
    token: String,
}

/// Signs in a browser with the token in its URL, and redirects to a URL without the token.
pub(crate) async fn login(
    State(server): State<Arc<Server>>,
    uri: Uri,
) -> Result<Response, ApiError> {
    let Login { token } = query(&uri)?;
    let unknown =
        || ApiError::new(ErrorCode::Unauthorized, "this token is not known, or has expired");
    let (caller, pass) = server.tokens.caller(&token).ok_or_else(unknown)?;
    let failed = || ApiError::new(ErrorCode::Internal, "there are no random numbers");
    let cookie = server.sessions.open(pass).ok_or_else(failed)?;
    tracing::info!(by = &*caller.name, "a browser signed in");
    let secure = if server.secure { "; Secure" } else { "" };
    let cookie = format!("{COOKIE}={cookie}; HttpOnly; SameSite=Strict; Path=/{secure}");
    let mut response = StatusCode::SEE_OTHER.into_response();
    let headers = response.headers_mut();
    let cookie = HeaderValue::from_str(&cookie).map_err(|_| failed())?;
    headers.insert(header::SET_COOKIE, cookie);
    headers.insert(header::LOCATION, HeaderValue::from_static(HOME));
    let referrer = HeaderName::from_static("referrer-policy");
    headers.insert(referrer, HeaderValue::from_static("no-referrer"));
    Ok(response)
}
