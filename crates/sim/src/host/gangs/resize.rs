//! Resizes by the planner: a running gang leaves seats, takes others, and pauses for a while. It may decline more.

use muster_core::gang::{Seat, members_of, nodes_of, without};
use muster_core::id::GangId;
use muster_core::time::Span;
use muster_core::{Event, Fact};

use crate::faults::Sabotage;
use crate::host::gangs::grace::PendingChange;
use crate::host::gangs::random_choices;
use crate::host::sim::Sim;

impl Sim {
    /// Resizes a gang to these seats, after a grace period if it leaves some; idempotent.
    pub(crate) fn resize(&mut self, gang: GangId, seats: &[Seat]) {
        let Some(running) = self.running.get(&gang) else { return };
        if self.grace_periods.contains_key(&gang) || running.seats == seats {
            return;
        }
        let gives_up = !without(&running.seats, seats).is_empty();
        let (from, to) = (members_of(&running.seats), members_of(seats));
        let joins = nodes_of(&without(seats, &running.seats));
        self.note_fact(&Fact::GangResizing { gang, from, to, joins });
        if !gives_up && self.declines(gang) {
            let told = self.apply(Event::ResizeDeclined(gang));
            debug_assert!(told.is_ok(), "a gang that was told to resize may decline");
            self.note_fact(&Fact::ResizeDeclined { gang });
            return;
        }
        let in_grace = gives_up && !self.world.broken().contains_key(&gang);
        let takes = if in_grace { self.time_in_grace(gang) } else { Span::ZERO };
        self.change_after(takes, gang, PendingChange::Resize(seats.to_vec()));
    }

    fn declines(&mut self, gang: GangId) -> bool {
        let time = self.next_draw(gang);
        random_choices::declines(self.options.seed, gang, time, &self.jobs[self.job_of[&gang]])
    }

    /// Starts and stops members of a gang at this instant. Where the node of a new seat is gone, it gets none of the new
    /// seats; if it cannot go on without, nothing changes and the planner has to stop it.
    pub(crate) fn resize_now(&mut self, gang: GangId, to: &[Seat]) {
        let Some(running) = self.running.get(&gang) else { return };
        let had = running.seats.clone();
        let added = without(to, &had);
        let is_gone = |seat: &Seat| self.world.node(seat.node).is_none();
        let comes = !added.iter().any(is_gone);
        let mut seats = if comes { to.to_vec() } else { without(to, &added) };
        if !self.is_enough(gang, &seats) {
            return;
        }
        let lost = had.iter().any(is_gone);
        if self.is_planted(Sabotage::TakesTooMany) && seats.len() < had.len() {
            seats.truncate(self.jobs[self.job_of[&gang]].gang.min_members() as usize - 1);
        }
        self.count_work(gang);
        if lost {
            self.lose_work(gang, false, None);
        }
        for seat in without(&had, &seats) {
            self.note_fact(&Fact::members_stopped(gang, &seat));
        }
        for seat in without(&seats, &had) {
            self.note_fact(&Fact::members_started(gang, &seat));
        }
        self.running.get_mut(&gang).expect("just seen").seats = seats;
        self.resume_work(gang, self.jobs[self.job_of[&gang]].gang.scaling.resize);
        if comes {
            let told = self.apply(Event::GangResized(gang));
            debug_assert!(told.is_ok(), "a gang that was told to resize has resized");
            self.note_fact(&Fact::GangResized { gang });
            self.sync_size(gang);
            self.schedule_measurement(gang);
        } else {
            let told = self.apply(Event::ResizeDeclined(gang));
            debug_assert!(told.is_ok(), "a gang that was told to resize may decline");
            self.note_fact(&Fact::ResizeDeclined { gang });
        }
    }

    /// Whether these seats satisfy the minimum of every role.
    fn is_enough(&self, gang: GangId, seats: &[Seat]) -> bool {
        let roles = &self.jobs[self.job_of[&gang]].gang.roles;
        (0u16..).zip(roles).all(|(number, role)| {
            let mine = seats.iter().filter(|seat| seat.role == number);
            mine.map(|seat| u32::from(seat.members)).sum::<u32>() >= role.min
        })
    }
}
