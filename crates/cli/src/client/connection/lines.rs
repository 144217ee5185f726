//! Reads an answer line by line; the answer may never end.

use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::time::timeout;

use crate::client::connection::error::RequestError;

/// The longest line that is accepted. Every line of a control plane is shorter; a whole object is one line.
const LONGEST: usize = 64 << 20;

/// The lines of an answer, as they arrive.
pub(crate) struct Lines {
    body: Incoming,
    held: Vec<u8>,
    /// The length of the buffered part that has been searched for a line end.
    seen: usize,
    url: String,
    silence: Option<Duration>,
}

impl Lines {
    pub(crate) fn new(body: Incoming, url: &str, silence: Option<Duration>) -> Self {
        Self { body, held: Vec::new(), seen: 0, url: url.to_owned(), silence }
    }

    /// The next line without its end; `None` at the end of the answer.
    pub(crate) async fn next(&mut self) -> Result<Option<String>, RequestError> {
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
                    let slow =
                        |_| RequestError::Lost(self.url.clone(), "no data arrives".to_owned());
                    timeout(silence, self.body.frame()).await.map_err(slow)?
                }
            };
            let Some(frame) = frame else { return Ok(None) };
            let frame =
                frame.map_err(|error| RequestError::Lost(self.url.clone(), error.to_string()))?;
            if let Some(data) = frame.data_ref() {
                self.held.extend_from_slice(data);
            }
            if self.held.len() > LONGEST {
                return Err(RequestError::Malformed(
                    self.url.clone(),
                    "a line is too long".to_owned(),
                ));
            }
        }
    }
}
