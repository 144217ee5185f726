//! The control plane and a keeper talk through a socket in the run's directory: orders one way, records the other.

use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use super::change::Change;
use super::journal::Record;

/// What a keeper can be told.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Order {
    /// To stop every member: a signal first, and after the grace the end.
    Stop {
        /// The signal.
        signal: i32,
        /// How long they have, in milliseconds.
        grace_ms: u64,
        /// Why.
        why: String,
    },
    /// To send a signal to every member, and nothing else.
    Signal(i32),
    /// To have other members, while those who stay go on.
    Resize(Box<Change>),
}

impl Order {
    /// Whether nobody is to run after it.
    pub(super) fn stops(&self) -> bool {
        matches!(self, Self::Stop { .. })
    }
}

/// A path short enough for a socket, whatever the directory is called: names of sockets may have 107 bytes.
#[derive(Debug)]
pub(super) struct ShortPath {
    /// Kept open as long as the path is used.
    _directory: std::fs::File,
    pub(super) path: PathBuf,
}

impl ShortPath {
    pub(super) fn of(directory: &Path) -> std::io::Result<Self> {
        let open = std::fs::File::open(directory)?;
        let path = format!("/proc/self/fd/{}/{}", open.as_raw_fd(), super::SOCKET).into();
        Ok(Self { _directory: open, path })
    }
}

/// A keeper that is spoken to.
#[derive(Debug)]
pub(crate) struct Keeping {
    records: tokio::io::Lines<BufReader<OwnedReadHalf>>,
    orders: OwnedWriteHalf,
}

impl Keeping {
    /// Speaks to the keeper of a run. It first says all that its journal has.
    pub(crate) async fn connect(directory: &Path) -> std::io::Result<Self> {
        let short = ShortPath::of(directory)?;
        let stream = UnixStream::connect(&short.path).await?;
        let (read, orders) = stream.into_split();
        Ok(Self { records: BufReader::new(read).lines(), orders })
    }

    /// What it says next; nothing any more when it is gone.
    pub(crate) async fn next(&mut self) -> Option<Record> {
        let line = self.records.next_line().await.ok()??;
        serde_json::from_str(&line).ok()
    }

    /// Tells it to do something.
    pub(crate) async fn tell(&mut self, order: &Order) -> std::io::Result<()> {
        let mut line = serde_json::to_vec(order).map_err(std::io::Error::other)?;
        line.push(b'\n');
        self.orders.write_all(&line).await
    }
}
