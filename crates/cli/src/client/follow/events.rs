//! Reads the control plane's event stream, and reconnects when the connection is lost.

use std::time::Duration;

use muster_api::crd::Stamp;
use muster_server::Kind;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::client::connection::address::Query;
use crate::client::connection::api::Api;
use crate::client::connection::error::RequestError;
use crate::client::connection::lines::Lines;

/// The stream counts as lost after this silence. The server sends a heartbeat every 15 seconds: three are missing then.
const SILENCE: Duration = Duration::from_secs(50);
/// How long it tries to reconnect.
const RECONNECT_TIMEOUT: Duration = Duration::from_secs(600);
/// The longest backoff between two tries.
const MAX_PAUSE: Duration = Duration::from_secs(10);

/// An event of the control plane.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(rename_all = "camelCase", tag = "type")]
pub(crate) enum StreamEvent {
    /// An object was created or has changed.
    Set {
        /// The number of the event.
        seq: u64,
        kind: Kind,
        name: String,
        object: Value,
    },
    /// An object was removed.
    Gone {
        /// The number of the event.
        seq: u64,
        kind: Kind,
        name: String,
    },
    /// A message about an object.
    #[serde(rename = "said")]
    Message {
        /// The number of the event.
        seq: u64,
        at: Stamp,
        kind: Kind,
        name: String,
        reason: String,
        message: String,
        #[serde(default)]
        warning: bool,
    },
    /// Events were missed: all objects must be listed again.
    Gap {
        /// The number after which the stream continues.
        seq: u64,
    },
}

impl StreamEvent {
    fn seq(&self) -> u64 {
        match self {
            Self::Set { seq, .. }
            | Self::Gone { seq, .. }
            | Self::Message { seq, .. }
            | Self::Gap { seq } => *seq,
        }
    }
}

/// Parses server-sent events from lines.
#[derive(Debug, Default)]
struct Parser {
    data: String,
    id: Option<u64>,
}

/// An event block, which ends with an empty line.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Block {
    data: String,
    id: Option<u64>,
}

impl Parser {
    /// Takes a line; returns the block that it ends, unless that is empty.
    fn take(&mut self, line: &str) -> Option<Block> {
        let line = line.strip_suffix('\r').unwrap_or(line);
        if line.is_empty() {
            let Self { data, id } = std::mem::take(self);
            return (!data.is_empty() || id.is_some()).then_some(Block { data, id });
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                if !self.data.is_empty() {
                    self.data.push('\n');
                }
                self.data.push_str(value);
            }
            "id" => self.id = value.parse().ok(),
            // Comments, the event's name (the data has it as well), and the retry delay.
            _ => {}
        }
        None
    }
}

/// The event stream of a control plane.
pub(crate) struct EventStream<'a> {
    api: &'a Api,
    wanted: Query,
    after: u64,
    open: Option<(Lines, Parser)>,
    /// When the connection was lost, and the number of tries since.
    lost: Option<(Instant, u32)>,
    /// Whether a lost connection is not reported on standard error.
    quiet: bool,
}

impl<'a> EventStream<'a> {
    /// The events after a number that match a query.
    pub(crate) fn after(api: &'a Api, wanted: Query, after: u64) -> Self {
        Self { api, wanted, after, open: None, lost: None, quiet: false }
    }

    /// Reports no lost connections on standard error.
    pub(crate) fn quietly(self) -> Self {
        Self { quiet: true, ..self }
    }

    /// Whether the connection is lost.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.is_some()
    }

    /// Waits for the next event. A lost connection is opened again after the last event.
    ///
    /// Cancel-safe: no event is lost when the future is dropped.
    pub(crate) async fn next(&mut self) -> Result<StreamEvent, RequestError> {
        loop {
            match self.read().await {
                Ok(Some(news)) => {
                    self.after = news.seq().max(self.after);
                    return Ok(news);
                }
                Ok(None) => {}
                Err(error) if error.is_transient() => self.pause(error).await?,
                Err(error) => return Err(error),
            }
        }
    }

    async fn read(&mut self) -> Result<Option<StreamEvent>, RequestError> {
        if self.open.is_none() {
            let path = self.wanted.clone().with("after", self.after).on("/v1/events");
            let lines = self.api.stream(&path, "text/event-stream", Some(SILENCE)).await?;
            self.open = Some((lines, Parser::default()));
            if self.lost.take().is_some() && !self.quiet {
                eprintln!("connected again");
            }
        }
        let Some((lines, parser)) = &mut self.open else { return Ok(None) };
        let Some(line) = lines.next().await? else {
            let ended = "the server ended the stream".to_owned();
            return Err(RequestError::Lost(self.api.url().to_owned(), ended));
        };
        let Some(block) = parser.take(&line) else { return Ok(None) };
        self.after = block.id.unwrap_or(0).max(self.after);
        if block.data.is_empty() {
            return Ok(None);
        }
        self.api.parse(block.data.as_bytes()).map(Some)
    }

    async fn pause(&mut self, error: RequestError) -> Result<(), RequestError> {
        self.open = None;
        let (since, tries) = self.lost.get_or_insert_with(|| {
            if !self.quiet {
                eprintln!("{error}; reconnecting");
            }
            (Instant::now(), 0)
        });
        if since.elapsed() > RECONNECT_TIMEOUT {
            return Err(error);
        }
        let pause = Duration::from_millis(200 << (*tries).min(6)).min(MAX_PAUSE);
        *tries += 1;
        sleep(pause).await;
        Ok(())
    }
}

/// The matching events of the past, as far back as the control plane remembers, oldest first.
pub(crate) async fn past(api: &Api, wanted: &Query) -> Result<Vec<StreamEvent>, RequestError> {
    let newest = api.newest().await?;
    // The control plane remembers at most this many. Asked for more than it has, it returns none: so the range is
    // halved until it answers.
    let mut back = 16_384;
    loop {
        let query = wanted.clone().with("follow", false).with("after", newest.saturating_sub(back));
        let silence = Some(SILENCE);
        let mut lines = api.stream(&query.on("/v1/events"), "text/event-stream", silence).await?;
        let (mut parser, mut found, mut gap) = (Parser::default(), Vec::new(), false);
        while let Some(line) = lines.next().await? {
            let block = parser.take(&line).filter(|block| !block.data.is_empty());
            let Some(block) = block else { continue };
            match api.parse(block.data.as_bytes())? {
                StreamEvent::Gap { .. } => gap = true,
                news => found.push(news),
            }
        }
        back /= 2;
        if !gap || back == 0 {
            return Ok(found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(text: &str) -> Vec<Block> {
        let mut parser = Parser::default();
        text.lines().filter_map(|line| parser.take(line)).collect()
    }

    #[test]
    fn event_blocks_are_parsed_as_by_browsers() {
        let text = "retry: 1000\nid: 7\n\n: still here\n\nevent: set\nid: 8\ndata: {\ndata:}\n\n";
        let expected = [
            Block { data: String::new(), id: Some(7) },
            Block { data: "{\n}".to_owned(), id: Some(8) },
        ];
        assert_eq!(blocks(text), expected);
    }

    #[tokio::test]
    async fn events_are_parsed_as_the_server_writes_them() {
        use std::sync::Arc;

        use muster_core::time::Time;
        use muster_server::{Board, Found, Said};
        let board = Arc::new(Board::new(8));
        let mut reader = board.follow(None);
        let said = Said {
            kind: Kind::Gang,
            name: "a/b".into(),
            reason: "Started".into(),
            message: "all".to_owned(),
            warning: true,
        };
        board.say(Stamp(Time(0)), said);
        let Some(Found::News(written)) = reader.next(1).await else { panic!("no news") };
        let read: StreamEvent = serde_json::from_slice(written[0].text()).unwrap();
        assert!(
            matches!(&read, StreamEvent::Message { seq: 9, warning: true, name, .. } if name == "a/b")
        );
        let gap: StreamEvent = serde_json::from_str(r#"{"type":"gap","seq":3}"#).unwrap();
        assert_eq!(gap, StreamEvent::Gap { seq: 3 });
    }
}
