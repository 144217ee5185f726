//! The simulation itself: its state, its steps, and what callers can read from it.

use std::collections::BTreeMap;

use muster_core::event::Refusal;
use muster_core::gang::Seat;
use muster_core::id::GangId;
use muster_core::node::NodeSpec;
use muster_core::order::Claim;
use muster_core::plan::Plan;
use muster_core::time::Time;
use muster_core::topology::Levels;
use muster_core::{Event, Fact, World};
use muster_forecast::Forecaster;
use muster_plan::{Policy, Why, plan, why};
use muster_testkit::promises::Promise;
use muster_testkit::{Ledger, Violation};
use rustc_hash::FxHashMap;

use crate::host::cluster::nodes::Outage;
use crate::host::events::SimEvent;
use crate::host::options::{SimOptions, Step};

use crate::accounts::Accounts;
use crate::cloud::{Cloud, GangFailures};
use crate::event_queue::EventQueue;
use crate::host::cluster::barrier::Barrier;
use crate::host::gangs::grace::GracePeriod;
use crate::host::gangs::progress::Progress;
use crate::job::Job;
use crate::record::Recorder;

/// A gang's members as the cluster knows them; survives a crash of the planner.
#[derive(Clone, Debug)]
pub(super) struct Running {
    pub(super) seats: Vec<Seat>,
    /// The number of this start: an end that was scheduled for an earlier start is void.
    pub(super) epoch: u32,
}

/// Called with every fact, live.
pub type Watcher = Box<dyn FnMut(Time, &World, &Fact)>;

/// One simulation.
pub struct Sim {
    pub(super) now: Time,
    pub(super) world: World,
    pub(super) policy: Policy,
    pub(super) options: SimOptions,
    pub(super) event_queue: EventQueue<SimEvent>,
    pub(super) cloud: Cloud,
    pub(super) gang_failures: Option<GangFailures>,
    pub(super) jobs: Vec<Job>,
    pub(super) job_of: FxHashMap<GangId, usize>,
    pub(super) barrier: Option<Barrier>,
    pub(super) running: FxHashMap<GangId, Running>,
    pub(super) grace_periods: BTreeMap<GangId, GracePeriod>,
    pub(super) progress: FxHashMap<GangId, Progress>,
    pub(super) standing: Vec<NodeSpec>,
    pub(super) outages: Vec<Outage>,
    pub(super) starts: u32,
    pub(super) wake_at: Option<Time>,
    pub(super) reclaim_at: Option<Time>,
    pub(super) forecaster: Forecaster,
    pub(super) ledger: Option<Ledger>,
    pub(super) accounts: Accounts,
    pub(super) recorder: Option<Recorder>,
    pub(super) watcher: Option<Watcher>,
    /// The log of the planner's process; kept only where it may crash.
    pub(super) log: Option<Vec<(Time, Event)>>,
    pub(super) levels: Levels,
    pub(super) crash_after: Option<u32>,
    pub(super) last_plan: Plan,
    pub(super) steps: u64,
    pub(super) unfinished: usize,
}

impl std::fmt::Debug for Sim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sim")
            .field("now", &self.now)
            .field("steps", &self.steps)
            .finish_non_exhaustive()
    }
}

impl Sim {
    /// Calls the watcher with every fact from here on.
    pub fn watch(&mut self, watcher: Watcher) {
        self.watcher = Some(watcher);
    }

    /// Removes and returns the watcher.
    pub fn unwatch(&mut self) -> Option<Watcher> {
        self.watcher.take()
    }

    /// The time of the next event, if there is one.
    pub fn next_at(&self) -> Option<Time> {
        self.event_queue.next_at()
    }

    /// Handles the next event (or all events of the next instant), plans, and executes the plan.
    /// `false` when no event is left.
    pub fn step(&mut self) -> bool {
        if self.options.step == Step::Pyss && self.event_queue.next_at().is_some() {
            self.step_as_pyss();
            self.after_step();
            self.steps += 1;
            return true;
        }
        let Some((at, first)) = self.event_queue.pop() else { return false };
        self.now = at;
        self.handle(first);
        if self.options.step == Step::Instant {
            while self.event_queue.next_at() == Some(at) {
                let (_, next) = self.event_queue.pop().expect("just peeked");
                self.handle(next);
            }
        }
        self.plan_until_stable();
        self.after_step();
        self.steps += 1;
        true
    }

    /// Runs until every job is over and every pool node is released, or until `until`.
    pub fn run(&mut self, until: Time) {
        while self.next_at().is_some_and(|at| at <= until) && !self.is_over() {
            self.step();
        }
        self.close();
    }

    /// Brings the accounts of all that still runs up to now; for callers of [`Self::step`].
    pub fn close(&mut self) {
        self.accounts.close(self.now);
    }

    /// Whether every job is over and no purchased node is left except those of proactive pools.
    pub fn is_over(&self) -> bool {
        let kept = |claim: &Claim| self.world.pools()[claim.offering.pool].spec.keeps_nodes();
        self.unfinished == 0 && self.world.claims().values().all(kept)
    }

    /// The current time.
    pub fn now(&self) -> Time {
        self.now
    }
    /// Steps taken.
    pub fn steps(&self) -> u64 {
        self.steps
    }
    /// Jobs that are not over yet.
    pub fn unfinished(&self) -> usize {
        self.unfinished
    }
    /// The World as the planner sees it.
    pub fn world(&self) -> &World {
        &self.world
    }
    /// The verdict on every gang now, whether or not the policy explains as it goes.
    pub fn explain(&self) -> Plan {
        plan(&self.world, self.now, &Policy { explain: true, ..self.policy.clone() })
    }
    /// The verdict on one gang now, and what would change it.
    pub fn why(&self, gang: GangId) -> Option<Why> {
        why(&self.world, self.now, &self.policy, gang)
    }
    /// The plan of the last step.
    pub fn last_plan(&self) -> &Plan {
        &self.last_plan
    }
    /// Broken promises so far; none when they are not checked.
    pub fn violations(&self) -> &[Violation] {
        self.ledger.as_ref().map_or(&[], Ledger::violations)
    }
    /// Where time and money went, and the outcome of every job.
    pub fn accounts(&self) -> &Accounts {
        &self.accounts
    }
    /// The recording, if there is one.
    pub fn recorder_mut(&mut self) -> Option<&mut Recorder> {
        self.recorder.as_mut()
    }
    /// The jobs.
    pub fn jobs(&self) -> &[Job] {
        &self.jobs
    }
    /// From here on nothing fails: no stock-outs, no bad boots, no failing nodes, no crashes, no bad input.
    pub fn stop_faults(&mut self) {
        self.cloud.stop_faults();
        self.crash_after = None;
        self.event_queue.retain(|event| !event.is_fault());
        self.withdraw_notices();
    }

    /// Applies an event to the World, and records and logs it.
    pub(super) fn apply(&mut self, event: Event) -> Result<(), Refusal> {
        if let Some(recorder) = &mut self.recorder {
            recorder.event(self.now, &event);
        }
        let result = self.world.apply(self.now, &event);
        if let (Ok(()), Some(log)) = (&result, &mut self.log) {
            log.push((self.now, event));
        }
        result
    }

    pub(super) fn note_fact(&mut self, fact: &Fact) {
        if let Some(ledger) = &mut self.ledger {
            ledger.note(self.now, fact);
        }
        self.accounts.note(self.now, fact);
        if let Some(watcher) = &mut self.watcher {
            watcher(self.now, &self.world, fact);
        }
    }

    pub(super) fn break_promise(&mut self, promise: Promise, what: String) {
        let at = self.now;
        if let Some(ledger) = &mut self.ledger {
            ledger.report(Violation { promise, at, what });
        }
    }
}
