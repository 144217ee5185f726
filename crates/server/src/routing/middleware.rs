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
use tokio::time::timeout;

use crate::auth::access::{Admitted, Who, admit, check};
use crate::auth::caller::RequestKey;
use crate::config::Server;
use crate::error::{Code, Failure};
use crate::idempotency::replay::{fingerprint, key, now};
use crate::limits::concurrency::{Asker, Room};
use crate::limits::connections::Connection;
use crate::routing::drain_body::Lingering;
use crate::routing::operation::Rules;
use crate::{AuditRecord, Caller};

/// Around everything, also around paths that do not exist: counts, and catches panics.
pub(crate) async fn watch(
    State(server): State<Arc<Server>>,
    request: Request,
    next: Next,
) -> Response {
    let path = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let route = path.unwrap_or_else(|| "none".into());
    let (method, started) = (request.method().clone(), Instant::now());
    let request = request.map(Lingering::over);
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

/// Before one handler: who asks, and afterwards what came of it.
pub(crate) async fn guard(
    State((server, rules)): State<(Arc<Server>, Rules)>,
    mut request: Request,
    next: Next,
) -> Response {
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let admitted = match admit(&server, rules.who, &method, &uri, request.headers()) {
        Ok(admitted) => admitted,
        Err(failure) => return failure.into_response(),
    };
    let Some(Admitted { caller, pass }) = admitted else {
        return pass_on(server, rules, request, None, next).await;
    };
    if let Some(connection) = request.extensions().get::<Arc<Connection>>() {
        connection.prove();
    }
    request.extensions_mut().insert(pass);
    let name = caller.name.clone();
    let verb = rules.id;
    let audited = !method.is_safe() && !rules.is_question(&uri) || rules.who == Who::Admin;
    let log = server.audit.clone().filter(|_| audited);
    let response = pass_on(server, rules, request, Some(caller), next).await;
    if let Some(log) = log {
        let touched = response.extensions().get::<Touched>().map(|touched| touched.0.clone());
        let object = touched.unwrap_or_else(|| uri.path().to_owned());
        let outcome = response.status().as_u16();
        let verb = verb.to_owned();
        log.note(AuditRecord { at: now(), caller: name, verb, object, outcome, times: None });
    }
    response
}

/// The objects a request was about, in an answer, for the audit log.
#[derive(Clone, Debug)]
pub(crate) struct Touched(pub(crate) String);

async fn pass_on(
    server: Arc<Server>,
    rules: Rules,
    request: Request,
    caller: Option<Caller>,
    next: Next,
) -> Response {
    pass(server, rules, request, caller, next).await.unwrap_or_else(IntoResponse::into_response)
}

async fn pass(
    server: Arc<Server>,
    rules: Rules,
    mut request: Request,
    caller: Option<Caller>,
    next: Next,
) -> Result<Response, Failure> {
    if let Some(caller) = &caller {
        check(caller, rules.who)?;
    }
    (rules.check)(request.uri())?;
    let by = Asker::from(caller.as_ref());
    if let Some(caller) = caller {
        request.extensions_mut().insert(caller);
    }
    let time = server.limits.request_time;
    let answered = if rules.stream.is_some() {
        let seat = Arc::new(server.seats.stream(&by)?);
        request.extensions_mut().insert(seat);
        timeout(time, next.run(request)).await
    } else {
        let seat = server.seats.request(&by)?;
        // A question may be asked again: nothing is kept of it under a key.
        let changes = !rules.method.is_safe() && !rules.is_question(request.uri());
        if changes {
            server.seats.change(&by)?;
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
    by: &Asker,
    request: Request,
) -> Result<(Request, Bytes, Option<Room>), Failure> {
    let limits = &server.limits;
    let most =
        if by.admin { limits.body_bytes } else { limits.body_bytes.min(limits.body_bytes_user) };
    let too_large =
        || Failure::new(Code::TooLarge, format!("the body is larger than {most} bytes"));
    let told = length(request.headers());
    if told.is_some_and(|told| told > most) {
        return Err(too_large());
    }
    // Whoever does not say how much will come may send as much as there may be.
    let room = server.seats.body(by, told.unwrap_or(most))?;
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
