//! Accounts: what a simulation came to, from facts alone.

use std::sync::Arc;

use muster_core::Fact;
use muster_core::gang::GangSpec;
use muster_core::id::{ClaimId, GangId, OfferingRef};
use muster_core::money::Money;
use muster_core::pool::PoolSpec;
use muster_core::time::{Span, Time};
use rustc_hash::FxHashMap;

/// What became of one job.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Outcome {
    /// When it entered its queue; none if it was refused or never came.
    pub submitted: Option<Time>,
    /// When all its members started, the last time they did.
    pub started: Option<Time>,
    /// When its work was done.
    pub ended: Option<Time>,
    /// From the first member's start to the last one's, the last time they started.
    pub spread: Span,
    /// GPU time members ran while others of their gang had not started yet, in milliseconds.
    pub partial_gpu_ms: u64,
    /// Times it had to start over.
    pub restarts: u32,
    /// Orders placed for it.
    pub orders: u32,
    /// Orders rolled back.
    pub rollbacks: u32,
}

impl Outcome {
    /// From submission to the start that led to the end.
    pub fn wait(&self) -> Option<Span> {
        Some(self.started?.since(self.submitted?))
    }
}

/// A machine's bill.
#[derive(Clone, Copy, Debug)]
struct Bill {
    offering: OfferingRef,
    from: Option<Time>,
}

/// Running totals.
#[derive(Clone, Debug)]
pub struct Accounts {
    pools: Vec<PoolSpec>,
    outcomes: Vec<Outcome>,
    job_of: FxHashMap<GangId, usize>,
    starting: FxHashMap<GangId, Vec<(Time, u64)>>,
    running: FxHashMap<GangId, (Time, u64)>,
    specs: FxHashMap<GangId, Arc<GangSpec>>,
    bills: FxHashMap<ClaimId, Bill>,
    /// Claims made.
    pub claims: u64,
    /// Claims that failed.
    pub failed_claims: u64,
    /// Orders placed.
    pub orders: u64,
    /// Orders rolled back.
    pub rollbacks: u64,
    /// What all machines cost, from launch to release.
    pub cost: Money,
    /// Machine time, from launch to release, in milliseconds.
    pub node_ms: u64,
    /// GPU time of machines, from launch to release, in milliseconds.
    pub bought_gpu_ms: u64,
    /// GPU time of members that ran, in milliseconds.
    pub busy_gpu_ms: u64,
    /// GPU time of members whose work was lost when their gang had to start over, in milliseconds.
    pub lost_gpu_ms: u64,
}

impl Accounts {
    pub(crate) fn new(pools: Vec<PoolSpec>, jobs: usize) -> Self {
        Self {
            pools,
            outcomes: vec![Outcome::default(); jobs],
            job_of: FxHashMap::default(),
            starting: FxHashMap::default(),
            running: FxHashMap::default(),
            specs: FxHashMap::default(),
            bills: FxHashMap::default(),
            claims: 0,
            failed_claims: 0,
            orders: 0,
            rollbacks: 0,
            cost: Money::ZERO,
            node_ms: 0,
            bought_gpu_ms: 0,
            busy_gpu_ms: 0,
            lost_gpu_ms: 0,
        }
    }
    /// What became of each job, in the order they were given.
    pub fn outcomes(&self) -> &[Outcome] {
        &self.outcomes
    }

    pub(crate) fn submitted(&mut self, gang: GangId, job: usize, now: Time) {
        self.job_of.insert(gang, job);
        self.outcomes[job].submitted = Some(now);
    }

    pub(crate) fn note(&mut self, now: Time, fact: &Fact) {
        match fact {
            Fact::OrderPlaced { gang, .. } => {
                self.orders += 1;
                self.with_job(*gang, |outcome| outcome.orders += 1);
            }
            Fact::OrderRolledBack { gang, .. } => {
                self.rollbacks += 1;
                self.with_job(*gang, |outcome| outcome.rollbacks += 1);
            }
            Fact::ClaimRequested { claim, offering } => {
                self.claims += 1;
                self.bills.insert(*claim, Bill { offering: *offering, from: None });
            }
            Fact::ClaimLaunched { claim } => {
                if let Some(bill) = self.bills.get_mut(claim) {
                    bill.from = Some(now);
                }
            }
            Fact::ClaimFailed { .. } => self.failed_claims += 1,
            Fact::ClaimReleased { claim } => self.settle_bill(now, *claim),
            // A stopped machine costs nothing worth a line until it is woken.
            Fact::ClaimParked { claim } => {
                let offering = self.bills.get(claim).map(|bill| bill.offering);
                self.settle_bill(now, *claim);
                self.bills.extend(offering.map(|offering| (*claim, Bill { offering, from: None })));
            }
            Fact::GangSubmitted { gang, spec } => {
                self.specs.insert(*gang, spec.clone());
            }
            Fact::MembersStarted { gang, role, members, .. } => {
                let spec = self.specs.get(gang).and_then(|spec| spec.roles.get(usize::from(*role)));
                let each = spec.map_or(0, |role| role.request.gpu_milli());
                let gpu_milli = each * u64::from(*members);
                self.starting.entry(*gang).or_default().push((now, gpu_milli));
            }
            Fact::GangStarted { gang } => self.started(now, *gang),
            Fact::GangEnded { gang } => {
                self.count_run(now, *gang);
                self.with_job(*gang, |outcome| outcome.ended = Some(now));
                self.specs.remove(gang);
                self.job_of.remove(gang);
            }
            Fact::GangStopped { gang, .. } => {
                self.lost_gpu_ms += self.count_run(now, *gang);
                self.with_job(*gang, |outcome| outcome.restarts += 1);
            }
            _ => {}
        }
    }

    fn started(&mut self, now: Time, gang: GangId) {
        let members = self.starting.remove(&gang).unwrap_or_default();
        let first = members.iter().map(|(at, _)| *at).min().unwrap_or(now);
        let last = members.iter().map(|(at, _)| *at).max().unwrap_or(now);
        let early = |(at, gpu_milli): &(Time, u64)| gpu_milli * last.since(*at).0 / 1_000;
        let partial_gpu_ms: u64 = members.iter().map(early).sum();
        self.running.insert(gang, (now, members.iter().map(|(_, gpu_milli)| gpu_milli).sum()));
        self.with_job(gang, |outcome| {
            outcome.started = Some(now);
            outcome.spread = last.since(first);
            outcome.partial_gpu_ms += partial_gpu_ms;
        });
    }

    fn count_run(&mut self, now: Time, gang: GangId) -> u64 {
        let Some((since, gpu_milli)) = self.running.remove(&gang) else { return 0 };
        let gpu_ms = gpu_milli * now.since(since).0 / 1_000;
        self.busy_gpu_ms += gpu_ms;
        gpu_ms
    }

    /// Settles the bills of what is still there when nobody looks any more.
    pub fn close(&mut self, now: Time) {
        let mut open: Vec<ClaimId> = self.bills.keys().copied().collect();
        open.sort_unstable();
        for claim in open {
            self.settle_bill(now, claim);
        }
    }

    fn settle_bill(&mut self, now: Time, claim: ClaimId) {
        let Some(Bill { offering, from: Some(from) }) = self.bills.remove(&claim) else { return };
        let spec = &self.pools[usize::from(offering.pool.0)].offerings[usize::from(offering.slot)];
        let span = now.since(from);
        self.cost += spec.price.per_hour_for(span);
        self.node_ms += span.0;
        self.bought_gpu_ms += span.0 * u64::from(spec.gpus);
    }

    fn with_job(&mut self, gang: GangId, change: impl FnOnce(&mut Outcome)) {
        if let Some(job) = self.job_of.get(&gang) {
            change(&mut self.outcomes[*job]);
        }
    }
}
