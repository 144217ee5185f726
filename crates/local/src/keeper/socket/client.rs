//! The control plane's end of a keeper's socket: sends orders, receives records.

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use crate::keeper::files;
use crate::keeper::journal::Record;
use crate::keeper::run::resize::ResizeOrder;

/// An order to a keeper.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Order {
    /// Stop every member: a signal first, then a kill after the grace period.
    Stop {
        /// The signal.
        signal: i32,
        /// The grace period in milliseconds.
        grace_ms: u64,
        /// Why.
        why: String,
    },
    /// Send a signal to every member, and nothing else.
    Signal(i32),
    /// Replace members while others run on.
    Resize(Box<ResizeOrder>),
}

impl Order {
    /// Whether it ends the run.
    pub(crate) fn stops(&self) -> bool {
        matches!(self, Self::Stop { .. })
    }
}

/// A path short enough for a socket, whatever the directory is called: socket names have at most 107 bytes.
#[derive(Debug)]
pub(crate) struct ShortPath {
    /// Kept open while the path is used.
    _directory: std::fs::File,
    pub(crate) path: PathBuf,
}

impl ShortPath {
    pub(crate) fn of(directory: &Path) -> std::io::Result<Self> {
        let open = std::fs::File::open(directory)?;
        let path = format!("/proc/self/fd/{}/{}", open.as_raw_fd(), files::SOCKET).into();
        Ok(Self { _directory: open, path })
    }
}

/// A connection to a keeper.
#[derive(Debug)]
pub(crate) struct KeeperConnection {
    records: tokio::io::Lines<BufReader<OwnedReadHalf>>,
    orders: OwnedWriteHalf,
    /// The listening process, by a handle that survives reuse of its id.
    keeper: Option<(u32, OwnedFd)>,
}

impl KeeperConnection {
    /// Connects to the keeper of a run. The keeper first sends all its records.
    pub(crate) async fn connect(directory: &Path) -> std::io::Result<Self> {
        let short = ShortPath::of(directory)?;
        let stream = UnixStream::connect(&short.path).await?;
        let pid = stream.peer_cred().ok().and_then(|peer| Pid::from_raw(peer.pid()?));
        let keeper = pid.and_then(|pid| {
            let handle = pidfd_open(pid, PidfdFlags::empty()).ok()?;
            Some((pid.as_raw_nonzero().get() as u32, handle))
        });
        let (read, orders) = stream.into_split();
        Ok(Self { records: BufReader::new(read).lines(), orders, keeper })
    }

    /// The id of the listening process.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.keeper.as_ref().map(|(pid, _)| *pid)
    }

    /// Continues a stopped keeper.
    pub(crate) fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// Kills a keeper that does not answer.
    pub(crate) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    fn signal(&self, signal: Signal) {
        if let Some((_, handle)) = &self.keeper {
            let _ = pidfd_send_signal(handle, signal);
        }
    }

    /// The next record; `None` when the connection ends.
    pub(crate) async fn next(&mut self) -> Option<Record> {
        let line = self.records.next_line().await.ok()??;
        serde_json::from_str(&line).ok()
    }

    /// Sends an order.
    pub(crate) async fn send(&mut self, order: &Order) -> std::io::Result<()> {
        let mut line = serde_json::to_vec(order).map_err(std::io::Error::other)?;
        line.push(b'\n');
        self.orders.write_all(&line).await
    }
}
