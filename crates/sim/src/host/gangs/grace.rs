//! Being told to leave: a gang that saves its work when told has its grace, and works until it has saved. Then
//! all who leave do so at one instant.

use muster_core::Fact;
use muster_core::gang::Seat;
use muster_core::id::{GangId, NodeIdx};
use muster_core::plan::StopReason;
use muster_core::time::Span;

use crate::faults::Sabotage;
use crate::host::events::Happening;
use crate::host::gangs::random_choices;
use crate::host::sim::Sim;

/// What a gang was told and has not done yet; survives a crash of the planner.
#[derive(Clone, Debug)]
pub(crate) struct Leaving {
    told: Told,
    /// Which telling this is: one that another has overtaken is void.
    turn: u32,
}

/// What a gang can be told.
#[derive(Clone, Debug)]
pub(crate) enum Told {
    Stop(StopReason),
    /// To have these seats, and no others.
    Resize(Vec<Seat>),
}

impl Sim {
    /// Tells every member to stop. Telling it again changes nothing.
    pub(crate) fn stop(&mut self, gang: GangId, reason: StopReason) {
        let in_grace = reason.is_told() && !self.world.broken().contains_key(&gang);
        if in_grace && self.is_stopping(gang) {
            return;
        }
        self.leaving.remove(&gang); // who was to leave some seats leaves all of them now
        let grace = self.jobs[self.job_of[&gang]].gang.disruption.grace;
        let hurried = self.is_planted(Sabotage::NoGrace);
        if !in_grace || grace == Span::ZERO || hurried || !self.running.contains_key(&gang) {
            return self.stop_now(gang, reason);
        }
        self.fact(&Fact::GangStopping { gang, reason });
        let takes = self.time_to_leave(gang);
        self.leave_in(takes, gang, Told::Stop(reason));
    }

    fn is_stopping(&self, gang: GangId) -> bool {
        let leaving = self.leaving.get(&gang).map(|leaving| &leaving.told);
        matches!(leaving, Some(Told::Stop(_)))
    }

    /// How long a gang takes to leave, this time.
    pub(crate) fn time_to_leave(&mut self, gang: GangId) -> Span {
        let time = self.times_asked(gang);
        let disruption = &self.jobs[self.job_of[&gang]].gang.disruption;
        let takes = random_choices::time_to_leave(self.options.seed, gang, time, disruption);
        if self.is_planted(Sabotage::Overstays) {
            return disruption.grace + disruption.grace + Span::secs(1);
        }
        takes
    }

    /// How often a gang was asked something, with this time.
    pub(crate) fn times_asked(&mut self, gang: GangId) -> u32 {
        let progress = self.progress.entry(gang).or_default();
        progress.asked += 1;
        progress.asked
    }

    /// Does what a gang was told when it has had its time.
    pub(crate) fn leave_in(&mut self, takes: Span, gang: GangId, told: Told) {
        self.starts += 1;
        let turn = self.starts;
        self.leaving.insert(gang, Leaving { told, turn });
        if takes == Span::ZERO {
            self.leave_now(gang);
        } else {
            self.agenda.add(self.now + takes, Happening::Leaves(gang, turn));
        }
    }

    /// A gang has saved, if this is still what it was told to do.
    pub(crate) fn leaves(&mut self, gang: GangId, turn: u32) {
        if self.leaving.get(&gang).is_some_and(|leaving| leaving.turn == turn) {
            self.leave_now(gang);
        }
    }

    /// A node is gone: whoever was about to leave it, or to come to it, has nothing to wait for.
    pub(crate) fn hurry(&mut self, node: NodeIdx) {
        let is_there = |seats: &[Seat]| seats.iter().any(|seat| seat.node == node);
        let hit = |(gang, leaving): (&GangId, &Leaving)| {
            let here = self.running.get(gang).is_some_and(|running| is_there(&running.seats));
            let comes = matches!(&leaving.told, Told::Resize(to) if is_there(to));
            (here || comes).then_some(*gang)
        };
        let hit: Vec<GangId> = self.leaving.iter().filter_map(hit).collect();
        hit.into_iter().for_each(|gang| self.leave_now(gang));
    }

    fn leave_now(&mut self, gang: GangId) {
        match self.leaving.remove(&gang).map(|leaving| leaving.told) {
            Some(Told::Stop(reason)) => self.stop_now(gang, reason),
            Some(Told::Resize(to)) => self.resize_now(gang, &to),
            None => {}
        }
    }
}
