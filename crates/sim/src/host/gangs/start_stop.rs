//! Starts and stops gangs: all members at one instant.

use muster_core::gang::{Seat, members_of};
use muster_core::id::GangId;
use muster_core::plan::StopReason;
use muster_core::{Event, Fact};
use muster_testkit::promises::Promise;

use crate::host::sim::{Running, Sim};

impl Sim {
    /// Starts every member at this instant.
    pub(crate) fn start(&mut self, gang: GangId, seats: &[Seat]) {
        if self.running.contains_key(&gang) {
            return;
        }
        let mut seats = seats.to_vec();
        if self.sabotages(Promise::NoPartialStart) && members_of(&seats) > 1 {
            let last = seats.last_mut().expect("more than one member");
            last.members -= 1;
            if last.members == 0 {
                seats.pop();
            }
        }
        for seat in &seats {
            self.note_fact(&Fact::members_started(gang, seat));
        }
        if self.sabotages(Promise::NoOvercommit)
            && let Some(seat) = seats.iter().find(|seat| !seat.devices.is_empty())
        {
            self.note_fact(&Fact::members_started(gang, seat));
        }
        self.starts += 1;
        let epoch = self.starts;
        self.running.insert(gang, Running { seats, epoch });
        let told = self.apply(Event::GangStarted(gang));
        debug_assert!(told.is_ok(), "an admitted gang can start");
        self.note_fact(&Fact::GangStarted { gang });
        match &mut self.barrier {
            None => self.begin_work(gang),
            Some(barrier) => {
                let job = self.job_of[&gang];
                for (gang, _) in barrier.arrive(job, gang, epoch) {
                    self.begin_work(gang);
                }
            }
        }
    }

    /// Stops every member at this instant.
    pub(crate) fn stop_now(&mut self, gang: GangId, reason: StopReason) {
        self.count_work(gang);
        if let Some(running) = self.running.remove(&gang) {
            // A gang that lost a node had no time to save, whatever the reason of its stop.
            let told = reason.is_told() && !self.world.broken().contains_key(&gang);
            self.lose_work(gang, told, Some(reason));
            let keep = usize::from(self.sabotages(Promise::WholeGangDisruption));
            for seat in running.seats.iter().skip(keep) {
                self.note_fact(&Fact::members_stopped(gang, seat));
            }
        }
        if let Some(progress) = self.progress.get_mut(&gang) {
            progress.stop();
        }
        self.leave_barrier(gang);
        if self.apply(Event::GangStopped(gang)).is_ok() {
            self.note_fact(&Fact::GangStopped { gang, reason });
            if self.world.gang(gang).is_none() {
                self.unfinished -= 1; // it was cancelled
                self.progress.remove(&gang);
            }
            self.sync_size(gang);
        }
    }

    /// Without gangs, members that worked with a stopped one lose their work and wait for it again.
    fn leave_barrier(&mut self, gang: GangId) {
        let (Some(barrier), Some(job)) = (&mut self.barrier, self.job_of.get(&gang)) else {
            return;
        };
        for other in barrier.leave(*job, gang) {
            if let Some(running) = self.running.get_mut(&other) {
                self.starts += 1;
                running.epoch = self.starts;
                barrier.again(self.job_of[&other], other, self.starts);
                self.progress.remove(&other);
            }
        }
    }
}
