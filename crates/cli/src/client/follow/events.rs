//! What happens at the control plane, as it does; also across lost connections.

use std::time::Duration;

use muster_api::crd::Stamp;
use muster_server::Kind;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::client::connection::address::Query;
use crate::client::connection::api::Api;
use crate::client::connection::error::AskError;
use crate::client::connection::lines::Lines;

/// The server gives a sign of life every 15 seconds: three are missing.
const SILENCE: Duration = Duration::from_secs(50);
/// So long it tries to connect again.
const PATIENCE: Duration = Duration::from_secs(600);
/// The longest pause between two tries.
const PAUSE: Duration = Duration::from_secs(10);

/// Something that happened.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(rename_all = "camelCase", tag = "type")]
pub(crate) enum News {
    /// An object is new or has changed.
    Set {
        /// Its number.
        seq: u64,
        kind: Kind,
        name: String,
        object: Value,
    },
    /// An object is no more.
    Gone {
        /// Its number.
        seq: u64,
        kind: Kind,
        name: String,
    },
    /// A sentence about an object.
    Said {
        /// Its number.
        seq: u64,
        at: Stamp,
        kind: Kind,
        name: String,
        reason: String,
        message: String,
        #[serde(default)]
        warning: bool,
    },
    /// Something was missed: all objects had better be read again.
    Gap {
        /// The number it goes on after.
        seq: u64,
    },
}

impl News {
    fn seq(&self) -> u64 {
        match self {
            Self::Set { seq, .. }
            | Self::Gone { seq, .. }
            | Self::Said { seq, .. }
            | Self::Gap { seq } => *seq,
        }
    }
}

/// Reads server-sent events out of lines.
#[derive(Debug, Default)]
struct Parser {
    data: String,
    id: Option<u64>,
}

/// What an empty line ends.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Block {
    data: String,
    id: Option<u64>,
}

impl Parser {
    /// Takes a line; at the end of a block that says anything, there it is.
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
            // Comments, the event's name, which the data has as well, and how long to wait.
            _ => {}
        }
        None
    }
}

/// Whoever listens.
pub(crate) struct Events<'a> {
    api: &'a Api,
    wanted: Query,
    after: u64,
    open: Option<(Lines, Parser)>,
    /// Since when it has not been connected, and how often it has tried.
    lost: Option<(Instant, u32)>,
    /// Whether it says on standard error that the connection is lost.
    quiet: bool,
}

impl<'a> Events<'a> {
    /// What is wanted of all that happens after a number.
    pub(crate) fn after(api: &'a Api, wanted: Query, after: u64) -> Self {
        Self { api, wanted, after, open: None, lost: None, quiet: false }
    }

    /// Says nothing when the connection is lost.
    pub(crate) fn quietly(self) -> Self {
        Self { quiet: true, ..self }
    }

    /// Whether there is no connection, and somebody should know.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.is_some()
    }

    /// Waits for what happens next. A connection that is lost is made again where it was.
    ///
    /// Whoever stops waiting for it loses nothing.
    pub(crate) async fn next(&mut self) -> Result<News, AskError> {
        loop {
            match self.read().await {
                Ok(Some(news)) => {
                    self.after = news.seq().max(self.after);
                    return Ok(news);
                }
                Ok(None) => {}
                Err(error) if error.is_passing() => self.pause(error).await?,
                Err(error) => return Err(error),
            }
        }
    }

    async fn read(&mut self) -> Result<Option<News>, AskError> {
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
            let ended = "it ended the stream".to_owned();
            return Err(AskError::Lost(self.api.url().to_owned(), ended));
        };
        let Some(block) = parser.take(&line) else { return Ok(None) };
        self.after = block.id.unwrap_or(0).max(self.after);
        if block.data.is_empty() {
            return Ok(None);
        }
        self.api.understand(block.data.as_bytes()).map(Some)
    }

    async fn pause(&mut self, error: AskError) -> Result<(), AskError> {
        self.open = None;
        let (since, tries) = self.lost.get_or_insert_with(|| {
            if !self.quiet {
                eprintln!("{error}; trying again");
            }
            (Instant::now(), 0)
        });
        if since.elapsed() > PATIENCE {
            return Err(error);
        }
        let pause = Duration::from_millis(200 << (*tries).min(6)).min(PAUSE);
        *tries += 1;
        sleep(pause).await;
        Ok(())
    }
}

/// What is wanted of all that has happened as far back as the control plane remembers, oldest first.
pub(crate) async fn past(api: &Api, wanted: &Query) -> Result<Vec<News>, AskError> {
    let newest = api.newest().await?;
    // It remembers so many at most. Asked for more than it has, it has nothing: so less and less is asked for.
    let mut back = 16_384;
    loop {
        let query = wanted.clone().with("follow", false).with("after", newest.saturating_sub(back));
        let silence = Some(SILENCE);
        let mut lines = api.stream(&query.on("/v1/events"), "text/event-stream", silence).await?;
        let (mut parser, mut found, mut gap) = (Parser::default(), Vec::new(), false);
        while let Some(line) = lines.next().await? {
            let block = parser.take(&line).filter(|block| !block.data.is_empty());
            let Some(block) = block else { continue };
            match api.understand(block.data.as_bytes())? {
                News::Gap { .. } => gap = true,
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
    use crate::client::follow::events::*;

    fn blocks(text: &str) -> Vec<Block> {
        let mut parser = Parser::default();
        text.lines().filter_map(|line| parser.take(line)).collect()
    }

    #[test]
    fn blocks_are_read_as_browsers_read_them() {
        let text = "retry: 1000\nid: 7\n\n: still here\n\nevent: set\nid: 8\ndata: {\ndata:}\n\n";
        let expected = [
            Block { data: String::new(), id: Some(7) },
            Block { data: "{\n}".to_owned(), id: Some(8) },
        ];
        assert_eq!(blocks(text), expected);
    }

    #[tokio::test]
    async fn news_are_read_as_the_server_writes_them() {
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
        let read: News = serde_json::from_slice(written[0].text()).unwrap();
        assert!(matches!(&read, News::Said { seq: 9, warning: true, name, .. } if name == "a/b"));
        let gap: News = serde_json::from_str(r#"{"type":"gap","seq":3}"#).unwrap();
        assert_eq!(gap, News::Gap { seq: 3 });
    }
}
