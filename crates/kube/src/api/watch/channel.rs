//! The one channel for all kinds: what is under way in it is bounded in bytes, and what namespaces have is counted before
//! it goes in.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kube::ResourceExt;
use kube::runtime::watcher::Event;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc};

use crate::api::watch::decode::{Kept, Omission, Reason};
use crate::api::watch::list_watch::{Seen, Sink};
use crate::api::watch::namespace_budget::{Asking, NamespaceBudget, Verdict};
use crate::api::watch::watches::{Change, Which, key_of};
use crate::cache::store::Key;
use crate::objects::projection::Taken;

/// Kilobytes of changes that are under way at one time: a watcher that is faster than the host waits.
const UNDER_WAY: u32 = 32 << 10;

/// Room for changes that are under way.
#[derive(Clone, Debug)]
pub(crate) struct Room(Arc<Semaphore>);

impl Default for Room {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(UNDER_WAY as usize)))
    }
}

/// A change, and the room that it takes until it is dropped.
#[derive(Debug)]
pub(crate) struct Delivered {
    pub(crate) change: Change,
    pub(crate) room: Option<OwnedSemaphorePermit>,
}

/// Where the changes of one kind go.
pub(crate) struct Channel<F> {
    which: Which,
    changes: mpsc::Sender<Delivered>,
    ledger: NamespaceBudget,
    room: Room,
    /// Called when there is room for what was left out.
    again: Arc<Notify>,
    /// Lists so far.
    list: AtomicU64,
    change: F,
}

impl<F> Channel<F> {
    pub(crate) fn new(
        which: Which,
        changes: mpsc::Sender<Delivered>,
        ledger: NamespaceBudget,
        room: Room,
        change: F,
    ) -> Self {
        let (again, list) = (Arc::default(), AtomicU64::new(0));
        Self { which, changes, ledger, room, again, list, change }
    }

    async fn deliver(&self, change: Change, cost: usize) -> bool {
        let kilobytes = u32::try_from(cost >> 10).unwrap_or(UNDER_WAY).clamp(1, UNDER_WAY);
        let room = self.room.0.clone().acquire_many_owned(kilobytes).await.ok();
        self.changes.send(Delivered { change, room }).await.is_ok()
    }

    /// Takes an object in, if its namespace has room for it.
    async fn offer<K>(&self, mut taken: Taken<K>, wrap: fn(K) -> Event<K>) -> bool
    where
        K: Kept + ResourceExt,
        F: Fn(Event<K>) -> Change,
    {
        let Some(namespace) = taken.object.namespace() else {
            return self.deliver((self.change)(wrap(taken.object)), taken.cost).await;
        };
        let mut asking = Asking {
            which: self.which,
            namespace: namespace.into(),
            key: key_of(&taken.object).into(),
            made: taken.object.creation_timestamp().map_or(0, |made| made.0.as_second()),
            cost: taken.cost,
            list: self.list.load(Ordering::Relaxed),
            must: false,
        };
        let mut verdict = self.ledger.keep(asking.clone(), &self.again);
        if verdict == Verdict::Omission
            && let Some(outline) = taken.object.outline()
        {
            (taken.object, taken.cost) = (outline, OUTLINE);
            (asking.must, asking.cost) = (true, OUTLINE);
            verdict = self.ledger.keep(asking.clone(), &self.again);
        }
        let Verdict::Kept(newer) = verdict else {
            let uid = taken.object.uid().unwrap_or_default();
            let left = self.full(&asking.namespace, &asking.key, uid);
            return self.deliver(Change::Omission(self.which, Box::new(left)), 0).await;
        };
        for (which, key) in newer {
            let left = self.full(&asking.namespace, &key, String::new());
            if !self.deliver(Change::Dropped(which, Box::new(left)), 0).await {
                return false;
            }
        }
        self.deliver((self.change)(wrap(taken.object)), taken.cost).await
    }

    fn full(&self, namespace: &str, key: &Key, uid: String) -> Omission {
        let name = key.split_once('/').map_or(&**key, |(_, name)| name).to_owned();
        let mib = self.ledger.bound() >> 20;
        let why = format!(
            "namespace {namespace} has more objects than fit into {mib} MiB of memory: the newest are left out until older ones are deleted"
        );
        let namespace = namespace.to_owned();
        Omission { name, namespace, uid, reason: Reason::NamespaceFull, why, stored: None }
    }
}

/// Memory of a pod of which only the least is kept.
const OUTLINE: usize = 2_048;

impl<K: Kept + ResourceExt, F: Fn(Event<K>) -> Change> Sink<K> for Channel<F> {
    async fn send(&self, seen: Seen<K>) -> bool {
        let which = self.which;
        let event = match seen {
            Seen::Event(event) => event,
            Seen::Omission(left) => {
                let (namespace, key) = (left.namespace.as_str().into(), left.key().into());
                self.ledger.touch(which, &namespace, &key, self.list.load(Ordering::Relaxed));
                return self.deliver(Change::Omission(which, Box::new(left)), 0).await;
            }
        };
        let change = match event {
            Event::InitApply(taken) => return self.offer(taken, Event::InitApply).await,
            Event::Apply(taken) => return self.offer(taken, Event::Apply).await,
            Event::Delete(taken) => {
                if let Some(namespace) = taken.object.namespace() {
                    let key = key_of(&taken.object).into();
                    self.ledger.forget(which, &namespace.into(), &key);
                }
                Event::Delete(taken.object)
            }
            Event::Init => {
                self.list.fetch_add(1, Ordering::Relaxed);
                Event::Init
            }
            Event::InitDone => {
                self.ledger.end_list(which, self.list.load(Ordering::Relaxed));
                Event::InitDone
            }
        };
        self.deliver((self.change)(change), 0).await
    }

    async fn has_room(&self) {
        self.again.notified().await;
    }
}
