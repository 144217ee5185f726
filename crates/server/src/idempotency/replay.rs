//! Executes the first request with an idempotency key, and replays its answer to repetitions.
//!
//! Answers that ask for a retry (5xx, 429, 408) are not stored, since the retry must be executed. A request continues
//! when its client disconnects, so that the answer is stored when the client returns.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use axum::body::{Body, Bytes, to_bytes};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::Response;
use muster_api::crd::Stamp;
use muster_core::time::Time;
use ring::digest::{Context, SHA256};

use crate::error::{ApiError, ErrorCode};
use crate::idempotency::store::{
    ANSWER_RETENTION_MS, IdempotencyKey, IdempotencyStore, StoredAnswer,
};

/// The header with the key.
pub(crate) const HEADER: &str = "idempotency-key";
/// The header that marks a replayed answer.
pub(crate) const REPLAYED: &str = "idempotent-replayed";
/// Maximum length of a key.
pub(crate) const LONGEST: usize = 128;

/// Longer answers are not stored, only their status.
pub(crate) const KEPT_BYTES: usize = 64 << 10;
/// Replayed in place of a longer answer.
const TOO_LONG: &str =
    r#"{"items":[],"note":"this was answered before, at greater length than is kept"}"#;

/// Serializes requests with the same key; only the first reaches the host.
pub(crate) struct Idempotency {
    store: Arc<dyn IdempotencyStore>,
    under_way: Mutex<BTreeMap<IdempotencyKey, Arc<tokio::sync::Mutex<()>>>>,
}

/// The current time.
pub(crate) fn now() -> Stamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Stamp(Time(i64::try_from(since.as_millis()).unwrap_or(i64::MAX)))
}

/// The key in the headers of a request.
pub(crate) fn key(headers: &HeaderMap, caller: &str) -> Result<Option<IdempotencyKey>, ApiError> {
    let mut given = headers.get_all(HEADER).iter();
    let Some(first) = given.next() else { return Ok(None) };
    let text = first.to_str().unwrap_or_default();
    let good =
        (1..=LONGEST).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
    if !good || given.next().is_some() {
        let why =
            format!("Idempotency-Key must be one text of 1 to {LONGEST} letters, digits and signs");
        return Err(ApiError::bad_request(why));
    }
    Ok(Some(IdempotencyKey { caller: caller.to_owned(), key: text.to_owned() }))
}

impl Idempotency {
    pub(crate) fn new(store: Arc<dyn IdempotencyStore>) -> Self {
        Self { store, under_way: Mutex::default() }
    }

    /// Answers a request with a key: by replay, or by executing it.
    pub(crate) async fn answer(
        self: Arc<Self>,
        key: IdempotencyKey,
        request: [u8; 32],
        ask: impl Future<Output = Response> + Send,
    ) -> Result<Response, ApiError> {
        let turn = self.turn(&key);
        let guard = turn.lock().await;
        let answered = self.in_turn(key.clone(), request, ask).await;
        drop(guard);
        self.leave(&key, &turn);
        answered
    }

    async fn in_turn(
        &self,
        key: IdempotencyKey,
        request: [u8; 32],
        ask: impl Future<Output = Response> + Send,
    ) -> Result<Response, ApiError> {
        let known = self.store.load(key.clone()).await?;
        let known = known.filter(|known| now().0.0 - known.at.0.0 < ANSWER_RETENTION_MS);
        match known {
            Some(known) if known.request == request => Ok(replay(known)),
            Some(_) => {
                let why = format!("the key `{}` was used for another request", key.key);
                Err(ApiError::new(ErrorCode::KeyReused, why))
            }
            None => self.ask(key, request, ask.await).await,
        }
    }

    async fn ask(
        &self,
        key: IdempotencyKey,
        request: [u8; 32],
        answer: Response,
    ) -> Result<Response, ApiError> {
        let status = answer.status();
        let later = status.is_server_error()
            || matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT);
        if later {
            return Ok(answer);
        }
        let (parts, body) = answer.into_parts();
        let unreadable = |_| ApiError::new(ErrorCode::Internal, "the answer cannot be read again");
        let bytes = to_bytes(body, usize::MAX).await.map_err(unreadable)?;
        let body = match bytes.len() <= KEPT_BYTES {
            true => String::from_utf8_lossy(&bytes).into_owned(),
            false => TOO_LONG.to_owned(),
        };
        let stored = StoredAnswer { request, at: now(), status: status.as_u16(), body };
        if let Err(error) = self.store.save(key, stored).await {
            // The change is done; an error would make the client repeat it.
            tracing::warn!(%error, "an answer is not remembered under its idempotency key");
        }
        Ok(Response::from_parts(parts, Body::from(bytes)))
    }

    fn turn(&self, key: &IdempotencyKey) -> Arc<tokio::sync::Mutex<()>> {
        let mut under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        under_way.entry(key.clone()).or_default().clone()
    }

    /// Drops the lock when no other request waits for it: the map's reference and ours are the last two.
    fn leave(&self, key: &IdempotencyKey, turn: &Arc<tokio::sync::Mutex<()>>) {
        let mut under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        if Arc::strong_count(turn) <= 2 {
            under_way.remove(key);
        }
    }
}

fn replay(known: StoredAnswer) -> Response {
    let status = StatusCode::from_u16(known.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let empty = known.body.is_empty();
    let mut response = Response::new(Body::from(Bytes::from(known.body)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(REPLAYED, HeaderValue::from_static("true"));
    if !empty {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    response
}

/// A digest that identifies a request.
pub(crate) fn fingerprint(
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
    body: &[u8],
) -> [u8; 32] {
    let mut context = Context::new(&SHA256);
    let kind = headers.get(header::CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
    for part in [
        method.as_str().as_bytes(),
        uri.path().as_bytes(),
        uri.query().unwrap_or("").as_bytes(),
        kind,
    ] {
        context.update(part);
        context.update(b"\n");
    }
    context.update(body);
    let mut sum = [0; 32];
    sum.copy_from_slice(context.finish().as_ref());
    sum
}
