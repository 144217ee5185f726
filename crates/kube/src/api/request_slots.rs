//! Turns to ask the API server: so many requests at one time, shared among namespaces.
//!
//! Whoever floods its namespace with work floods its own share. Turns go round: the next that is free is for the next
//! namespace in order that waits for one, and within a namespace for the request that came first. One namespace alone may
//! have nearly all of them, and some are always left for the others, also while its requests are answered slowly.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// All turns there are.
#[derive(Debug)]
pub(crate) struct RequestSlots {
    state: Mutex<State>,
    all: usize,
    /// What one namespace may have of them.
    each: usize,
}

#[derive(Debug, Default)]
struct State {
    taken: usize,
    is_closed: bool,
    held: BTreeMap<Arc<str>, usize>,
    waiting: BTreeMap<Arc<str>, VecDeque<oneshot::Sender<Turn>>>,
    /// The namespace that last had a turn it waited for.
    last: Option<Arc<str>>,
}

/// One turn, until it is dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    turns: Arc<RequestSlots>,
    of: Arc<str>,
}

impl RequestSlots {
    pub(crate) fn new(all: usize, each: usize) -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), all, each })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing in it is ever half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A turn for a request of this namespace. `None` when there are no more.
    pub(crate) async fn acquire(self: &Arc<Self>, of: &Arc<str>) -> Option<Turn> {
        let waits = {
            let mut state = self.state();
            if state.is_closed {
                return None;
            }
            // Those who wait have had their chance: whatever is free now they may not have.
            if self.is_free(&state, of) && !state.waiting.contains_key(of) {
                return Some(self.begin(&mut state, of.clone()));
            }
            let (turn, waits) = oneshot::channel();
            state.waiting.entry(of.clone()).or_default().push_back(turn);
            waits
        };
        waits.await.ok()
    }

    fn is_free(&self, state: &State, of: &str) -> bool {
        state.taken < self.all && state.held.get(of).copied().unwrap_or(0) < self.each
    }

    fn begin(self: &Arc<Self>, state: &mut State, of: Arc<str>) -> Turn {
        state.taken += 1;
        *state.held.entry(of.clone()).or_default() += 1;
        Turn { turns: self.clone(), of }
    }

    /// The next request that may begin.
    fn next(self: &Arc<Self>) -> Option<(oneshot::Sender<Turn>, Turn)> {
        let mut state = self.state();
        let after = state.last.clone().map_or(Bound::Unbounded, Bound::Excluded);
        let later = state.waiting.range::<Arc<str>, _>((after, Bound::Unbounded));
        let mut round = later.chain(state.waiting.iter()).map(|(of, _)| of);
        let of = round.find(|of| self.is_free(&state, of))?.clone();
        let waiting = state.waiting.get_mut(&of)?;
        // Requests that were given up meanwhile need no turn.
        waiting.retain(|one| !one.is_closed());
        let first = waiting.pop_front();
        if waiting.is_empty() {
            state.waiting.remove(&of);
        }
        state.last = Some(of.clone());
        first.map(|first| (first, self.begin(&mut state, of)))
    }

    /// No turn is given any more.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.is_closed = true;
        state.waiting.clear();
    }

    /// Requests under way.
    pub(crate) fn taken(&self) -> usize {
        self.state().taken
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut state = self.turns.state();
        state.taken -= 1;
        let is_last = state.held.get_mut(&self.of).is_none_or(|held| {
            *held -= 1;
            *held == 0
        });
        if is_last {
            state.held.remove(&self.of);
        }
        drop(state);
        if let Some((first, turn)) = self.turns.next() {
            // One that was given up just now gives its turn to the next as it is dropped.
            drop(first.send(turn));
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
    async fn a_flood_of_one_namespace_holds_no_other_back() {
        let turns = RequestSlots::new(4, 3);
        let mut held = Vec::new();
        for _ in 0..3 {
            held.push(turns.acquire(&name("flood")).now_or_never().flatten().expect("free"));
        }
        let mut flood: Vec<_> = Vec::new();
        for _ in 0..100 {
            let mut waits = Box::pin(async { turns.acquire(&name("flood")).await.is_some() });
            assert!((&mut waits).now_or_never().is_none(), "one namespace has them all");
            flood.push(waits);
        }
        // One is left, and of those that come back each namespace has one in turn.
        let other = turns.acquire(&name("other")).now_or_never().flatten().expect("one is left");
        let (next, last) = (name("other"), name("third"));
        let mut next = Box::pin(turns.acquire(&next));
        let mut last = Box::pin(turns.acquire(&last));
        assert!((&mut next).now_or_never().is_none() && (&mut last).now_or_never().is_none());
        drop(held);
        assert!((&mut next).now_or_never().flatten().is_some(), "the flood had all of them");
        assert!((&mut last).now_or_never().flatten().is_some(), "the flood had all of them");
        drop(other);
    }

    #[tokio::test]
    async fn requests_that_are_given_up_lose_no_turn_for_others() {
        let turns = RequestSlots::new(1, 1);
        let of = name("a");
        let held = turns.acquire(&of).await.expect("free");
        let mut given_up: Vec<_> = (0..10).map(|_| Box::pin(turns.acquire(&of))).collect();
        given_up.iter_mut().for_each(|one| assert!(one.now_or_never().is_none()));
        let mut waits = Box::pin(turns.acquire(&of));
        assert!((&mut waits).now_or_never().is_none());
        drop(given_up);
        drop(held);
        assert!((&mut waits).now_or_never().flatten().is_some());
        assert_eq!(turns.taken(), 0);
        turns.close();
        assert!(turns.acquire(&of).await.is_none());
    }
}
