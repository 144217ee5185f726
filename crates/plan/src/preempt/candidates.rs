//! The gangs that could be preempted for one that waits, and what each of them would give up.

use std::collections::BTreeSet;

use muster_core::gang::{Gang, Phase, Seat};
use muster_core::id::{GangId, NodeIdx};
use muster_core::time::Span;

use super::cost;
use super::eligibility::{Eligibility, Reason};
use crate::cycle::Cycle;

/// A victim, and what it would give up.
#[derive(Clone)]
pub(super) struct Candidate<'w> {
    pub(super) id: GangId,
    pub(super) gang: &'w Gang,
    /// The seats it would give up.
    pub(super) seats: Vec<Seat>,
    /// Why it may be stopped; none if it goes on with fewer members.
    pub(super) reason: Option<Reason>,
    /// What that costs it, in milliseconds of a GPU.
    pub(super) lost: u64,
    /// The part of that cost that counts against the delay of the gang that waits.
    pub(super) counted: u64,
    /// Candidates of less weight are chosen first: the cost, or for a time slice less the longer the gang has run.
    pub(super) weight: u64,
}

impl Candidate<'_> {
    pub(super) fn grace(&self) -> Span {
        match self.gang.phase {
            Phase::Running { .. } => self.gang.spec.disruption.grace,
            _ => Span::ZERO,
        }
    }
}

/// Gangs with more members than their minimum that may be shrunk.
pub(super) fn shrinkable<'w>(
    cycle: &Cycle<'w>,
    gang: &Gang,
    booked: &[NodeIdx],
) -> Vec<Candidate<'w>> {
    let eligibility = Eligibility::of(cycle, gang);
    let asks = cost::minimum_size(cycle.scratch.world, gang);
    candidates(cycle, booked, |victim| shrink_candidate(&eligibility, asks, victim))
}

/// Gangs with seats above the minimum whose members are gone or going: giving those up costs them nothing.
pub(super) fn with_empty_seats<'w>(
    cycle: &Cycle<'w>,
    gang: &Gang,
    booked: &[NodeIdx],
) -> Vec<Candidate<'w>> {
    let eligibility = Eligibility::of(cycle, gang);
    candidates(cycle, booked, |victim| {
        if victim.gang.spare.is_empty() {
            return None;
        }
        let mut all = shrink_candidate(&eligibility, 0, victim)?;
        let spare = victim.gang.spare_seats();
        all.seats.retain(|seat| spare.contains(seat));
        (all.lost, all.counted, all.weight) = (0, 0, 0);
        (!all.seats.is_empty()).then_some(all)
    })
}

/// The candidates where some gangs must be stopped, in two ways: a gang with more members than it needs gives up only
/// those, or is stopped itself like the others. The second way is the same as the first where no gang could do
/// either.
pub(super) fn to_stop_or_shrink<'w>(
    cycle: &Cycle<'w>,
    gang: &Gang,
    booked: &[NodeIdx],
) -> Vec<Vec<Candidate<'w>>> {
    let whole = stoppable(cycle, gang, booked);
    if whole.is_empty() {
        return Vec::new();
    }
    let surplus = shrinkable(cycle, gang, booked);
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
    // A gang that is stopped has no surplus to give up besides.
    let only_surplus = apart(&surplus, &stopped);
    ways.push([whole, only_surplus].concat());
    ways
}

/// Gangs that may be stopped.
fn stoppable<'w>(cycle: &Cycle<'w>, gang: &Gang, booked: &[NodeIdx]) -> Vec<Candidate<'w>> {
    let eligibility = Eligibility::of(cycle, gang);
    candidates(cycle, booked, |victim| {
        Some(stop_candidate(victim, eligibility.reason_to_stop(victim.gang)?))
    })
}

/// All victims that may be disrupted now and, as `ask` says, what each would give up.
pub(super) fn candidates<'w>(
    cycle: &Cycle<'w>,
    booked: &[NodeIdx],
    ask: impl Fn(&Victim<'w>) -> Option<Candidate<'w>>,
) -> Vec<Candidate<'w>> {
    let is_booked = |seat: &Seat| booked.binary_search(&seat.node).is_ok();
    let can = |victim: &&Victim<'w>| {
        !cycle.given.disrupted.contains(&victim.id)
            && (booked.is_empty() || !victim.gang.seats.iter().any(is_booked))
    };
    cycle.memo.victims.iter().flatten().filter(can).filter_map(ask).collect()
}

/// A gang that may be disrupted by its own spec, and what stopping it would cost.
#[derive(Clone, Copy)]
pub(crate) struct Victim<'w> {
    id: GangId,
    pub(super) gang: &'w Gang,
    lost: u64,
    /// Its weight when its time slice is over: the gang that has run for longest goes first.
    weight: u64,
    /// Its size in thousandths of a GPU, and how long a pause weighs if it goes on with fewer members; zero if it
    /// cannot.
    size: u64,
    pause_weight: Span,
}

/// All gangs that run undisturbed and may be disrupted.
pub(super) fn all_victims<'w>(cycle: &Cycle<'w>) -> Vec<Victim<'w>> {
    let (world, now) = (cycle.scratch.world, cycle.now);
    // A gang that was stopped for one that has not started yet, and runs again already, is not preempted twice.
    let ways = world.orders().values().flat_map(|order| &order.spec.after);
    let stopped: Vec<GangId> = ways.filter(|way| way.stop.is_some()).map(|way| way.gang).collect();
    let can = |id: &GangId, other: &Gang| {
        let runs = matches!(other.phase, Phase::Running { .. } | Phase::Admitted { .. });
        runs && !stopped.contains(id)
            && other.resize.is_none()
            && other.spec.may_be_victim()
            && world.preempted_for(*id).is_none()
            && !world.broken().contains_key(id)
            && !world.cancelled().contains(id)
    };
    let others = world.gangs().filter(|(id, other)| can(id, other));
    let turn = |gang: &Gang| {
        let slice = world.queue(gang.queue).spec.time_slice.unwrap_or_default().0;
        Span(slice.saturating_mul(slice) / cost::run_time(gang, now).0.max(1))
    };
    let one = |(id, gang): (GangId, &'w Gang)| {
        let size = cost::size(world, gang, &gang.seats);
        let is_rigid = gang.spec.is_rigid();
        let pause_weight = if is_rigid { Span::ZERO } else { cost::pause_weight(gang, now) };
        let lost = cost::stop_cost(world, gang, now);
        Victim { id, gang, lost, weight: cost::gpu_ms(size, turn(gang)), size, pause_weight }
    };
    others.map(one).collect()
}

/// The seats of a gang above its minimum, if it may be shrunk. Seats whose members are gone or going come first, then
/// seats that leave a node empty.
///
/// Its pause counts as if it had no more GPUs than the gang that waits `asks` for. Seats that it has grown onto were
/// never its own, so no gang waits for them longer than the pause takes.
fn shrink_candidate<'w>(
    eligibility: &Eligibility<'_, '_>,
    asks: u64,
    victim: &Victim<'w>,
) -> Option<Candidate<'w>> {
    let Victim { id, gang: other, size, pause_weight, .. } = *victim;
    if other.spec.is_rigid() || !other.is_steady() || !eligibility.may_shrink(other) {
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
        reason: None,
        lost: cost::gpu_ms(size, pause),
        counted: cost::gpu_ms(size.min(asks), pause),
        weight: cost::gpu_ms(size.min(asks), pause_weight),
    })
}

pub(super) fn stop_candidate<'w>(victim: &Victim<'w>, reason: Reason) -> Candidate<'w> {
    let Victim { id, gang, lost, .. } = *victim;
    let mut seats = gang.seats.clone();
    seats.sort_by_key(|seat| seat.node);
    let weight = match reason {
        Reason::TimeSlice => victim.weight,
        Reason::Reclaim | Reason::Priority | Reason::Move => lost,
    };
    Candidate { id, gang, seats, reason: Some(reason), lost, counted: lost, weight }
}
