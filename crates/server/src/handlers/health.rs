//! Liveness, readiness and metrics.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use crate::config::Server;
use crate::error::{ApiError, ErrorCode, typed};

/// The content type of the Prometheus text format.
pub(crate) const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";
/// Plain text.
pub(crate) const TEXT: &str = "text/plain; charset=utf-8";

/// Liveness: always true for a server that can answer.
pub(crate) async fn alive() -> Response {
    typed(StatusCode::OK, TEXT, "alive\n")
}

/// Readiness, as the host reports it.
pub(crate) async fn ready(State(server): State<Arc<Server>>) -> Result<Response, ApiError> {
    match server.host.ready() {
        Ok(()) => Ok(typed(StatusCode::OK, TEXT, "ready\n")),
        Err(why) => Err(ApiError::new(ErrorCode::Unavailable, why)),
    }
}

/// Metrics of the server and of the host.
pub(crate) async fn metrics(State(server): State<Arc<Server>>) -> Response {
    let mut text = server.metrics.text();
    text.push_str(&server.host.metrics());
    typed(StatusCode::OK, METRICS, text)
}
