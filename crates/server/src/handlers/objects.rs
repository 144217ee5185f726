//! Lists, single objects, and their removal.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::auth::visibility::{may_see_values, queue_of, redacted};
use crate::board::size::text_bytes;
use crate::config::Server;
use crate::error::{ApiError, ErrorCode, json};
use crate::handlers::query::{ContinueToken, Number, PathParams, QueryParams, Word};
use crate::{Caller, GangName, Kind, Listed};

/// How many objects a page has at most.
pub(crate) type Limit = Number<1, 1000>;
/// How many it has when nothing is said.
const PAGE: u64 = 200;

/// Bytes of memory that the objects of a page take, about: many large ones go on several pages.
const PAGE_BYTES: usize = 4 << 20;

/// A list, or as much of it as was asked for.
#[derive(Serialize)]
struct Page {
    items: Vec<Arc<Value>>,
    #[serde(rename = "continue", skip_serializing_if = "Option::is_none")]
    go_on: Option<String>,
    newest: u64,
}

/// The rest of a list's query, and what of it is wanted.
pub(crate) trait Filter {
    /// How many, and after which.
    fn page(&self) -> (Option<Limit>, Option<&ContinueToken>);
    /// Whether an object is wanted.
    fn wants(&self, name: &str, object: &Value) -> bool;
}

/// What gangs are wanted.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Gangs {
    /// Only those of this namespace.
    namespace: Option<Word>,
    /// Only those in this queue.
    queue: Option<Word>,
    /// Only those in this phase, such as `Running`.
    phase: Option<Word>,
    /// Only those of this user.
    user: Option<Word>,
    /// How many at most; 200 when nothing is said.
    limit: Option<Limit>,
    /// Where to go on: the `continue` of the page before.
    r#continue: Option<ContinueToken>,
}

/// What orders are wanted.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Orders {
    /// Only those for gangs of this namespace.
    namespace: Option<Word>,
    /// Only those in this phase, such as `Assembling`.
    phase: Option<Word>,
    /// How many at most; 200 when nothing is said.
    limit: Option<Limit>,
    /// Where to go on: the `continue` of the page before.
    r#continue: Option<ContinueToken>,
}

/// What queues, pools or nodes are wanted.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Others {
    /// Only those in this phase.
    phase: Option<Word>,
    /// How many at most; 200 when nothing is said.
    limit: Option<Limit>,
    /// Where to go on: the `continue` of the page before.
    r#continue: Option<ContinueToken>,
}

/// Whether a field of an object is what was asked for, if anything was.
fn is(object: &Value, field: &str, wanted: Option<&Word>) -> bool {
    let found = || object.pointer(field).and_then(Value::as_str);
    wanted.is_none_or(|wanted| found() == Some(&wanted.0))
}

/// The same for phases, which nobody should have to write with a capital.
fn is_in(object: &Value, wanted: Option<&Word>) -> bool {
    let found = || object.pointer("/status/phase").and_then(Value::as_str);
    wanted.is_none_or(|wanted| found().is_some_and(|found| found.eq_ignore_ascii_case(&wanted.0)))
}

impl Filter for Gangs {
    fn page(&self) -> (Option<Limit>, Option<&ContinueToken>) {
        (self.limit, self.r#continue.as_ref())
    }
    fn wants(&self, name: &str, object: &Value) -> bool {
        let namespace = name.split_once('/').map_or("", |(namespace, _)| namespace);
        self.namespace.as_ref().is_none_or(|wanted| wanted.0 == namespace)
            && is(object, "/spec/queue", self.queue.as_ref())
            && is(object, "/spec/user", self.user.as_ref())
            && is_in(object, self.phase.as_ref())
    }
}

impl Filter for Orders {
    fn page(&self) -> (Option<Limit>, Option<&ContinueToken>) {
        (self.limit, self.r#continue.as_ref())
    }
    fn wants(&self, _: &str, object: &Value) -> bool {
        is(object, "/spec/gang/namespace", self.namespace.as_ref())
            && is_in(object, self.phase.as_ref())
    }
}

impl Filter for Others {
    fn page(&self) -> (Option<Limit>, Option<&ContinueToken>) {
        (self.limit, self.r#continue.as_ref())
    }
    fn wants(&self, _: &str, object: &Value) -> bool {
        is_in(object, self.phase.as_ref())
    }
}

/// A page of objects by name. An object that is there from the first page to the last is on exactly one of them.
pub(crate) async fn list<F: Filter>(
    kind: Kind,
    State(server): State<Arc<Server>>,
    Extension(by): Extension<Caller>,
    QueryParams(filter): QueryParams<F>,
) -> Response {
    let (limit, go_on) = filter.page();
    let most = limit.map_or(PAGE, |limit| limit.0) as usize;
    let after = go_on.map_or("", |go_on| &go_on.0);
    let wants = |name: &str, object: &Value| filter.wants(name, object);
    // One more than wanted, to see whether there is more.
    let (mut found, newest) = server.host.board().list(kind, after, most + 1, wants);
    let fits = fitting(&found).min(most);
    let more = found.len() > fits;
    found.truncate(fits);
    let last = found.last().filter(|_| more);
    let go_on = last.map(|(name, _)| ContinueToken::write(name));
    let items = found.into_iter().map(|(_, object)| shown(&by, kind, object)).collect();
    json(StatusCode::OK, &Page { items, go_on, newest })
}

/// How many of these fit on one page. The first does, whatever it takes.
fn fitting(found: &[Listed]) -> usize {
    let mut bytes = 0;
    let fit = found.iter().take_while(|(_, object)| {
        bytes += text_bytes(object);
        bytes <= PAGE_BYTES
    });
    fit.count().max(1)
}

/// An object as a caller may see it.
fn shown(by: &Caller, kind: Kind, object: Arc<Value>) -> Arc<Value> {
    if may_see_values(by, kind, queue_of(&object)) {
        return object;
    }
    redacted(&object).map_or(object, Arc::new)
}

fn missing(kind: Kind, name: &str) -> ApiError {
    let kind = format!("{kind:?}").to_ascii_lowercase();
    ApiError::new(ErrorCode::NotFound, format!("there is no {kind} {name}"))
}

/// One object.
pub(crate) async fn get(
    kind: Kind,
    State(server): State<Arc<Server>>,
    Extension(by): Extension<Caller>,
    PathParams(name): PathParams<String>,
) -> Result<Response, ApiError> {
    let found = server.host.board().get(kind, &name);
    let found = found.ok_or_else(|| missing(kind, &name))?;
    Ok(json(StatusCode::OK, &shown(&by, kind, found)))
}

/// One gang.
pub(crate) async fn get_gang(
    server: State<Arc<Server>>,
    by: Extension<Caller>,
    PathParams((namespace, name)): PathParams<(String, String)>,
) -> Result<Response, ApiError> {
    get(Kind::Gang, server, by, PathParams(GangName { namespace, name }.to_string())).await
}

/// Removes an object.
pub(crate) async fn remove(
    kind: Kind,
    State(server): State<Arc<Server>>,
    Extension(by): Extension<Caller>,
    PathParams(name): PathParams<String>,
) -> Result<Response, ApiError> {
    tracing::info!(?kind, name, by = &*by.name, "remove");
    server.host.remove(by, kind, name).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Removes a gang.
pub(crate) async fn remove_gang(
    server: State<Arc<Server>>,
    by: Extension<Caller>,
    PathParams((namespace, name)): PathParams<(String, String)>,
) -> Result<Response, ApiError> {
    remove(Kind::Gang, server, by, PathParams(GangName { namespace, name }.to_string())).await
}
