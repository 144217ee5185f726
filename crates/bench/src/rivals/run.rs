//! Runs one rival on a workload.

use muster_core::device::WHOLE;
use muster_core::pool::PoolSpec;
use muster_core::time::{Span, Time};
use muster_sim::Job;
use muster_sim::accounts::Accounts;
use muster_sim::cloud::CloudModel;

use crate::rivals::accepted::{self, AcceptedTerms};
use crate::rivals::events::Strategy;
use crate::rivals::per_pod::{self, PerPodTerms};
use crate::rivals::serial::{self, SerialTerms};
use crate::rivals::simulation::RivalSim;

/// A provisioner, with its settings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Rival {
    /// Every member on its own, as in Karpenter.
    PerPod(PerPodTerms),
    /// An accepted request counts as nodes, as in Cluster Autoscaler's best-effort-atomic class.
    AcceptedIsReady(AcceptedTerms),
    /// One zone after the other, all or nothing, nothing shared, as in SkyPilot.
    SerialFailover(SerialTerms),
}

/// Why a workload cannot be compared.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotComparable {
    /// A gang is of a kind that the rivals are not modelled for.
    #[error("gang {0}: only gangs of one rigid role with whole GPUs can be compared")]
    Gang(String),
    /// No machine is large enough.
    #[error("gang {name}: no offering has {gpus} GPUs in one machine")]
    TooLarge {
        /// The gang.
        name: String,
        /// GPUs of one member.
        gpus: u16,
    },
}

/// The results of a run.
#[derive(Clone, Debug)]
pub struct Run {
    /// Waits, money, where GPU time went.
    pub accounts: Accounts,
}

/// The supply that all strategies share.
#[derive(Clone, Debug)]
pub struct Market {
    /// Pools, and how their clouds behave.
    pub pools: Vec<(PoolSpec, CloudModel)>,
    /// Mean GPU time in use after which a gang loses a machine, in addition to the failures that pools model.
    pub gang_failures: Option<Span>,
    /// Seed of the clouds.
    pub seed: u64,
}

/// Serves these jobs from this market with a rival until every job is over and every machine released, or until `until`.
///
/// # Errors
/// When a job is of a kind that the rivals are not modelled for.
pub fn run(rival: &Rival, market: Market, jobs: &[Job], until: Time) -> Result<Run, NotComparable> {
    let largest = market.pools.iter().flat_map(|(pool, _)| &pool.offerings).map(|o| o.gpus).max();
    jobs.iter().try_for_each(|job| comparable(job, largest.unwrap_or(0)))?;
    let sim = RivalSim::new(market, jobs);
    Ok(match rival {
        Rival::PerPod(terms) => play(sim, per_pod::PerPod::new(*terms), until),
        Rival::AcceptedIsReady(terms) => play(sim, accepted::Accepted::new(*terms), until),
        Rival::SerialFailover(terms) => play(sim, serial::Serial::new(*terms), until),
    })
}

fn play(mut sim: RivalSim<'_>, mut strategy: impl Strategy, until: Time) -> Run {
    strategy.begin(&mut sim);
    while sim.step(&mut strategy, until) {}
    sim.finish()
}

fn comparable(job: &Job, largest: u16) -> Result<(), NotComparable> {
    let [role] = job.gang.roles.as_slice() else {
        return Err(NotComparable::Gang(job.gang.name.to_string()));
    };
    match &role.request.gpu {
        Some(gpu) if gpu.share == WHOLE && gpu.count > 0 && role.min == role.max => {
            if gpu.count > largest {
                let (name, gpus) = (job.gang.name.to_string(), gpu.count);
                return Err(NotComparable::TooLarge { name, gpus });
            }
            Ok(())
        }
        _ => Err(NotComparable::Gang(job.gang.name.to_string())),
    }
}
