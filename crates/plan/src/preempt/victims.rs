//! Have others make way: shrink those that have more than they need, take back what was lent, let others have
//! their turn, stop those of lower priority, or move who can be moved.
//!
//! Nobody is asked unless the whole gang then fits, on what is free and what becomes free together. What it needs
//! is held by an order from that moment on, so that nobody else slips in while they leave.

use std::collections::{BTreeMap, BTreeSet};

use muster_core::World;
use muster_core::gang::{Gang, Phase, Seat};
use muster_core::id::{DomainIdx, GangId, NodeIdx, OrderId, QueueIdx};
use muster_core::order::{MakesWay, OrderSpec, Place, Reservation};
use muster_core::plan::{Action, StopReason};
use muster_core::time::{Span, Time};
use muster_core::topology::{Level, ROOT};

use super::eligibility::{Right, Rights};
use super::search::{Limits, Search, domains};
use super::{cost, eligibility};
use crate::cycle::{Cycle, earliest};
use crate::place::place;

/// Somebody who could make way.
#[derive(Clone)]
pub(crate) struct Candidate<'w> {
    pub(crate) id: GangId,
    pub(crate) gang: &'w Gang,
    /// What it would give up.
    pub(crate) seats: Vec<Seat>,
    /// By what right it is stopped; none if it goes on with fewer members.
    pub(crate) right: Option<Right>,
    /// What that costs it, in milliseconds of a GPU.
    pub(crate) lost: u64,
    /// What of that counts against the delay of the one who waits.
    pub(crate) counted: u64,
    /// Those with less are asked before others: what they lose, or the less the longer their turn was.
    pub(crate) weight: u64,
}

impl Candidate<'_> {
    pub(super) fn grace(&self) -> Span {
        match self.gang.phase {
            Phase::Running { .. } => self.gang.spec.disruption.grace,
            _ => Span::ZERO,
        }
    }
}

/// Others who would make way, so that a gang fits as soon as they have left.
#[derive(Clone, Debug, Default)]
pub(crate) struct Offer {
    /// Where it would sit.
    pub(crate) seats: Vec<Seat>,
    /// Who would leave what.
    pub(crate) ways: Vec<MakesWay>,
    /// By what rights some of them would be stopped.
    pub(crate) rights: Vec<Right>,
    /// What they lose altogether, in milliseconds of a GPU.
    pub(crate) lost: u64,
    /// What of that counts against the delay of the one who waits.
    pub(crate) counted: u64,
    /// How long the slowest has to leave.
    pub(crate) delay: Span,
    /// What was lent to others could be reclaimed for the gang, by this offer or by a dearer one.
    pub(crate) owed: bool,
}

/// Domains tried for a gang that must stay within one, at most.
const DOMAINS: usize = 8;
/// How many times what a gang asks for is looked at first, and how many gangs at least.
const ENOUGH: u64 = 4;
const FEW: usize = 64;
/// Ways to move others that are tried for one gang, at most.
const MOVES: usize = 8;
/// How long others may take to leave beyond their grace, before the one who waits for them goes back to the queue.
pub(super) const SLACK: Span = Span::mins(2);

/// Whom to ask so that a gang can start; the least that is lost. `booked` are nodes that somebody holds a start
/// time on: who is there is not asked.
pub(crate) fn offer<'w>(cycle: &mut Cycle<'w>, id: GangId, booked: &[NodeIdx]) -> Option<Offer> {
    let world = cycle.scratch.world;
    let gang = world.gang(id).expect("it waits");
    if cycle.prey.is_none() {
        cycle.prey = Some(prey(cycle));
    }
    // Seats that nobody sits on any more go before those of members that run.
    let found = search(cycle, id, gang, spare_of(cycle, gang, booked));
    let found = found.or_else(|| search(cycle, id, gang, surplus_of(cycle, gang, booked)));
    if found.is_some() {
        return found;
    }
    let by_right = by_right(cycle, gang, booked).into_iter();
    let found: Vec<Offer> = by_right.filter_map(|all| search(cycle, id, gang, all)).collect();
    let mut found = found.into_iter().min_by_key(|offer| offer.counted);
    let owed = found.as_ref().is_some_and(|offer| offer.rights.contains(&Right::Lent));
    found.iter_mut().for_each(|offer| offer.owed = owed);
    if found.as_ref().is_some_and(|offer| offer.lost == 0) {
        return found;
    }
    if found.is_none() {
        let chance = eligibility::next_chance(cycle, gang);
        cycle.wake = earliest(cycle.wake, chance);
    }
    // A cheaper move does not take away the right to reclaim, whatever the moved gangs say that they lose.
    let moved = move_others(cycle, id, gang, booked).map(|offer| Offer { owed, ..offer });
    [found, moved].into_iter().flatten().min_by_key(|offer| offer.counted)
}

/// Everybody with more members than the minimum who may be asked for the rest.
pub(super) fn surplus_of<'w>(
    cycle: &Cycle<'w>,
    gang: &Gang,
    booked: &[NodeIdx],
) -> Vec<Candidate<'w>> {
    let rights = Rights::of(cycle, gang);
    let asks = cost::least_size(cycle.scratch.world, gang);
    candidates(cycle, booked, |prey| surplus(&rights, asks, prey))
}

/// Everybody with seats above the minimum whose members are gone or going: giving those up costs it nothing.
fn spare_of<'w>(cycle: &Cycle<'w>, gang: &Gang, booked: &[NodeIdx]) -> Vec<Candidate<'w>> {
    let rights = Rights::of(cycle, gang);
    candidates(cycle, booked, |prey| {
        if prey.gang.spare.is_empty() {
            return None;
        }
        let mut all = surplus(&rights, 0, prey)?;
        let spare = prey.gang.spare_seats();
        all.seats.retain(|seat| spare.contains(seat));
        (all.lost, all.counted, all.weight) = (0, 0, 0);
        (!all.seats.is_empty()).then_some(all)
    })
}

/// Those who may be asked where some must be stopped, in two ways: who has more members than it needs gives only those up,
/// or is stopped itself like the others. The second is the same as the first where nobody could do either.
pub(super) fn by_right<'w>(
    cycle: &Cycle<'w>,
    gang: &Gang,
    booked: &[NodeIdx],
) -> Vec<Vec<Candidate<'w>>> {
    let whole = stoppable(cycle, gang, booked);
    if whole.is_empty() {
        return Vec::new();
    }
    let surplus = surplus_of(cycle, gang, booked);
    let ids = |of: &[Candidate<'_>]| of.iter().map(|one| one.id).collect::<BTreeSet<_>>();
    let (stopped, giving) = (ids(&whole), ids(&surplus));
    let apart = |all: &[Candidate<'w>], from: &BTreeSet<GangId>| {
        all.iter().filter(|one| !from.contains(&one.id)).cloned().collect::<Vec<_>>()
    };
    let mut ways = Vec::new();
    let only_whole = apart(&whole, &giving);
    if !only_whole.is_empty() && !stopped.is_disjoint(&giving) {
        ways.push([only_whole, surplus.clone()].concat());
    }
    // Who is stopped has no surplus to give up besides.
    let only_surplus = apart(&surplus, &stopped);
    ways.push([whole, only_surplus].concat());
    ways
}

/// Everybody who may be stopped, by right.
fn stoppable<'w>(cycle: &Cycle<'w>, gang: &Gang, booked: &[NodeIdx]) -> Vec<Candidate<'w>> {
    let rights = Rights::of(cycle, gang);
    candidates(cycle, booked, |prey| Some(whole(prey, rights.to_stop(prey.gang)?)))
}

/// Everybody who can be asked at all and, as `ask` says, for what.
fn candidates<'w>(
    cycle: &Cycle<'w>,
    booked: &[NodeIdx],
    ask: impl Fn(&Prey<'w>) -> Option<Candidate<'w>>,
) -> Vec<Candidate<'w>> {
    let is_booked = |seat: &Seat| booked.binary_search(&seat.node).is_ok();
    let can = |prey: &&Prey<'w>| {
        !cycle.making_way.contains(&prey.id)
            && (booked.is_empty() || !prey.gang.seats.iter().any(is_booked))
    };
    cycle.prey.iter().flatten().filter(can).filter_map(ask).collect()
}

/// Somebody who could make way as far as it is up to him, and what stopping him would cost.
#[derive(Clone, Copy)]
pub(crate) struct Prey<'w> {
    id: GangId,
    gang: &'w Gang,
    lost: u64,
    /// What stopping him weighs when it is another's turn: who has run for longest goes first.
    weight: u64,
    /// What he has, in thousandths of a GPU, and how long a pause weighs if he goes on with less; nothing if he cannot.
    size: u64,
    pause_weighs: Span,
}

/// Everybody who runs, undisturbed, and could make way for somebody.
fn prey<'w>(cycle: &Cycle<'w>) -> Vec<Prey<'w>> {
    let (world, now) = (cycle.scratch.world, cycle.now);
    // Who was stopped for somebody that has not started yet, and runs again already, is not asked twice.
    let ways = world.orders().values().flat_map(|order| &order.spec.after);
    let owed: Vec<GangId> = ways.filter(|way| way.stop.is_some()).map(|way| way.gang).collect();
    let can = |id: &GangId, other: &Gang| {
        let runs = matches!(other.phase, Phase::Running { .. } | Phase::Admitted { .. });
        runs && !owed.contains(id)
            && other.resize.is_none()
            && other.spec.is_disruptable()
            && world.makes_way_for(*id).is_none()
            && !world.broken().contains_key(id)
            && !world.cancelled().contains(id)
    };
    let others = world.gangs().filter(|(id, other)| can(id, other));
    let turn = |gang: &Gang| {
        let slice = world.queue(gang.queue).spec.time_slice.unwrap_or_default().0;
        Span(slice.saturating_mul(slice) / cost::ran(gang, now).0.max(1))
    };
    let one = |(id, gang): (GangId, &'w Gang)| {
        let size = cost::size(world, gang, &gang.seats);
        let is_rigid = gang.spec.is_rigid();
        let pause_weighs = if is_rigid { Span::ZERO } else { cost::pause_weighs(gang, now) };
        let lost = cost::stopping(world, gang, now);
        Prey { id, gang, lost, weight: cost::gpu_ms(size, turn(gang)), size, pause_weighs }
    };
    others.map(one).collect()
}

/// What a gang has above its minimum, if it may be asked for it. Seats whose members are gone or going go first, then those
/// that leave a node to itself.
///
/// Its pause counts as if it had no more GPUs than the one who waits `asks` for. What it has grown onto was never its
/// own, so nobody waits for it for longer than it would stand still.
fn surplus<'w>(rights: &Rights<'_, '_>, asks: u64, prey: &Prey<'w>) -> Option<Candidate<'w>> {
    let Prey { id, gang: other, size, pause_weighs, .. } = *prey;
    if other.spec.is_rigid() || !other.is_steady() || !rights.to_shrink(other) {
        return None;
    }
    let roles = || other.spec.roles.iter().enumerate();
    if roles().all(|(role, spec)| other.members_in(role as u16) <= spec.min) {
        return None;
    }
    let spare_seats = other.spare_seats();
    let mut seats = Vec::new();
    for (role, spec) in roles() {
        let mut spare = other.members_in(role as u16).saturating_sub(spec.min);
        let mut mine: Vec<&Seat> =
            other.seats.iter().filter(|seat| usize::from(seat.role) == role).collect();
        let beside = |seat: &Seat| other.seats.iter().filter(|s| s.node == seat.node).count();
        let runs = |seat: &Seat| !spare_seats.contains(seat);
        mine.sort_by_key(|seat| (runs(seat), beside(seat), std::cmp::Reverse(seat.node)));
        for seat in mine {
            if u32::from(seat.members) <= spare {
                spare -= u32::from(seat.members);
                seats.push(*seat);
            }
        }
    }
    seats.sort_by_key(|seat| seat.node);
    let pause = other.spec.scaling.resize;
    (!seats.is_empty()).then(|| Candidate {
        id,
        gang: other,
        seats,
        right: None,
        lost: cost::gpu_ms(size, pause),
        counted: cost::gpu_ms(size.min(asks), pause),
        weight: cost::gpu_ms(size.min(asks), pause_weighs),
    })
}

fn whole<'w>(prey: &Prey<'w>, right: Right) -> Candidate<'w> {
    let Prey { id, gang, lost, .. } = *prey;
    let mut seats = gang.seats.clone();
    seats.sort_by_key(|seat| seat.node);
    let weight = match right {
        Right::Turn => prey.weight,
        Right::Lent | Right::Lower | Right::Move => lost,
    };
    Candidate { id, gang, seats, right: Some(right), lost, counted: lost, weight }
}

/// Those that lose least for what they leave, and enough of them: looking at everybody would take too long, and the
/// rest is looked at if these are not enough.
fn least_lost<'w>(cycle: &Cycle<'w>, gang: &Gang, all: &[Candidate<'w>]) -> Option<usize> {
    let world = cycle.scratch.world;
    let wants = cost::least_size(world, gang).saturating_mul(ENOUGH);
    let mut sum = 0u64;
    for (at, candidate) in all.iter().enumerate() {
        sum = sum.saturating_add(cost::size(world, candidate.gang, &candidate.seats));
        if sum >= wants && at + 1 >= FEW {
            return (at + 1 < all.len()).then_some(at + 1);
        }
    }
    None
}

/// The least that is lost if some of these make way, in the best of all domains.
fn search<'w>(
    cycle: &mut Cycle<'w>,
    id: GangId,
    gang: &'w Gang,
    mut candidates: Vec<Candidate<'w>>,
) -> Option<Offer> {
    if candidates.is_empty() {
        return None;
    }
    let world = cycle.scratch.world;
    candidates.sort_by_cached_key(|candidate| {
        let size = cost::size(world, candidate.gang, &candidate.seats).max(1);
        (u128::from(candidate.weight) * 1_000 / u128::from(size), candidate.id)
    });
    let domains = domains(&cycle.scratch, &mut cycle.fits, gang);
    if let ([(_, ROOT)], Some(few)) = (domains.as_slice(), least_lost(cycle, gang, &candidates))
        && let Some(found) = search_in(cycle, id, gang, ROOT, &candidates[..few])
    {
        return Some(found);
    }
    let mut best: Option<Offer> = None;
    let promising = promising(cycle, gang, domains, &candidates);
    if promising.len() > DOMAINS {
        cycle.was_cut.set(true);
    }
    for domain in promising.into_iter().take(DOMAINS) {
        let found = search_in(cycle, id, gang, domain, &candidates);
        best = best.into_iter().chain(found).min_by_key(|offer| offer.counted);
    }
    best
}

/// Those of some domains where somebody could leave: first those with room enough for the gang's first role by what is free
/// and what would be, in GPUs; among these as in `domains`.
fn promising(
    cycle: &Cycle<'_>,
    gang: &Gang,
    domains: Vec<(u64, DomainIdx)>,
    candidates: &[Candidate<'_>],
) -> Vec<DomainIdx> {
    let world = cycle.scratch.world;
    let Some(Level::Domain(level)) = gang.level.filter(|_| domains.len() > DOMAINS) else {
        return domains.into_iter().map(|(_, domain)| domain).collect();
    };
    let mut left: BTreeMap<DomainIdx, u64> = BTreeMap::new();
    for candidate in candidates {
        for seat in &candidate.seats {
            let leaf = world.node(seat.node).map(|node| node.leaf);
            if let Some(domain) = leaf.and_then(|leaf| world.topology().around(leaf, level)) {
                *left.entry(domain).or_default() += cost::size(world, candidate.gang, &[*seat]);
            }
        }
    }
    let each = world.signature(gang.sigs[0]).gpu_milli().max(1);
    let needs = each.saturating_mul(u64::from(gang.spec.roles[0].min));
    let mut all: Vec<(bool, DomainIdx)> = domains
        .into_iter()
        .filter_map(|(free, domain)| {
            let room = free.saturating_mul(each).saturating_add(*left.get(&domain)?);
            Some((room < needs, domain))
        })
        .collect();
    all.sort_by_key(|(is_too_small, _)| *is_too_small);
    all.into_iter().map(|(_, domain)| domain).collect()
}

fn search_in<'w>(
    cycle: &mut Cycle<'w>,
    id: GangId,
    gang: &'w Gang,
    domain: DomainIdx,
    candidates: &[Candidate<'w>],
) -> Option<Offer> {
    let budgets = cycle.eviction_budgets();
    let mut trial = cycle.scratch.trial();
    let who = (id, gang);
    let limits = Limits { budgets: &budgets, leaving: &cycle.leaving, was_cut: &cycle.was_cut };
    Search::new(&mut trial, &mut cycle.fits, who, candidates, limits, domain).all()
}

/// Gangs that may be moved and fit elsewhere at once, so that this one fits where they were.
fn move_others(
    cycle: &mut Cycle<'_>,
    id: GangId,
    gang: &Gang,
    booked: &[NodeIdx],
) -> Option<Offer> {
    let world = cycle.scratch.world;
    // To be moved is to be stopped, which nobody is for a gentle gang.
    let may = !gang.sigs.is_empty() && !gang.spec.disruption.gentle;
    let gang = world.gang(id).filter(|_| may)?;
    let movable = |prey: &Prey<'_>| {
        let other = prey.gang;
        other.spec.may_move()
            // Once: where it goes must not be a reason to move it again.
            && other.restarts == 0
            && matches!(other.phase, Phase::Running { .. })
            && cost::ran(other, cycle.now) >= other.spec.disruption.min_runtime
            && other.spec.priority <= gang.spec.priority
            && cycle.may_evict(other.queue)
    };
    let mut all = candidates(cycle, booked, |prey| movable(prey).then(|| whole(prey, Right::Move)));
    for _ in 0..MOVES {
        let offer = search(cycle, id, gang, all.clone())?;
        match first_without_seats(cycle, gang, &offer) {
            None => return Some(offer),
            Some(stuck) => all.retain(|candidate| candidate.id != stuck),
        }
    }
    cycle.was_cut.set(true);
    None
}

/// All who are moved must find other seats beside the newcomer: the first who does not.
fn first_without_seats(cycle: &mut Cycle<'_>, gang: &Gang, offer: &Offer) -> Option<GangId> {
    let world = cycle.scratch.world;
    let others = || offer.ways.iter().filter_map(|way| Some((way, world.gang(way.gang)?)));
    let mut trial = cycle.scratch.trial();
    for (way, other) in others() {
        trial.rise(other, &way.seats);
    }
    trial.sit(gang, &offer.seats);
    let mut stuck = |other: &Gang| place(&mut trial, &mut cycle.fits, other).is_err();
    others().find(|(_, other)| stuck(other)).map(|(way, _)| way.gang)
}

/// The order that holds what a gang is to have, and what others are told: at once, as nothing else is waited for.
pub(crate) fn take(cycle: &mut Cycle<'_>, id: GangId, offer: &Offer) -> (OrderSpec, Vec<Action>) {
    let world = cycle.scratch.world;
    let mut seats = offer.seats.clone();
    seats.sort_by_key(|seat| seat.role);
    let reservations = seats
        .iter()
        .map(|seat| {
            let Seat { devices, node, role, members } = *seat;
            Reservation { place: Place::Node(node), devices, role, members }
        })
        .collect();
    let spec = OrderSpec {
        id: OrderId(world.next_order().0 + cycle.orders_given),
        gang: id,
        claims: Vec::new(),
        reservations,
        deadline: cycle.now + offer.delay + SLACK,
        after: offer.ways.clone(),
        gap: 0,
        ways: Vec::new(),
    };
    cycle.orders_given += 1;
    let told = offer.ways.iter().filter_map(|way| tell(cycle.scratch.world.gang(way.gang)?, way));
    let told = told.collect();
    note(cycle, &offer.ways);
    (spec, told)
}

/// Notes who makes way, so that nobody else asks them.
pub(super) fn note(cycle: &mut Cycle<'_>, ways: &[MakesWay]) {
    for way in ways {
        cycle.making_way.push(way.gang);
        if let Some(other) = cycle.scratch.world.gang(way.gang) {
            cycle.leaving.note(cycle.scratch.world, other, &way.seats);
        }
        if let (Some(stop), Some(other)) = (way.stop, cycle.scratch.world.gang(way.gang))
            && !matches!(stop, StopReason::Reclaimed(_))
        {
            *cycle.evicted.entry(other.queue).or_default() += 1;
        }
    }
}

/// What somebody who makes way is told; nothing if it has been told, or cannot be told now.
pub(crate) fn tell(other: &Gang, way: &MakesWay) -> Option<Action> {
    let runs = matches!(other.phase, Phase::Running { .. } | Phase::Admitted { .. });
    match way.stop {
        Some(reason) if runs => Some(Action::Stop { gang: way.gang, reason }),
        None if other.is_steady() => {
            let seats = muster_core::gang::without(&other.seats, &way.seats);
            Some(Action::Resize { gang: way.gang, seats })
        }
        Some(_) | None => None,
    }
}

/// Gangs of each queue that orders will have stopped and that have not been told yet: they count for their queue's budget
/// from the day somebody relies on it.
pub(crate) fn owed(world: &World) -> BTreeMap<QueueIdx, u32> {
    let mut owed = BTreeMap::new();
    for way in world.orders().values().flat_map(|order| &order.after) {
        let Some(other) = world.gang(way.gang) else { continue };
        let told = !matches!(other.phase, Phase::Running { .. } | Phase::Admitted { .. });
        if !told && way.stop.is_some_and(|stop| !matches!(stop, StopReason::Reclaimed(_))) {
            *owed.entry(other.queue).or_default() += 1;
        }
    }
    owed
}

/// How many more gangs of each queue may be stopped for others' sake now, where that is limited.
impl Cycle<'_> {
    pub(crate) fn eviction_budgets(&self) -> BTreeMap<QueueIdx, u32> {
        let queues = self.scratch.world.queues().iter();
        let limited = queues.filter_map(|(idx, queue)| {
            let most = queue.spec.evictions_per_hour?;
            let recent = queue.evicted.iter().filter(|at| self.now.since(**at) < Span::hours(1));
            let now = self.evicted.get(&idx).copied().unwrap_or(0);
            Some((idx, most.saturating_sub(recent.count() as u32 + now)))
        });
        limited.collect()
    }
    /// Whether one more gang of a queue may be stopped for others' sake now.
    pub(crate) fn may_evict(&self, queue: QueueIdx) -> bool {
        let listed = self.scratch.world.queue(queue);
        listed.spec.evictions_per_hour.is_none()
            || self.eviction_budgets().get(&queue).is_none_or(|left| *left > 0)
    }
    /// When one more gang of a queue may be stopped for others' sake; never if it allows none.
    pub(crate) fn next_eviction(&self, queue: QueueIdx) -> Option<Time> {
        if self.may_evict(queue) {
            return Some(self.now);
        }
        let listed = self.scratch.world.queue(queue);
        let most = listed.spec.evictions_per_hour.filter(|most| *most > 0)?;
        let now = self.evicted.get(&queue).copied().unwrap_or(0);
        // Those of this cycle are the latest.
        let before = most.checked_sub(now + 1);
        let first = before.and_then(|before| listed.evicted.iter().rev().nth(before as usize));
        Some(first.copied().unwrap_or(self.now) + Span::hours(1))
    }
    /// Whether a gang makes way for somebody already.
    pub(crate) fn is_making_way(&self, id: GangId) -> bool {
        self.scratch.world.makes_way_for(id).is_some() || self.making_way.contains(&id)
    }
}
