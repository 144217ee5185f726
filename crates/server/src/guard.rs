//! What every request goes through before its handler: who asks, may they, is there room, is it the first of its kind.

use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::Arc;
use std::time::Instant;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures::FutureExt;
use http_body_util::LengthLimitError;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use crate::access::admit;
use crate::caller::RequestKey;
use crate::config::Server;
use crate::failure::{Code, Failure};
use crate::once::{fingerprint, key};
use crate::operation::Rules;

/// Around everything, also around paths that do not exist: counts, and catches panics.
pub(crate) async fn watch(
    State(server): State<Arc<Server>>,
    request: Request,
    next: Next,
) -> Response {
    let path = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let route = path.unwrap_or_else(|| "none".into());
    let (method, started) = (request.method().clone(), Instant::now());
    let answered = AssertUnwindSafe(next.run(request)).catch_unwind().await;
    let mut response = answered.unwrap_or_else(|panic| {
        let said = panic.downcast_ref::<String>().map(String::as_str);
        let said = said.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
        tracing::error!(%method, route, said, "a request ended in a panic");
        let why = "the request ran into a bug; the log of the server has more";
        Failure::new(Code::Internal, why).into_response()
    });
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    let (code, took) = (response.status().as_u16(), started.elapsed());
    tracing::debug!(%method, route, code, ?took, "answered");
    server.counts.answered(&route, method.as_str(), code, took);
    response
}

/// Before one handler.
pub(crate) async fn guard(
    State((server, rules)): State<(Arc<Server>, Rules)>,
    request: Request,
    next: Next,
) -> Response {
    pass(server, rules, request, next).await.unwrap_or_else(IntoResponse::into_response)
}

async fn pass(
    server: Arc<Server>,
    rules: Rules,
    mut request: Request,
    next: Next,
) -> Result<Response, Failure> {
    let caller = admit(&server.tokens, rules.who, request.uri(), request.headers())?;
    (rules.check)(request.uri())?;
    let name = caller.as_ref().map_or_else(|| Arc::from(""), |caller| caller.name.clone());
    if let Some(caller) = caller {
        request.extensions_mut().insert(caller);
    }
    let time = server.limits.request_time;
    let answered = if rules.stream.is_some() {
        let seat = Arc::new(server.seats.stream(&name)?);
        request.extensions_mut().insert(seat);
        timeout(time, next.run(request)).await
    } else {
        let seat = server.seats.request()?;
        let key = if rules.method.is_safe() { None } else { key(request.headers(), &name)? };
        let (mut request, body, room) =
            if rules.body { read(&server, request).await? } else { (request, Bytes::new(), None) };
        let Some(key) = key else {
            return timeout(time, next.run(request)).await.map_err(|_| late(&server));
        };
        let sum = fingerprint(request.method(), request.uri(), request.headers(), &body);
        if let Some(caller) = request.extensions_mut().get_mut::<crate::Caller>() {
            caller.key = Some(RequestKey { key: key.key.as_str().into(), request: sum });
        }
        let once = server.once.clone();
        // A task of its own: it ends, and its answer is remembered, also when nobody waits for it any more.
        let task = tokio::spawn(async move {
            let _held = (seat, room);
            once.answer(key, sum, next.run(request)).await
        });
        match timeout(time, task).await {
            Ok(Ok(answered)) => return answered,
            Ok(Err(ended)) => match ended.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                Err(_) => return Err(Failure::new(Code::Unavailable, "the server is ending")),
            },
            Err(late) => Err(late),
        }
    };
    answered.map_err(|_| late(&server))
}

fn late(server: &Server) -> Failure {
    let time = server.limits.request_time;
    let why = format!("there was no answer within {time:?}; it may still be done");
    Failure::new(Code::Unavailable, why)
}

/// Reads the body, within its limits, and puts it back.
async fn read(
    server: &Server,
    request: Request,
) -> Result<(Request, Bytes, Option<OwnedSemaphorePermit>), Failure> {
    let most = server.limits.body_bytes;
    let too_large =
        || Failure::new(Code::TooLarge, format!("the body is larger than {most} bytes"));
    let told = length(request.headers());
    if told.is_some_and(|told| told > most) {
        return Err(too_large());
    }
    // Whoever does not say how much will come may send as much as there may be.
    let room = server.seats.body(told.unwrap_or(most))?;
    let (parts, body) = request.into_parts();
    let time = server.limits.request_time;
    let bytes = match timeout(time, to_bytes(body, most)).await {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(error)) => {
            let error = error.into_inner();
            if error.is::<LengthLimitError>() {
                return Err(too_large());
            }
            return Err(Failure::bad(format!("the body cannot be read: {error}")));
        }
        Err(_) => {
            let why = format!("the body did not arrive within {time:?}");
            return Err(Failure::new(Code::TooSlow, why));
        }
    };
    Ok((Request::from_parts(parts, Body::from(bytes.clone())), bytes, Some(room)))
}

fn length(headers: &HeaderMap) -> Option<usize> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}
