//! The draft of an order: the whole gang seated on free nodes, on nodes that are coming, and on new ones.

use muster_core::World;
use muster_core::gang::{Gang, Seat};
use muster_core::id::{ClaimId, OfferingRef};
use muster_core::money::Money;
use muster_core::order::{Claim, ClaimStage, ClaimState};
use muster_core::time::{Span, Time};

use super::instance_mix;
use super::instance_mix::{Kind, Left};
use super::order::{avoided, members_per_node, offerings_for};
use super::scope::{Scope, scope};
use super::stockout::stockout_odds;
use crate::cycle::Cycle;
use crate::place::{Ask, Filling, Want, fill_paper};
use crate::scratch::Scratch;

/// What an order adds to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Beside {
    /// Members sit on free nodes first.
    WhatIsFree,
    /// Members sit on new nodes only.
    Nothing,
}

/// The offering around which an order is drawn up.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Way {
    /// New nodes for the hardest role are of this kind.
    pub(super) offering: OfferingRef,
    /// Or of the cheapest mix of kinds with the same GPUs in the same place.
    pub(super) mixed_kinds: bool,
    /// What is there already and may be used.
    pub(super) beside: Beside,
}

/// Seats for the whole gang, some of them on nodes that are coming or exist on paper only.
pub(super) struct Draft {
    pub(super) seats: Vec<Seat>,
    pub(super) paper: std::ops::Range<usize>,
    /// What the mix of kinds costs above the least there could be, in thousandths.
    pub(super) gap: u32,
}

/// What an order would cost, and how soon it would be complete.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Terms {
    /// Members of one role on different kinds of GPUs, or in different places, work less well together: only when no
    /// one place has room.
    pub(super) scattered: bool,
    /// What it costs until the gang is done, with the cost of the delay and the odds of having to try again.
    pub(super) cost: Money,
    /// How long until all nodes are there.
    pub(super) boot: Span,
    /// What the nodes alone cost until the gang is done.
    pub(super) nodes: Money,
}

/// Places the whole gang on free nodes, on nodes that are coming for no order, and on new nodes.
///
/// With `keep`, the scratch holds the result; otherwise, and on failure, it is unchanged.
pub(super) fn draw_up(
    cycle: &mut Cycle<'_>,
    gang: &Gang,
    asks: &[Ask],
    pivot: usize,
    way: Way,
    keep: bool,
) -> Option<(Terms, Draft)> {
    let scope = scope(cycle, gang, way.offering)?;
    let suits: Vec<Vec<OfferingRef>> =
        asks.iter().map(|ask| offerings_for(cycle, gang, ask)).collect();
    let mut coming = coming(cycle, &scope, way.offering);
    if scope == Scope::OneNewNode {
        let holds_all = |cycle: &mut Cycle<'_>, offering| {
            asks.iter().all(|ask| members_per_node(cycle, offering, ask) >= ask.count)
        };
        coming.retain(|(_, offering)| holds_all(cycle, *offering));
    }
    if !has_room(cycle, &asks[pivot], &suits[pivot], &scope, &coming) {
        return None;
    }
    let is_open = |other: &OfferingRef| {
        !cycle.limits.barred_pools.contains(&other.pool) && avoided(cycle, *other).is_none()
    };
    let open: Vec<Vec<OfferingRef>> = suits
        .iter()
        .map(|suits| {
            let within = suits.iter().filter(|o| scope.allows(cycle.scratch.world, **o));
            within.filter(|o| is_open(o)).copied().collect()
        })
        .collect();

    let (world, now, budget) = (cycle.scratch.world, cycle.now, cycle.policy.mix_budget);
    let fits = &mut cycle.fits;
    let mut trial = cycle.scratch.trial();
    let first = trial.paper().len();
    let mut draft = Draft { seats: Vec::new(), paper: first..first, gap: 0 };
    let mut scattered = false;
    let mut coming = std::collections::VecDeque::from(coming);
    for (i, (ask, open)) in asks.iter().zip(&open).enumerate() {
        let mut left = ask.count;
        let seats = &mut draft.seats;
        let free = if way.beside == Beside::Nothing { &[][..] } else { scope.domains() };
        let want = Want::any(ask.sig);
        let mut filling = Filling { scratch: &mut trial, fits, ask, want, seats };
        for domain in free {
            left -= filling.domain(*domain, left);
        }
        for paper in first..trial.paper().len() {
            left -= fill_paper(&mut trial, fits, paper, ask, left, seats);
        }
        let mut passed = Vec::new();
        while left > 0
            && (scope != Scope::OneNewNode || trial.paper().len() == first)
            && let Some((claim, offering)) = coming.pop_front()
        {
            if !suits[i].contains(&offering) {
                passed.push((claim, offering));
                continue;
            }
            let paper = trial.open_coming(claim, offering);
            left -= fill_paper(&mut trial, fits, paper, ask, left, seats);
        }
        // Nodes that do not suit this role may suit the next.
        passed.into_iter().rev().for_each(|claim| coming.push_front(claim));
        // The role in question keeps to the way being tried while that has room; others, and what is left of
        // it, go to the cheapest.
        let mut chosen = Vec::new();
        if i == pivot && left > 0 && way.mixed_kinds {
            let kinds = kinds(&trial, gang, ask, open, way.offering);
            let mix =
                instance_mix::cheapest(world, &kinds, left, &left_of(&trial, &kinds), budget)?;
            draft.gap = mix.gap;
            chosen = mix.nodes;
            chosen.sort_by_key(|(offering, _)| std::cmp::Reverse(each(world, ask, *offering)));
        }
        let mut chosen =
            chosen.into_iter().flat_map(|(o, count)| std::iter::repeat_n(o, count as usize));
        while left > 0 {
            let next = match chosen.next() {
                Some(next) => next,
                None if i == pivot && !way.mixed_kinds && trial.room(way.offering) > 0 => {
                    way.offering
                }
                None => {
                    let next = cheapest(&trial, ask, left, open)?;
                    scattered |= i == pivot && !alike(world, next, way.offering);
                    next
                }
            };
            if scope == Scope::OneNewNode && trial.paper().len() > first {
                return None;
            }
            let paper = trial.open_paper(next);
            let seated = fill_paper(&mut trial, fits, paper, ask, left, seats);
            if seated == 0 {
                return None;
            }
            left -= seated;
        }
    }
    draft.paper = first..trial.paper().len();
    if draft.paper.is_empty() {
        return None;
    }
    let mut terms = terms(&trial, now, gang, &draft);
    terms.scattered = scattered;
    if keep {
        trial.keep();
    }
    Some((terms, draft))
}

/// What a draft would cost.
fn terms(scratch: &Scratch<'_>, now: Time, gang: &Gang, draft: &Draft) -> Terms {
    let world = scratch.world;
    let mut hourly = Money::ZERO;
    let (mut boot, mut comes) = (Span::ZERO, 1.0);
    let mut asked: Vec<OfferingRef> = Vec::new();
    for node in &scratch.paper()[draft.paper.clone()] {
        let spec = &world.offering(node.offering).spec;
        hourly += spec.marginal_price();
        match node.coming {
            Some(claim) => boot = boot.max(ready_in(world, now, &world.claims()[&claim])),
            None => {
                boot = boot.max(spec.boot_time);
                if !asked.contains(&node.offering) {
                    asked.push(node.offering);
                    comes *= 1.0 - stockout_odds(world, now, node.offering);
                }
            }
        }
    }
    let nodes = hourly.per_hour_for(boot + gang.estimated_run_time());
    // A gang that does not declare what an hour of waiting costs is taken to lose what an hour of the nodes costs.
    let waiting = gang.spec.cost_of_waiting.unwrap_or(hourly);
    let again = Span::from_secs_f64(boot.as_secs_f64() * (1.0 - comes));
    let cost = nodes + waiting.per_hour_for(boot + again);
    Terms { scattered: false, cost, boot, nodes }
}

/// How long until a claim that is under way, or stopped, is ready, by its offering's boot time.
pub(crate) fn ready_in(world: &World, now: Time, claim: &Claim) -> Span {
    let spec = &world.offering(claim.offering).spec;
    if claim.state == ClaimState::Stopped {
        return spec.start_time.unwrap_or(spec.boot_time);
    }
    // Most of a boot is waiting for the machine, then for its node, then for its GPUs.
    let part = match claim.stage() {
        Some(ClaimStage::Launch) | None => 1.0,
        Some(ClaimStage::Register) => 0.4,
        Some(ClaimStage::Gpus) => 0.25,
    };
    let whole = spec.boot_time.as_secs_f64() * part;
    let past = now.since(claim.since).as_secs_f64();
    // A late node is not about to come: the later it is, the longer it is likely to take.
    let left = if past < whole { whole - past } else { whole * 0.1 + (past - whole) * 0.5 };
    Span::from_secs_f64(left)
}

/// Claims that are coming for no order, or stopped, where the gang may use them: near the offering first, then the
/// soonest.
fn coming(cycle: &Cycle<'_>, scope: &Scope, near: OfferingRef) -> Vec<(ClaimId, OfferingRef)> {
    let world = cycle.scratch.world;
    let leaf = world.offering(near).leaf;
    let promised = |id: ClaimId| cycle.scratch.paper().iter().any(|node| node.coming == Some(id));
    let mut coming: Vec<_> = cycle
        .memo
        .coming
        .iter()
        .map(|id| (*id, &world.claims()[id]))
        .filter(|(id, claim)| {
            scope.allows(world, claim.offering)
                && !cycle.limits.barred_pools.contains(&claim.offering.pool)
                && !promised(*id)
        })
        .map(|(id, claim)| {
            let far = world.offering(claim.offering).leaf != leaf;
            (far, ready_in(world, cycle.now, claim), id, claim.offering)
        })
        .collect();
    coming.sort_unstable();
    coming.into_iter().map(|(_, _, id, offering)| (id, offering)).collect()
}

/// Whether free nodes, coming nodes and all offerings together hold at least the members that lack a place. Saves
/// drawing up orders that must fail.
fn has_room(
    cycle: &mut Cycle<'_>,
    ask: &Ask,
    offerings: &[OfferingRef],
    scope: &Scope,
    coming: &[(ClaimId, OfferingRef)],
) -> bool {
    let widest = scope.domains().last().copied();
    let free =
        widest.map_or(0, |domain| cycle.fits.in_domain(&cycle.scratch, domain, Want::any(ask.sig)));
    let mut lacking = u64::from(ask.count).saturating_sub(free);
    for offering in offerings {
        if scope.allows(cycle.scratch.world, *offering) {
            let each = u64::from(members_per_node(cycle, *offering, ask));
            let coming = coming.iter().filter(|(_, of)| of == offering).count() as u64;
            let nodes = u64::from(cycle.scratch.room(*offering)) + coming;
            lacking = lacking.saturating_sub(each * nodes);
        }
    }
    lacking == 0
}

/// Members of a role on one empty node of an offering; at least one, where one is known to fit.
fn each(world: &World, ask: &Ask, offering: OfferingRef) -> u32 {
    let class = world.offering(offering).class;
    world.signature(ask.sig).times_fits(&world.empty_state(class)).clamp(1, ask.count)
}

/// The offering that costs least per member still without a place, and has room for one more node.
fn cheapest(
    scratch: &Scratch<'_>,
    ask: &Ask,
    left: u32,
    open: &[OfferingRef],
) -> Option<OfferingRef> {
    let world = scratch.world;
    let room = open.iter().copied().filter(|offering| scratch.room(*offering) > 0);
    room.min_by_key(|offering| {
        let price = world.offering(*offering).spec.marginal_price().0;
        (price / i64::from(each(world, ask, *offering).min(left)), *offering)
    })
}

/// Whether members on nodes of either offering work together as if on one kind: the same GPUs, the same place.
pub(super) fn alike(world: &World, a: OfferingRef, b: OfferingRef) -> bool {
    let (a, b) = (world.offering(a), world.offering(b));
    a.leaf == b.leaf && a.spec.gpu == b.spec.gpu
}

/// Kinds of nodes for a mix, and what one of each costs until the gang is done.
fn kinds(
    scratch: &Scratch<'_>,
    gang: &Gang,
    ask: &Ask,
    open: &[OfferingRef],
    like: OfferingRef,
) -> Vec<Kind> {
    let world = scratch.world;
    let alike = open.iter().copied().filter(|offering| alike(world, *offering, like));
    alike
        .map(|offering| {
            let spec = &world.offering(offering).spec;
            let lasts = spec.boot_time + gang.estimated_run_time();
            Kind {
                offering,
                each: each(world, ask, offering),
                cost: spec.marginal_price().per_hour_for(lasts).0 as f64,
                room: scratch.room(offering),
            }
        })
        .collect()
}

/// What is left of the limits of these kinds' pools.
fn left_of(scratch: &Scratch<'_>, kinds: &[Kind]) -> Left {
    let mut left = Left::new();
    for kind in kinds {
        let pool = kind.offering.pool;
        let (limits, usage) = (&scratch.world.pools()[pool].spec.limits, scratch.pool_usage(pool));
        let nodes = limits.nodes.map(|most| f64::from(most.saturating_sub(usage.nodes)));
        let gpus = limits.gpus.map(|most| f64::from(most.saturating_sub(usage.gpus)));
        let money = limits.hourly_spend.map(|most| (most - usage.hourly).0.max(0) as f64);
        left.insert(pool, [nodes, gpus, money]);
    }
    left
}

/// Whether a mix of kinds could be cheaper than one kind alone: there are several, which hold different numbers
/// of members, and the gang does not fit on one node of each.
pub(super) fn is_mix_worthwhile(
    world: &World,
    ask: &Ask,
    offerings: &[OfferingRef],
    like: OfferingRef,
) -> bool {
    let mut sizes = offerings
        .iter()
        .filter(|offering| alike(world, **offering, like))
        .map(|offering| each(world, ask, *offering));
    let Some(first) = sizes.next() else { return false };
    let mut least = first;
    let mut differ = false;
    for size in sizes {
        differ |= size != first;
        least = least.min(size);
    }
    differ && least < ask.count
}
