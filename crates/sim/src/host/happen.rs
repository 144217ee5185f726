//! What can happen, and what the World is told about it.

use std::sync::Arc;

use muster_core::event::Refusal;
use muster_core::gang::Phase;
use muster_core::id::{ClaimId, GangId, PoolIdx};
use muster_core::node::NodeSpec;
use muster_core::proactive::Outlook;
use muster_core::time::{Span, Time};
use muster_core::{Event, Fact};
use muster_testkit::promises::Promise;

use super::Sim;
use super::nodes::node_name;
use crate::cloud::{Machine, Stage};
use crate::faults::BadInput;

/// Something on the agenda.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Happening {
    /// A job is submitted.
    Submit(usize),
    /// A gang's work is done, if this is still the start it was scheduled for.
    Done(GangId, u32),
    /// A machine reaches a stage.
    Machine(ClaimId, Stage),
    /// A gang has saved and leaves seats, if this is still what it was told to do.
    Leaves(GangId, u32),
    /// What a gang's members bring is known, if it has not been stopped or changed since.
    Measured(GangId, u32),
    /// A node that is there from the start will be gone.
    OutageNoticed(usize),
    /// A node that is there from the start goes.
    OutageBegins(usize),
    /// It is back.
    OutageEnds(usize),
    /// A machine in service will fail, and says when.
    NodeNoticed(ClaimId, Time),
    /// A machine in service fails.
    NodeFails(ClaimId),
    /// A gang loses a machine to its own work, if this is still the start it was scheduled for.
    Wears(GangId, u32),
    /// A provider takes back a machine, as announced.
    Taken(ClaimId),
    /// A machine that was given back is gone.
    MachineGone(ClaimId),
    /// A machine that was told to stop has stopped.
    MachineStopped(ClaimId),
    /// Providers have fewer machines than their customers.
    Reclaim,
    /// Nothing can be had in this region, or anywhere, until then.
    OutOfStock(Option<&'static str>, Time),
    /// The forecaster wants to look at what was asked for.
    Forecast,
    /// A forecaster says that so many free nodes of a pool will be wanted from now on.
    Expect(u16, u32),
    /// The planner asked to be woken.
    Wake,
    /// Somebody sends nonsense.
    BadInput(BadInput),
    /// Somebody cancels whatever gang this job became.
    Cancel(usize),
    /// The owner of whatever gang this job became changes how many members one of its roles has: the least and the most.
    OwnerResizes(usize, u16, (u32, u32)),
    /// The planner's process dies after this many more actions.
    Crash(u32),
}

impl Happening {
    /// Whether it would not happen in a world without faults.
    pub(crate) fn is_fault(&self) -> bool {
        match self {
            Happening::OutageNoticed(_)
            | Happening::OutageBegins(_)
            | Happening::NodeNoticed(..)
            | Happening::NodeFails(_)
            | Happening::Wears(..)
            | Happening::Taken(_)
            | Happening::Reclaim
            | Happening::OutOfStock(..)
            | Happening::Expect(..)
            | Happening::BadInput(_)
            | Happening::OwnerResizes(..)
            | Happening::Crash(_) => true,
            // A machine that was going to fail is one that was asked for before; it still fails.
            Happening::Submit(_)
            | Happening::Done(..)
            | Happening::Leaves(..)
            | Happening::Measured(..)
            | Happening::OutageEnds(_)
            | Happening::Machine(..)
            | Happening::MachineGone(_)
            | Happening::MachineStopped(_)
            | Happening::Forecast
            | Happening::Wake
            | Happening::Cancel(_) => false,
        }
    }
}

impl Sim {
    /// Schedules something from outside, such as a fault.
    pub(crate) fn schedule(&mut self, at: Time, what: Happening) {
        self.agenda.add(at, what);
    }

    pub(super) fn happen(&mut self, what: Happening) {
        let result = match what {
            Happening::Submit(job) => self.submit(job),
            Happening::Done(gang, epoch) => self.done(gang, epoch),
            Happening::Machine(claim, stage) => self.machine(claim, stage),
            Happening::Leaves(gang, turn) => {
                self.leaves(gang, turn);
                Ok(())
            }
            Happening::Measured(gang, epoch) => self.measured(gang, epoch),
            Happening::OutageNoticed(outage) => self.outage_noticed(outage),
            Happening::OutageBegins(outage) => self.outage_begins(outage),
            Happening::OutageEnds(node) => self.outage_ends(node),
            Happening::NodeNoticed(claim, by) => self.node_noticed(claim, by),
            Happening::NodeFails(claim) => self.node_fails(claim),
            Happening::Wears(gang, epoch) => self.wears(gang, epoch),
            Happening::Taken(claim) => self.taken(claim),
            Happening::MachineGone(claim) => self.machine_gone(claim),
            Happening::MachineStopped(claim) => self.machine_stopped(claim),
            Happening::Reclaim => self.reclaim(),
            Happening::OutOfStock(region, until) => {
                self.cloud.out_of_stock(region, until);
                Ok(())
            }
            Happening::Forecast => self.forecast(),
            Happening::Expect(pool, nodes) => self.expect(pool, nodes),
            Happening::Wake => {
                self.wake_at = None;
                self.tell(Event::Tick)
            }
            Happening::BadInput(bad) => self.bad_input(&bad),
            Happening::Cancel(job) => self.cancel(job),
            Happening::OwnerResizes(job, role, size) => self.owner_resizes(job, role, size),
            Happening::Crash(after) => {
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
        if let Err(refusal) = self.tell(Event::GangSubmitted(self.told_of(&spec))) {
            self.unfinished -= 1;
            self.fact(&Fact::GangRefused { name: spec.name.clone(), why: refusal.to_string() });
            return Ok(());
        }
        let gang = self.world.gang_named(&spec.name).expect("just submitted");
        self.job_of.insert(gang, job);
        self.accounts.submitted(gang, job, self.now);
        self.fact(&Fact::GangSubmitted { gang, spec });
        Ok(())
    }

    fn machine(&mut self, claim: ClaimId, stage: Stage) -> Result<(), Refusal> {
        let here = |machine: &&mut Machine| !machine.released && !machine.reclaimed;
        let Some(machine) = self.cloud.machines.get_mut(&claim).filter(here) else {
            return Ok(()); // given back in the meantime
        };
        match stage {
            Stage::Launched => {
                machine.billed_from = Some(self.now);
                self.tell(Event::ClaimLaunched(claim))?;
                self.fact(&Fact::ClaimLaunched { claim });
            }
            Stage::Joined => {
                let spec = self.node_spec(claim, 0, false);
                self.see_node(spec)?;
            }
            Stage::Shows(gpus) => {
                let spec = self.node_spec(claim, gpus, true);
                self.see_node(spec)?;
                self.expect_failure(claim);
            }
            Stage::Fails(failure) => {
                if failure.is_transient() {
                    self.cloud.machines.remove(&claim); // there never was one; it may be asked for again
                }
                self.tell(Event::ClaimFailed(claim, failure))?;
                self.fact(&Fact::ClaimFailed { claim, failure });
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
            self.tell(said)?;
        }
        if let Some(due) = self.forecaster.due(&self.world, self.now) {
            self.agenda.add(due, Happening::Forecast);
        }
        Ok(())
    }

    fn expect(&mut self, pool: u16, nodes: u32) -> Result<(), Refusal> {
        let pool = self.world.pools()[PoolIdx(pool)].spec.name.clone();
        let outlook = Outlook { from: self.now, step: Span::hours(2), nodes: vec![nodes, 0] };
        self.tell(Event::Expected { pool, outlook })
    }

    fn machine_stopped(&mut self, claim: ClaimId) -> Result<(), Refusal> {
        if self.cloud.machines.get(&claim).is_none_or(|machine| machine.released) {
            return Ok(());
        }
        self.lose_node(node_name(&self.world, claim))?;
        self.fact(&Fact::ClaimStopped { claim });
        self.tell(Event::ClaimStopped(claim))
    }

    fn machine_gone(&mut self, claim: ClaimId) -> Result<(), Refusal> {
        self.lose_node(node_name(&self.world, claim))?;
        self.cloud.machines.remove(&claim);
        self.fact(&Fact::ClaimGone { claim });
        self.tell(Event::ClaimGone(claim))
    }

    fn cancel(&mut self, job: usize) -> Result<(), Refusal> {
        let name = self.jobs[job].gang.name.clone();
        let Some(gang) = self.world.gang_named(&name) else { return Ok(()) };
        if self.world.cancelled().contains(&gang) {
            return Ok(());
        }
        let waiting = self.world.gang(gang).is_some_and(|gang| gang.phase == Phase::Waiting);
        self.tell(Event::GangCancelled(gang))?;
        self.fact(&Fact::GangCancelled { gang });
        if waiting {
            self.unfinished -= 1;
        }
        Ok(())
    }

    /// Sends something the World must refuse without anybody noticing.
    fn bad_input(&mut self, bad: &BadInput) -> Result<(), Refusal> {
        let before = self.fingerprint();
        let event = bad.event(&self.world);
        let refused = self.tell(event).is_err();
        if !refused || before != self.fingerprint() {
            self.break_promise(
                Promise::BadInputIsAFinding,
                format!("{bad:?} was not refused cleanly"),
            );
        }
        if self.sabotages(Promise::BadInputIsAFinding) {
            // As if the intake had stopped at the bad object: whoever comes next is lost.
            self.agenda.retain(|happening| !matches!(happening, Happening::Submit(_)));
            let lost =
                self.jobs.iter().find(|job| job.submit >= self.now).map(|job| job.gang.clone());
            if let Some(spec) = lost {
                let spec = Arc::new(spec);
                self.fact(&Fact::GangSubmitted { gang: GangId(u32::MAX), spec });
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
