//! Random events, valid and invalid, for a World of a few nodes, queues, pools and gangs.

use muster_core::constraint::{Effect, Taint};
use muster_core::demand::Arrival;
use muster_core::device::DeviceSet;
use muster_core::event::RoleSeats;
use muster_core::gang::{Gang, Phase, Seat};
use muster_core::health::Record;
use muster_core::history::Run;
use muster_core::id::{ClaimId, GangId, NodeIdx, OfferingRef, OrderId, PoolIdx};
use muster_core::money::Money;
use muster_core::node::NodeSpec;
use muster_core::order::{
    Claim, ClaimFailure, ClaimState, OrderSpec, Place, Reservation, RollbackReason,
};
use muster_core::plan::{Action, StopReason};
use muster_core::proactive::{ForecastSpec, PoolForecast};
use muster_core::queue::QueueSpec;
use muster_core::remembered::{PastDemand, PastUse, Remembered};
use muster_core::time::{Span, Time};
use muster_core::{Event, World};
use muster_testkit::build;

use crate::seeds::Rng;

/// The next event.
pub(crate) fn event(rng: &mut Rng, world: &World) -> Event {
    match rng.below(26) {
        0..4 => Event::NodeSeen(node(rng)),
        4 => Event::NodeGone(format!("n{}", rng.below(8)).into()),
        5 if rng.percent(25) => Event::QueueGone(queue(rng).name),
        5 => Event::QueueSet(queue(rng)),
        6 => Event::PoolSet(pool(rng)),
        7..10 => Event::GangSubmitted(gang(rng)),
        10..13 => Event::Decided(placement(rng, world)),
        13 | 20 => claim_event(rng, world),
        14 | 21 => claim_node(rng, world),
        15 | 16 => Event::Decided(decision(rng, world)),
        17..20 => Event::Decided(supply(rng, world)),
        22 => future_event(rng),
        25 => restored_state(rng, world),
        _ => gang_event(rng, world),
    }
}

/// State that an earlier process has left.
fn restored_state(rng: &mut Rng, world: &World) -> Event {
    let time = Time::ZERO + Span::secs(rng.below(300) as u64);
    match rng.below(11) {
        10 => remembered(rng, time),
        0 => Event::NodeIdle { name: format!("n{}", rng.below(8)).into(), since: time },
        1 => {
            let (gang, since) = (some_gang(rng, world), time + Span::secs(rng.below(60) as u64));
            Event::GangWaits { gang, submitted: time, since }
        }
        2 => {
            let claim = ClaimId(world.next_claim().0 + rng.below(3) as u32);
            let offering = OfferingRef { pool: PoolIdx(rng.below(2) as u16), slot: 0 };
            let launched = rng.percent(50).then_some(time);
            Event::ClaimFound { claim, offering, asked: time, launched }
        }
        3 => {
            let slot = rng.below(3) as u16;
            let offering = OfferingRef { pool: PoolIdx(rng.below(3) as u16), slot };
            let out_since = rng.percent(50).then_some(time);
            let failures = rng.below(3) as u32;
            let was = Record { failures, last_failure: Some(time), out_since };
            Event::OfferingFound { offering, was }
        }
        4 => {
            let (gang, orders) = (some_gang(rng, world), rng.below(5) as u32);
            Event::OrdersFailed { gang, orders, last: time }
        }
        _ => match placement(rng, world) {
            Action::Order(order) => Event::OrderFound { order, placed: time, top_ups: 1 },
            action => Event::Decided(action),
        },
    }
}

/// Learned state of a World that may have had other queues and pools, and a clock that was ahead.
fn remembered(rng: &mut Rng, at: Time) -> Event {
    let run = Run { ended: at, lasted: Span::secs(60), estimate: None, members: 2 };
    let past = PastUse { gpu_milli: 500, amounts: [("cpu".into(), 9_000)].into() };
    let arrival = |secs: i64| Arrival { at: Time(at.0 + secs * 1_000), nodes_milli: 1_500 };
    let arrivals = vec![arrival(5), arrival(-5), arrival(0)];
    Event::Remembered(Box::new(Remembered {
        at,
        queues: [(queue(rng).name, past)].into(),
        users: [("ann".into(), vec![run])].into(),
        pools: [(pool(rng).name, PastDemand { since: at, until: at, arrivals })].into(),
    }))
}

fn some_gang(rng: &mut Rng, world: &World) -> GangId {
    let known: Vec<GangId> = world.gangs().map(|(id, _)| id).collect();
    if known.is_empty() || rng.percent(5) {
        GangId(rng.below(40) as u32)
    } else {
        known[rng.below(known.len())]
    }
}

fn some_claim(rng: &mut Rng, world: &World) -> ClaimId {
    let known: Vec<ClaimId> = world.claims().keys().copied().collect();
    if known.is_empty() || rng.percent(5) {
        ClaimId(rng.below(20) as u32)
    } else {
        known[rng.below(known.len())]
    }
}

/// A claim of this kind, if there is one, or any.
fn some_claim_that(rng: &mut Rng, world: &World, is: impl Fn(&Claim) -> bool) -> ClaimId {
    let fitting = world.claims().iter().filter(|(_, claim)| is(claim));
    let fitting: Vec<ClaimId> = fitting.map(|(id, _)| *id).collect();
    if fitting.is_empty() || rng.percent(20) {
        some_claim(rng, world)
    } else {
        fitting[rng.below(fitting.len())]
    }
}

fn place(rng: &mut Rng) -> &'static [(&'static str, &'static str)] {
    const ZONE: &str = "topology.kubernetes.io/zone";
    const RACK: &str = "topology.muster.sh/rack";
    const PLACES: [&[(&str, &str)]; 4] = [
        &[],
        &[(ZONE, "a"), (RACK, "r1")],
        &[(ZONE, "a"), (RACK, "r2")],
        &[(ZONE, "b"), ("disk", "ssd")],
    ];
    rng.pick(&PLACES)
}

/// A node, new or known, perhaps elsewhere, relabelled, grown or shrunk under its members, or no longer ready.
fn node(rng: &mut Rng) -> NodeSpec {
    let gpus = [0, 2, 4, 8][rng.below(4)];
    let mut spec = build::node(&format!("n{}", rng.below(8)), gpus, place(rng));
    spec.ready = rng.percent(85);
    shrink(rng, &mut spec);
    spec
}

/// Now and then a node has hardly any cores, or a kind of its own.
fn shrink(rng: &mut Rng, spec: &mut NodeSpec) {
    if rng.percent(20) {
        spec.allocatable = build::amounts(1 + rng.below(3) as u64, 1_000);
    }
    if rng.percent(5) {
        spec.taints = vec![Taint { key: "t".into(), value: "".into(), effect: Effect::NoSchedule }];
    }
}

fn queue(rng: &mut Rng) -> QueueSpec {
    let mut spec = QueueSpec::open(rng.pick(&["default", "a", "b", "c"]));
    spec.parent = rng.percent(60).then(|| rng.pick(&["default", "a", "b", "c", "nobody"]).into());
    spec.limit.gpu_milli = rng.percent(20).then_some(9_000);
    spec.user_limit.gpu_milli = rng.percent(20).then_some(6_000);
    spec.half_life = rng.percent(30).then(|| Span::hours(rng.below(3) as u64));
    spec
}

/// The same few offerings in any order and number, at any price and size, whatever is claimed of them.
fn pool(rng: &mut Rng) -> muster_core::pool::PoolSpec {
    let mut offerings =
        vec![build::offering("a", 10.0), build::offering("b", 12.0), build::offering("c", 9.0)];
    offerings.swap(0, rng.below(3));
    offerings.truncate(1 + rng.below(3));
    for offering in &mut offerings {
        offering.gpus = [8, 8, 4, 16][rng.below(4)];
        offering.start_time = rng.percent(80).then(|| Span::mins(1));
        offering.price = Money(offering.price.0 * (1 + rng.below(3) as i64));
    }
    offerings[0].max = rng.percent(30).then_some(2);
    let mut spec = build::pool(rng.pick(&["p", "q"]), offerings);
    spec.limits.nodes = rng.percent(50).then_some(5);
    spec.ahead.forecast = rng.percent(60).then(ForecastSpec::default);
    spec
}

fn gang(rng: &mut Rng) -> muster_core::gang::GangSpec {
    let mut spec = build::gang(
        &format!("g{}", rng.below(12)),
        1 + rng.below(3) as u32,
        [0, 1, 2, 4][rng.below(4)],
    );
    spec.queue = rng.pick(&["default", "default", "a", "b", "c"]).into();
    spec.user = rng.pick(&["ann", "bob", ""]).into();
    spec.priority = rng.below(3) as i32;
    spec.expected_duration = rng.percent(70).then(|| Span::mins(1 + rng.below(90) as u64));
    if rng.percent(20) {
        spec.roles.push(build::role("extra", 1, 0));
    }
    if let (true, Some(gpu)) = (rng.percent(30), &mut spec.roles[0].request.gpu) {
        gpu.share = 400;
    }
    spec.roles[0].max += rng.below(2) as u32;
    if rng.percent(5) {
        spec = build::within(spec, "shelf");
    }
    spec
}

/// Seats for the gang's minimum wherever they are free, found without any index; perhaps too few.
fn seats(world: &World, gang: &Gang) -> Vec<Seat> {
    let mut states: Vec<(NodeIdx, _)> = world
        .nodes()
        .filter(|(_, node)| node.takes_more())
        .map(|(idx, _)| (idx, world.states().get(world.node_state(idx).expect("here")).clone()))
        .collect();
    let mut seats = Vec::new();
    for (role, spec) in gang.spec.roles.iter().enumerate() {
        let signature = world.signature(gang.sigs[role]);
        let (count, share) = signature.gpu();
        for _ in 0..spec.min {
            let found = states.iter_mut().find_map(|(node, state)| {
                (state.free.times_fits(&signature.key.amounts) > 0).then_some(())?;
                let devices = state.devices.take(count, share)?;
                state.free.take(&signature.key.amounts, 1);
                Some(Seat { devices, node: *node, role: role as u16, members: 1 })
            });
            seats.extend(found);
        }
    }
    seats
}

/// Adjacent seats without devices on one node, as one seat.
fn together(seats: Vec<Seat>) -> Vec<Seat> {
    let mut joined: Vec<Seat> = Vec::new();
    for seat in seats {
        match joined.last_mut() {
            Some(last)
                if seat.devices.is_empty()
                    && (last.node, last.role, last.devices)
                        == (seat.node, seat.role, seat.devices) =>
            {
                last.members += 1;
            }
            _ => joined.push(seat),
        }
    }
    joined
}

/// An admission or an order for some gang, now and then with an invalid seat.
fn placement(rng: &mut Rng, world: &World) -> Action {
    let id = some_gang(rng, world);
    let Some(gang) = world.gang(id) else { return Action::Admit { gang: id, seats: Vec::new() } };
    let mut seats = match gang.phase {
        Phase::Assembling(order) => world.orders()[&order].held.clone(),
        _ => seats(world, gang),
    };
    if rng.percent(15) && !seats.is_empty() {
        let at = rng.below(seats.len());
        seats[at].node = NodeIdx(rng.below(9) as u32);
        seats[at].devices = DeviceSet(rng.below(16) as u64);
    }
    if rng.percent(50) || world.pools().is_empty() || !matches!(gang.phase, Phase::Waiting) {
        if gang.phase == Phase::Waiting {
            seats = together(seats);
        }
        if rng.percent(5) && !seats.is_empty() {
            let at = rng.below(seats.len());
            seats[at].members = rng.below(3) as u16;
        }
        return Action::Admit { gang: id, seats };
    }
    let claim = ClaimId(world.next_claim().0.saturating_sub(u32::from(rng.percent(5))));
    let pool = rng.below(world.pools().len() + 1);
    let offering = OfferingRef { pool: PoolIdx(pool as u16), slot: rng.below(3) as u16 };
    // The last member of each role sits on the new node, the others where there is room.
    let missing: u32 =
        gang.spec.roles.iter().map(|role| role.min).sum::<u32>() - seats.len() as u32;
    seats.truncate(seats.len() - usize::from(missing == 0 && !seats.is_empty()));
    let mut reservations: Vec<Reservation> = seats
        .iter()
        .map(|seat| Reservation {
            place: Place::Node(seat.node),
            devices: seat.devices,
            role: seat.role,
            members: 1,
        })
        .collect();
    let mut next = 0;
    for (role, spec) in gang.spec.roles.iter().enumerate() {
        let seated = seats.iter().filter(|seat| usize::from(seat.role) == role).count();
        for _ in seated..spec.min as usize {
            let count = u32::from(world.signature(gang.sigs[role]).gpu().0);
            let devices = DeviceSet(((1u64 << count) - 1) << next);
            next += count;
            reservations.push(Reservation {
                place: Place::Claim(claim),
                devices,
                role: role as u16,
                members: 1,
            });
        }
    }
    let deadline = world.now() + Span::mins(15);
    let claims = vec![(claim, offering)];
    Action::Order(OrderSpec {
        id: world.next_order(),
        gang: id,
        claims,
        reservations,
        deadline,
        after: Vec::new(),
        gap: 0,
        ways: Vec::new(),
    })
}

fn claim_event(rng: &mut Rng, world: &World) -> Event {
    let claim = some_claim(rng, world);
    let failures = [
        ClaimFailure::StockOut,
        ClaimFailure::BootFailed,
        ClaimFailure::GpusMissing,
        ClaimFailure::Throttled,
        ClaimFailure::Throttled,
    ];
    match rng.below(7) {
        0 => Event::ClaimLaunched(claim),
        1 | 2 => Event::ClaimFailed(claim, failures[rng.below(5)]),
        3 | 4 => Event::ClaimStopped(claim),
        _ => Event::ClaimGone(claim),
    }
}

/// A claim's node appears, comes and goes, has fewer GPUs or cores than promised, or than before; and its claim may
/// not be known yet.
fn claim_node(rng: &mut Rng, world: &World) -> Event {
    let claim = some_claim(rng, world);
    let name = format!("{claim:?}");
    if rng.percent(10) {
        return Event::NodeGone(name.into());
    }
    let gpus = [8, 8, 8, 6, 16][rng.below(5)];
    let mut spec = build::node(&name, gpus, place(rng));
    spec.ready = rng.percent(80);
    spec.claim = rng.percent(90).then_some(claim);
    shrink(rng, &mut spec);
    Event::NodeSeen(spec)
}

fn decision(rng: &mut Rng, world: &World) -> Action {
    let order = match world.orders().keys().next() {
        Some(first) if rng.percent(90) => *first,
        _ => OrderId(rng.below(10) as u32),
    };
    match rng.below(4) {
        0 => Action::RollBack { order, reason: RollbackReason::DeadlinePassed },
        1 => Action::RollBack {
            order,
            reason: RollbackReason::ClaimFailed(some_claim(rng, world), ClaimFailure::StockOut),
        },
        2 => Action::Release { claim: some_claim(rng, world) },
        _ => Action::Stop { gang: some_gang(rng, world), reason: StopReason::Cancelled },
    }
}

/// A decision about nodes ahead of need, valid or not.
fn supply(rng: &mut Rng, world: &World) -> Action {
    let claim = some_claim(rng, world);
    let new = ClaimId(world.next_claim().0.saturating_sub(u32::from(rng.percent(5))));
    let pool = PoolIdx(rng.below(world.pools().len() + 1) as u16);
    let offering = OfferingRef { pool, slot: rng.below(3) as u16 };
    let known = world.claims().get(&claim);
    match rng.below(14) {
        0 | 1 => Action::Stock { claims: vec![(new, offering)] },
        // Stopped nodes are started, others are left as they are.
        2 => {
            Action::Stock { claims: vec![(claim, known.map_or(offering, |known| known.offering))] }
        }
        3 | 4 => {
            let order = world.orders().values().next();
            let (order, lost) = match order.map(|order| (order.spec.id, &order.spec.claims)) {
                Some((order, claims)) => (order, claims[rng.below(claims.len())].0),
                None => (OrderId(rng.below(10) as u32), claim),
            };
            let same = world.claims().get(&lost).filter(|_| rng.percent(70));
            let offering = same.map_or(offering, |lost| lost.offering);
            Action::TopUp { order, lost, claim: new, offering }
        }
        5 | 6 => {
            let put_off = ClaimState::Failed(ClaimFailure::Throttled);
            let claim = some_claim_that(rng, world, |claim| claim.state == put_off);
            let again = world.claims().get(&claim).map_or(1, |known| known.retries + 1);
            Action::Retry { claim, attempt: again.saturating_sub(u32::from(rng.percent(10))) }
        }
        7..12 => {
            let idle = |claim: &Claim| match claim.state {
                ClaimState::Ready(node) => world.node(node).is_some_and(|node| node.seats == 0),
                _ => false,
            };
            Action::Park { claim: some_claim_that(rng, world, idle) }
        }
        _ => Action::Retire { claim },
    }
}

/// Events about the future: the forecast of a pool, and the time.
fn future_event(rng: &mut Rng) -> Event {
    if rng.percent(40) {
        return Event::Epoch(rng.below(2_000_000_000) as i64 * 1_000);
    }
    let nodes = (0..rng.below(4)).map(|_| rng.below(5) as u32).collect();
    let outlook = PoolForecast { from: Time::ZERO, step: Span::mins(rng.below(90) as u64), nodes };
    Event::Expected { pool: rng.pick(&["p", "q", "nobody"]).into(), outlook }
}

fn gang_event(rng: &mut Rng, world: &World) -> Event {
    let gang = some_gang(rng, world);
    if world.gang(gang).is_some_and(|gang| gang.phase == Phase::Stopping) && rng.percent(60) {
        return Event::GangStopped(gang);
    }
    match rng.below(7) {
        0 => Event::GangCancelled(gang),
        1 | 2 => Event::GangEnded(gang),
        3 => Event::GangStopped(gang),
        4 => Event::GangStarted(gang),
        5 => replaced_members(rng, world, gang),
        _ => Event::Tick,
    }
}

/// A gang has as many members where it has seats, smaller or larger ones, and maybe one with a request of its own.
fn replaced_members(rng: &mut Rng, world: &World, gang: GangId) -> Event {
    let Some(known) = world.gang(gang) else { return Event::Tick };
    let mut spec = known.spec.clone();
    let members = known.seats.len().max(1) as u32;
    let gpus = [0, 1, 1, 4][rng.below(4)];
    spec.roles = vec![build::role("other", members, gpus)];
    let sit = |seat: &Seat| RoleSeats { role: 0, node: seat.node, members: 1 };
    let mut sitting: Vec<RoleSeats> = known.seats.iter().map(sit).collect();
    if rng.percent(30) {
        spec.roles.push(build::role("extra", 1, 0));
        sitting.push(RoleSeats { role: 1, node: NodeIdx(rng.below(8) as u32), members: 1 });
    }
    Event::GangTurnedOut { spec, sitting }
}
