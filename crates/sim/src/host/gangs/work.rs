//! Gangs at work: when they end, and how much work is lost when they are stopped.

use muster_core::gang::Seat;
use muster_core::id::{GangId, NodeIdx};
use muster_core::plan::StopReason;
use muster_core::time::{Span, Time};
use muster_core::{Event, Fact, event::Refusal};

use crate::host::events::SimEvent;
use crate::host::sim::Sim;

/// The time from a resize until the speed-up is measured.
const MEASURED_AFTER: Span = Span::mins(5);

impl Sim {
    /// A gang begins to work, from the beginning or from its checkpoint.
    pub(crate) fn begin_work(&mut self, gang: GangId) {
        let job = &self.jobs[self.job_of[&gang]];
        let pace = job.speed_in(&self.running[&gang].seats);
        let restart = job.gang.disruption.restart();
        self.progress.entry(gang).or_default().begin(self.now, pace, restart);
        self.schedule_end(gang);
    }

    /// A gang goes on in its present seats, after a pause; its end moves.
    pub(crate) fn resume_work(&mut self, gang: GangId, pause: Span) {
        let job = &self.jobs[self.job_of[&gang]];
        let running = self.running.get_mut(&gang).expect("it goes on");
        self.starts += 1;
        running.epoch = self.starts;
        let pace = job.speed_in(&running.seats);
        self.progress.entry(gang).or_default().change(self.now, pace, pause);
        self.schedule_end(gang);
    }

    fn schedule_end(&mut self, gang: GangId) {
        let run = self.jobs[self.job_of[&gang]].run;
        let (end, epoch) = (self.progress[&gang].end(run), self.running[&gang].epoch);
        self.event_queue.add(end, SimEvent::Done(gang, epoch));
        self.schedule_gang_failure(gang, epoch, end);
    }

    /// Schedules the loss of a machine under a gang at work, if it comes before its end.
    fn schedule_gang_failure(&mut self, gang: GangId, epoch: u32, end: Time) {
        let Some(gang_failures) = &mut self.gang_failures else { return };
        let job = self.job_of[&gang];
        let roles = &self.jobs[job].gang.roles;
        let gpus = |seat: &Seat| {
            let gpu = roles[usize::from(seat.role)].request.gpu.as_ref();
            u32::from(seat.members) * gpu.map_or(0, |gpu| u32::from(gpu.count))
        };
        let gpus = self.running[&gang].seats.iter().map(gpus).sum();
        if let Some(at) = gang_failures.begin(job, self.now, gpus).filter(|at| *at < end) {
            self.event_queue.add(at, SimEvent::GangFails(gang, epoch));
        }
    }

    pub(crate) fn gang_fails(&mut self, gang: GangId, epoch: u32) -> Result<(), Refusal> {
        let running = self.running.get(&gang).filter(|running| running.epoch == epoch);
        let (Some(running), Some(gang_failures)) = (running, &mut self.gang_failures) else {
            return Ok(()); // it was stopped or changed before
        };
        let each = |seat: &Seat| std::iter::repeat_n(seat.node, usize::from(seat.members));
        let nodes: Vec<NodeIdx> = running.seats.iter().flat_map(each).collect();
        let hit = nodes.get(gang_failures.fail(self.job_of[&gang], nodes.len()));
        let claim = hit.and_then(|node| self.world.node(*node)).and_then(|node| node.claim);
        claim.map_or(Ok(()), |claim| self.node_fails(claim))
    }

    /// Counts the work of a gang until now, before anything about it changes.
    pub(crate) fn count_work(&mut self, gang: GangId) {
        if let (Some(gang_failures), true) =
            (&mut self.gang_failures, self.running.contains_key(&gang))
        {
            gang_failures.end(self.job_of[&gang], self.now);
        }
        let Some(progress) = self.progress.get_mut(&gang) else { return };
        let stood = progress.count(self.now);
        if stood > Span::ZERO {
            self.accounts.paused(gang, stood);
        }
    }

    /// A gang loses its unsaved work. The work until now has been counted.
    pub(crate) fn lose_work(&mut self, gang: GangId, told: bool, why: Option<StopReason>) {
        let Some(progress) = self.progress.get_mut(&gang) else { return };
        let disruption = &self.jobs[self.job_of[&gang]].gang.disruption;
        let lost = progress.lose(|did| disruption.saved(did, told));
        // Without gangs, members at the barrier have done no work, and their machines were wasted all the same.
        if self.barrier.is_none() {
            self.accounts.lost(gang, lost, why);
        }
    }

    /// Schedules the measurement of the speed-up of a gang, if it differs from what was declared.
    pub(crate) fn schedule_measurement(&mut self, gang: GangId) {
        let job = &self.jobs[self.job_of[&gang]];
        let progress = &self.progress[&gang];
        if job.nature.efficiency.is_some() && !progress.measured {
            let epoch = self.running[&gang].epoch;
            let pause = job.gang.scaling.resize;
            self.event_queue
                .add(self.now + pause + MEASURED_AFTER, SimEvent::Measured(gang, epoch));
        }
    }

    pub(crate) fn measured(&mut self, gang: GangId, epoch: u32) -> Result<(), Refusal> {
        if self.running.get(&gang).is_none_or(|running| running.epoch != epoch) {
            return Ok(()); // it was stopped or changed before anything could be seen
        }
        let Some(efficiency) = self.jobs[self.job_of[&gang]].nature.efficiency else {
            return Ok(());
        };
        self.progress.entry(gang).or_default().measured = true;
        self.apply(Event::GangMeasured(gang, efficiency))
    }

    /// A gang's work is done. A pending change is void.
    pub(crate) fn done(&mut self, gang: GangId, epoch: u32) -> Result<(), Refusal> {
        if self.running.get(&gang).is_none_or(|running| running.epoch != epoch) {
            return Ok(()); // it was stopped before; this end is void
        }
        self.count_work(gang);
        self.progress.remove(&gang);
        self.grace_periods.remove(&gang);
        let running = self.running.remove(&gang).expect("just seen");
        for seat in &running.seats {
            self.note_fact(&Fact::members_stopped(gang, seat));
        }
        self.apply(Event::GangEnded(gang))?;
        self.unfinished -= 1;
        self.note_fact(&Fact::GangEnded { gang });
        Ok(())
    }
}
