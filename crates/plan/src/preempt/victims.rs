//! Have others make way: shrink those that have more than they need, take back what was lent, let others have
//! their turn, stop those of lower priority, or move who can be moved.
//!
//! Nobody is asked unless the whole gang then fits, on what is free and what becomes free together. What it needs
//! is held by an order from that moment on, so that nobody else slips in while they leave.

use std::collections::BTreeMap;

use muster_core::gang::{Gang, Phase, Seat};
use muster_core::id::{DomainIdx, GangId, NodeIdx};
use muster_core::order::MakesWay;
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

/// Others who would make way, so that a gang fits as soon as they have left.
#[derive(Clone, Debug, Default)]
pub(crate) struct VictimSet {
    /// Where it would sit.
    pub(crate) seats: Vec<Seat>,
    /// Who would leave what.
    pub(crate) preempts: Vec<MakesWay>,
    /// By what rights some of them would be stopped.
    pub(crate) reasons: Vec<Reason>,
    /// What they lose altogether, in milliseconds of a GPU.
    pub(crate) lost: u64,
    /// What of that counts against the delay of the one who waits.
    pub(crate) counted: u64,
    /// How long the slowest has to leave.
    pub(crate) delay: Span,
    /// What was lent to others could be reclaimed for the gang, by this offer or by a dearer one.
    pub(crate) reclaimable: bool,
}

/// Domains tried for a gang that must stay within one, at most.
const DOMAINS: usize = 8;
/// How many times what a gang asks for is looked at first, and how many gangs at least.
const ENOUGH: u64 = 4;
const FEW: usize = 64;
/// Ways to move others that are tried for one gang, at most.
const MOVES: usize = 8;
/// Whom to ask so that a gang can start; the least that is lost. `booked` are nodes that somebody holds a start
/// time on: who is there is not asked.
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
    // Seats that nobody sits on any more go before those of members that run.
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
    // A cheaper move does not take away the right to reclaim, whatever the moved gangs say that they lose.
    let moved =
        move_others(cycle, id, gang, booked).map(|victims| VictimSet { reclaimable, ..victims });
    [found, moved].into_iter().flatten().min_by_key(|victims| victims.counted)
}

/// Those that lose least for what they leave, and enough of them: looking at everybody would take too long, and the
/// rest is looked at if these are not enough.
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

/// The least that is lost if some of these make way, in the best of all domains.
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
) -> Option<VictimSet> {
    let evictions = cycle.eviction_budgets();
    let mut trial = cycle.scratch.trial();
    let who = (id, gang);
    let bounds = SearchBounds {
        evictions: &evictions,
        leaving: &cycle.given.leaving,
        truncated: &cycle.searches.truncated,
    };
    Search::new(&mut trial, &mut cycle.fits, who, candidates, bounds, domain).find()
}

/// Gangs that may be moved and fit elsewhere at once, so that this one fits where they were.
fn move_others(
    cycle: &mut Cycle<'_>,
    id: GangId,
    gang: &Gang,
    booked: &[NodeIdx],
) -> Option<VictimSet> {
    let world = cycle.scratch.world;
    // To be moved is to be stopped, which nobody is for a gentle gang.
    let may = !gang.sigs.is_empty() && !gang.spec.disruption.gentle;
    let gang = world.gang(id).filter(|_| may)?;
    let movable = |victim: &Victim<'_>| {
        let other = victim.gang;
        other.spec.may_move()
            // Once: where it goes must not be a reason to move it again.
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

/// All who are moved must find other seats beside the newcomer: the first who does not.
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
