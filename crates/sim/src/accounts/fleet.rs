//! All purchased machines, and their time and money by state.

use std::ops::AddAssign;
use std::sync::Arc;

use muster_core::id::{ClaimId, NodeIdx, OfferingRef};
use muster_core::money::Money;
use muster_core::pool::{OfferingSpec, PoolSpec};
use muster_core::resource::NamedAmounts;
use muster_core::time::{Span, Time};
use rustc_hash::FxHashMap;

use crate::accounts::machine::{Charge, Machine, Payer, Phase};
use crate::accounts::state::{ByState, State};

/// Totals of the machines of a pool, or of all pools. The states add up to what was bought.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// GPU time, in GPU thousandths times milliseconds.
    pub gpu: ByState<u128>,
    /// Machine time in milliseconds. A machine that is used at all is running.
    pub node_ms: ByState<u64>,
    /// Money. Each GPU of a machine costs the same part of its price.
    pub money: ByState<Money>,
    /// GPU time of stopped machines, which are not billed.
    pub stopped_gpu: u128,
    /// Time of stopped machines in milliseconds.
    pub stopped_node_ms: u64,
}

impl Tally {
    /// The total cost.
    pub fn cost(&self) -> Money {
        self.money.iter().fold(Money::ZERO, |sum, (_, money)| sum + money)
    }
    /// GPU time paid for, in milliseconds.
    pub fn bought_gpu_ms(&self) -> u64 {
        (self.gpu.iter().map(|(_, gpu)| gpu).sum::<u128>() / 1_000) as u64
    }
    /// Machine time paid for, in milliseconds.
    pub fn bought_node_ms(&self) -> u64 {
        self.node_ms.iter().map(|(_, ms)| ms).sum()
    }
    /// GPU time in one state, in milliseconds.
    pub fn gpu_ms(&self, state: State) -> u64 {
        (self.gpu[state] / 1_000) as u64
    }
    /// Time of ready machines with nothing running on them, in milliseconds.
    pub fn empty_node_ms(&self) -> u64 {
        EMPTY.iter().map(|state| self.node_ms[*state]).sum()
    }
    /// GPU time that is ready and unused, without stranded GPUs.
    pub fn empty_gpu_ms(&self) -> u64 {
        EMPTY.iter().map(|state| self.gpu_ms(*state)).sum()
    }
}

/// The states of an empty machine that is ready.
const EMPTY: [State; 3] = [State::Gathering, State::Warm, State::Idle];

impl AddAssign<&Tally> for Tally {
    fn add_assign(&mut self, other: &Tally) {
        let Tally { gpu, node_ms, money, stopped_gpu, stopped_node_ms } = other;
        for state in State::ALL {
            self.gpu[state] += gpu[state];
            self.node_ms[state] += node_ms[state];
            self.money[state] += money[state];
        }
        self.stopped_gpu += stopped_gpu;
        self.stopped_node_ms += stopped_node_ms;
    }
}

/// All machines.
#[derive(Clone, Debug)]
pub(crate) struct Fleet {
    pools: Arc<[PoolSpec]>,
    tallies: Vec<Tally>,
    /// The cost of each queue, by number.
    queues: Vec<Money>,
    shared: Money,
    machines: FxHashMap<ClaimId, Machine>,
    /// The machine behind a node. A node that is gone keeps its slot until its members have left.
    claim_at: FxHashMap<NodeIdx, ClaimId>,
}

impl Fleet {
    pub(crate) fn new(pools: Vec<PoolSpec>) -> Self {
        Self {
            tallies: vec![Tally::default(); pools.len()],
            pools: pools.into(),
            queues: Vec::new(),
            shared: Money::ZERO,
            machines: FxHashMap::default(),
            claim_at: FxHashMap::default(),
        }
    }
    pub(crate) fn pools(&self) -> &[PoolSpec] {
        &self.pools
    }
    /// Totals of each pool.
    pub(crate) fn tallies(&self) -> &[Tally] {
        &self.tallies
    }
    /// The cost of a queue.
    pub(crate) fn owed_by(&self, queue: u32) -> Money {
        self.queues.get(queue as usize).copied().unwrap_or_default()
    }
    /// The cost that no single queue pays.
    pub(crate) fn shared(&self) -> Money {
        self.shared
    }
    /// The machine of a node.
    pub(crate) fn claim_at(&self, node: NodeIdx) -> Option<ClaimId> {
        if self.machines.is_empty() {
            return None; // without purchases; this is called for every member
        }
        self.claim_at.get(&node).copied()
    }

    /// A claim was made, or is about to be; returns whether it is new.
    pub(crate) fn ask(&mut self, now: Time, claim: ClaimId, offering: OfferingRef) -> bool {
        let known = self.machines.len();
        self.machines.entry(claim).or_insert_with(|| Machine::new(offering, now));
        self.machines.len() > known
    }

    /// The offering of a machine.
    pub(crate) fn offering_of(&self, claim: ClaimId) -> Option<OfferingRef> {
        self.machines.get(&claim).map(|machine| machine.offering)
    }
    /// Removes the rollback that a machine is charged to.
    pub(crate) fn clear_charge(&mut self, claim: ClaimId) -> Option<Charge> {
        self.machines.get_mut(&claim)?.charge.take()
    }

    /// The node of a machine was seen, with its GPUs if it is ready.
    pub(crate) fn seen(
        &mut self,
        now: Time,
        claim: ClaimId,
        node: NodeIdx,
        shown: Option<(&NamedAmounts, u16)>,
    ) {
        let Some(machine) = self.machines.get(&claim) else { return };
        let promised = spec(&self.pools, machine.offering);
        let complete = shown.is_some_and(|(shown, gpus)| promised.lacks(shown, gpus).is_none());
        self.claim_at.insert(node, claim);
        self.change(now, claim, |machine| machine.seen(node, complete));
    }

    /// Every machine.
    pub(crate) fn machines_mut(&mut self) -> impl Iterator<Item = &mut Machine> {
        self.machines.values_mut()
    }

    /// A node has no machine any more.
    pub(crate) fn forget_node(&mut self, node: NodeIdx) {
        self.claim_at.remove(&node);
    }

    /// Counts a machine until now, and changes it; returns the result of the change, if there is such a machine.
    pub(crate) fn change<T>(
        &mut self,
        now: Time,
        claim: ClaimId,
        change: impl FnOnce(&mut Machine) -> T,
    ) -> Option<T> {
        self.count(now, claim);
        self.machines.get_mut(&claim).map(change)
    }

    /// A machine was released; returns it.
    pub(crate) fn release(&mut self, now: Time, claim: ClaimId) -> Option<Machine> {
        self.count(now, claim);
        let machine = self.machines.remove(&claim)?;
        if let Some(node) = machine.node.filter(|node| self.claim_at.get(node) == Some(&claim)) {
            self.claim_at.remove(&node);
        }
        Some(machine)
    }

    /// Counts every machine until now.
    pub(crate) fn count_all(&mut self, now: Time) {
        // In order, so that rounding is the same in every run.
        let mut all: Vec<ClaimId> = self.machines.keys().copied().collect();
        all.sort_unstable();
        for claim in all {
            self.count(now, claim);
        }
    }

    /// Counts a machine until now. Its bill is its price from launch to now, rounded down to the millionth, less what was
    /// counted before; so nothing is lost however often it is counted.
    /// Of that, each part gets its share, rounded so that all parts together are exact.
    fn count(&mut self, now: Time, claim: ClaimId) {
        let Some(machine) = self.machines.get_mut(&claim) else { return };
        let span = now.since(std::mem::replace(&mut machine.since, now));
        let tally = &mut self.tallies[usize::from(machine.offering.pool.0)];
        let spec = spec(&self.pools, machine.offering);
        let gpu_milli = u64::from(spec.gpus) * 1_000;
        if machine.phase == Phase::Stopped {
            tally.stopped_gpu += time(gpu_milli, span);
            tally.stopped_node_ms += span.0;
        }
        if !machine.is_billed() || span == Span::ZERO {
            return;
        }
        let total = machine.before + spec.price.per_hour_for(now.since(machine.launched));
        let due = total - std::mem::replace(&mut machine.spent, total);
        tally.node_ms[machine.state()] += span.0;
        let whole = machine.whole(gpu_milli);
        let (mut passed, mut paid) = (0, Money::ZERO);
        machine.parts(gpu_milli, |state, payer, part| {
            passed += part;
            let upto = Money((i128::from(due.0) * i128::from(passed) / i128::from(whole)) as i64);
            let pays = upto - std::mem::replace(&mut paid, upto);
            tally.money[state] += pays;
            match payer {
                Payer::Shared => self.shared += pays,
                Payer::Queue(queue) => owe(&mut self.queues, queue, pays),
            }
            if gpu_milli > 0 {
                tally.gpu[state] += time(part, span);
            }
        });
    }
}

fn time(gpu_milli: u64, span: Span) -> u128 {
    u128::from(gpu_milli) * u128::from(span.0)
}

fn owe(queues: &mut Vec<Money>, queue: u32, pays: Money) {
    let queue = queue as usize;
    if queues.len() <= queue {
        queues.resize(queue + 1, Money::ZERO);
    }
    queues[queue] += pays;
}

fn spec(pools: &[PoolSpec], at: OfferingRef) -> &OfferingSpec {
    &pools[usize::from(at.pool.0)].offerings[usize::from(at.slot)]
}
