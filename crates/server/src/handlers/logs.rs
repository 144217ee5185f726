//! Output of members: as JSON lines, or as prefixed text for people.

use std::fmt::Write;
use std::sync::Arc;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::{Instant, sleep_until};

use crate::auth::tokens::TokenDigest;
use crate::config::Server;
use crate::error::{ApiError, ErrorCode, typed};
use crate::handlers::query::{Number, PathParams, QueryParams};
use crate::handlers::streams::{Open, Source, body};
use crate::limits::concurrency::{Permit, StreamPermit};
use crate::routing::operation::Stream;
use crate::serve::shutdown;
use crate::{Caller, GangName, Kind, LogPart, LogQuery, Logs, Subject, Verb};

/// One JSON object per line.
pub(crate) const NDJSON: &str = "application/x-ndjson";
/// Lines prefixed with the member's rank.
pub(crate) const PLAIN: &str = "text/plain; charset=utf-8";

/// Which logs to send.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LogsParams {
    /// Only the member with this rank.
    member: Option<Number<0, 1_000_000>>,
    /// This attempt; the latest when absent.
    attempt: Option<Number<0, 1_000_000>>,
    /// The run with this number, also of an earlier gang of the same name.
    run: Option<Number<1, 9_007_199_254_740_991>>,
    /// The last lines of each member; all when absent.
    tail: Option<Number<0, 1_000_000>>,
    /// Whether to follow new output until the gang ends.
    follow: Option<bool>,
}

/// Streams the output of a gang's members.
pub(crate) async fn logs(
    State(server): State<Arc<Server>>,
    Extension(permit): Extension<Arc<StreamPermit>>,
    Extension(by): Extension<Caller>,
    Extension(pass): Extension<Option<TokenDigest>>,
    PathParams((namespace, name)): PathParams<(String, String)>,
    QueryParams(asked): QueryParams<LogsParams>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let small = |number: Number<0, 1_000_000>| number.0 as u32;
    let which = LogQuery {
        member: asked.member.map(small),
        attempt: asked.attempt.map(small),
        run: asked.run.map(|run| run.0),
        tail: asked.tail.map(|tail| tail.0 as usize),
        follow: asked.follow.unwrap_or(false),
    };
    let gang = GangName { namespace, name };
    may_read(&server, &by, &gang)?;
    let follow = which.follow.then(|| server.concurrency.follow(&by.name)).transpose()?;
    let logs = server.host.logs(gang, which).await?;
    let plain = wants_text(&headers);
    let told = server.shutdown.subscribe();
    let _open = Open::new(server.clone(), Stream::Logs, permit);
    let beat = Instant::now() + server.limits.heartbeat;
    let source = LogSource { logs, plain, told, pass, beat, server, _follow: follow, _open };
    Ok(typed(StatusCode::OK, if plain { PLAIN } else { NDJSON }, body(source)))
}

/// Checks whether a caller may read a gang's output: only users of its queue may.
fn may_read(server: &Server, by: &Caller, gang: &GangName) -> Result<(), ApiError> {
    let Some(object) = server.host.board().get(Kind::Gang, &gang.to_string()) else {
        // The answer does not reveal whether the gang ever existed.
        let why = format!("there is no gang {gang}");
        return Err(ApiError::new(ErrorCode::NotFound, why));
    };
    let queue = object.pointer("/spec/queue").and_then(serde_json::Value::as_str);
    Ok(by.check(Verb::ReadLogs, Subject::Gang, queue.or(Some("default")))?)
}

/// Whether the client accepts plain text and does not ask for JSON lines.
fn wants_text(headers: &HeaderMap) -> bool {
    let accept = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let kinds: Vec<_> = accept.flat_map(|value| value.split(',')).map(str::trim).collect();
    let takes = |kind: &str| kinds.iter().any(|taken| taken.split(';').next() == Some(kind));
    takes("text/plain") && !takes(NDJSON)
}

struct LogSource {
    logs: Logs,
    plain: bool,
    told: shutdown::ShutdownSignal,
    /// The digest of the token that opened the stream: the stream ends with the token.
    pass: Option<TokenDigest>,
    /// When the token is checked next.
    beat: Instant,
    server: Arc<Server>,
    _follow: Option<Permit>,
    _open: Open,
}

impl Source for LogSource {
    async fn next(&mut self) -> Option<Bytes> {
        let part = loop {
            tokio::select! {
                () = self.told.wait() => return None,
                part = self.logs.recv() => break part?,
                () = sleep_until(self.beat) => {
                    if !self.server.is_still_known(self.pass) {
                        return None;
                    }
                    self.beat = Instant::now() + self.server.limits.heartbeat;
                }
            }
        };
        let text = if self.plain { prefixed(&part) } else { object(&part) };
        Some(text.into())
    }
}

fn object(part: &LogPart) -> String {
    serde_json::to_string(part).map(|line| line + "\n").unwrap_or_default()
}

fn prefixed(part: &LogPart) -> String {
    let mut text = String::with_capacity(part.text.len() + 32);
    for line in part.text.lines() {
        let _ = writeln!(text, "[{} {}] {line}", part.role, part.member);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_prefixed_with_role_and_rank() {
        let part =
            LogPart { member: 3, role: "worker".into(), stderr: false, text: "a\n\nb\n".into() };
        assert_eq!(prefixed(&part), "[worker 3] a\n[worker 3] \n[worker 3] b\n");
    }

    #[test]
    fn logs_are_json_lines_unless_the_client_accepts_only_text() {
        let accepts = |text: &str| {
            wants_text(&[(header::ACCEPT, text.parse().unwrap())].into_iter().collect())
        };
        assert!(accepts("text/plain") && accepts("text/html, text/plain;q=0.5"));
        assert!(!accepts("*/*") && !accepts("text/plain, application/x-ndjson"));
        assert!(!wants_text(&HeaderMap::new()));
    }
}
