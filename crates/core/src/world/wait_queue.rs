//! The line: gangs that wait and have no order, highest priority first, then oldest.
//!
//! Kept in order as gangs come and go, and with the little that tells most of them "not now", so that a
//! cycle does not have to look up thousands of gangs to find that nothing has changed for them.

use crate::id::{GangId, QueueIdx, SigIdx};
use crate::objects::gang::Gang;
use crate::units::time::{Span, Time};

/// One gang that waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Waiter {
    /// Which.
    pub id: GangId,
    /// Higher goes first.
    pub priority: i32,
    /// Where it waits.
    pub queue: QueueIdx,
    /// Since when it waits.
    pub since: Time,
    /// Its kind of member and how many it needs, if that is all there is to know about it: one role, and
    /// nothing said about closeness.
    pub simple: Option<(SigIdx, u32)>,
    /// What its submitter thinks it takes.
    pub said: Span,
}

impl Waiter {
    fn key(&self) -> (std::cmp::Reverse<i32>, Time, GangId) {
        (std::cmp::Reverse(self.priority), self.since, self.id)
    }
}

/// Everybody who waits.
#[derive(Clone, Debug, Default)]
pub(crate) struct Line(Vec<Waiter>);

impl Line {
    pub(crate) fn waiters(&self) -> &[Waiter] {
        &self.0
    }
    pub(crate) fn join(&mut self, id: GangId, gang: &Gang) {
        let simple = match (gang.sigs.as_slice(), gang.spec.roles.as_slice()) {
            ([sig], [role]) if gang.spec.closeness.is_none() => Some((*sig, role.min)),
            _ => None,
        };
        let (priority, said) = (gang.spec.priority, gang.said_to_last());
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
