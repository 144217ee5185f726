//! Doing what was decided: write it down first, then do it.

use muster_core::gang::{Seat, members_of, without};
use muster_core::id::{ClaimId, GangId};
use muster_core::order::{OrderSpec, Place};
use muster_core::plan::{Action, ActionGroup, Plan, StopReason};
use muster_core::time::Time;
use muster_core::{Event, Fact};
use muster_testkit::promises::Promise;

use super::{Happening, Running, Sim};

impl Sim {
    /// Carries out a plan, group by group. `false` when a crash cuts it short.
    pub(super) fn act(&mut self, plan: &Plan) -> bool {
        plan.groups.iter().all(|group| self.act_group(group))
    }

    fn act_group(&mut self, group: &ActionGroup) -> bool {
        let rolls_back = |action: &Action| matches!(action, Action::RollBack { .. });
        if self.sabotages(Promise::AtomicRollback) && group.actions.iter().any(rolls_back) {
            return true;
        }
        for action in &group.actions {
            let action = match self.tamper(action) {
                Some(action) => action,
                None => continue,
            };
            match self.crash_after {
                Some(0) => {
                    self.crash_before(action);
                    return false;
                }
                Some(left) => self.crash_after = Some(left - 1),
                None => {}
            }
            if !self.intend(&action) {
                return true;
            }
            self.carry_out(&action);
        }
        true
    }

    /// Writes a decision down. `false` when the World refuses it, which a plan just made must not cause.
    pub(super) fn intend(&mut self, action: &Action) -> bool {
        let completes = match action {
            Action::Admit { gang, .. } => {
                self.world.gang(*gang).and_then(|gang| match gang.phase {
                    muster_core::gang::Phase::Assembling(order) => Some(order),
                    _ => None,
                })
            }
            _ => None,
        };
        let rolled_back = match action {
            Action::RollBack { order, .. } => {
                self.world.orders().get(order).map(|order| order.spec.gang)
            }
            _ => None,
        };
        if let Err(refusal) = self.tell(Event::Decided(action.clone())) {
            let what =
                format!("a decision was refused the moment it was taken: {refusal} ({action:?})");
            self.break_promise(Promise::NoOvercommit, what);
            return false;
        }
        match action {
            Action::Admit { gang, .. } => {
                if let Some(order) = completes {
                    self.fact(&Fact::OrderCompleted { order, gang: *gang });
                }
            }
            Action::Order(spec) => self.order_placed(spec),
            Action::RollBack { order, reason } => {
                let gang = rolled_back.expect("the World accepted it");
                self.fact(&Fact::OrderRolledBack { order: *order, gang, reason: *reason });
                if self.world.gang(gang).is_none() {
                    self.unfinished -= 1; // it was cancelled
                }
            }
            Action::TopUp { order, lost, claim, offering } => self.fact(&Fact::OrderToppedUp {
                order: *order,
                lost: *lost,
                claim: *claim,
                offering: *offering,
            }),
            Action::Exchange { gets, coming, gives, ready } => self.fact(&Fact::OrdersExchanged {
                gets: *gets,
                coming: *coming,
                gives: *gives,
                ready: *ready,
            }),
            Action::Stop { .. }
            | Action::Resize { .. }
            | Action::Release { .. }
            | Action::Stock { .. }
            | Action::Retry { .. }
            | Action::Park { .. }
            | Action::Retire { .. } => {}
        }
        true
    }

    /// Does what was written down. Doing it again changes nothing.
    pub(super) fn carry_out(&mut self, action: &Action) {
        match action {
            Action::Admit { gang, seats } => self.start(*gang, seats),
            Action::Order(spec) => {
                for (claim, offering) in &spec.claims {
                    self.request(*claim, *offering);
                }
            }
            Action::RollBack { .. } | Action::Exchange { .. } => {}
            Action::Retire { claim } => self.fact(&Fact::ClaimRetired { claim: *claim }),
            Action::TopUp { claim, offering, .. } => self.request(*claim, *offering),
            Action::Stock { claims } => {
                for (claim, offering) in claims {
                    self.request(*claim, *offering);
                }
            }
            Action::Retry { claim, .. } => {
                let offering = self.world.claims()[claim].offering;
                self.request(*claim, offering);
            }
            Action::Park { claim } => self.park(*claim),
            Action::Resize { gang, seats } => self.resize(*gang, seats),
            Action::Stop { gang, reason } => self.stop(*gang, *reason),
            Action::Release { claim } => self.release(*claim),
        }
    }

    fn order_placed(&mut self, spec: &OrderSpec) {
        let present = spec.reservations.iter().filter_map(|reservation| match reservation.place {
            Place::Node(node) => Some(node),
            Place::Claim(_) => None,
        });
        let holds = present.collect();
        let (order, gang, deadline, claims) =
            (spec.id, spec.gang, spec.deadline, spec.claims.clone());
        let after = spec.after.iter().map(|way| way.gang).collect();
        self.fact(&Fact::OrderPlaced { order, gang, claims, holds, after, deadline });
    }

    /// Asks for a machine, again if the provider put it off, or wakes it if it is stopped.
    pub(super) fn request(&mut self, claim: ClaimId, offering: muster_core::id::OfferingRef) {
        if let Some(machine) = self.cloud.machines.get(&claim) {
            if machine.stopped.is_some() {
                self.wake(claim, offering);
            }
            return;
        }
        let again = self.world.claims().get(&claim).is_some_and(|claim| claim.retries > 0);
        if again {
            self.fact(&Fact::ClaimRetried { claim });
        } else {
            self.fact(&Fact::ClaimRequested { claim, offering });
        }
        for (at, stage) in self.cloud.request(self.now, claim, offering) {
            self.agenda.add(at, Happening::Machine(claim, stage));
        }
        self.expect_reclaim();
    }

    fn wake(&mut self, claim: ClaimId, offering: muster_core::id::OfferingRef) {
        let spec = &self.world.offering(offering).spec;
        let start = spec.start_time.unwrap_or(spec.boot_time);
        self.fact(&Fact::ClaimWoken { claim });
        for (at, stage) in self.cloud.start(self.now, claim, start) {
            self.agenda.add(at, Happening::Machine(claim, stage));
        }
        self.expect_reclaim();
    }

    pub(super) fn park(&mut self, claim: ClaimId) {
        if let Some(stopped) = self.cloud.stop(self.now, claim) {
            self.fact(&Fact::ClaimParked { claim });
            self.agenda.add(stopped, Happening::MachineStopped(claim));
        }
    }

    /// Makes sure to be there when a provider next takes machines back.
    pub(super) fn expect_reclaim(&mut self) {
        let Some(at) = self.cloud.next_reclaim(self.now) else { return };
        if self.reclaim_at.is_none_or(|known| known <= self.now || at < known) {
            self.reclaim_at = Some(at);
            self.agenda.add(at, Happening::Reclaim);
        }
    }

    pub(super) fn release(&mut self, claim: ClaimId) {
        match self.cloud.release(self.now, claim) {
            Some(gone) => {
                self.fact(&Fact::ClaimReleased { claim });
                self.agenda.add(gone, Happening::MachineGone(claim));
            }
            None if self.cloud.machines.contains_key(&claim) => {} // it is on its way out
            None => {
                // The provider has no machine for it: it refused, or was never asked.
                let told = self.tell(Event::ClaimGone(claim));
                debug_assert!(told.is_ok());
                self.fact(&Fact::ClaimReleased { claim });
                self.fact(&Fact::ClaimGone { claim });
            }
        }
    }

    /// Starts every member at this instant.
    pub(super) fn start(&mut self, gang: GangId, seats: &[Seat]) {
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
            self.fact(&members_started(gang, seat));
        }
        if self.sabotages(Promise::NoOvercommit)
            && let Some(seat) = seats.iter().find(|seat| !seat.devices.is_empty())
        {
            self.fact(&members_started(gang, seat));
        }
        self.starts += 1;
        let epoch = self.starts;
        self.running.insert(gang, Running { seats, epoch });
        let told = self.tell(Event::GangStarted(gang));
        debug_assert!(told.is_ok(), "an admitted gang can start");
        self.fact(&Fact::GangStarted { gang });
        let job = self.job_of[&gang];
        let run = self.jobs[job]
            .run_with(self.world.gang(gang).map_or(0, |gang| members_of(&gang.seats)));
        match &mut self.barrier {
            None => {
                self.agenda.add(self.now + run, Happening::Done(gang, epoch));
            }
            Some(barrier) => {
                for (gang, epoch) in barrier.arrive(job, gang, epoch) {
                    self.agenda.add(self.now + run, Happening::Done(gang, epoch));
                }
            }
        }
    }

    /// Starts and stops members of a gang that runs, at this instant.
    pub(super) fn resize(&mut self, gang: GangId, seats: &[Seat]) {
        let Some(running) = self.running.get_mut(&gang) else { return };
        let had = std::mem::replace(&mut running.seats, seats.to_vec());
        for seat in without(&had, seats) {
            self.fact(&members_stopped(gang, &seat));
        }
        for seat in without(seats, &had) {
            self.fact(&members_started(gang, &seat));
        }
        let told = self.tell(Event::GangResized(gang));
        debug_assert!(told.is_ok(), "a gang that was told to resize has resized");
        self.fact(&Fact::GangResized { gang });
    }

    /// Stops every member at this instant.
    pub(super) fn stop(&mut self, gang: GangId, reason: StopReason) {
        if let Some(running) = self.running.remove(&gang) {
            let keep = usize::from(self.sabotages(Promise::WholeGangDisruption));
            for seat in running.seats.iter().skip(keep) {
                self.fact(&members_stopped(gang, seat));
            }
        }
        self.leave_barrier(gang);
        let cancelled = reason == StopReason::Cancelled;
        if self.tell(Event::GangStopped(gang)).is_ok() {
            self.fact(&Fact::GangStopped { gang, reason });
            self.unfinished -= usize::from(cancelled);
        }
    }

    /// Without gangs, those who worked with a stopped member lose their work and wait for it again.
    fn leave_barrier(&mut self, gang: GangId) {
        let (Some(barrier), Some(job)) = (&mut self.barrier, self.job_of.get(&gang)) else {
            return;
        };
        for other in barrier.leave(*job, gang) {
            if let Some(running) = self.running.get_mut(&other) {
                self.starts += 1;
                running.epoch = self.starts;
                barrier.again(self.job_of[&other], other, self.starts);
            }
        }
    }

    /// What a host with a planted bug does instead of what was decided; `None` for nothing at all.
    fn tamper(&self, action: &Action) -> Option<Action> {
        match action {
            Action::Release { claim } if self.sabotages(Promise::NoLeak) => {
                let ready = self.world.claims().get(claim)?.node().is_some();
                (!ready).then(|| action.clone())
            }
            Action::Order(spec) if self.sabotages(Promise::NoHoldAndWait) => {
                Some(Action::Order(OrderSpec { deadline: Time::MAX, ..spec.clone() }))
            }
            _ => Some(action.clone()),
        }
    }
}

fn members_started(gang: GangId, seat: &Seat) -> Fact {
    let Seat { devices, node, role, members } = *seat;
    Fact::MembersStarted { gang, role, node, devices, members }
}

pub(super) fn members_stopped(gang: GangId, seat: &Seat) -> Fact {
    let Seat { devices, node, role, members } = *seat;
    Fact::MembersStopped { gang, role, node, devices, members }
}
