//! The events of a simulation, and how each changes the cluster and the World.

use std::sync::Arc;

use muster_core::ahead::Outlook;
use muster_core::event::Refusal;
use muster_core::gang::Phase;
use muster_core::id::{ClaimId, GangId, PoolIdx};
use muster_core::node::NodeSpec;
use muster_core::time::{Span, Time};
use muster_core::{Event, Fact};
use muster_testkit::promises::Promise;

use crate::cloud::{Machine, Stage};
use crate::faults::BadInput;
use crate::host::cluster::nodes::node_name;
use crate::host::sim::Sim;

/// An event in the queue.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SimEvent {
    /// A job is submitted.
    Submit(usize),
    /// A gang's work is done, if this is still the start it was scheduled for.
    Done(GangId, u32),
    /// A machine reaches a stage.
    Machine(ClaimId, Stage),
    /// A gang has saved and leaves seats, if this grace period has not been superseded.
    GraceEnds(GangId, u32),
    /// The speed-up of a gang's members is measured, if it has not been stopped or changed since.
    Measured(GangId, u32),
    /// A node that exists from the start gets notice of its outage.
    OutageNoticed(usize),
    /// A node that exists from the start is lost.
    OutageBegins(usize),
    /// It is back.
    OutageEnds(usize),
    /// A machine in service gets notice of its failure.
    NodeNoticed(ClaimId, Time),
    /// A machine in service fails.
    NodeFails(ClaimId),
    /// A gang loses a machine to its own work, if this is still the start it was scheduled for.
    GangFails(GangId, u32),
    /// A provider reclaims a machine, as announced.
    Reclaimed(ClaimId),
    /// A released machine is gone.
    MachineGone(ClaimId),
    /// A machine that was told to stop has stopped.
    MachineStopped(ClaimId),
    /// Providers have fewer machines than their customers hold, and reclaim some.
    Reclaim,
    /// This region, or every region, is out of stock until then.
    OutOfStock(Option<&'static str>, Time),
    /// The forecaster is due.
    Forecast,
    /// A forecast says that so many free nodes of a pool will be wanted from now on.
    Outlook(u16, u32),
    /// The planner's wake-up time has come.
    Wake,
    /// Invalid input arrives.
    BadInput(BadInput),
    /// A user cancels the gang of this job.
    Cancel(usize),
    /// The owner of the gang of this job changes the size of one of its roles: minimum and maximum.
    OwnerResizes(usize, u16, (u32, u32)),
    /// The planner's process crashes after this many more actions.
    Crash(u32),
}

impl SimEvent {
    /// Whether it is a fault.
    pub(crate) fn is_fault(&self) -> bool {
        match self {
            SimEvent::OutageNoticed(_)
            | SimEvent::OutageBegins(_)
            | SimEvent::NodeNoticed(..)
            | SimEvent::NodeFails(_)
            | SimEvent::GangFails(..)
            | SimEvent::Reclaimed(_)
            | SimEvent::Reclaim
            | SimEvent::OutOfStock(..)
            | SimEvent::Outlook(..)
            | SimEvent::BadInput(_)
            | SimEvent::OwnerResizes(..)
            | SimEvent::Crash(_) => true,
            // A machine that was going to fail was requested before; it still fails.
            SimEvent::Submit(_)
            | SimEvent::Done(..)
            | SimEvent::GraceEnds(..)
            | SimEvent::Measured(..)
            | SimEvent::OutageEnds(_)
            | SimEvent::Machine(..)
            | SimEvent::MachineGone(_)
            | SimEvent::MachineStopped(_)
            | SimEvent::Forecast
            | SimEvent::Wake
            | SimEvent::Cancel(_) => false,
        }
    }
}

impl Sim {
    /// Schedules an event from outside, such as a fault.
    pub(crate) fn schedule(&mut self, at: Time, what: SimEvent) {
        self.event_queue.add(at, what);
    }

    pub(crate) fn handle(&mut self, what: SimEvent) {
        let result = match what {
            SimEvent::Submit(job) => self.submit(job),
            SimEvent::Done(gang, epoch) => self.done(gang, epoch),
            SimEvent::Machine(claim, stage) => self.machine(claim, stage),
            SimEvent::GraceEnds(gang, turn) => {
                self.grace_ends(gang, turn);
                Ok(())
            }
            SimEvent::Measured(gang, epoch) => self.measured(gang, epoch),
            SimEvent::OutageNoticed(outage) => self.outage_noticed(outage),
            SimEvent::OutageBegins(outage) => self.outage_begins(outage),
            SimEvent::OutageEnds(node) => self.outage_ends(node),
            SimEvent::NodeNoticed(claim, by) => self.node_noticed(claim, by),
            SimEvent::NodeFails(claim) => self.node_fails(claim),
            SimEvent::GangFails(gang, epoch) => self.gang_fails(gang, epoch),
            SimEvent::Reclaimed(claim) => self.reclaimed(claim),
            SimEvent::MachineGone(claim) => self.machine_gone(claim),
            SimEvent::MachineStopped(claim) => self.machine_stopped(claim),
            SimEvent::Reclaim => self.reclaim(),
            SimEvent::OutOfStock(region, until) => {
                self.cloud.out_of_stock(region, until);
                Ok(())
            }
            SimEvent::Forecast => self.forecast(),
            SimEvent::Outlook(pool, nodes) => self.set_outlook(pool, nodes),
            SimEvent::Wake => {
                self.wake_at = None;
                self.apply(Event::Tick)
            }
            SimEvent::BadInput(bad) => self.bad_input(&bad),
            SimEvent::Cancel(job) => self.cancel(job),
            SimEvent::OwnerResizes(job, role, size) => self.owner_resizes(job, role, size),
            SimEvent::Crash(after) => {
                self.crash_after = Some(after);
                Ok(())
            }
        };
        if let Err(refusal) = result {
            self.break_promise(
                Promise::BadInputIsAFinding,
                format!("the World refused a fact: {refusal}"),
            );
        }
    }

    fn submit(&mut self, job: usize) -> Result<(), Refusal> {
        let spec = Arc::new(self.jobs[job].gang.clone());
        if let Err(refusal) = self.apply(Event::GangSubmitted(self.gang_for_world(&spec))) {
            self.unfinished -= 1;
            self.note_fact(&Fact::GangRefused {
                name: spec.name.clone(),
                why: refusal.to_string(),
            });
            return Ok(());
        }
        let gang = self.world.gang_named(&spec.name).expect("just submitted");
        self.job_of.insert(gang, job);
        self.accounts.submitted(gang, job, self.now);
        self.note_fact(&Fact::GangSubmitted { gang, spec });
        Ok(())
    }

    fn machine(&mut self, claim: ClaimId, stage: Stage) -> Result<(), Refusal> {
        let here = |machine: &&mut Machine| !machine.released && !machine.reclaimed;
        let Some(machine) = self.cloud.machines.get_mut(&claim).filter(here) else {
            return Ok(()); // released in the meantime
        };
        match stage {
            Stage::Launched => {
                machine.billed_from = Some(self.now);
                self.apply(Event::ClaimLaunched(claim))?;
                self.note_fact(&Fact::ClaimLaunched { claim });
            }
            Stage::Joined => {
                let spec = self.node_spec(claim, 0, false);
                self.add_node(spec)?;
            }
            Stage::Shows(gpus) => {
                let spec = self.node_spec(claim, gpus, true);
                self.add_node(spec)?;
                self.schedule_failure(claim);
            }
            Stage::Fails(failure) => {
                if failure.is_transient() {
                    self.cloud.machines.remove(&claim); // there never was one; it may be requested again
                }
                self.apply(Event::ClaimFailed(claim, failure))?;
                self.note_fact(&Fact::ClaimFailed { claim, failure });
            }
        }
        Ok(())
    }

    fn node_spec(&self, claim: ClaimId, gpus: u16, ready: bool) -> NodeSpec {
        let offering = self.world.claims()[&claim].offering;
        self.world.offering(offering).spec.node(node_name(&self.world, claim), claim, gpus, ready)
    }

    fn forecast(&mut self) -> Result<(), Refusal> {
        for said in self.forecaster.look(&self.world, self.now) {
            self.apply(said)?;
        }
        if let Some(due) = self.forecaster.due(&self.world, self.now) {
            self.event_queue.add(due, SimEvent::Forecast);
        }
        Ok(())
    }

    fn set_outlook(&mut self, pool: u16, nodes: u32) -> Result<(), Refusal> {
        let pool = self.world.pools()[PoolIdx(pool)].spec.name.clone();
        let outlook = Outlook { from: self.now, step: Span::hours(2), nodes: vec![nodes, 0] };
        self.apply(Event::Expected { pool, outlook })
    }

    fn machine_stopped(&mut self, claim: ClaimId) -> Result<(), Refusal> {
        if self.cloud.machines.get(&claim).is_none_or(|machine| machine.released) {
            return Ok(());
        }
        self.remove_node(node_name(&self.world, claim))?;
        self.note_fact(&Fact::ClaimStopped { claim });
        self.apply(Event::ClaimStopped(claim))
    }

    fn machine_gone(&mut self, claim: ClaimId) -> Result<(), Refusal> {
        self.remove_node(node_name(&self.world, claim))?;
        self.cloud.machines.remove(&claim);
        self.note_fact(&Fact::ClaimGone { claim });
        self.apply(Event::ClaimGone(claim))
    }

    fn cancel(&mut self, job: usize) -> Result<(), Refusal> {
        let name = self.jobs[job].gang.name.clone();
        let Some(gang) = self.world.gang_named(&name) else { return Ok(()) };
        if self.world.cancelled().contains(&gang) {
            return Ok(());
        }
        let waiting = self.world.gang(gang).is_some_and(|gang| gang.phase == Phase::Waiting);
        self.apply(Event::GangCancelled(gang))?;
        self.note_fact(&Fact::GangCancelled { gang });
        if waiting {
            self.unfinished -= 1;
        }
        Ok(())
    }

    /// Sends an event that the World must refuse without any change.
    fn bad_input(&mut self, bad: &BadInput) -> Result<(), Refusal> {
        let before = self.fingerprint();
        let event = bad.event(&self.world);
        let refused = self.apply(event).is_err();
        if !refused || before != self.fingerprint() {
            self.break_promise(
                Promise::BadInputIsAFinding,
                format!("{bad:?} was not refused cleanly"),
            );
        }
        if self.sabotages(Promise::BadInputIsAFinding) {
            // As if the intake had stopped at the bad object: the next gang is lost.
            self.event_queue.retain(|event| !matches!(event, SimEvent::Submit(_)));
            let lost =
                self.jobs.iter().find(|job| job.submit >= self.now).map(|job| job.gang.clone());
            if let Some(spec) = lost {
                let spec = Arc::new(spec);
                self.note_fact(&Fact::GangSubmitted { gang: GangId(u32::MAX), spec });
            }
        }
        self.audit();
        Ok(())
    }

    /// Enough of the World to see that something has changed.
    fn fingerprint(&self) -> (usize, usize, usize, usize, u32, u32, usize) {
        let world = &self.world;
        (
            world.gangs().count(),
            world.nodes().count(),
            world.claims().len(),
            world.queues().len(),
            world.next_order().0,
            world.next_claim().0,
            world.pools().len(),
        )
    }
}
