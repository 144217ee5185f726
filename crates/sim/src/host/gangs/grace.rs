//! Grace periods: a gang that checkpoints on a signal works until it has saved, within its grace. Then all members that
//! leave do so at one instant.

use muster_core::Fact;
use muster_core::gang::Seat;
use muster_core::id::{GangId, NodeIdx};
use muster_core::plan::StopReason;
use muster_core::time::Span;

use crate::faults::Sabotage;
use crate::host::events::SimEvent;
use crate::host::gangs::random_choices;
use crate::host::sim::Sim;

/// A grace period that has not ended; survives a crash of the planner.
#[derive(Clone, Debug)]
pub(crate) struct GracePeriod {
    change: PendingChange,
    /// The number of this grace period: one that was superseded is void.
    turn: u32,
}

/// The change at the end of a grace period.
#[derive(Clone, Debug)]
pub(crate) enum PendingChange {
    Stop(StopReason),
    /// The seats from then on.
    Resize(Vec<Seat>),
}

impl Sim {
    /// Stops a gang after its grace period; idempotent.
    pub(crate) fn stop(&mut self, gang: GangId, reason: StopReason) {
        let in_grace = reason.is_told() && !self.world.broken().contains_key(&gang);
        if in_grace && self.is_stopping(gang) {
            return;
        }
        self.grace_periods.remove(&gang); // a gang that was to leave some seats leaves all of them now
        let grace = self.jobs[self.job_of[&gang]].gang.disruption.grace;
        let hurried = self.is_planted(Sabotage::NoGrace);
        if !in_grace || grace == Span::ZERO || hurried || !self.running.contains_key(&gang) {
            return self.stop_now(gang, reason);
        }
        self.note_fact(&Fact::GangStopping { gang, reason });
        let takes = self.time_in_grace(gang);
        self.change_after(takes, gang, PendingChange::Stop(reason));
    }

    fn is_stopping(&self, gang: GangId) -> bool {
        let pending = self.grace_periods.get(&gang).map(|grace| &grace.change);
        matches!(pending, Some(PendingChange::Stop(_)))
    }

    /// How long a gang takes to save and leave, this time.
    pub(crate) fn time_in_grace(&mut self, gang: GangId) -> Span {
        let time = self.next_draw(gang);
        let disruption = &self.jobs[self.job_of[&gang]].gang.disruption;
        let takes = random_choices::time_in_grace(self.options.seed, gang, time, disruption);
        if self.is_planted(Sabotage::Overstays) {
            return disruption.grace + disruption.grace + Span::secs(1);
        }
        takes
    }

    /// The number of the next random draw of a gang.
    pub(crate) fn next_draw(&mut self, gang: GangId) -> u32 {
        let progress = self.progress.entry(gang).or_default();
        progress.asked += 1;
        progress.asked
    }

    /// Makes a change after so much time.
    pub(crate) fn change_after(&mut self, takes: Span, gang: GangId, change: PendingChange) {
        self.starts += 1;
        let turn = self.starts;
        self.grace_periods.insert(gang, GracePeriod { change, turn });
        if takes == Span::ZERO {
            self.change_now(gang);
        } else {
            self.event_queue.add(self.now + takes, SimEvent::GraceEnds(gang, turn));
        }
    }

    /// A gang has saved, if its grace period was not superseded.
    pub(crate) fn grace_ends(&mut self, gang: GangId, turn: u32) {
        if self.grace_periods.get(&gang).is_some_and(|grace| grace.turn == turn) {
            self.change_now(gang);
        }
    }

    /// A node is lost: ends the grace periods of gangs that were about to leave it or to join it.
    pub(crate) fn end_grace_on(&mut self, node: NodeIdx) {
        let is_there = |seats: &[Seat]| seats.iter().any(|seat| seat.node == node);
        let hit = |(gang, grace): (&GangId, &GracePeriod)| {
            let here = self.running.get(gang).is_some_and(|running| is_there(&running.seats));
            let comes = matches!(&grace.change, PendingChange::Resize(to) if is_there(to));
            (here || comes).then_some(*gang)
        };
        let hit: Vec<GangId> = self.grace_periods.iter().filter_map(hit).collect();
        hit.into_iter().for_each(|gang| self.change_now(gang));
    }

    fn change_now(&mut self, gang: GangId) {
        match self.grace_periods.remove(&gang).map(|grace| grace.change) {
            Some(PendingChange::Stop(reason)) => self.stop_now(gang, reason),
            Some(PendingChange::Resize(to)) => self.resize_now(gang, &to),
            None => {}
        }
    }
}
