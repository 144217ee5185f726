//! Limits connections that have not authenticated.
//!
//! Their number is bounded, and one too many evicts the oldest: clients that connect and stay silent displace each
//! other, and never authenticated callers.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::task::AbortHandle;

use crate::Limits;

/// All open connections.
#[derive(Debug)]
pub(crate) struct Connections {
    most_unauthenticated: usize,
    most_each: usize,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    /// Connections without a credential so far, oldest first.
    unauthenticated: VecDeque<(u64, Option<AbortHandle>)>,
    by_address: BTreeMap<IpAddr, usize>,
}

/// A connection; counted while this value lives.
#[derive(Debug)]
pub(crate) struct Connection {
    all: Arc<Connections>,
    number: u64,
    address: IpAddr,
    authenticated: AtomicBool,
    active: AtomicBool,
}

impl Connections {
    pub(crate) fn new(limits: &Limits) -> Arc<Self> {
        let (most_unauthenticated, most_each) =
            (limits.connections_unauthenticated, limits.connections_each);
        Arc::new(Self { most_unauthenticated, most_each, open: Mutex::default() })
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a connection, unless its address has too many. All local connections share one address, and are not limited
    /// by it.
    pub(crate) fn add(self: &Arc<Self>, address: IpAddr) -> Option<Arc<Connection>> {
        let mut open = self.open();
        let mine = open.by_address.entry(address).or_default();
        if *mine >= self.most_each && !address.is_loopback() {
            return None;
        }
        *mine += 1;
        open.next += 1;
        let number = open.next;
        open.unauthenticated.push_back((number, None));
        while open.unauthenticated.len() > self.most_unauthenticated.max(1) {
            if let Some((_, Some(oldest))) = open.unauthenticated.pop_front() {
                oldest.abort();
            }
        }
        drop(open);
        let (authenticated, active) = (AtomicBool::new(false), AtomicBool::new(false));
        Some(Arc::new(Connection { all: self.clone(), number, address, authenticated, active }))
    }

    /// Sets the handle that aborts a connection.
    pub(crate) fn set_abort(&self, number: u64, handle: AbortHandle) {
        if let Some((_, known)) =
            self.open().unauthenticated.iter_mut().find(|(of, _)| *of == number)
        {
            *known = Some(handle);
        }
    }
}

impl Connection {
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// A request arrived on it.
    pub(crate) fn mark_active(&self) {
        self.active.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_active(&self) -> bool {
        self.active.load(Ordering::Relaxed)
    }

    /// A request on it was authenticated.
    pub(crate) fn mark_authenticated(&self) {
        if !self.authenticated.swap(true, Ordering::Relaxed) {
            self.all.open().unauthenticated.retain(|(of, _)| *of != self.number);
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut open = self.all.open();
        open.unauthenticated.retain(|(of, _)| *of != self.number);
        if let Some(mine) = open.by_address.get_mut(&self.address) {
            *mine -= 1;
            if *mine == 0 {
                open.by_address.remove(&self.address);
            }
        }
    }
}
