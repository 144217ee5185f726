//! Every second and every millionth of what is bought is accounted for, under all faults.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use muster_core::Fact;
use muster_core::id::{ClaimId, OfferingRef};
use muster_core::money::Money;
use muster_core::order::ClaimFailure;
use muster_core::pool::PoolSpec;
use muster_core::queue::QueueSpec;
use muster_core::time::{Span, Time};
use muster_sim::faults::{draw, run_seed};
use muster_sim::meter::{Meter, State};
use muster_sim::{Setup, Sim, Summary};
use muster_testkit::build;

use crate::two_zones::{exact_cloud, job, play, two_zones};

/// The bill in the simplest form: from launch until release or stop, machine by machine.
#[derive(Default)]
struct Bill {
    offerings: BTreeMap<ClaimId, OfferingRef>,
    open: BTreeMap<ClaimId, Time>,
    gpu_ms: u64,
    node_ms: u64,
    cost: Money,
}

impl Bill {
    fn note(&mut self, pools: &[PoolSpec], now: Time, fact: &Fact) {
        match fact {
            Fact::ClaimRequested { claim, offering } => {
                self.offerings.insert(*claim, *offering);
            }
            Fact::ClaimLaunched { claim } => {
                self.open.entry(*claim).or_insert(now);
            }
            Fact::ClaimReleased { claim } | Fact::ClaimParked { claim } => {
                self.settle(pools, now, *claim);
            }
            _ => {}
        }
    }
    fn settle(&mut self, pools: &[PoolSpec], now: Time, claim: ClaimId) {
        let Some(from) = self.open.remove(&claim) else { return };
        let at = self.offerings[&claim];
        let spec = &pools[usize::from(at.pool.0)].offerings[usize::from(at.slot)];
        let span = now.since(from);
        self.gpu_ms += span.0 * u64::from(spec.gpus);
        self.node_ms += span.0;
        self.cost += spec.price.per_hour_for(span);
    }
}

/// A random world with random faults, read by the meter and by the bill until the last fact.
fn stormy(seed: u64) -> (Meter, Bill) {
    let pools: Vec<PoolSpec> = draw(seed).setup.pools.into_iter().map(|(pool, _)| pool).collect();
    let read = Rc::new(RefCell::new((Meter::new(pools.clone()), Bill::default(), Time::ZERO)));
    let reads = read.clone();
    let watched = pools.clone();
    let run = run_seed(
        seed,
        None,
        Some(Box::new(move |now, _, fact| {
            let (meter, bill, last) = &mut *reads.borrow_mut();
            meter.note(now, fact);
            bill.note(&watched, now, fact);
            *last = now;
        })),
    );
    assert_eq!(run.violations, [], "seed {seed}");
    let (mut meter, mut bill, last) = Rc::into_inner(read).expect("it is over").into_inner();
    meter.count_until(last);
    for claim in bill.open.keys().copied().collect::<Vec<_>>() {
        bill.settle(&pools, last, claim);
    }
    (meter, bill)
}

#[test]
fn states_queues_and_pools_add_up_to_the_bill_under_random_faults() {
    let (mut seen, mut rollbacks) = ([0_u128; State::ALL.len()], Money::ZERO);
    let mut stopped = 0;
    for seed in 4..12 {
        let (meter, bill) = stormy(seed);
        let bought = meter.bought();
        assert_eq!(bought.bought_gpu_ms(), bill.gpu_ms, "seed {seed}: GPU time");
        let in_states: u128 = bought.gpu.iter().map(|(_, gpu)| gpu).sum();
        assert_eq!(in_states, u128::from(bill.gpu_ms) * 1_000, "seed {seed}: to the thousandth");
        assert_eq!(bought.bought_node_ms(), bill.node_ms, "seed {seed}: node time");
        assert_eq!(bought.cost(), bill.cost, "seed {seed}: the bill");
        let paid = meter.money_by_queue().fold(meter.shared_money(), |sum, (_, pays)| sum + pays);
        assert_eq!(paid, bill.cost, "seed {seed}: costs by payer");
        for (sum, (_, gpu)) in seen.iter_mut().zip(bought.gpu.iter()) {
            *sum += gpu;
        }
        for one in meter.rolled_back() {
            assert!(one.until.0 >= 0 && one.after.0 >= 0, "seed {seed}: {one:?}");
            rollbacks += one.until + one.after;
            assert!(one.until + one.after <= bill.cost, "seed {seed}: {one:?}");
        }
        stopped += bought.stopped_node_ms;
    }
    // And the worlds covered all states.
    let all_but_broken = State::ALL.iter().zip(seen).filter(|(state, _)| **state != State::Broken);
    for (state, gpu) in all_but_broken {
        assert!(gpu > 0, "nothing was ever {}", state.name());
    }
    assert!(rollbacks > Money::ZERO && stopped > 0);
}

/// Three queues, more work than the pool has room for, a stock-out and a node that does not boot.
fn three_queues() -> Setup {
    let failures = [("a", 3, ClaimFailure::StockOut), ("a", 6, ClaimFailure::BootFailed)];
    let mut setup = two_zones(12, exact_cloud(&failures));
    setup.queues = ["red", "green", "blue"].map(QueueSpec::open).to_vec();
    let colour = |i: u64| ["red", "green", "blue"][i as usize % 3].into();
    let some = |i: u64| {
        let (members, gpus) = [(4, 8), (1, 4), (2, 8), (3, 2)][i as usize % 4];
        let mut gang = build::gang(&format!("g{i}"), members, gpus);
        gang.queue = colour(i);
        job(gang, 170 * i, 500 + 31 * i)
    };
    setup.jobs = (0..16).map(some).collect();
    setup
}

#[test]
fn summary_accounts_for_all_hours_and_money() {
    let (_, sim) = play(three_queues());
    let summary = Summary::of(&sim, "muster", true);
    let supply = summary.supply.as_ref().expect("there is a pool");
    let near = |a: f64, b: f64| (a - b).abs() < 1e-6;
    let gpu_hours: f64 = supply.gpu_hours.iter().map(|(_, hours)| hours).sum();
    assert!(near(gpu_hours, supply.bought_gpu_hours), "{supply:#?}");
    let node_hours: f64 = supply.node_hours.iter().map(|(_, hours)| hours).sum();
    assert!(near(node_hours, summary.node_hours), "{supply:#?}");
    // All gangs run on purchased nodes.
    assert!(near(supply.gpu_hours[State::Running], summary.busy_gpu_hours), "{supply:#?}");
    let queues: f64 = supply.queues.iter().map(|paid| paid.cost).sum();
    assert_eq!(supply.queues.len(), 3);
    assert!(near(queues + supply.shared, summary.cost), "{supply:#?}");
    assert!(near(supply.pools[0].cost, summary.cost) && near(supply.tiers[0].cost, summary.cost));
    assert_eq!(supply.rollbacks.iter().map(|one| one.count as u64).sum::<u64>(), summary.rollbacks);
    assert!(supply.stock_outs == 1 && supply.failures["boot-failed"] == 1, "{supply:#?}");
    assert!(summary.gang_hit_rate.is_some_and(|rate| rate > 0.0 && rate < 1.0), "{summary:#?}");
    assert!(supply.ready_p50_s.is_some_and(|secs| secs >= 180.0), "a boot takes three minutes");
}

#[test]
fn accounts_closed_early_are_complete_until_then() {
    let options = muster_sim::SimOptions::default();
    let mut sim = Sim::new(three_queues(), muster_plan::Policy::default(), options).unwrap();
    while sim.next_at().is_some_and(|at| at <= Time::ZERO + Span::mins(20)) {
        sim.step();
    }
    sim.close();
    let midway = sim.accounts().meter().bought();
    assert!(midway.gpu[State::Running] > 0 && midway.cost() > Money::ZERO);
    // Closing early changes nothing: the rest of the run gives the same totals as without it.
    sim.run(Time::ZERO + Span::hours(48));
    let (_, unseen) = play(three_queues());
    assert_eq!(sim.accounts().meter().bought(), unseen.accounts().meter().bought());
}

#[test]
fn without_pools_the_summary_has_no_supply_figures() {
    let mut setup = two_zones(0, exact_cloud(&[]));
    setup.pools.clear();
    setup.nodes = vec![build::node("n", 8, &[])];
    setup.jobs = vec![job(build::gang("one", 1, 8), 0, 60), job(build::gang("two", 1, 8), 0, 60)];
    let (_, sim) = play(setup);
    let summary = Summary::of(&sim, "muster", true);
    assert_eq!((summary.supply, summary.gang_hit_rate), (None, Some(0.5)));
    assert_eq!(summary.multi_node_hit_rate, None);
}
