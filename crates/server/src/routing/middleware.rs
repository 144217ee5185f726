//! The checks before every handler: authentication, authorization, limits, idempotency; and metrics and audit around
//! them.

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
use tokio::time::timeout;

use crate::auth::access::{Authenticated, RequiredRole, authenticate, authorize};
use crate::auth::caller::RequestKey;
use crate::config::Server;
use crate::error::{ApiError, ErrorCode};
use crate::idempotency::replay::{fingerprint, key, now};
use crate::limits::concurrency::{Requester, SharedPermit};
use crate::limits::connections::Connection;
use crate::routing::drain_body::DrainOnDrop;
use crate::routing::operation::Rules;
use crate::{AuditRecord, Caller};

/// Wraps every request, also for unknown paths: records metrics, and catches panics.
pub(crate) async fn observe(
    State(server): State<Arc<Server>>,
    request: Request,
    next: Next,
) -> Response {
    let path = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let route = path.unwrap_or_else(|| "none".into());
    let (method, started) = (request.method().clone(), Instant::now());
    let request = request.map(DrainOnDrop::wrap);
    let answered = AssertUnwindSafe(next.run(request)).catch_unwind().await;
    let mut response = answered.unwrap_or_else(|panic| {
        let said = panic.downcast_ref::<String>().map(String::as_str);
        let said = said.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
        tracing::error!(%method, route, said, "a request ended in a panic");
        let why = "the request ran into a bug; the log of the server has more";
        ApiError::new(ErrorCode::Internal, why).into_response()
    });
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    let (code, took) = (response.status().as_u16(), started.elapsed());
    tracing::debug!(%method, route, code, ?took, "answered");
    server.metrics.answered(&route, method.as_str(), code, took);
    response
}

/// Wraps one handler: authenticates the caller before it, and writes the audit record after it.
pub(crate) async fn enforce_rules(
    State((server, rules)): State<(Arc<Server>, Rules)>,
    mut request: Request,
    next: Next,
) -> Response {
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let admitted = match authenticate(&server, rules.role, &method, &uri, request.headers()) {
        Ok(admitted) => admitted,
        Err(failure) => return failure.into_response(),
    };
    let Some(Authenticated { caller, pass }) = admitted else {
        return respond(server, rules, request, None, next).await;
    };
    if let Some(connection) = request.extensions().get::<Arc<Connection>>() {
        connection.mark_authenticated();
    }
    request.extensions_mut().insert(pass);
    let name = caller.name.clone();
    let verb = rules.id;
    let audited =
        !method.is_safe() && !rules.is_read_only(&uri) || rules.role == RequiredRole::Admin;
    let log = server.audit.clone().filter(|_| audited);
    let response = respond(server, rules, request, Some(caller), next).await;
    if let Some(log) = log {
        let touched =
            response.extensions().get::<AuditedObjects>().map(|touched| touched.0.clone());
        let object = touched.unwrap_or_else(|| uri.path().to_owned());
        let outcome = response.status().as_u16();
        let verb = verb.to_owned();
        log.note(AuditRecord { at: now(), caller: name, verb, object, outcome, times: None });
    }
    response
}

/// The objects of a request, attached to its response for the audit log.
#[derive(Clone, Debug)]
pub(crate) struct AuditedObjects(pub(crate) String);

async fn respond(
    server: Arc<Server>,
    rules: Rules,
    request: Request,
    caller: Option<Caller>,
    next: Next,
) -> Response {
    run_checked(server, rules, request, caller, next)
        .await
        .unwrap_or_else(IntoResponse::into_response)
}

async fn run_checked(
    server: Arc<Server>,
    rules: Rules,
    mut request: Request,
    caller: Option<Caller>,
    next: Next,
) -> Result<Response, ApiError> {
    if let Some(caller) = &caller {
        authorize(caller, rules.role)?;
    }
    (rules.check)(request.uri())?;
    let by = Requester::from(caller.as_ref());
    if let Some(caller) = caller {
        request.extensions_mut().insert(caller);
    }
    let time = server.limits.request_time;
    let answered = if rules.stream.is_some() {
        let permit = Arc::new(server.concurrency.stream(&by)?);
        request.extensions_mut().insert(permit);
        timeout(time, next.run(request)).await
    } else {
        let permit = server.concurrency.request(&by)?;
        // Read-only requests are not stored under a key: they can be repeated.
        let changes = !rules.method.is_safe() && !rules.is_read_only(request.uri());
        if changes {
            server.concurrency.change(&by)?;
        }
        let key = if changes { key(request.headers(), &by.name)? } else { None };
        let (mut request, body, room) = if rules.body {
            read(&server, &by, request).await?
        } else {
            (request, Bytes::new(), None)
        };
        let Some(key) = key else {
            return timeout(time, next.run(request)).await.map_err(|_| late(&server));
        };
        let sum = fingerprint(request.method(), request.uri(), request.headers(), &body);
        if let Some(caller) = request.extensions_mut().get_mut::<Caller>() {
            caller.key = Some(RequestKey { key: key.key.as_str().into(), request: sum });
        }
        let idempotency = server.idempotency.clone();
        // A separate task: it completes, and its answer is stored, also when the client has disconnected.
        let task = tokio::spawn(async move {
            let _held = (permit, room);
            idempotency.answer(key, sum, next.run(request)).await
        });
        match timeout(time, task).await {
            Ok(Ok(answered)) => return answered,
            Ok(Err(ended)) => match ended.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                Err(_) => {
                    return Err(ApiError::new(ErrorCode::Unavailable, "the server is ending"));
                }
            },
            Err(late) => Err(late),
        }
    };
    answered.map_err(|_| late(&server))
}

fn late(server: &Server) -> ApiError {
    let time = server.limits.request_time;
    let why = format!("there was no answer within {time:?}; it may still be done");
    ApiError::new(ErrorCode::Unavailable, why)
}

/// Reads the body within its limits, and puts it back.
async fn read(
    server: &Server,
    by: &Requester,
    request: Request,
) -> Result<(Request, Bytes, Option<SharedPermit>), ApiError> {
    let limits = &server.limits;
    let most =
        if by.admin { limits.body_bytes } else { limits.body_bytes.min(limits.body_bytes_user) };
    let too_large =
        || ApiError::new(ErrorCode::TooLarge, format!("the body is larger than {most} bytes"));
    let told = length(request.headers());
    if told.is_some_and(|told| told > most) {
        return Err(too_large());
    }
    // A body of unknown length may be as large as the limit.
    let room = server.concurrency.body(by, told.unwrap_or(most))?;
    let (parts, body) = request.into_parts();
    let time = server.limits.request_time;
    let bytes = match timeout(time, to_bytes(body, most)).await {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(error)) => {
            let error = error.into_inner();
            if error.is::<LengthLimitError>() {
                return Err(too_large());
            }
            return Err(ApiError::bad_request(format!("the body cannot be read: {error}")));
        }
        Err(_) => {
            let why = format!("the body did not arrive within {time:?}");
            return Err(ApiError::new(ErrorCode::TooSlow, why));
        }
    };
    Ok((Request::from_parts(parts, Body::from(bytes.clone())), bytes, Some(room)))
}

fn length(headers: &HeaderMap) -> Option<usize> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}
