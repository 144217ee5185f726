//! The control plane and a keeper talk through a socket in the run's directory: orders one way, records the other.

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use crate::keeper::journal::Record;
use crate::keeper::run::resize::ResizeOrder;

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
    Resize(Box<ResizeOrder>),
}

impl Order {
    /// Whether nobody is to run after it.
    pub(crate) fn stops(&self) -> bool {
        matches!(self, Self::Stop { .. })
    }
}

/// A path short enough for a socket, whatever the directory is called: names of sockets may have 107 bytes.
#[derive(Debug)]
pub(crate) struct ShortPath {
    /// Kept open as long as the path is used.
    _directory: std::fs::File,
    pub(crate) path: PathBuf,
}

impl ShortPath {
    pub(crate) fn of(directory: &Path) -> std::io::Result<Self> {
        let open = std::fs::File::open(directory)?;
        let path =
            format!("/proc/self/fd/{}/{}", open.as_raw_fd(), crate::keeper::files::SOCKET).into();
        Ok(Self { _directory: open, path })
    }
}

/// A keeper that is spoken to.
#[derive(Debug)]
pub(crate) struct KeeperConnection {
    records: tokio::io::Lines<BufReader<OwnedReadHalf>>,
    orders: OwnedWriteHalf,
    /// The process that listens, whatever becomes of its number.
    keeper: Option<(u32, OwnedFd)>,
}

impl KeeperConnection {
    /// Speaks to the keeper of a run. It first says all that its journal has.
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

    /// The number of the process that listens.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.keeper.as_ref().map(|(pid, _)| *pid)
    }

    /// Lets a keeper that was stopped go on.
    pub(crate) fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// Ends a keeper that does not answer.
    pub(crate) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    fn signal(&self, signal: Signal) {
        if let Some((_, handle)) = &self.keeper {
            let _ = pidfd_send_signal(handle, signal);
        }
    }

    /// What it says next; nothing any more when it is gone.
    pub(crate) async fn next(&mut self) -> Option<Record> {
        let line = self.records.next_line().await.ok()??;
        serde_json::from_str(&line).ok()
    }

    /// Tells it to do something.
    pub(crate) async fn send(&mut self, order: &Order) -> std::io::Result<()> {
        let mut line = serde_json::to_vec(order).map_err(std::io::Error::other)?;
        line.push(b'\n');
        self.orders.write_all(&line).await
    }
}
