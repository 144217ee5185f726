//! The host in virtual time: takes happenings one by one, tells the World, asks the planner, and acts.

mod act;
mod crash;
mod happen;
mod options;
mod pyss;

use std::collections::BTreeSet;
use std::sync::Arc;

use muster_core::event::Refusal;
use muster_core::gang::Seat;
use muster_core::id::{ClaimId, GangId};
use muster_core::node::NodeSpec;
use muster_core::order::Claim;
use muster_core::plan::Plan;
use muster_core::pool::PoolSpec;
use muster_core::queue::QueueSpec;
use muster_core::time::Time;
use muster_core::topology::Levels;
use muster_core::verdict::{Blocker, Verdict};
use muster_core::{Event, Fact, World};
use muster_forecast::Forecaster;
use muster_plan::{Policy, QueueOrder, Why, plan, why, world_for};
use muster_testkit::promises::{Promise, Terms};
use muster_testkit::{Ledger, Violation};
use rustc_hash::FxHashMap;

pub use options::{SimOptions, Step};

use crate::accounts::Accounts;
use crate::agenda::Agenda;
use crate::barrier::Barrier;
use crate::cloud::{Cloud, CloudModel};
use crate::faults::Sabotage;
use crate::job::Job;
use crate::record::Recorder;
pub(crate) use happen::Happening;

/// Everything a simulation starts from.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// Topology levels.
    pub levels: Levels,
    /// Queues, parents first.
    pub queues: Vec<QueueSpec>,
    /// Pools, and how their clouds behave.
    pub pools: Vec<(PoolSpec, CloudModel)>,
    /// Nodes that are there from the start.
    pub nodes: Vec<NodeSpec>,
    /// What is submitted, and when.
    pub jobs: Vec<Job>,
    /// What Unix time it is when the simulation begins, in milliseconds; calendars go by it.
    pub epoch: i64,
}

/// A gang's members as the cluster knows them; survives a crash of the planner.
#[derive(Clone, Debug)]
struct Running {
    seats: Vec<Seat>,
    /// Which start this is: an end that was scheduled for an earlier start is void.
    epoch: u32,
}

/// Called with every fact, for those who watch live.
pub type Watcher = Box<dyn FnMut(Time, &World, &Fact)>;

/// One simulation.
pub struct Sim {
    now: Time,
    world: World,
    policy: Policy,
    options: SimOptions,
    agenda: Agenda<Happening>,
    cloud: Cloud,
    jobs: Vec<Job>,
    job_of: FxHashMap<GangId, usize>,
    barrier: Option<Barrier>,
    running: FxHashMap<GangId, Running>,
    starts: u32,
    wake_at: Option<Time>,
    reclaim_at: Option<Time>,
    forecaster: Forecaster,
    ledger: Option<Ledger>,
    accounts: Accounts,
    recorder: Option<Recorder>,
    watcher: Option<Watcher>,
    /// What the planner's process has written down; kept only where it may crash.
    log: Option<Vec<(Time, Event)>>,
    levels: Levels,
    crash_after: Option<u32>,
    last_plan: Plan,
    steps: u64,
    unfinished: usize,
}

impl std::fmt::Debug for Sim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sim")
            .field("now", &self.now)
            .field("steps", &self.steps)
            .finish_non_exhaustive()
    }
}

/// Rounds of planning at one instant before it is called a loop. Each round admits, orders, rolls back or
/// releases something, so real instants need a handful.
const ROUNDS_MAX: u32 = 1_000;

impl Sim {
    /// Sets the stage. Queues and pools that the World refuses are the caller's mistake.
    ///
    /// # Errors
    /// When a queue, pool or node does not fit.
    pub fn new(setup: Setup, policy: Policy, mut options: SimOptions) -> Result<Self, Refusal> {
        let Setup { levels, queues, pools, nodes, jobs, epoch } = setup;
        let terms = Terms {
            queues: queues.clone(),
            pools: pools.iter().map(|(spec, _)| spec.clone()).collect(),
            avoid_at_least: policy.avoid_base,
            first_come_first_served: policy.order == QueueOrder::Fifo || options.expect_fifo,
            starts_are_firm: policy.order.starts_are_firm() && options.step != Step::Pyss,
        };
        let mut recorder = options.recorder.take();
        if let Some(recorder) = &mut recorder {
            recorder.start(&levels, &policy);
        }
        let mut sim = Self {
            now: Time::ZERO,
            world: world_for(&policy, levels.clone()),
            recorder,
            policy,
            agenda: Agenda::new(),
            cloud: Cloud::new(pools.clone(), options.seed),
            job_of: FxHashMap::default(),
            barrier: options.barrier.take().map(Barrier::new),
            running: FxHashMap::default(),
            starts: 0,
            wake_at: None,
            reclaim_at: None,
            forecaster: Forecaster::default(),
            ledger: options.check.then(|| Ledger::new(terms)),
            accounts: Accounts::new(
                pools.iter().map(|(spec, _)| spec.clone()).collect(),
                jobs.len(),
            ),
            watcher: None,
            log: options.may_crash.then(Vec::new),
            levels,
            crash_after: None,
            last_plan: Plan::default(),
            steps: 0,
            unfinished: jobs.len(),
            options,
            jobs,
        };
        for queue in queues {
            sim.tell(Event::QueueSet(queue))?;
        }
        for (pool, _) in pools {
            sim.tell(Event::PoolSet(pool))?;
        }
        for node in nodes {
            sim.see_node(node)?;
        }
        for (i, job) in sim.jobs.iter().enumerate() {
            sim.agenda.add(job.submit, Happening::Submit(i));
        }
        sim.tell(Event::Epoch(epoch))?;
        sim.tell(Event::Synced)?;
        if sim.world.pools().values().any(|pool| pool.spec.keeps_nodes()) {
            sim.agenda.add(sim.now, Happening::Wake); // what is kept ahead of need does not wait for the first job
        }
        if let Some(due) = sim.forecaster.due(&sim.world, sim.now) {
            sim.agenda.add(due, Happening::Forecast);
        }
        Ok(sim)
    }

    /// Shows every fact to somebody as it happens.
    pub fn watch(&mut self, watcher: Watcher) {
        self.watcher = Some(watcher);
    }

    /// Shows nothing to anybody from here on, and gives the watcher back.
    pub fn watch_nobody(&mut self) -> Option<Watcher> {
        self.watcher.take()
    }

    /// The time of the next happening, if anything is still to come.
    pub fn next_at(&self) -> Option<Time> {
        self.agenda.next_at()
    }

    /// Lets the next happening happen (or all of the next instant) and does all that follows from it.
    /// `false` when nothing is left to happen.
    pub fn step(&mut self) -> bool {
        if self.options.step == Step::Pyss && self.agenda.next_at().is_some() {
            self.step_as_pyss();
            self.after_step();
            self.steps += 1;
            return true;
        }
        let Some((at, first)) = self.agenda.pop() else { return false };
        self.now = at;
        self.happen(first);
        if self.options.step == Step::Instant {
            while self.agenda.next_at() == Some(at) {
                let (_, next) = self.agenda.pop().expect("just peeked");
                self.happen(next);
            }
        }
        self.decide();
        self.after_step();
        self.steps += 1;
        true
    }

    /// Runs until every job is over and every pool node is given back, or until `until`.
    pub fn run(&mut self, until: Time) {
        while self.next_at().is_some_and(|at| at <= until) && !self.is_over() {
            self.step();
        }
        self.close();
    }

    /// Brings the accounts of what is still there up to now; for those who step by themselves.
    pub fn close(&mut self) {
        self.accounts.close(self.now);
    }

    /// Whether every job is over and nothing bought is left but what pools keep ahead of need.
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
    /// Where every gang stands now, whether or not the planner was asked to say so as it went.
    pub fn explain(&self) -> Plan {
        plan(&self.world, self.now, &Policy { explain: true, ..self.policy.clone() })
    }
    /// Where one gang stands now, and what would change that.
    pub fn why(&self, gang: GangId) -> Option<Why> {
        why(&self.world, self.now, &self.policy, gang)
    }
    /// The plan of the last step.
    pub fn last_plan(&self) -> &Plan {
        &self.last_plan
    }
    /// Broken promises so far; none when nobody checks.
    pub fn violations(&self) -> &[Violation] {
        self.ledger.as_ref().map_or(&[], Ledger::violations)
    }
    /// What happened, in numbers.
    pub fn accounts(&self) -> &Accounts {
        &self.accounts
    }
    /// The recording, if one was asked for.
    pub fn recorder_mut(&mut self) -> Option<&mut Recorder> {
        self.recorder.as_mut()
    }
    /// What the jobs are.
    pub fn jobs(&self) -> &[Job] {
        &self.jobs
    }
    /// From here on nothing fails: no stock-outs, no bad boots, no failing nodes, no crashes, no bad input.
    pub fn calm(&mut self) {
        self.cloud.calm();
        self.crash_after = None;
        self.agenda.retain(|happening| !happening.is_fault());
    }

    /// Tells the World something that has happened, and writes it down.
    fn tell(&mut self, event: Event) -> Result<(), Refusal> {
        if let Some(recorder) = &mut self.recorder {
            recorder.event(self.now, &event);
        }
        let result = self.world.apply(self.now, &event);
        if let (Ok(()), Some(log)) = (&result, &mut self.log) {
            log.push((self.now, event));
        }
        result
    }

    fn fact(&mut self, fact: &Fact) {
        if let Some(ledger) = &mut self.ledger {
            ledger.note(self.now, fact);
        }
        self.accounts.note(self.now, fact);
        if let Some(watcher) = &mut self.watcher {
            watcher(self.now, &self.world, fact);
        }
    }

    fn see_node(&mut self, spec: NodeSpec) -> Result<(), Refusal> {
        let (name, claim, gpus, ready) = (spec.name.clone(), spec.claim, spec.gpus, spec.ready);
        let allocatable = spec.allocatable.clone();
        self.tell(Event::NodeSeen(spec))?;
        let node = self.world.node_named(&name).expect("just seen");
        self.fact(&Fact::NodeSeen { node, name, claim, allocatable, gpus, ready });
        Ok(())
    }

    /// Asks the planner once and does what it says. `false` when it has nothing to say.
    fn pass(&mut self) -> bool {
        let plan = plan(&self.world, self.now, &self.policy);
        if let Some(recorder) = &mut self.recorder {
            recorder.plan(self.now, &plan);
        }
        if let Some(ledger) = &mut self.ledger {
            ledger.promised(self.now, &plan.reservations);
        }
        let acts = !plan.groups.is_empty();
        let done = self.act(&plan);
        if let Some(ledger) = self.ledger.as_mut().filter(|_| done) {
            ledger.targets(self.now, &plan.targets);
        }
        self.last_plan = plan;
        acts
    }

    /// Plans and acts until there is nothing left to do at this instant.
    fn decide(&mut self) {
        for round in 0.. {
            if !self.pass() || (!self.policy.explain && self.is_at_rest()) {
                break;
            }
            if round == ROUNDS_MAX {
                self.break_promise(
                    Promise::NoHoldAndWait,
                    "the planner does not come to rest".to_owned(),
                );
                break;
            }
        }
        if let Some(wake) = self.last_plan.wake
            && self.wake_at != Some(wake)
        {
            self.wake_at = Some(wake);
            self.agenda.add(wake, Happening::Wake);
        }
    }

    /// Whether the planner would have nothing to add at this instant: where nothing can be bought and nobody has
    /// to be stopped, a pass has started all that can start, and room only got less.
    fn is_at_rest(&self) -> bool {
        self.world.pools().is_empty()
            && self.world.broken().is_empty()
            && self.world.cancelled().is_empty()
    }

    fn after_step(&mut self) {
        let Some(ledger) = &mut self.ledger else { return };
        ledger.excuse(excused(&self.last_plan));
        ledger.check(self.now);
        if self.policy.explain
            && self.options.step != Step::Pyss
            && self.world.gangs().count() != self.last_plan.verdicts.len()
        {
            let what = "a gang got no verdict".to_owned();
            self.break_promise(Promise::BadInputIsAFinding, what);
        }
    }

    fn break_promise(&mut self, promise: Promise, what: String) {
        let at = self.now;
        if let Some(ledger) = &mut self.ledger {
            ledger.report(Violation { promise, at, what });
        }
    }

    fn sabotages(&self, sabotage: Promise) -> bool {
        self.options.sabotage == Some(Sabotage(sabotage))
    }
}

/// Gangs that others may pass: they can never run, their queue is at its limit, or they stand right behind
/// such a gang of their own queue.
fn excused(plan: &Plan) -> BTreeSet<GangId> {
    let mut excused = BTreeSet::new();
    let limited = |blocker: &Blocker| {
        matches!(blocker, Blocker::QueueLimit { .. } | Blocker::UserLimit { .. })
    };
    loop {
        let known = excused.len();
        for (id, verdict) in &plan.verdicts {
            let may_pass = match verdict {
                Verdict::Impossible { .. } => true,
                Verdict::Waiting { blockers, .. } => match blockers.as_slice() {
                    [Blocker::Behind(ahead)] => excused.contains(ahead),
                    blockers => blockers.iter().any(limited),
                },
                _ => false,
            };
            if may_pass {
                excused.insert(*id);
            }
        }
        if excused.len() == known {
            return excused;
        }
    }
}

/// A name for the node a claim becomes.
fn node_name(world: &World, claim: ClaimId) -> Arc<str> {
    format!("node-{}", world.claims()[&claim].name).into()
}
