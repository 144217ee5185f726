//! Connections, and how many of them may say nothing.
//!
//! A connection that has shown no credential yet is one of a bounded number, and the oldest of these is cut when there is one
//! too many: clients that connect and are silent take the place of each other, and never that of callers who are known.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::task::AbortHandle;

use crate::Limits;

/// All connections there are.
#[derive(Debug)]
pub(crate) struct Connections {
    most_unproven: usize,
    most_each: usize,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    /// Those that have shown no credential, the oldest first.
    unproven: VecDeque<(u64, Option<AbortHandle>)>,
    by_address: BTreeMap<IpAddr, usize>,
}

/// One connection. It is counted as long as this lives.
#[derive(Debug)]
pub(crate) struct Connection {
    all: Arc<Connections>,
    number: u64,
    address: IpAddr,
    proven: AtomicBool,
    heard: AtomicBool,
}

impl Connections {
    pub(crate) fn new(limits: &Limits) -> Arc<Self> {
        let (most_unproven, most_each) = (limits.connections_unproven, limits.connections_each);
        Arc::new(Self { most_unproven, most_each, open: Mutex::default() })
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more, if its address has not too many. All of this machine have one address, and are not counted by it.
    pub(crate) fn add(self: &Arc<Self>, address: IpAddr) -> Option<Arc<Connection>> {
        let mut open = self.open();
        let mine = open.by_address.entry(address).or_default();
        if *mine >= self.most_each && !address.is_loopback() {
            return None;
        }
        *mine += 1;
        open.next += 1;
        let number = open.next;
        open.unproven.push_back((number, None));
        while open.unproven.len() > self.most_unproven.max(1) {
            if let Some((_, Some(oldest))) = open.unproven.pop_front() {
                oldest.abort();
            }
        }
        drop(open);
        let (proven, heard) = (AtomicBool::new(false), AtomicBool::new(false));
        Some(Arc::new(Connection { all: self.clone(), number, address, proven, heard }))
    }

    /// How a connection can be cut.
    pub(crate) fn cut_by(&self, number: u64, handle: AbortHandle) {
        if let Some((_, known)) = self.open().unproven.iter_mut().find(|(of, _)| *of == number) {
            *known = Some(handle);
        }
    }
}

impl Connection {
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// A request has come over it.
    pub(crate) fn hear(&self) {
        self.heard.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_heard(&self) -> bool {
        self.heard.load(Ordering::Relaxed)
    }

    /// A credential was shown over it.
    pub(crate) fn prove(&self) {
        if !self.proven.swap(true, Ordering::Relaxed) {
            self.all.open().unproven.retain(|(of, _)| *of != self.number);
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut open = self.all.open();
        open.unproven.retain(|(of, _)| *of != self.number);
        if let Some(mine) = open.by_address.get_mut(&self.address) {
            *mine -= 1;
            if *mine == 0 {
                open.by_address.remove(&self.address);
            }
        }
    }
}
