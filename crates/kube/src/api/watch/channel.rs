//! The channel of changes of all kinds: bounded in bytes, and with the memory of each namespace counted at its entrance.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kube::ResourceExt;
use kube::runtime::watcher::Event;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc};

use crate::api::watch::decode::{Decode, Omission, OmissionReason};
use crate::api::watch::list_watch::{Sink, WatchItem};
use crate::api::watch::namespace_budget::{BudgetDecision, BudgetRequest, NamespaceBudget};
use crate::api::watch::watches::{Change, ObjectKind, key_of};
use crate::cache::store::Key;
use crate::objects::projection::Decoded;

/// Kilobytes of changes in the channel at one time: a watch that is faster than the host waits.
const IN_FLIGHT_KIB: u32 = 32 << 10;

/// Bounds the bytes of changes in the channel.
#[derive(Clone, Debug)]
pub(crate) struct InFlightBytes(Arc<Semaphore>);

impl Default for InFlightBytes {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(IN_FLIGHT_KIB as usize)))
    }
}

/// A change, and its part of the channel's bytes until it is dropped.
#[derive(Debug)]
pub(crate) struct Delivered {
    pub(crate) change: Change,
    pub(crate) permit: Option<OwnedSemaphorePermit>,
}

/// The entrance of the channel for the changes of one kind.
pub(crate) struct Channel<F> {
    which: ObjectKind,
    changes: mpsc::Sender<Delivered>,
    budget: NamespaceBudget,
    in_flight: InFlightBytes,
    /// Notified when a namespace has memory again for omitted objects.
    relist: Arc<Notify>,
    /// The number of lists so far.
    list: AtomicU64,
    change: F,
}

impl<F> Channel<F> {
    pub(crate) fn new(
        which: ObjectKind,
        changes: mpsc::Sender<Delivered>,
        budget: NamespaceBudget,
        in_flight: InFlightBytes,
        change: F,
    ) -> Self {
        let (relist, list) = (Arc::default(), AtomicU64::new(0));
        Self { which, changes, budget, in_flight, relist, list, change }
    }

    async fn deliver(&self, change: Change, cost: usize) -> bool {
        let kib = u32::try_from(cost >> 10).unwrap_or(IN_FLIGHT_KIB).clamp(1, IN_FLIGHT_KIB);
        let permit = self.in_flight.0.clone().acquire_many_owned(kib).await.ok();
        self.changes.send(Delivered { change, permit }).await.is_ok()
    }

    /// Delivers an object, if the budget of its namespace allows it.
    async fn offer<K>(&self, mut decoded: Decoded<K>, wrap: fn(K) -> Event<K>) -> bool
    where
        K: Decode + ResourceExt,
        F: Fn(Event<K>) -> Change,
    {
        let Some(namespace) = decoded.object.namespace() else {
            return self.deliver((self.change)(wrap(decoded.object)), decoded.cost).await;
        };
        let mut request = BudgetRequest {
            which: self.which,
            namespace: namespace.into(),
            key: key_of(&decoded.object).into(),
            made: decoded.object.creation_timestamp().map_or(0, |made| made.0.as_second()),
            cost: decoded.cost,
            list: self.list.load(Ordering::Relaxed),
            must_keep: false,
        };
        let mut decision = self.budget.keep(request.clone(), &self.relist);
        if decision == BudgetDecision::Omit
            && let Some(outline) = decoded.object.outline()
        {
            (decoded.object, decoded.cost) = (outline, OUTLINE_BYTES);
            (request.must_keep, request.cost) = (true, OUTLINE_BYTES);
            decision = self.budget.keep(request.clone(), &self.relist);
        }
        let BudgetDecision::Keep(dropped) = decision else {
            let uid = decoded.object.uid().unwrap_or_default();
            let omission = self.namespace_full(&request.namespace, &request.key, uid);
            return self.deliver(Change::Omitted(self.which, Box::new(omission)), 0).await;
        };
        for (which, key) in dropped {
            let omission = self.namespace_full(&request.namespace, &key, String::new());
            if !self.deliver(Change::Dropped(which, Box::new(omission)), 0).await {
                return false;
            }
        }
        self.deliver((self.change)(wrap(decoded.object)), decoded.cost).await
    }

    fn namespace_full(&self, namespace: &str, key: &Key, uid: String) -> Omission {
        let name = key.split_once('/').map_or(&**key, |(_, name)| name).to_owned();
        let mib = self.budget.bound() >> 20;
        let why = format!(
            "namespace {namespace} has more objects than fit into {mib} MiB of memory: the newest are left out until older ones are deleted"
        );
        let namespace = namespace.to_owned();
        Omission { name, namespace, uid, reason: OmissionReason::NamespaceFull, why, stored: None }
    }
}

/// Memory of a pod of which only the outline is kept.
const OUTLINE_BYTES: usize = 2_048;

impl<K: Decode + ResourceExt, F: Fn(Event<K>) -> Change> Sink<K> for Channel<F> {
    async fn send(&self, item: WatchItem<K>) -> bool {
        let which = self.which;
        let event = match item {
            WatchItem::Event(event) => event,
            WatchItem::Omitted(omission) => {
                let (namespace, key) = (omission.namespace.as_str().into(), omission.key().into());
                self.budget.touch(which, &namespace, &key, self.list.load(Ordering::Relaxed));
                return self.deliver(Change::Omitted(which, Box::new(omission)), 0).await;
            }
        };
        let change = match event {
            Event::InitApply(decoded) => return self.offer(decoded, Event::InitApply).await,
            Event::Apply(decoded) => return self.offer(decoded, Event::Apply).await,
            Event::Delete(decoded) => {
                if let Some(namespace) = decoded.object.namespace() {
                    let key = key_of(&decoded.object).into();
                    self.budget.forget(which, &namespace.into(), &key);
                }
                Event::Delete(decoded.object)
            }
            Event::Init => {
                self.list.fetch_add(1, Ordering::Relaxed);
                Event::Init
            }
            Event::InitDone => {
                self.budget.end_list(which, self.list.load(Ordering::Relaxed));
                Event::InitDone
            }
        };
        self.deliver((self.change)(change), 0).await
    }

    async fn relist_wanted(&self) {
        self.relist.notified().await;
    }
}
