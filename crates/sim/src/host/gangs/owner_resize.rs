//! Resizes by owners, of gangs that wait, assemble, run, or are being resized.
//!
//! As on Kubernetes: an order for another size is rolled back; surplus members of a running gang stop, and their seats are
//! released. A gang that is to have more members than it runs with gets them when there is room.

use std::sync::Arc;

use muster_core::event::{Refusal, Sitting};
use muster_core::gang::{GangSpec, Phase, Seat, members_of, without};
use muster_core::id::GangId;
use muster_core::order::RollbackReason;
use muster_core::plan::Action;
use muster_core::time::Span;
use muster_core::{Event, Fact};

use crate::host::events::SimEvent;
use crate::host::sim::Sim;

/// The retry delay for a gang that is between two phases.
const LATER: Span = Span::secs(30);

impl Sim {
    /// Sets the minimum and maximum of a role of a gang.
    pub(crate) fn owner_resizes(
        &mut self,
        job: usize,
        role: u16,
        (min, max): (u32, u32),
    ) -> Result<(), Refusal> {
        let name = self.jobs[job].gang.name.clone();
        let Some(id) = self.world.gang_named(&name) else { return Ok(()) };
        if self.world.cancelled().contains(&id) {
            return Ok(());
        }
        let gang = self.world.gang(id).expect("named");
        let mut spec = gang.next.as_deref().unwrap_or(&gang.spec).clone();
        let Some(sized) = spec.roles.get_mut(usize::from(role)) else { return Ok(()) };
        (sized.min, sized.max) = (min, max);
        match gang.phase {
            Phase::Waiting => self.change(id, spec),
            Phase::Assembling(order) => {
                // The gang that it was placed for is gone: the new one keeps its name and its place in the queue.
                let reason = RollbackReason::GangGone;
                match self.log_decision(&Action::RollBack { order, reason }) {
                    true => self.change(id, spec),
                    false => Ok(()),
                }
            }
            Phase::Running { .. }
                if gang.resize.is_none() && !self.grace_periods.contains_key(&id) =>
            {
                self.shrink(id, spec)
            }
            Phase::Admitted { .. } | Phase::Running { .. } | Phase::Stopping => {
                self.event_queue
                    .add(self.now + LATER, SimEvent::OwnerResizes(job, role, (min, max)));
                Ok(())
            }
        }
    }

    fn change(&mut self, gang: GangId, spec: GangSpec) -> Result<(), Refusal> {
        self.apply(Event::GangChanged(spec))?;
        self.sync_size(gang);
        Ok(())
    }

    /// Stops the surplus members of a running gang; the others go on.
    fn shrink(&mut self, id: GangId, spec: GangSpec) -> Result<(), Refusal> {
        let gang = self.world.gang(id).expect("it runs");
        let surplus = surplus(&gang.seats, &spec);
        if surplus.is_empty() {
            self.count_work(id);
            self.change(id, spec)?;
            self.resume_work(id, Span::ZERO);
            return Ok(());
        }
        let had = gang.seats.clone();
        let mut eased = spec.clone();
        for (at, role) in (0..).zip(&mut eased.roles) {
            role.max = role.max.max(gang.members_in(at));
        }
        self.count_work(id);
        self.apply(Event::GangChanged(eased))?;
        self.apply(Event::SeatsGivenBack { gang: id, seats: surplus })?;
        self.apply(Event::GangChanged(spec))?;
        self.sync_size(id);
        let has = self.world.gang(id).expect("it runs").seats.clone();
        let (from, to) = (members_of(&had), members_of(&has));
        self.note_fact(&Fact::GangResizing { gang: id, from, to, joins: Vec::new() });
        for seat in without(&had, &has) {
            self.note_fact(&Fact::members_stopped(id, &seat));
        }
        for seat in without(&has, &had) {
            self.note_fact(&Fact::members_started(id, &seat));
        }
        self.running.get_mut(&id).expect("it runs").seats = has;
        self.resume_work(id, Span::ZERO);
        self.note_fact(&Fact::GangResized { gang: id });
        Ok(())
    }

    /// Records the size of a gang if it changed: the size it runs with, not the one its owner wants for its next start.
    pub(crate) fn sync_size(&mut self, id: GangId) {
        let Some(gang) = self.world.gang(id) else { return };
        let sizes: Vec<(u32, u32)> =
            gang.spec.roles.iter().map(|role| (role.min, role.max)).collect();
        let job = &mut self.jobs[self.job_of[&id]].gang;
        let mut is_news = false;
        for (role, (min, max)) in job.roles.iter_mut().zip(sizes) {
            is_news |= (role.min, role.max) != (min, max);
            (role.min, role.max) = (min, max);
        }
        if is_news {
            let spec = Arc::new(job.clone());
            self.note_fact(&Fact::GangChanged { gang: id, spec });
        }
    }
}

/// Seats above each role's maximum, the last first.
fn surplus(seats: &[Seat], spec: &GangSpec) -> Vec<Sitting> {
    let mut back: Vec<Sitting> = Vec::new();
    for (at, role) in (0u16..).zip(&spec.roles) {
        let mine = || seats.iter().filter(|seat| seat.role == at);
        let held: u32 = mine().map(|seat| u32::from(seat.members)).sum();
        let mut over = held.saturating_sub(role.max);
        for seat in mine().rev() {
            let members = u32::from(seat.members).min(over) as u16;
            over -= u32::from(members);
            if members == 0 {
                break;
            }
            match back.iter_mut().find(|one| (one.role, one.node) == (at, seat.node)) {
                Some(one) => one.members += members,
                None => back.push(Sitting { role: at, node: seat.node, members }),
            }
        }
    }
    back
}
