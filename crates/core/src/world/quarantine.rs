//! Nodes that are about to go, and quarantine of nodes that failed too often.

use std::sync::Arc;

use crate::id::NodeIdx;
use crate::messages::event::Refusal;
use crate::units::time::{Span, Time};
use crate::world::World;

/// How often a node has failed under its gangs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Strikes {
    count: u32,
    last: Time,
}

/// A node that has not failed for so long starts again at zero.
const FORGIVEN: Span = Span::hours(24);
/// Failures before a node is quarantined.
const TOLERATED: u32 = 2;
/// The first quarantine; twice as long each time it fails again.
const QUARANTINE: Span = Span::mins(30);

impl Strikes {
    /// Until when the node is quarantined.
    fn until(self) -> Option<Time> {
        let beyond = self.count.checked_sub(TOLERATED)?;
        Some(self.last + QUARANTINE.saturating_mul(1 << beyond.min(5)))
    }
}

impl World {
    /// A node will be gone at some instant: no new members are placed on it. `Time::MAX` takes it back.
    pub(super) fn notice_node(&mut self, name: &Arc<str>, by: Time) -> Result<(), Refusal> {
        let Some(idx) = self.node_named(name) else {
            return Err(Refusal::UnknownNode(name.clone()));
        };
        let notice = (by < Time::MAX).then_some(by);
        self.unindex(idx);
        let old = std::mem::replace(&mut self.row_mut(idx).node.notice, notice);
        self.index(idx);
        if let Some(old) = old {
            self.noticed.remove(&(old, idx));
        }
        self.noticed.extend(notice.map(|by| (by, idx)));
        Ok(())
    }

    /// A node that came with the cluster failed under its gangs. A bought node is replaced by another, and its
    /// offering's record is kept instead.
    pub(super) fn strike(&mut self, idx: NodeIdx) {
        let node = &self.row(idx).node;
        // A node that went as announced did not fail.
        if node.claim.is_some() || node.seats == 0 || node.notice.is_some() {
            return;
        }
        let (name, now) = (node.name.clone(), self.now);
        let strikes = self.flaky.entry(name).or_insert(Strikes { count: 0, last: now });
        let forgiven = now.since(strikes.last) >= FORGIVEN;
        *strikes = Strikes { count: if forgiven { 1 } else { strikes.count + 1 }, last: now };
    }

    /// A node was observed: it stays closed while its quarantine lasts.
    pub(super) fn apply_quarantine(&mut self, idx: NodeIdx) {
        let now = self.now;
        let Some(strikes) = self.flaky.get(&self.row(idx).node.name) else { return };
        let until = strikes.until().filter(|until| now < *until);
        if self.row(idx).node.quarantined == until {
            return;
        }
        self.unindex(idx);
        let old = std::mem::replace(&mut self.row_mut(idx).node.quarantined, until);
        self.index(idx);
        if let Some(old) = old {
            self.quarantine.remove(&(old, idx));
        }
        self.quarantine.extend(until.map(|until| (until, idx)));
    }

    /// Ends quarantines that are over.
    pub(super) fn end_quarantines(&mut self) {
        while let Some((until, idx)) = self.quarantine.first().copied()
            && until <= self.now
        {
            self.quarantine.remove(&(until, idx));
            self.unindex(idx);
            self.row_mut(idx).node.quarantined = None;
            self.index(idx);
        }
    }

    /// Forgets the quarantine and the notice of a node that is gone.
    pub(super) fn forget_quarantine(&mut self, idx: NodeIdx) {
        let row = self.row_mut(idx);
        let (notice, quarantined) = (row.node.notice.take(), row.node.quarantined.take());
        if let Some(by) = notice {
            self.noticed.remove(&(by, idx));
        }
        if let Some(until) = quarantined {
            self.quarantine.remove(&(until, idx));
        }
    }
}
