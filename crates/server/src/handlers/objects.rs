//! Lists, reads and removes objects.

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

/// Objects on a page, at most.
pub(crate) type Limit = Number<1, 1000>;
/// Objects on a page by default.
const PAGE: u64 = 200;

/// Bytes of the objects on a page, about: large objects are spread over several pages.
const PAGE_BYTES: usize = 4 << 20;

/// A list, or one page of it.
#[derive(Serialize)]
struct Page {
    items: Vec<Arc<Value>>,
    #[serde(rename = "continue", skip_serializing_if = "Option::is_none")]
    go_on: Option<String>,
    newest: u64,
}

/// The filters of a list.
pub(crate) trait Filter {
    /// Page size, and position.
    fn page(&self) -> (Option<Limit>, Option<&ContinueToken>);
    /// Whether an object matches.
    fn wants(&self, name: &str, object: &Value) -> bool;
}

/// Filters for gangs.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Gangs {
    /// Only gangs of this namespace.
    namespace: Option<Word>,
    /// Only gangs in this queue.
    queue: Option<Word>,
    /// Only gangs in this phase, such as `Running`.
    phase: Option<Word>,
    /// Only gangs of this user.
    user: Option<Word>,
    /// Page size; 200 when absent.
    limit: Option<Limit>,
    /// Where to continue: `continue` of the previous page.
    r#continue: Option<ContinueToken>,
}

/// Filters for orders.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Orders {
    /// Only orders for gangs of this namespace.
    namespace: Option<Word>,
    /// Only orders in this phase, such as `Assembling`.
    phase: Option<Word>,
    /// Page size; 200 when absent.
    limit: Option<Limit>,
    /// Where to continue: `continue` of the previous page.
    r#continue: Option<ContinueToken>,
}

/// Filters for queues, pools and nodes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Others {
    /// Only objects in this phase.
    phase: Option<Word>,
    /// Page size; 200 when absent.
    limit: Option<Limit>,
    /// Where to continue: `continue` of the previous page.
    r#continue: Option<ContinueToken>,
}

/// Whether a field matches the filter, if there is one.
fn is(object: &Value, field: &str, wanted: Option<&Word>) -> bool {
    let found = || object.pointer(field).and_then(Value::as_str);
    wanted.is_none_or(|wanted| found() == Some(&wanted.0))
}

/// The same for phases, ignoring case.
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

/// A page of objects by name. An object that exists from the first page to the last is on exactly one page.
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
    // One more than requested, to detect whether there are more.
    let (mut found, newest) = server.host.board().list(kind, after, most + 1, wants);
    let fits = fitting(&found).min(most);
    let more = found.len() > fits;
    found.truncate(fits);
    let last = found.last().filter(|_| more);
    let go_on = last.map(|(name, _)| ContinueToken::write(name));
    let items = found.into_iter().map(|(_, object)| shown(&by, kind, object)).collect();
    json(StatusCode::OK, &Page { items, go_on, newest })
}

/// How many of these objects fit on one page. The first always fits.
fn fitting(found: &[Listed]) -> usize {
    let mut bytes = 0;
    let fit = found.iter().take_while(|(_, object)| {
        bytes += text_bytes(object);
        bytes <= PAGE_BYTES
    });
    fit.count().max(1)
}

/// An object as the caller may see it.
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
