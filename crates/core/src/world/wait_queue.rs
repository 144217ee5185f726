//! The wait queue: gangs that wait and have no order, highest priority first, then oldest.
//!
//! It is kept in order as gangs come and go, with the few fields by which most of them are skipped, so that a cycle
//! does not have to look up thousands of gangs to find that nothing has changed for them.

use crate::id::{GangId, QueueIdx, SigIdx};
use crate::objects::gang::Gang;
use crate::units::time::{Span, Time};

/// One waiting gang.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Waiter {
    /// The gang.
    pub id: GangId,
    /// Higher goes first.
    pub priority: i32,
    /// Its queue.
    pub queue: QueueIdx,
    /// Since when it waits.
    pub since: Time,
    /// Its kind of member and how many it needs, if that is its whole demand: one role, and no closeness.
    pub simple: Option<(SigIdx, u32)>,
    /// Its estimated run time.
    pub said: Span,
}

impl Waiter {
    fn key(&self) -> (std::cmp::Reverse<i32>, Time, GangId) {
        (std::cmp::Reverse(self.priority), self.since, self.id)
    }
}

/// All waiting gangs.
#[derive(Clone, Debug, Default)]
pub(crate) struct WaitQueue(Vec<Waiter>);

impl WaitQueue {
    pub(crate) fn waiters(&self) -> &[Waiter] {
        &self.0
    }
    pub(crate) fn join(&mut self, id: GangId, gang: &Gang) {
        let simple = match (gang.sigs.as_slice(), gang.spec.roles.as_slice()) {
            ([sig], [role]) if gang.spec.closeness.is_none() => Some((*sig, role.min)),
            _ => None,
        };
        let (priority, said) = (gang.spec.priority, gang.estimated_run_time());
        let waiter =
            Waiter { id, priority, queue: gang.queue, since: gang.waits_since, simple, said };
        if let Err(at) = self.0.binary_search_by_key(&waiter.key(), Waiter::key) {
            self.0.insert(at, waiter);
        }
    }
    pub(crate) fn leave(&mut self, id: GangId, gang: &Gang) {
        let key = (std::cmp::Reverse(gang.spec.priority), gang.waits_since, id);
        if let Ok(at) = self.0.binary_search_by_key(&key, Waiter::key) {
            self.0.remove(at);
        }
    }
}
