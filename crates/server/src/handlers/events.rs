//! The change feed as server-sent events.
//!
//! Each client reads the board's ring at its own pace. A slow client gets a `gap` event and continues with the newest;
//! it delays no other client, and nothing is buffered for it.

use std::collections::VecDeque;
use std::fmt::Write;
use std::sync::Arc;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::{Instant, sleep_until};

use crate::auth::tokens::TokenDigest;
use crate::auth::visibility::{may_see_values, queue_of};
use crate::board::feed::LineKind;
use crate::config::Server;
use crate::error::{ApiError, typed};
use crate::handlers::query::{Number, QueryParams, Word};
use crate::handlers::streams::{Open, Source, body};
use crate::limits::concurrency::StreamPermit;
use crate::routing::operation::Stream;
use crate::serve::shutdown;
use crate::{Board, Caller, FeedLine, FeedRead, FeedReader, Kind};

/// Entries in one batch, at most.
const BATCH: usize = 64;
/// How long a browser waits before it reconnects, in milliseconds.
const RETRY_MS: u32 = 1000;
/// Larger numbers are not exact in JavaScript.
pub(crate) const MOST: u64 = (1 << 53) - 1;
/// The header with the position of a browser that reconnects.
const LAST: &str = "last-event-id";

/// Which events to send.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Events {
    /// Only events after this number; from now on when absent. `Last-Event-ID` takes precedence.
    after: Option<Number<0, MOST>>,
    /// Whether to keep following; true when absent. Otherwise the stream ends with the present.
    follow: Option<bool>,
    /// Only about objects of this kind.
    kind: Option<Kind>,
    /// Only about gangs of this namespace.
    namespace: Option<Word>,
    /// Only about objects of this name; for a gang without its namespace.
    name: Option<Word>,
    /// Only about this queue and its gangs. Removals are always sent: a removed gang's queue is no longer known.
    queue: Option<Word>,
}

impl Events {
    fn wants(&self, board: &Board, line: &FeedLine) -> bool {
        let (namespace, name) = match (line.kind, line.name.split_once('/')) {
            (Kind::Gang, Some((namespace, name))) => (Some(namespace), name),
            _ => (None, &*line.name),
        };
        self.kind.is_none_or(|wanted| wanted == line.kind)
            && self.namespace.as_ref().is_none_or(|wanted| namespace == Some(&wanted.0))
            && self.name.as_ref().is_none_or(|wanted| wanted.0 == name)
            && self.queue.as_ref().is_none_or(|wanted| in_queue(&wanted.0, board, line))
    }
}

fn in_queue(wanted: &str, board: &Board, line: &FeedLine) -> bool {
    match (line.kind, &line.what) {
        (Kind::Queue, _) => *line.name == *wanted,
        (Kind::Gang, LineKind::Set { queue }) => queue.as_deref() == Some(wanted),
        (Kind::Gang, LineKind::Note) => {
            let gang = board.get(Kind::Gang, &line.name);
            gang.is_none_or(|gang| queue_of(&gang) == Some(wanted))
        }
        (Kind::Gang, LineKind::Gone) => true,
        _ => false,
    }
}

/// Streams the change feed.
pub(crate) async fn events(
    State(server): State<Arc<Server>>,
    Extension(permit): Extension<Arc<StreamPermit>>,
    Extension(by): Extension<Caller>,
    Extension(pass): Extension<Option<TokenDigest>>,
    QueryParams(asked): QueryParams<Events>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let after = last(&headers)?.or(asked.after.map(|after| after.0));
    let board = server.host.board();
    let newest = board.follow(None).after();
    let follow = asked.follow.unwrap_or(true);
    let source = EventSource {
        reader: board.follow(Some(after.unwrap_or(newest))),
        until: (!follow).then_some(newest),
        asked,
        board: board.clone(),
        by,
        pass,
        told: server.shutdown.subscribe(),
        beat: Instant::now(),
        begun: false,
        parts: VecDeque::new(),
        _open: Open::new(server.clone(), Stream::Events, permit),
        server,
    };
    let mut response = typed(StatusCode::OK, "text/event-stream", body(source));
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // Proxies that buffer a response would buffer this one for ever.
    let buffering = HeaderName::from_static("x-accel-buffering");
    headers.insert(buffering, HeaderValue::from_static("no"));
    Ok(response)
}

fn last(headers: &HeaderMap) -> Result<Option<u64>, ApiError> {
    let Some(text) = headers.get(LAST) else { return Ok(None) };
    let digits = text.to_str().ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    let number = digits.and_then(|text| text.parse().ok()).filter(|number| *number <= MOST);
    let why = format!("Last-Event-ID must be a number from 0 to {MOST}");
    number.map(Some).ok_or_else(|| ApiError::bad_request(why))
}

struct EventSource {
    reader: FeedReader,
    /// The last sequence number to send, if the client does not follow.
    until: Option<u64>,
    asked: Events,
    board: Arc<Board>,
    by: Caller,
    /// The digest of the token that opened the stream: the stream ends with the token.
    pass: Option<TokenDigest>,
    told: shutdown::ShutdownSignal,
    /// When the next heartbeat is due.
    beat: Instant,
    begun: bool,
    /// Parts that are encoded and not sent yet.
    parts: VecDeque<Bytes>,
    server: Arc<Server>,
    _open: Open,
}

impl Source for EventSource {
    async fn next(&mut self) -> Option<Bytes> {
        if self.parts.is_empty() {
            let parts = if self.begun { self.more().await? } else { self.begin() };
            self.parts = parts.done;
        }
        self.beat = Instant::now() + self.server.limits.heartbeat;
        self.parts.pop_front()
    }
}

impl EventSource {
    /// Sent at once, so that the client knows that it is connected, and after which number it listens.
    fn begin(&mut self) -> Parts {
        self.begun = true;
        Parts::of(format!("retry: {RETRY_MS}\nid: {}\n\n", self.reader.after()))
    }

    async fn more(&mut self) -> Option<Parts> {
        loop {
            if self.until.is_some_and(|until| self.reader.after() == until) {
                return None;
            }
            let found = tokio::select! {
                () = self.told.wait() => return None,
                found = self.reader.next(BATCH) => found?,
                () = sleep_until(self.beat) => {
                    return self.server.is_still_known(self.pass).then(|| self.sign_of_life());
                }
            };
            if !self.server.is_still_known(self.pass) {
                return None;
            }
            let parts = self.write(found);
            if !parts.done.is_empty() {
                return Some(parts);
            }
        }
    }

    /// A comment with the current position: a client with a narrow filter that reconnects does not begin with a gap.
    fn sign_of_life(&self) -> Parts {
        Parts::of(format!(": still here\nid: {}\n\n", self.reader.after()))
    }

    fn write(&mut self, found: FeedRead) -> Parts {
        let mut parts = Parts::default();
        match found {
            FeedRead::Gap(newest) => {
                // Older entries are gone, so there is nothing left to wait for.
                self.until = self.until.map(|_| newest);
                let _ = write!(
                    parts.open,
                    "event: gap\nid: {newest}\ndata: {{\"type\":\"gap\",\"seq\":{newest}}}\n\n"
                );
            }
            FeedRead::News(feed) => {
                let until = self.until.unwrap_or(u64::MAX);
                let wanted = feed.iter().take_while(|feed| feed.seq <= until);
                for feed in wanted.filter(|feed| self.asked.wants(&self.board, feed)) {
                    write_news(&mut parts, feed, &self.by);
                }
                if self.reader.after() > until {
                    self.until = Some(self.reader.after());
                }
            }
        }
        parts.close();
        parts
    }
}

/// Texts of at least this size are shared by all clients instead of copied for each: one object of a mebibyte would
/// otherwise take as many mebibytes as there are clients.
const LARGE: usize = 16 << 10;

/// What is written to one client: small events joined, large ones separate.
#[derive(Default)]
struct Parts {
    done: VecDeque<Bytes>,
    /// The part that small events are appended to.
    open: String,
}

impl Parts {
    fn of(text: String) -> Self {
        Self { done: VecDeque::from([text.into()]), open: String::new() }
    }

    fn add(&mut self, text: &Bytes) {
        match std::str::from_utf8(text) {
            Ok(text) if text.len() < LARGE => self.open.push_str(text),
            _ => {
                self.close();
                self.done.push_back(text.clone());
            }
        }
    }

    fn close(&mut self) {
        if !self.open.is_empty() {
            self.done.push_back(std::mem::take(&mut self.open).into());
        }
    }
}

fn write_news(parts: &mut Parts, line: &FeedLine, by: &Caller) {
    let (event, all) = match &line.what {
        LineKind::Set { queue } => ("set", may_see_values(by, line.kind, queue.as_deref())),
        LineKind::Gone => ("gone", true),
        LineKind::Note => ("said", true),
    };
    let data = if all { line.text() } else { line.redacted_text() };
    // JSON has no line breaks, so one `data` line suffices.
    let _ = write!(parts.open, "event: {event}\nid: {}\ndata: ", line.seq);
    parts.add(data);
    parts.open.push_str("\n\n");
}
