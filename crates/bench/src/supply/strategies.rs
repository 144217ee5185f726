//! The strategies that are compared, by name.

use std::time::Instant;

use anyhow::Context;
use muster_core::ahead::ForecastSpec;
use muster_core::pool::PoolSpec;
use muster_core::queue::QueueSpec;
use muster_core::time::{Span, Time};
use muster_plan::Policy;
use muster_sim::accounts::Accounts;
use muster_sim::accounts::{Tally, Work};
use muster_sim::{Job, Setup, Sim, SimOptions};

use crate::rivals::{self, AcceptedTerms, Market, PerPodTerms, Rival, SerialTerms};
use crate::supply::model;

/// A provisioning strategy.
pub(crate) struct Strategy {
    /// Its name.
    pub(crate) name: &'static str,
    how: How,
}

enum How {
    /// The real planner, with the pools and its settings changed by this.
    Muster(fn(&mut [PoolSpec], &mut Policy)),
    /// Another provisioner; the span is how long an unused node is kept.
    Rival(fn(Span) -> Rival),
}

/// All strategies. A variant of Muster is a name and a change of its settings and of the pools, which are given by size of
/// machine, the smallest first.
pub(crate) const ALL: [Strategy; 5] = [
    Strategy { name: "muster", how: How::Muster(thrifty) },
    Strategy { name: "muster-reactive", how: How::Muster(|_, _| {}) },
    Strategy { name: "per-pod", how: How::Rival(per_pod) },
    Strategy { name: "accepted-is-ready", how: How::Rival(accepted) },
    Strategy { name: "serial-failover", how: How::Rival(serial) },
];

/// Recommended settings of Muster where the cost of waiting is unknown: an unused node is released soon, and nodes are kept
/// free where the expected gangs make that cheaper than their waiting. An offering that is out of stock is tried again after
/// a minute.
fn thrifty(pools: &mut [PoolSpec], policy: &mut Policy) {
    (policy.avoid_base, policy.avoid_max) = (Span::mins(1), Span::mins(1));
    for pool in pools {
        pool.idle_after = Span::secs(30);
        pool.ahead.spare = 200;
        let price = pool.offerings[0].price;
        pool.ahead.forecast =
            Some(ForecastSpec { cost_of_waiting: Some(price), ..ForecastSpec::default() });
    }
}

fn per_pod(idle_after: Span) -> Rival {
    Rival::PerPod(PerPodTerms { idle_after, ..PerPodTerms::default() })
}
fn accepted(idle_after: Span) -> Rival {
    Rival::AcceptedIsReady(AcceptedTerms { idle_after, ..AcceptedTerms::default() })
}
fn serial(_: Span) -> Rival {
    Rival::SerialFailover(SerialTerms::default())
}

/// The results of a run.
pub(crate) struct Measured {
    pub(crate) accounts: Accounts,
    /// Wall time.
    pub(crate) seconds: f64,
}

impl Measured {
    pub(crate) fn work(&self) -> Work {
        self.accounts.meter().work()
    }
    pub(crate) fn bought(&self) -> Tally {
        self.accounts.meter().bought()
    }
}

/// How long jobs have to end after the last submission; far more than any job takes.
const DRAIN_LIMIT: Span = Span::hours(24 * 60);

impl Strategy {
    /// Serves these jobs to the end.
    pub(crate) fn run(
        &self,
        jobs: &[Job],
        seed: u64,
        idle_after: Span,
        settings: &[String],
    ) -> anyhow::Result<Measured> {
        let began = Instant::now();
        let mut pools = model::pools(idle_after);
        let last = jobs.last().map_or(Time::ZERO, |job| job.submit);
        let until = last + DRAIN_LIMIT;
        let accounts = match &self.how {
            How::Muster(change) => {
                let mut specs: Vec<PoolSpec> = pools.iter().map(|(pool, _)| pool.clone()).collect();
                let mut policy = policy();
                change(&mut specs, &mut policy);
                for text in settings {
                    policy.set(text).map_err(|why| anyhow::anyhow!("--set: {why}"))?;
                }
                for ((pool, _), changed) in pools.iter_mut().zip(specs) {
                    *pool = changed;
                }
                let market = Market { pools, gang_failures: Some(model::WEAR), seed };
                let mut sim = stage(market, jobs, policy)?;
                sim.run(until);
                sim.accounts().clone()
            }
            How::Rival(rival) => {
                let market = Market { pools, gang_failures: Some(model::WEAR), seed };
                rivals::run(&rival(idle_after), market, jobs, until)?.accounts
            }
        };
        Ok(Measured { accounts, seconds: began.elapsed().as_secs_f64() })
    }
}

/// The planner's settings here. Verdicts are not read; decisions are the same without them.
pub(crate) fn policy() -> Policy {
    Policy { explain: false, ..Policy::default() }
}

/// The real planner with this market, before the first job.
pub(crate) fn stage(
    Market { pools, gang_failures, seed }: Market,
    jobs: &[Job],
    policy: Policy,
) -> anyhow::Result<Sim> {
    let setup = Setup {
        queues: vec![QueueSpec::open("default")],
        pools,
        gang_failures,
        jobs: jobs.to_vec(),
        ..Setup::default()
    };
    let options = SimOptions { seed, ..SimOptions::default() };
    Sim::new(setup, policy, options).context("the model's pools")
}
