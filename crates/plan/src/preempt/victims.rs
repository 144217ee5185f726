//! Choose victims for a gang that waits: shrink gangs that have more members than they need, reclaim lent capacity,
//! rotate time slices, stop gangs of lower priority, or move gangs that may be moved.
//!
//! No gang is preempted unless the whole gang that waits then fits, on what is free and what becomes free together.
//! An order holds its seats from that moment on, so that no other gang takes them while the victims leave.

use std::collections::BTreeMap;

use muster_core::gang::{Gang, Phase, Seat};
use muster_core::id::{DomainIdx, GangId, NodeIdx};
use muster_core::order::VictimSeats;
use muster_core::time::Span;
use muster_core::topology::{Level, ROOT};

use super::candidates::{
    Candidate, Victim, all_victims, candidates, shrinkable, stop_candidate, to_stop_or_shrink,
    with_empty_seats,
};
use super::cost;
use super::eligibility::{self, Reason};
use super::search::{Search, SearchBounds, domains};
use crate::cycle::{Cycle, earliest};
use crate::place::place;

/// Gangs to preempt, so that a gang fits as soon as they have left.
#[derive(Clone, Debug, Default)]
pub(crate) struct VictimSet {
    /// The seats it would have.
    pub(crate) seats: Vec<Seat>,
    /// The victims, and the seats each of them leaves.
    pub(crate) preempts: Vec<VictimSeats>,
    /// Why some of them would be stopped.
    pub(crate) reasons: Vec<Reason>,
    /// What they lose altogether, in milliseconds of a GPU.
    pub(crate) lost: u64,
    /// The part of that loss that counts against the delay of the gang that waits.
    pub(crate) counted: u64,
    /// The longest grace period among them.
    pub(crate) delay: Span,
    /// Lent capacity could be reclaimed for the gang, by this set or by a more expensive one.
    pub(crate) reclaimable: bool,
}

/// Domains tried for a gang that must stay within one, at most.
const DOMAINS: usize = 8;
/// Candidates are tried first that together have this many times what a gang asks for, and at least this many of
/// them.
const ENOUGH: u64 = 4;
const FEW: usize = 64;
/// Sets of gangs to move that are tried for one gang, at most.
const MOVES: usize = 8;
/// The victims to preempt so that a gang can start; the set that loses least. `booked` are nodes on which a gang
/// holds a start time: gangs there are not preempted.
pub(crate) fn find_victims<'w>(
    cycle: &mut Cycle<'w>,
    id: GangId,
    booked: &[NodeIdx],
) -> Option<VictimSet> {
    let world = cycle.scratch.world;
    let gang = world.gang(id).expect("it waits");
    if cycle.memo.victims.is_none() {
        cycle.memo.victims = Some(all_victims(cycle));
    }
    // Seats without members come before those of members that run.
    let found = search(cycle, id, gang, with_empty_seats(cycle, gang, booked));
    let found = found.or_else(|| search(cycle, id, gang, shrinkable(cycle, gang, booked)));
    if found.is_some() {
        return found;
    }
    let to_stop_or_shrink = to_stop_or_shrink(cycle, gang, booked).into_iter();
    let found: Vec<VictimSet> =
        to_stop_or_shrink.filter_map(|all| search(cycle, id, gang, all)).collect();
    let mut found = found.into_iter().min_by_key(|victims| victims.counted);
    let reclaimable =
        found.as_ref().is_some_and(|victims| victims.reasons.contains(&Reason::Reclaim));
    found.iter_mut().for_each(|victims| victims.reclaimable = reclaimable);
    if found.as_ref().is_some_and(|victims| victims.lost == 0) {
        return found;
    }
    if found.is_none() {
        let eligible_at = eligibility::next_eligible(cycle, gang);
        cycle.wake = earliest(cycle.wake, eligible_at);
    }
    // A cheaper move does not take away the right to reclaim, whatever loss the moved gangs declare.
    let moved =
        move_others(cycle, id, gang, booked).map(|victims| VictimSet { reclaimable, ..victims });
    [found, moved].into_iter().flatten().min_by_key(|victims| victims.counted)
}

/// How many of the candidates that lose least for the seats they leave are enough to try first: trying all would take
/// too long, and the rest is tried if these are not enough.
fn least_lost<'w>(cycle: &Cycle<'w>, gang: &Gang, all: &[Candidate<'w>]) -> Option<usize> {
    let world = cycle.scratch.world;
    let wants = cost::minimum_size(world, gang).saturating_mul(ENOUGH);
    let mut sum = 0u64;
    for (at, candidate) in all.iter().enumerate() {
        sum = sum.saturating_add(cost::size(world, candidate.gang, &candidate.seats));
        if sum >= wants && at + 1 >= FEW {
            return (at + 1 < all.len()).then_some(at + 1);
        }
    }
    None
}

/// The set of victims among these candidates that loses least, in the best of all domains.
fn search<'w>(
    cycle: &mut Cycle<'w>,
    id: GangId,
    gang: &'w Gang,
    mut candidates: Vec<Candidate<'w>>,
) -> Option<VictimSet> {
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
    let mut best: Option<VictimSet> = None;
    let promising = promising(cycle, gang, domains, &candidates);
    if promising.len() > DOMAINS {
        cycle.searches.truncated.set(true);
    }
    for domain in promising.into_iter().take(DOMAINS) {
        let found = search_in(cycle, id, gang, domain, &candidates);
        best = best.into_iter().chain(found).min_by_key(|victims| victims.counted);
    }
    best
}

/// The domains in which a candidate could leave: first those with room enough for the gang's first role by what is
/// free and what would be, in GPUs; among these as in `domains`.
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
) -> Option<VictimSet> {
    let evictions = cycle.eviction_budgets();
    let mut trial = cycle.scratch.trial();
    let waiting = (id, gang);
    let bounds = SearchBounds {
        evictions: &evictions,
        leaving: &cycle.given.leaving,
        truncated: &cycle.searches.truncated,
    };
    Search::new(&mut trial, &mut cycle.fits, waiting, candidates, bounds, domain).find()
}

/// Gangs that may be moved and fit elsewhere at once, so that this one fits where they were.
fn move_others(
    cycle: &mut Cycle<'_>,
    id: GangId,
    gang: &Gang,
    booked: &[NodeIdx],
) -> Option<VictimSet> {
    let world = cycle.scratch.world;
    // A gang is moved by stopping it, and no gang is stopped for one that never preempts.
    let may = !gang.sigs.is_empty() && !gang.spec.disruption.never_preempts;
    let gang = world.gang(id).filter(|_| may)?;
    let movable = |victim: &Victim<'_>| {
        let other = victim.gang;
        other.spec.may_move()
            // Once: its new place must not be a reason to move it again.
            && other.restarts == 0
            && matches!(other.phase, Phase::Running { .. })
            && cost::run_time(other, cycle.now) >= other.spec.disruption.min_runtime
            && other.spec.priority <= gang.spec.priority
            && cycle.may_evict(other.queue)
    };
    let mut all = candidates(cycle, booked, |victim| {
        movable(victim).then(|| stop_candidate(victim, Reason::Move))
    });
    for _ in 0..MOVES {
        let victims = search(cycle, id, gang, all.clone())?;
        match first_without_seats(cycle, gang, &victims) {
            None => return Some(victims),
            Some(stuck) => all.retain(|candidate| candidate.id != stuck),
        }
    }
    cycle.searches.truncated.set(true);
    None
}

/// All gangs that are moved must find other seats beside the newcomer: the first that does not.
fn first_without_seats(cycle: &mut Cycle<'_>, gang: &Gang, victims: &VictimSet) -> Option<GangId> {
    let world = cycle.scratch.world;
    let others = || victims.preempts.iter().filter_map(|way| Some((way, world.gang(way.gang)?)));
    let mut trial = cycle.scratch.trial();
    for (way, other) in others() {
        trial.rise(other, &way.seats);
    }
    trial.sit(gang, &victims.seats);
    let mut stuck = |other: &Gang| place(&mut trial, &mut cycle.fits, other).is_err();
    others().find(|(_, other)| stuck(other)).map(|(way, _)| way.gang)
}
