//! An answer that comes line by line and may never end.

use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::time::timeout;

use crate::client::connection::error::AskError;

/// Nothing that a control plane sends has longer lines; a whole object is one.
const LONGEST: usize = 64 << 20;

/// The lines of an answer, as they come.
pub(crate) struct Lines {
    body: Incoming,
    held: Vec<u8>,
    /// How far of what is held there is no line end.
    seen: usize,
    url: String,
    silence: Option<Duration>,
}

impl Lines {
    pub(crate) fn new(body: Incoming, url: &str, silence: Option<Duration>) -> Self {
        Self { body, held: Vec::new(), seen: 0, url: url.to_owned(), silence }
    }

    /// The next line without its end; `None` when there are no more.
    pub(crate) async fn next(&mut self) -> Result<Option<String>, AskError> {
        loop {
            if let Some(at) = self.held[self.seen..].iter().position(|byte| *byte == b'\n') {
                let end = self.seen + at;
                let line = String::from_utf8_lossy(&self.held[..end]).into_owned();
                self.held.drain(..=end);
                self.seen = 0;
                return Ok(Some(line));
            }
            self.seen = self.held.len();
            let frame = match self.silence {
                None => self.body.frame().await,
                Some(silence) => {
                    let slow = |_| AskError::Lost(self.url.clone(), "nothing comes".to_owned());
                    timeout(silence, self.body.frame()).await.map_err(slow)?
                }
            };
            let Some(frame) = frame else { return Ok(None) };
            let frame =
                frame.map_err(|error| AskError::Lost(self.url.clone(), error.to_string()))?;
            if let Some(data) = frame.data_ref() {
                self.held.extend_from_slice(data);
            }
            if self.held.len() > LONGEST {
                return Err(AskError::Odd(self.url.clone(), "a line has no end".to_owned()));
            }
        }
    }
}
