//! Who is compared, by name.

use std::time::Instant;

use anyhow::Context;
use muster_core::pool::PoolSpec;
use muster_core::proactive::ForecastSpec;
use muster_core::queue::QueueSpec;
use muster_core::time::{Span, Time};
use muster_plan::Policy;
use muster_sim::accounts::Accounts;
use muster_sim::meter::{Tally, Work};
use muster_sim::rivals::{self, AcceptedTerms, Market, PerPodTerms, Rival, SerialTerms};
use muster_sim::{Job, Setup, Sim, SimOptions};

use super::model;

/// A way to get nodes for gangs.
pub(super) struct Strategy {
    /// What it is called.
    pub(super) name: &'static str,
    how: How,
}

enum How {
    /// The real planner, with the pools and its settings changed by this.
    Muster(fn(&mut [PoolSpec], &mut Policy)),
    /// Somebody else; the span is how long an unused node is kept.
    Rival(fn(Span) -> Rival),
}

/// Everybody who is compared. A variant of Muster is a name and what it changes about its settings and the pools, which are
/// given by size of machine, the smallest first.
pub(super) const ALL: [Strategy; 5] = [
    Strategy { name: "muster", how: How::Muster(thrifty) },
    Strategy { name: "muster-reactive", how: How::Muster(|_, _| {}) },
    Strategy { name: "per-pod", how: How::Rival(per_pod) },
    Strategy { name: "accepted-is-ready", how: How::Rival(accepted) },
    Strategy { name: "serial-failover", how: How::Rival(serial) },
];

/// Muster as we would set it up where nobody says what waiting costs: an unused node goes soon, and nodes are kept
/// free where the gangs that are expected make that cheaper than their waiting. Where nothing was to be had it is asked again
/// after a minute.
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

/// What a run came to.
pub(super) struct Came {
    pub(super) accounts: Accounts,
    /// Wall time.
    pub(super) seconds: f64,
}

impl Came {
    pub(super) fn work(&self) -> Work {
        self.accounts.meter().work()
    }
    pub(super) fn bought(&self) -> Tally {
        self.accounts.meter().bought()
    }
}

/// How long everybody has after the last submission; far more than any job takes.
const PATIENCE: Span = Span::hours(24 * 60);

impl Strategy {
    /// Serves these jobs to the end.
    pub(super) fn run(
        &self,
        jobs: &[Job],
        seed: u64,
        idle_after: Span,
        settings: &[String],
    ) -> anyhow::Result<Came> {
        let began = Instant::now();
        let mut pools = model::pools(idle_after);
        let last = jobs.last().map_or(Time::ZERO, |job| job.submit);
        let until = last + PATIENCE;
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
                let market = Market { pools, wear: Some(model::WEAR), seed };
                let mut sim = stage(market, jobs, policy)?;
                sim.run(until);
                sim.accounts().clone()
            }
            How::Rival(rival) => {
                let market = Market { pools, wear: Some(model::WEAR), seed };
                rivals::run(&rival(idle_after), market, jobs, until)?.accounts
            }
        };
        Ok(Came { accounts, seconds: began.elapsed().as_secs_f64() })
    }
}

/// The planner's settings here. Nobody reads verdicts; decisions are the same without them.
pub(crate) fn policy() -> Policy {
    Policy { explain: false, ..Policy::default() }
}

/// The real planner with this market, before the first job.
pub(crate) fn stage(
    Market { pools, wear, seed }: Market,
    jobs: &[Job],
    policy: Policy,
) -> anyhow::Result<Sim> {
    let setup = Setup {
        queues: vec![QueueSpec::open("default")],
        pools,
        wear,
        jobs: jobs.to_vec(),
        ..Setup::default()
    };
    let options = SimOptions { seed, ..SimOptions::default() };
    Sim::new(setup, policy, options).context("the model's pools")
}
