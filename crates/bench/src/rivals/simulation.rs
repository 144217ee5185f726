//! The simulation that all rivals share: machines, gangs, the clock and the bill.

use std::collections::BTreeSet;
use std::sync::Arc;

use muster_core::Fact;
use muster_core::device::DeviceSet;
use muster_core::id::{ClaimId, GangId, NodeIdx, OfferingRef, PoolIdx};
use muster_core::plan::StopReason;
use muster_core::pool::{OfferingSpec, PoolSpec};
use muster_core::time::{Span, Time};
use muster_sim::Job;
use muster_sim::accounts::Accounts;
use muster_sim::cloud::{Cloud, GangFailures};
use muster_sim::event_queue::EventQueue;

use crate::rivals::events::{Alarm, SimEvent};
use crate::rivals::run::{Market, Run};

/// The state of a machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    /// Requested.
    Coming,
    /// Its node has joined, without its GPUs yet.
    Joined,
    /// Its node shows every GPU.
    Ready,
    /// Released.
    Gone,
}

/// A machine.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    pub(crate) offering: OfferingRef,
    pub(crate) gpus: u16,
    pub(crate) free: u16,
    pub(crate) state: State,
    /// Gangs with members here, once per member.
    pub(crate) seated: Vec<usize>,
    pub(crate) empty_since: Time,
}

/// A gang.
#[derive(Clone, Debug)]
pub(crate) struct Gang {
    pub(crate) members: u32,
    /// GPUs of one member.
    pub(crate) gpus: u16,
    run: Span,
    /// The machines of its members, once per member.
    pub(crate) seats: Vec<ClaimId>,
    /// The number of this start: an end that was scheduled for an earlier one is void.
    pub(crate) epoch: u32,
}

impl Gang {
    fn of(job: &Job) -> Self {
        let role = &job.gang.roles[0];
        let gpus = role.request.gpu.as_ref().map_or(0, |gpu| gpu.count);
        Self { members: role.min, gpus, run: job.run, seats: Vec::new(), epoch: 0 }
    }
    /// Whether every member has started, so that work gets done.
    pub(crate) fn at_work(&self) -> bool {
        self.seats.len() as u32 == self.members
    }
}

/// The state of a run.
pub(crate) struct RivalSim<'j> {
    pub(crate) now: Time,
    pub(crate) pools: Vec<PoolSpec>,
    pub(crate) gangs: Vec<Gang>,
    /// Ready machines with free GPUs, by how many.
    pub(crate) open: BTreeSet<(u16, ClaimId)>,
    /// Machines that are not ready yet.
    pub(crate) coming: BTreeSet<ClaimId>,
    /// How long an empty machine is kept; for ever when absent.
    pub(crate) idle_after: Option<Span>,
    pub(crate) event_queue: EventQueue<SimEvent>,
    pub(crate) cloud: Cloud,
    pub(crate) gang_failures: Option<GangFailures>,
    pub(crate) machines: Vec<Machine>,
    pub(crate) jobs: &'j [Job],
    pub(crate) unfinished: usize,
    /// Machines not released yet.
    pub(crate) held: usize,
    pub(crate) accounts: Accounts,
}

impl<'j> RivalSim<'j> {
    pub(crate) fn new(Market { pools, gang_failures, seed }: Market, jobs: &'j [Job]) -> Self {
        let specs: Vec<PoolSpec> = pools.iter().map(|(spec, _)| spec.clone()).collect();
        let mut event_queue = EventQueue::new();
        for (i, job) in jobs.iter().enumerate() {
            event_queue.add(job.submit, SimEvent::Submit(i));
        }
        Self {
            now: Time::ZERO,
            accounts: Accounts::new(specs.clone(), jobs.len()),
            pools: specs,
            gangs: jobs.iter().map(Gang::of).collect(),
            open: BTreeSet::new(),
            coming: BTreeSet::new(),
            idle_after: None,
            event_queue,
            cloud: Cloud::new(pools, seed),
            gang_failures: gang_failures.map(|mean| GangFailures::new(mean, seed)),
            machines: Vec::new(),
            jobs,
            unfinished: jobs.len(),
            held: 0,
        }
    }

    pub(crate) fn finish(mut self) -> Run {
        self.accounts.close(self.now);
        Run { accounts: self.accounts }
    }
    /// A machine by its claim.
    pub(crate) fn machine(&self, claim: ClaimId) -> &Machine {
        &self.machines[claim.0 as usize]
    }
    /// The spec of an offering.
    pub(crate) fn spec(&self, at: OfferingRef) -> &OfferingSpec {
        &self.pools[usize::from(at.pool.0)].offerings[usize::from(at.slot)]
    }
    /// Every offering, cheapest first; of equals the one listed first.
    pub(crate) fn by_price(&self) -> Vec<OfferingRef> {
        let mut all: Vec<OfferingRef> = Vec::new();
        for (pool, spec) in self.pools.iter().enumerate() {
            let of = |slot| OfferingRef { pool: PoolIdx(pool as u16), slot: slot as u16 };
            all.extend((0..spec.offerings.len()).map(of));
        }
        all.sort_by_key(|at| (self.spec(*at).price, *at));
        all
    }
    /// Sets an alarm of the strategy.
    pub(crate) fn set(&mut self, at: Time, alarm: Alarm) {
        self.event_queue.add(at, SimEvent::Alarm(alarm));
    }

    /// Requests one machine.
    pub(crate) fn buy(&mut self, offering: OfferingRef) -> ClaimId {
        let claim = ClaimId(self.machines.len() as u32);
        let gpus = self.spec(offering).gpus;
        let (seated, empty_since) = (Vec::new(), self.now);
        let state = State::Coming;
        self.machines.push(Machine { offering, gpus, free: gpus, state, seated, empty_since });
        self.coming.insert(claim);
        self.held += 1;
        self.tell(&Fact::ClaimRequested { claim, offering });
        for (at, stage) in self.cloud.request(self.now, claim, offering) {
            self.event_queue.add(at, SimEvent::Machine(claim, stage));
        }
        claim
    }

    /// Releases an empty machine; idempotent.
    pub(crate) fn release(&mut self, claim: ClaimId) {
        let machine = &mut self.machines[claim.0 as usize];
        if machine.state == State::Gone {
            return;
        }
        debug_assert!(machine.seated.is_empty(), "{claim:?} is in use");
        machine.state = State::Gone;
        self.open.remove(&(machine.free, claim));
        self.coming.remove(&claim);
        self.held -= 1;
        self.cloud.release(self.now, claim);
        self.tell(&Fact::ClaimReleased { claim });
    }

    /// Starts one member on a ready machine. With the last member, its gang begins to work.
    pub(crate) fn seat(&mut self, gang: usize, claim: ClaimId) {
        let gpus = self.gangs[gang].gpus;
        let machine = &mut self.machines[claim.0 as usize];
        debug_assert!(machine.state == State::Ready && machine.free >= gpus);
        self.open.remove(&(machine.free, claim));
        machine.free -= gpus;
        if machine.free > 0 {
            self.open.insert((machine.free, claim));
        }
        machine.seated.push(gang);
        self.gangs[gang].seats.push(claim);
        self.tell(&members_started(gang, claim));
        if self.gangs[gang].at_work() {
            self.gangs[gang].epoch += 1;
            let (epoch, end) = (self.gangs[gang].epoch, self.now + self.gangs[gang].run);
            self.event_queue.add(end, SimEvent::Done(gang, epoch));
            self.schedule_gang_failure(gang, end);
            self.tell(&Fact::GangStarted { gang: id(gang) });
        }
    }

    /// Schedules the loss of a machine under a gang at work, if it comes before its end.
    fn schedule_gang_failure(&mut self, gang: usize, end: Time) {
        let Gang { members, gpus, epoch, .. } = self.gangs[gang];
        let Some(gang_failures) = &mut self.gang_failures else { return };
        let strikes = gang_failures.begin(gang, self.now, members * u32::from(gpus));
        if let Some(at) = strikes.filter(|at| *at < end) {
            self.event_queue.add(at, SimEvent::GangFails(gang, epoch));
        }
    }

    /// Stops every member of a gang; returns their machines. Its work is lost.
    pub(crate) fn stop(&mut self, gang: usize, lost: ClaimId) -> Vec<ClaimId> {
        let at_work = self.gangs[gang].at_work();
        let seats = self.leave(gang);
        if at_work {
            self.gangs[gang].epoch += 1;
            let reason = StopReason::NodeLost(NodeIdx(lost.0));
            self.tell(&Fact::GangStopped { gang: id(gang), reason });
        }
        seats
    }

    /// Removes every member of a gang from its machine.
    pub(crate) fn leave(&mut self, gang: usize) -> Vec<ClaimId> {
        if let Some(gang_failures) = &mut self.gang_failures {
            gang_failures.end(gang, self.now);
        }
        let seats = std::mem::take(&mut self.gangs[gang].seats);
        for claim in &seats {
            self.unseat(gang, *claim);
        }
        seats
    }

    /// Stops the members of a gang on one machine.
    pub(crate) fn leave_one(&mut self, gang: usize, claim: ClaimId) {
        let seats = &mut self.gangs[gang].seats;
        let before = seats.len();
        seats.retain(|seat| *seat != claim);
        let left = before - seats.len();
        for _ in 0..left {
            self.unseat(gang, claim);
        }
    }

    fn unseat(&mut self, gang: usize, claim: ClaimId) {
        let gpus = self.gangs[gang].gpus;
        let machine = &mut self.machines[claim.0 as usize];
        let at = machine.seated.iter().position(|other| *other == gang).expect("it sits there");
        machine.seated.swap_remove(at);
        self.open.remove(&(machine.free, claim));
        machine.free += gpus;
        self.open.insert((machine.free, claim));
        self.tell(&members_stopped(gang, claim));
        self.note_empty(claim);
    }

    /// Schedules the release of an empty machine after its idle time.
    pub(crate) fn note_empty(&mut self, claim: ClaimId) {
        let now = self.now;
        let machine = &mut self.machines[claim.0 as usize];
        if !machine.seated.is_empty() {
            return;
        }
        machine.empty_since = now;
        if let Some(idle_after) = self.idle_after {
            // Never within the instant in which another member may still take it.
            let due = now + idle_after.max(Span::secs(1));
            self.event_queue.add(due, SimEvent::Idle(claim, now));
        }
    }

    pub(crate) fn tell(&mut self, fact: &Fact) {
        self.accounts.note(self.now, fact);
    }
    pub(crate) fn submit(&mut self, gang: usize) {
        let spec = Arc::new(self.jobs[gang].gang.clone());
        self.accounts.submitted(id(gang), gang, self.now);
        self.tell(&Fact::GangSubmitted { gang: id(gang), spec });
    }
}

/// Gangs are numbered as their jobs are.
pub(crate) fn id(gang: usize) -> GangId {
    GangId(gang as u32)
}

fn members_started(gang: usize, claim: ClaimId) -> Fact {
    let (gang, node, devices) = (id(gang), NodeIdx(claim.0), DeviceSet::default());
    Fact::MembersStarted { gang, role: 0, node, devices, members: 1 }
}

fn members_stopped(gang: usize, claim: ClaimId) -> Fact {
    let (gang, node, devices) = (id(gang), NodeIdx(claim.0), DeviceSet::default());
    Fact::MembersStopped { gang, role: 0, node, devices, members: 1 }
}
