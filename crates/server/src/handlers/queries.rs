//! Applies manifests, and answers queries that are not about one object.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use muster_api::crd::Stamp;
use muster_core::time::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::Server;
use crate::error::{ApiError, ErrorCode, json};
use crate::handlers::manifests::manifests;
use crate::handlers::query::{Number, QueryParams, Timestamp, Word};
use crate::idempotency::replay::now;
use crate::routing::middleware::AuditedObjects;
use crate::{Applied, AuditRecord, Caller, Rights, Usage, UsageBy, UsageRequest, WhatIf};

/// A list of results.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "{T}Items")]
pub(crate) struct Items<T> {
    items: Vec<T>,
}

/// The result for each object of the manifests.
pub(crate) type AppliedItems = Items<Applied>;
/// The forecast for each gang of the manifests.
pub(crate) type WhatIfItems = Items<WhatIf>;

/// Options of apply.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Apply {
    /// Only report what would change.
    dry_run: Option<bool>,
}

/// Applies manifests: all or none.
pub(crate) async fn apply(
    State(server): State<Arc<Server>>,
    Extension(by): Extension<Caller>,
    QueryParams(asked): QueryParams<Apply>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, ApiError> {
    let text = read_off(&by, headers, body).await?;
    let dry_run = asked.dry_run.unwrap_or(false);
    tracing::info!(bytes = text.len(), dry_run, by = &*by.name, "apply");
    let items = server.host.apply(by, text, dry_run).await?;
    let touched = AuditedObjects(named(&items));
    let mut response = json(StatusCode::OK, &Items { items });
    response.extensions_mut().insert(touched);
    Ok(response)
}

/// The objects that were applied, for the audit log.
fn named(items: &[Applied]) -> String {
    const MOST: usize = 20;
    let each = items.iter().take(MOST).map(|one| format!("{:?} {}", one.kind, one.name));
    let mut text = each.collect::<Vec<_>>().join(", ");
    if items.len() > MOST {
        text += &format!(" and {} more", items.len() - MOST);
    }
    text
}

/// Larger bodies are parsed on a blocking thread: parsing them here would delay other requests.
const SMALL: usize = 16 << 10;

/// The manifest text of a body, parsed off the request threads if it is large.
async fn read_off(by: &Caller, headers: HeaderMap, body: Bytes) -> Result<String, ApiError> {
    let most = by.most_values();
    if body.len() <= SMALL {
        return manifests(&headers, &body, most);
    }
    let read = tokio::task::spawn_blocking(move || manifests(&headers, &body, most));
    let ended = |_| ApiError::new(ErrorCode::Internal, "the manifests cannot be read");
    read.await.map_err(ended)?
}

/// Forecasts the starts of gangs if they were submitted now.
pub(crate) async fn what_if(
    State(server): State<Arc<Server>>,
    Extension(by): Extension<Caller>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, ApiError> {
    let text = read_off(&by, headers, body).await?;
    let items = server.host.what_if(by, text).await?;
    Ok(json(StatusCode::OK, &Items { items }))
}

/// Which usage to report.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UsageParams {
    /// The grouping; by queue when absent.
    by: Option<UsageBy>,
    /// From this instant; from the beginning when absent.
    from: Option<Timestamp>,
    /// Until this instant; until now when absent.
    to: Option<Timestamp>,
}

/// Usage by queue, user, gang or day.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct UsageItems {
    /// From this instant.
    from: Stamp,
    /// Until this instant.
    to: Stamp,
    /// One entry per queue, user, gang or day.
    items: Vec<Usage>,
}

/// Reports usage.
pub(crate) async fn usage(
    State(server): State<Arc<Server>>,
    QueryParams(asked): QueryParams<UsageParams>,
) -> Result<Response, ApiError> {
    let from = asked.from.map_or(Stamp(Time::ZERO), |from| from.0);
    let to = asked.to.map_or_else(now, |to| to.0);
    if from > to {
        return Err(ApiError::new(ErrorCode::Invalid, "`from` is after `to`"));
    }
    let by = asked.by.unwrap_or(UsageBy::Queue);
    let items = server.host.usage(UsageRequest { from: from.0, to: to.0, by }).await?;
    Ok(json(StatusCode::OK, &UsageItems { from, to, items }))
}

/// The caller, as the server knows it.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct WhoAmI {
    /// The caller's name.
    name: Arc<str>,
    /// The caller's role.
    role: Role,
    /// The queues of a user.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    #[schemars(default)]
    queues: BTreeSet<Arc<str>>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "CallerRole")]
enum Role {
    Viewer,
    User,
    Admin,
}

/// Returns the caller and its role.
pub(crate) async fn whoami(Extension(caller): Extension<Caller>) -> Response {
    let (role, queues) = match caller.rights {
        Rights::Viewer => (Role::Viewer, BTreeSet::new()),
        Rights::User(queues) => (Role::User, queues),
        Rights::Admin => (Role::Admin, BTreeSet::new()),
    };
    json(StatusCode::OK, &WhoAmI { name: caller.name, role, queues })
}

/// Which audit records to return.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AuditQuery {
    /// Only records of this caller.
    caller: Option<Word>,
    /// The number of newest records; 200 when absent.
    limit: Option<Number<1, 10_000>>,
}

/// Audit records, oldest first.
pub(crate) type AuditItems = Items<AuditRecord>;

/// Returns audit records.
pub(crate) async fn audit(
    State(server): State<Arc<Server>>,
    QueryParams(asked): QueryParams<AuditQuery>,
) -> Result<Response, ApiError> {
    let none = || ApiError::new(ErrorCode::Unsupported, "this server keeps no audit log");
    let log = server.audit.clone().ok_or_else(none)?;
    let most = asked.limit.map_or(200, |limit| limit.0) as usize;
    let wanted = move |record: &AuditRecord| {
        asked.caller.as_ref().is_none_or(|caller| *record.caller == *caller.0)
    };
    let read = tokio::task::spawn_blocking(move || log.last(most, wanted));
    let ended = |_| ApiError::new(ErrorCode::Internal, "the audit log cannot be read");
    let items = read.await.map_err(ended)?;
    Ok(json(StatusCode::OK, &Items { items }))
}
