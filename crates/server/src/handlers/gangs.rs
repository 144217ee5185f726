//! Commands and queries for one gang.

use std::sync::Arc;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::Server;
use crate::error::{ApiError, ErrorCode, json};
use crate::handlers::manifests::content_type;
use crate::handlers::query::{Number, PathParams, Word};
use crate::{Caller, Change, GangName};

/// New bounds of a role. At least one of `min` and `max` is required.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("anyOf" = [{"required": ["min"]}, {"required": ["max"]}]))]
pub(crate) struct Scale {
    /// The role; may be omitted if there is only one.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Word")]
    role: Option<Word>,
    /// At least so many members.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Members")]
    min: Option<Members>,
    /// At most so many members.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Members")]
    max: Option<Members>,
}

type Members = Number<0, 1_000_000>;

/// An optional field that must not be null.
fn given<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}

/// Changes a gang, and returns it.
pub(crate) async fn change(
    change: Change,
    State(server): State<Arc<Server>>,
    Extension(by): Extension<Caller>,
    PathParams((namespace, name)): PathParams<(String, String)>,
) -> Result<Response, ApiError> {
    let gang = GangName { namespace, name };
    tracing::info!(%gang, ?change, by = &*by.name, "change");
    let changed = server.host.change(by, gang, change).await?;
    Ok(json(StatusCode::OK, &changed))
}

/// Sets new bounds of a role.
pub(crate) async fn scale(
    server: State<Arc<Server>>,
    by: Extension<Caller>,
    gang: PathParams<(String, String)>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, ApiError> {
    if let Some(kind) = content_type(&headers).filter(|kind| kind != "application/json") {
        let why = format!("what to scale to is read as application/json, not as {kind}");
        return Err(ApiError::new(ErrorCode::UnsupportedMediaType, why));
    }
    let Scale { role, min, max } = serde_json::from_slice(&body).map_err(|error| {
        ApiError::bad_request(format!("the body does not say what to scale: {error}"))
    })?;
    if min.is_none() && max.is_none() {
        return Err(ApiError::bad_request("give `min`, `max` or both"));
    }
    let members = |number: Option<Members>| number.and_then(|number| u32::try_from(number.0).ok());
    let role = role.map(|role| role.0);
    change(Change::Scale { role, min: members(min), max: members(max) }, server, by, gang).await
}

/// Explains why a gang waits.
pub(crate) async fn why(
    State(server): State<Arc<Server>>,
    PathParams((namespace, name)): PathParams<(String, String)>,
) -> Result<Response, ApiError> {
    let why = server.host.why(GangName { namespace, name }).await?;
    Ok(json(StatusCode::OK, &why))
}
