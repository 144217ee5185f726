//! Hand-made facts, with totals computed by hand.

use std::sync::Arc;

use muster_core::Fact;
use muster_core::device::DeviceSet;
use muster_core::gang::GangSpec;
use muster_core::id::{ClaimId, GangId, NodeIdx, OfferingRef, OrderId, PoolIdx};
use muster_core::money::Money;
use muster_core::order::{ClaimFailure, RollbackReason};
use muster_core::plan::StopReason;
use muster_core::pool::PoolSpec;
use muster_core::time::{Span, Time};
use muster_testkit::build;

use crate::accounts::meter::Meter;
use crate::accounts::orders::{Cause, RolledBack};
use crate::accounts::state::State;

/// 8-GPU nodes for 3.60 an hour: a thousandth of a unit of money per second. And nodes without GPUs, at ten
/// times that.
fn pools() -> Vec<PoolSpec> {
    let gpu = build::pool("gpu", vec![build::offering("a", 3.6)]);
    let mut cpu = build::pool("cpu", vec![build::offering("a", 36.0)]);
    (cpu.tier, cpu.offerings[0].gpus, cpu.offerings[0].gpu) = ("spot".into(), 0, None);
    vec![gpu, cpu]
}

const GPU: OfferingRef = OfferingRef { pool: PoolIdx(0), slot: 0 };
const CPU: OfferingRef = OfferingRef { pool: PoolIdx(1), slot: 0 };

/// A meter with a clock. Gangs, claims and nodes go by number; the node of a claim has its number.
struct Clock(Meter, Time);

impl Clock {
    fn new() -> Self {
        Self(Meter::new(pools()), Time::ZERO)
    }
    fn at(&mut self, secs: u64) -> &mut Self {
        self.1 = Time::ZERO + Span::secs(secs);
        self
    }
    fn note(&mut self, fact: &Fact) -> &mut Self {
        self.0.note(self.1, fact);
        self
    }
    fn asked(&mut self, claim: u32, offering: OfferingRef) -> &mut Self {
        self.note(&Fact::ClaimRequested { claim: ClaimId(claim), offering })
    }
    fn launched(&mut self, claim: u32) -> &mut Self {
        self.note(&Fact::ClaimLaunched { claim: ClaimId(claim) })
    }
    fn shows(&mut self, claim: u32, gpus: u16) -> &mut Self {
        let (claim, node) = (Some(ClaimId(claim)), NodeIdx(claim));
        let (name, allocatable) = (Arc::from(""), Default::default());
        self.note(&Fact::NodeSeen { node, name, claim, allocatable, gpus, ready: true })
    }
    fn released(&mut self, claim: u32) -> &mut Self {
        self.note(&Fact::ClaimReleased { claim: ClaimId(claim) })
    }
    fn submitted(&mut self, gang: u32, queue: &str, members: u32, gpus: u16) -> &mut Self {
        let spec = GangSpec { queue: queue.into(), ..build::gang("g", members, gpus) };
        self.note(&Fact::GangSubmitted { gang: GangId(gang), spec: Arc::new(spec) })
    }
    fn sits(&mut self, gang: u32, node: u32, members: u16) -> &mut Self {
        let (gang, node, devices) = (GangId(gang), NodeIdx(node), DeviceSet::default());
        self.note(&Fact::MembersStarted { gang, role: 0, node, devices, members })
    }
    fn leaves(&mut self, gang: u32, node: u32, members: u16) -> &mut Self {
        let (gang, node, devices) = (GangId(gang), NodeIdx(node), DeviceSet::default());
        self.note(&Fact::MembersStopped { gang, role: 0, node, devices, members })
    }
    fn starts(&mut self, gang: u32) -> &mut Self {
        self.note(&Fact::GangStarted { gang: GangId(gang) })
    }
    fn ordered(&mut self, order: u32, gang: u32, claims: &[u32], holds: &[u32]) -> &mut Self {
        self.note(&Fact::OrderPlaced {
            order: OrderId(order),
            gang: GangId(gang),
            claims: claims.iter().map(|claim| (ClaimId(*claim), GPU)).collect(),
            holds: holds.iter().copied().map(NodeIdx).collect(),
            after: Vec::new(),
            deadline: Time::MAX,
        })
    }
    fn completed(&mut self, order: u32, gang: u32) -> &mut Self {
        self.note(&Fact::OrderCompleted { order: OrderId(order), gang: GangId(gang) })
    }
    fn rolled_back(&mut self, order: u32, gang: u32, reason: RollbackReason) -> &mut Self {
        self.note(&Fact::OrderRolledBack { order: OrderId(order), gang: GangId(gang), reason })
    }

    /// GPU-seconds in each state that has any.
    fn gpu_secs(&self) -> Vec<(State, u64)> {
        let secs = |(state, gpu): (State, u128)| (state, (gpu / 1_000_000) as u64);
        self.0.bought().gpu.iter().filter(|(_, gpu)| *gpu > 0).map(secs).collect()
    }
    /// Thousandths of money by queue, and what is shared.
    fn pay(&self) -> (Vec<(String, i64)>, i64) {
        let queues = self.0.money_by_queue().map(|(name, money)| (name.to_string(), milli(money)));
        (queues.collect(), milli(self.0.shared_money()))
    }
}

fn milli(money: Money) -> i64 {
    money.0 / 1_000
}

#[test]
fn machine_is_booting_warm_running_stranded_idle_and_broken_in_turn() {
    let mut clock = Clock::new();
    clock.at(0).asked(0, GPU).submitted(0, "research", 1, 6);
    clock.at(10).launched(0);
    clock.at(40).shows(0, 7); // one GPU is not visible yet
    clock.at(50).shows(0, 8);
    clock.at(70).sits(0, 0, 1).starts(0);
    clock.at(170).leaves(0, 0, 1);
    clock.at(200).note(&Fact::ClaimFailed { claim: ClaimId(0), failure: ClaimFailure::Vanished });
    clock.at(205).released(0);
    let eight = |secs: u64| 8 * secs;
    assert_eq!(
        clock.gpu_secs(),
        [
            (State::Running, 600),
            (State::Stranded, 200),
            (State::Booting, eight(40)),
            (State::Warm, eight(20)),
            (State::Idle, eight(30)),
            (State::Broken, eight(5)),
        ]
    );
    let bought = clock.0.bought();
    assert_eq!((bought.bought_gpu_ms(), bought.bought_node_ms()), (195_000 * 8, 195_000));
    assert_eq!(bought.node_ms[State::Running], 100_000);
    assert_eq!((milli(bought.cost()), milli(bought.money[State::Running])), (195, 75));
    assert_eq!(clock.pay(), (vec![("research".to_owned(), 75)], 120));
}

#[test]
fn nodes_of_an_order_are_gathering_until_the_last_and_its_queue_pays() {
    let mut clock = Clock::new();
    clock.at(0).submitted(0, "research", 2, 8).ordered(0, 0, &[0, 1], &[]);
    clock.asked(0, GPU).asked(1, GPU).launched(0).launched(1);
    clock.at(100).shows(0, 8);
    clock.at(130).shows(1, 8).completed(0, 0).sits(0, 0, 1).sits(0, 1, 1).starts(0);
    clock.at(230).0.count_until(Time::ZERO + Span::secs(230));
    assert_eq!(
        clock.gpu_secs(),
        [(State::Running, 1_600), (State::Gathering, 240), (State::Booting, 1_840)]
    );
    assert_eq!(clock.pay(), (vec![("research".to_owned(), 230)], 230));
    assert_eq!(clock.0.work().busy_gpu_ms, 1_600_000, "work under way counts");
    assert_eq!(clock.0.times_to_ready(), [Span::secs(130)]);
}

#[test]
fn two_queues_on_one_node_pay_for_the_gpus_they_use() {
    let mut clock = Clock::new();
    clock.at(0).submitted(0, "research", 1, 2).submitted(1, "product", 1, 4);
    clock.asked(0, GPU).launched(0).shows(0, 8).sits(0, 0, 1).starts(0).sits(1, 0, 1).starts(1);
    clock.at(80).released(0);
    let queues = vec![("research".to_owned(), 20), ("product".to_owned(), 40)];
    assert_eq!(clock.pay(), (queues, 20));
    assert_eq!(clock.gpu_secs(), [(State::Running, 480), (State::Stranded, 160)]);
}

#[test]
fn cost_of_a_node_without_gpus_is_divided_by_members() {
    let mut clock = Clock::new();
    clock.at(0).submitted(0, "research", 3, 0).submitted(1, "product", 1, 0);
    clock.asked(0, CPU).launched(0).shows(0, 0).sits(0, 0, 3).starts(0).sits(1, 0, 1).starts(1);
    clock.at(100).leaves(0, 0, 3);
    clock.at(150).leaves(1, 0, 1);
    clock.at(160).released(0);
    let queues = vec![("research".to_owned(), 750), ("product".to_owned(), 250 + 500)];
    assert_eq!(clock.pay(), (queues, 100));
    let bought = clock.0.bought();
    assert_eq!((bought.bought_gpu_ms(), bought.node_ms[State::Running]), (0, 150_000));
    let costs: Vec<i64> = clock.0.pools().map(|(_, tally)| milli(tally.cost())).collect();
    assert_eq!(costs, [0, 1_600]);
}

#[test]
fn stopped_machine_costs_nothing_and_is_unused_when_woken() {
    let mut clock = Clock::new();
    clock.at(0).submitted(0, "research", 1, 8).asked(0, GPU).launched(0).shows(0, 8);
    clock.sits(0, 0, 1).starts(0);
    clock.at(10).leaves(0, 0, 1);
    clock.at(20).note(&Fact::ClaimParked { claim: ClaimId(0) });
    clock.at(50).note(&Fact::NodeLost { node: NodeIdx(0), name: "".into() });
    clock.note(&Fact::ClaimStopped { claim: ClaimId(0) });
    clock.at(100).note(&Fact::ClaimWoken { claim: ClaimId(0) });
    clock.at(120).launched(0);
    clock.at(130).shows(0, 8);
    clock.at(150).released(0);
    let each = [(State::Running, 80), (State::Booting, 80), (State::Warm, 160), (State::Idle, 80)];
    assert_eq!(clock.gpu_secs(), each);
    let bought = clock.0.bought();
    assert_eq!((bought.stopped_node_ms, milli(bought.cost())), (100_000, 50));
}

#[test]
fn rollback_is_charged_for_its_nodes_until_they_are_used() {
    let mut clock = Clock::new();
    clock.at(0).submitted(0, "research", 3, 8).submitted(1, "product", 1, 8);
    clock.ordered(0, 0, &[0, 1, 2], &[]).asked(0, GPU).asked(1, GPU).asked(2, GPU);
    clock.at(10).launched(0).launched(1);
    clock.at(60).shows(0, 8).shows(1, 8);
    let failure = ClaimFailure::StockOut;
    clock.at(100).note(&Fact::ClaimFailed { claim: ClaimId(2), failure });
    clock.rolled_back(0, 0, RollbackReason::ClaimFailed(ClaimId(2), failure)).released(2);
    clock.at(130).sits(1, 0, 1).starts(1); // one of them is used by another gang
    clock.at(170).0.count_until(Time::ZERO + Span::secs(170)); // counting changes nothing
    clock.at(180).released(1); // the other is not
    clock.at(500).leaves(1, 0, 1).released(0);
    let [RolledBack { cause, until, after }] = *clock.0.rolled_back() else { panic!("one") };
    assert_eq!(cause, Cause::ClaimFailed(failure));
    assert_eq!((milli(until), milli(after)), (2 * 90, 30 + 80));
}

#[test]
fn order_is_charged_for_adopted_claims_only_since_their_adoption() {
    let mut clock = Clock::new();
    clock.at(0).submitted(0, "research", 2, 8).asked(0, GPU).launched(0);
    clock.at(40).ordered(0, 0, &[0, 1], &[]).asked(1, GPU).launched(1);
    clock.at(50).note(&Fact::ClaimFailed { claim: ClaimId(1), failure: ClaimFailure::BootFailed });
    let topped_up = Fact::OrderToppedUp {
        order: OrderId(0),
        lost: ClaimId(1),
        claim: ClaimId(2),
        offering: GPU,
    };
    clock.note(&topped_up).released(1).asked(2, GPU);
    clock.at(60).launched(2);
    clock.at(100).rolled_back(0, 0, RollbackReason::DeadlinePassed);
    // And the cost after it belongs to the order that holds them next.
    clock.ordered(1, 0, &[0], &[]);
    clock.at(200).released(0).released(2);
    let [RolledBack { until, after, .. }] = *clock.0.rolled_back() else { panic!("one") };
    assert_eq!((milli(until), milli(after)), (60 + 10 + 40, 100));
    assert_eq!((clock.0.top_ups(), clock.0.adopted(), clock.0.claims()), (1, 2, 3));
}

#[test]
fn existing_nodes_are_gathering_for_the_order_that_holds_them() {
    let mut clock = Clock::new();
    clock.at(0).submitted(0, "research", 2, 8).asked(0, GPU).launched(0).shows(0, 8);
    clock.at(10).ordered(0, 0, &[1], &[0, 0]).asked(1, GPU);
    clock.at(40).rolled_back(0, 0, RollbackReason::DeadlinePassed).released(1);
    clock.at(50).released(0);
    assert_eq!(clock.gpu_secs(), [(State::Gathering, 240), (State::Warm, 160)]);
    assert_eq!(clock.pay(), (vec![("research".to_owned(), 30)], 20));
    assert_eq!(milli(clock.0.rolled_back()[0].until), 0, "it was bought for another order");
}

#[test]
fn hit_is_a_first_start_at_the_instant_of_submission() {
    let mut clock = Clock::new();
    for gang in 0..4 {
        clock.submitted(gang, "research", 2, 1);
    }
    clock.at(0).sits(0, 7, 2).starts(0); // on one node
    clock.sits(1, 7, 1).sits(1, 8, 1).starts(1); // on two
    clock.at(5).sits(2, 7, 1).sits(2, 8, 1).starts(2); // on two, and late
    let reason = StopReason::Moved;
    clock.at(9).note(&Fact::GangStopped { gang: GangId(0), reason }).sits(0, 7, 2).starts(0);
    let hits = clock.0.hits();
    assert_eq!((hits.gangs, hits.hits, hits.wide, hits.wide_hits), (4, 2, 2, 1));
    assert_eq!((hits.rate(), hits.wide_rate()), (Some(0.5), Some(0.5)));
}

#[test]
fn money_adds_up_to_the_millionth_however_it_is_divided() {
    let mut clock = Clock::new();
    for gang in 0..7 {
        clock.submitted(gang, &format!("q{gang}"), 1, 1);
    }
    clock.asked(0, GPU).launched(0).shows(0, 8);
    for gang in 0..7 {
        clock.1 += Span(7_919 * (u64::from(gang) + 1));
        clock.sits(gang, 0, 1).starts(gang);
        clock.0.count_until(clock.1 + Span(13));
    }
    clock.at(1_000).released(0);
    let bill = Money::from_units(3.6).unwrap().per_hour_for(Span::secs(1_000));
    let queues = clock.0.money_by_queue().fold(Money::ZERO, |sum, (_, money)| sum + money);
    assert_eq!(queues + clock.0.shared_money(), bill);
    assert_eq!(clock.0.bought().cost(), bill);
}
