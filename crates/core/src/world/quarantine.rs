//! Nodes that are about to go, and nodes that failed too often to be trusted.

use std::sync::Arc;

use crate::id::NodeIdx;
use crate::messages::event::Refusal;
use crate::units::time::{Span, Time};
use crate::world::World;

/// How often a node has failed under those who used it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Strikes {
    count: u32,
    last: Time,
}

/// A node that has not failed for so long begins anew.
const FORGIVEN: Span = Span::hours(24);
/// Failures before a node is left alone.
const TOLERATED: u32 = 2;
/// How long it is left alone at first; twice as long each time it fails again.
const QUARANTINE: Span = Span::mins(30);

impl Strikes {
    /// Until when the node is left alone.
    fn until(self) -> Option<Time> {
        let beyond = self.count.checked_sub(TOLERATED)?;
        Some(self.last + QUARANTINE.saturating_mul(1 << beyond.min(5)))
    }
}

impl World {
    /// A node will be gone at some instant: nobody new is placed on it. `Time::MAX` takes it back.
    pub(super) fn notice_node(&mut self, name: &Arc<str>, by: Time) -> Result<(), Refusal> {
        let Some(idx) = self.node_named(name) else {
            return Err(Refusal::UnknownNode(name.clone()));
        };
        let notice = (by < Time::MAX).then_some(by);
        self.unlist(idx);
        let old = std::mem::replace(&mut self.row_mut(idx).node.notice, notice);
        self.list(idx);
        if let Some(old) = old {
            self.noticed.remove(&(old, idx));
        }
        self.noticed.extend(notice.map(|by| (by, idx)));
        Ok(())
    }

    /// A node that came with the cluster failed under those who used it. What was bought is replaced by another,
    /// and its offering remembered instead.
    pub(super) fn strike(&mut self, idx: NodeIdx) {
        let node = &self.row(idx).node;
        // Who went away as announced is not to blame.
        if node.claim.is_some() || node.seats == 0 || node.notice.is_some() {
            return;
        }
        let (name, now) = (node.name.clone(), self.now);
        let strikes = self.flaky.entry(name).or_insert(Strikes { count: 0, last: now });
        let forgiven = now.since(strikes.last) >= FORGIVEN;
        *strikes = Strikes { count: if forgiven { 1 } else { strikes.count + 1 }, last: now };
    }

    /// A node was seen: nobody is placed on it as long as it is not trusted.
    pub(super) fn mistrust(&mut self, idx: NodeIdx) {
        let now = self.now;
        let Some(strikes) = self.flaky.get(&self.row(idx).node.name) else { return };
        let until = strikes.until().filter(|until| now < *until);
        if self.row(idx).node.quarantined == until {
            return;
        }
        self.unlist(idx);
        let old = std::mem::replace(&mut self.row_mut(idx).node.quarantined, until);
        self.list(idx);
        if let Some(old) = old {
            self.quarantine.remove(&(old, idx));
        }
        self.quarantine.extend(until.map(|until| (until, idx)));
    }

    /// Trusts nodes again whose time is over.
    pub(super) fn forgive(&mut self) {
        while let Some((until, idx)) = self.quarantine.first().copied()
            && until <= self.now
        {
            self.quarantine.remove(&(until, idx));
            self.unlist(idx);
            self.row_mut(idx).node.quarantined = None;
            self.list(idx);
        }
    }

    /// A node is gone, and so is what was known about its going.
    pub(super) fn forget_trust(&mut self, idx: NodeIdx) {
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
