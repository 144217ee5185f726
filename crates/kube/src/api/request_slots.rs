//! Limits requests in flight to the API server, shared fairly among namespaces.
//!
//! A tenant that floods its namespace with work uses up its own share. Slots are given round-robin: a free slot goes to the
//! next namespace in order that waits for one, and within a namespace to the oldest request. One namespace alone may have
//! nearly all slots, and some are always left for the others, also while its requests are answered slowly.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// The slots for requests in flight.
#[derive(Debug)]
pub(crate) struct RequestSlots {
    state: Mutex<State>,
    total: usize,
    /// The most slots of one namespace.
    per_namespace: usize,
}

#[derive(Debug, Default)]
struct State {
    in_flight: usize,
    is_closed: bool,
    held: BTreeMap<Arc<str>, usize>,
    waiting: BTreeMap<Arc<str>, VecDeque<oneshot::Sender<Slot>>>,
    /// The namespace that last got a slot it waited for.
    last: Option<Arc<str>>,
}

/// One slot, until it is dropped.
#[derive(Debug)]
pub(crate) struct Slot {
    slots: Arc<RequestSlots>,
    namespace: Arc<str>,
}

impl RequestSlots {
    pub(crate) fn new(total: usize, per_namespace: usize) -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), total, per_namespace })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No update is ever half done, so a poisoned lock is safe to use.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a slot for a request of a namespace. `None` when the slots are closed.
    pub(crate) async fn acquire(self: &Arc<Self>, namespace: &Arc<str>) -> Option<Slot> {
        let slot = {
            let mut state = self.state();
            if state.is_closed {
                return None;
            }
            // Other namespaces that wait are at their own limit: they could not use a slot that is free now.
            if self.is_free(&state, namespace) && !state.waiting.contains_key(namespace) {
                return Some(self.take(&mut state, namespace.clone()));
            }
            let (sender, slot) = oneshot::channel();
            state.waiting.entry(namespace.clone()).or_default().push_back(sender);
            slot
        };
        slot.await.ok()
    }

    fn is_free(&self, state: &State, namespace: &str) -> bool {
        let held = state.held.get(namespace).copied().unwrap_or(0);
        state.in_flight < self.total && held < self.per_namespace
    }

    fn take(self: &Arc<Self>, state: &mut State, namespace: Arc<str>) -> Slot {
        state.in_flight += 1;
        *state.held.entry(namespace.clone()).or_default() += 1;
        Slot { slots: self.clone(), namespace }
    }

    /// The next waiting request, and a slot for it.
    fn next(self: &Arc<Self>) -> Option<(oneshot::Sender<Slot>, Slot)> {
        let mut state = self.state();
        let after = state.last.clone().map_or(Bound::Unbounded, Bound::Excluded);
        let later = state.waiting.range::<Arc<str>, _>((after, Bound::Unbounded));
        let mut round = later.chain(state.waiting.iter()).map(|(namespace, _)| namespace);
        let namespace = round.find(|namespace| self.is_free(&state, namespace))?.clone();
        let waiting = state.waiting.get_mut(&namespace)?;
        // Requests that were cancelled meanwhile need no slot.
        waiting.retain(|sender| !sender.is_closed());
        let first = waiting.pop_front();
        if waiting.is_empty() {
            state.waiting.remove(&namespace);
        }
        state.last = Some(namespace.clone());
        first.map(|first| (first, self.take(&mut state, namespace)))
    }

    /// Gives no more slots.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.is_closed = true;
        state.waiting.clear();
    }

    /// The number of requests in flight.
    pub(crate) fn in_flight(&self) -> usize {
        self.state().in_flight
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut state = self.slots.state();
        state.in_flight -= 1;
        let is_last = state.held.get_mut(&self.namespace).is_none_or(|held| {
            *held -= 1;
            *held == 0
        });
        if is_last {
            state.held.remove(&self.namespace);
        }
        drop(state);
        if let Some((first, slot)) = self.slots.next() {
            // If the request was cancelled just now, the slot is dropped here and goes to the next one.
            drop(first.send(slot));
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use crate::api::request_slots::*;

    fn name(of: &str) -> Arc<str> {
        of.into()
    }

    #[tokio::test]
    async fn flood_of_one_namespace_does_not_block_the_others() {
        let slots = RequestSlots::new(4, 3);
        let mut held = Vec::new();
        for _ in 0..3 {
            held.push(slots.acquire(&name("flood")).now_or_never().flatten().expect("free"));
        }
        let mut flood: Vec<_> = Vec::new();
        for _ in 0..100 {
            let mut waits = Box::pin(async { slots.acquire(&name("flood")).await.is_some() });
            assert!((&mut waits).now_or_never().is_none(), "one namespace has them all");
            flood.push(waits);
        }
        // One slot is left, and returned slots go to the namespaces in turn.
        let other = slots.acquire(&name("other")).now_or_never().flatten().expect("one is left");
        let (next, last) = (name("other"), name("third"));
        let mut next = Box::pin(slots.acquire(&next));
        let mut last = Box::pin(slots.acquire(&last));
        assert!((&mut next).now_or_never().is_none() && (&mut last).now_or_never().is_none());
        drop(held);
        assert!((&mut next).now_or_never().flatten().is_some(), "the flood had all of them");
        assert!((&mut last).now_or_never().flatten().is_some(), "the flood had all of them");
        drop(other);
    }

    #[tokio::test]
    async fn cancelled_requests_lose_no_slot_of_others() {
        let slots = RequestSlots::new(1, 1);
        let of = name("a");
        let held = slots.acquire(&of).await.expect("free");
        let mut cancelled: Vec<_> = (0..10).map(|_| Box::pin(slots.acquire(&of))).collect();
        cancelled.iter_mut().for_each(|one| assert!(one.now_or_never().is_none()));
        let mut waits = Box::pin(slots.acquire(&of));
        assert!((&mut waits).now_or_never().is_none());
        drop(cancelled);
        drop(held);
        assert!((&mut waits).now_or_never().flatten().is_some());
        assert_eq!(slots.in_flight(), 0);
        slots.close();
        assert!(slots.acquire(&of).await.is_none());
    }
}
