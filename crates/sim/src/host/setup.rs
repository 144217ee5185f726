//! The inputs of a simulation, and its state before the first event.

use std::collections::BTreeMap;

use muster_core::Event;
use muster_core::event::Refusal;
use muster_core::node::NodeSpec;
use muster_core::plan::Plan;
use muster_core::pool::PoolSpec;
use muster_core::queue::QueueSpec;
use muster_core::time::{Span, Time};
use muster_core::topology::Levels;
use muster_forecast::Forecaster;
use muster_plan::{Policy, QueueOrder, world_for};
use muster_testkit::Ledger;
use muster_testkit::promises::Terms;
use rustc_hash::FxHashMap;

use crate::accounts::Accounts;
use crate::cloud::{Cloud, CloudModel, GangFailures};
use crate::event_queue::EventQueue;
use crate::host::cluster::barrier::Barrier;
use crate::host::cluster::nodes::Outage;
use crate::host::events::SimEvent;
use crate::host::options::{SimOptions, Step};
use crate::host::sim::Sim;
use crate::job::Job;

/// Everything a simulation starts from.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// Topology levels.
    pub levels: Levels,
    /// Queues, parents first.
    pub queues: Vec<QueueSpec>,
    /// Pools, and how their clouds behave.
    pub pools: Vec<(PoolSpec, CloudModel)>,
    /// Nodes that exist from the start.
    pub nodes: Vec<NodeSpec>,
    /// Outages of nodes that exist from the start.
    pub outages: Vec<Outage>,
    /// Mean GPU time in use after which a gang loses a machine, in addition to the failures that pools model.
    pub gang_failures: Option<Span>,
    /// The jobs, with their submit times.
    pub jobs: Vec<Job>,
    /// The Unix time at the start of the simulation, in milliseconds; calendars use it.
    pub epoch: i64,
}

impl Sim {
    /// A simulation before its first event. Queues and pools that the World refuses are the caller's mistake.
    ///
    /// # Errors
    /// When the World refuses a queue, pool or node.
    pub fn new(setup: Setup, policy: Policy, mut options: SimOptions) -> Result<Self, Refusal> {
        let Setup { levels, queues, pools, nodes, outages, gang_failures, jobs, epoch } = setup;
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
            event_queue: EventQueue::new(),
            cloud: Cloud::new(pools.clone(), options.seed),
            gang_failures: gang_failures.map(|mean| GangFailures::new(mean, options.seed)),
            job_of: FxHashMap::default(),
            barrier: options.barrier.take().map(Barrier::new),
            running: FxHashMap::default(),
            grace_periods: BTreeMap::new(),
            progress: FxHashMap::default(),
            standing: if outages.is_empty() { Vec::new() } else { nodes.clone() },
            outages,
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
            sim.apply(Event::QueueSet(sim.queue_for_world(queue)))?;
        }
        for (pool, _) in pools {
            sim.apply(Event::PoolSet(pool))?;
        }
        for node in nodes {
            sim.add_node(node)?;
        }
        for (i, job) in sim.jobs.iter().enumerate() {
            sim.event_queue.add(job.submit, SimEvent::Submit(i));
        }
        sim.schedule_outages();
        sim.apply(Event::Epoch(epoch))?;
        sim.apply(Event::Synced)?;
        if sim.world.pools().values().any(|pool| pool.spec.keeps_nodes()) {
            sim.event_queue.add(sim.now, SimEvent::Wake); // proactive pools do not wait for the first job
        }
        if let Some(due) = sim.forecaster.due(&sim.world, sim.now) {
            sim.event_queue.add(due, SimEvent::Forecast);
        }
        Ok(sim)
    }
}
