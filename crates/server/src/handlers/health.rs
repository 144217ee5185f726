//! For those who watch over the server: is it alive, can it serve, what does it count.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use crate::config::Server;
use crate::error::{ApiError, ErrorCode, typed};

/// The type of the text format of Prometheus.
pub(crate) const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";
/// Plain text.
pub(crate) const TEXT: &str = "text/plain; charset=utf-8";

/// Whether it lives: whoever can answer does.
pub(crate) async fn alive() -> Response {
    typed(StatusCode::OK, TEXT, "alive\n")
}

/// Whether it can serve.
pub(crate) async fn ready(State(server): State<Arc<Server>>) -> Result<Response, ApiError> {
    match server.host.ready() {
        Ok(()) => Ok(typed(StatusCode::OK, TEXT, "ready\n")),
        Err(why) => Err(ApiError::new(ErrorCode::Unavailable, why)),
    }
}

/// What the server counts, and what the host does.
pub(crate) async fn metrics(State(server): State<Arc<Server>>) -> Response {
    let mut text = server.metrics.text();
    text.push_str(&server.host.metrics());
    typed(StatusCode::OK, METRICS, text)
}
