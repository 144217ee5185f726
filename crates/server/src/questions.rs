//! Applying manifests, and questions about the whole.

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

use crate::ask::{Asked, When};
use crate::config::Server;
use crate::failure::{Code, Failure, json};
use crate::manifests::manifests;
use crate::once::now;
use crate::{Applied, Caller, Rights, Usage, UsageAsked, UsageBy, WhatIf};

/// Several answers.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "{T}Items")]
pub(crate) struct Items<T> {
    items: Vec<T>,
}

/// What became of each object of the manifests.
pub(crate) type AppliedItems = Items<Applied>;
/// What would become of each gang of the manifests.
pub(crate) type WhatIfItems = Items<WhatIf>;

/// How to apply.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Apply {
    /// Only say what would come of it.
    dry_run: Option<bool>,
}

/// Takes manifests: all of them or none.
pub(crate) async fn apply(
    State(server): State<Arc<Server>>,
    Extension(by): Extension<Caller>,
    Asked(asked): Asked<Apply>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Failure> {
    let text = manifests(&headers, &body)?;
    let dry_run = asked.dry_run.unwrap_or(false);
    tracing::info!(bytes = text.len(), dry_run, by = &*by.name, "apply");
    let items = server.host.apply(by, text, dry_run).await?;
    Ok(json(StatusCode::OK, &Items { items }))
}

/// What would become of gangs if they were submitted now.
pub(crate) async fn what_if(
    State(server): State<Arc<Server>>,
    Extension(by): Extension<Caller>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Failure> {
    let items = server.host.what_if(by, manifests(&headers, &body)?).await?;
    Ok(json(StatusCode::OK, &Items { items }))
}

/// Whose usage, and when.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UsageQuery {
    /// Summed by what; by queue when nothing is said.
    by: Option<UsageBy>,
    /// From this instant on; from the beginning when nothing is said.
    from: Option<When>,
    /// Up to this instant; up to now when nothing is said.
    to: Option<When>,
}

/// Who has used how much.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct UsageItems {
    /// From this instant on.
    from: Stamp,
    /// Up to this instant.
    to: Stamp,
    /// One for each queue, user, gang or day.
    items: Vec<Usage>,
}

/// Who has used how much.
pub(crate) async fn usage(
    State(server): State<Arc<Server>>,
    Asked(asked): Asked<UsageQuery>,
) -> Result<Response, Failure> {
    let from = asked.from.map_or(Stamp(Time::ZERO), |from| from.0);
    let to = asked.to.map_or_else(now, |to| to.0);
    if from > to {
        return Err(Failure::new(Code::Invalid, "`from` is after `to`"));
    }
    let by = asked.by.unwrap_or(UsageBy::Queue);
    let items = server.host.usage(UsageAsked { from: from.0, to: to.0, by }).await?;
    Ok(json(StatusCode::OK, &UsageItems { from, to, items }))
}

/// Who asks.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct WhoAmI {
    /// What they are called.
    name: Arc<str>,
    /// What they may do.
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

/// Who asks, and what they may do.
pub(crate) async fn whoami(Extension(caller): Extension<Caller>) -> Response {
    let (role, queues) = match caller.rights {
        Rights::Viewer => (Role::Viewer, BTreeSet::new()),
        Rights::User(queues) => (Role::User, queues),
        Rights::Admin => (Role::Admin, BTreeSet::new()),
    };
    json(StatusCode::OK, &WhoAmI { name: caller.name, role, queues })
}
