//! The cheapest mix of instance types: which kinds of nodes, and how many of each, hold a number of members for the
//! least money.
//!
//! Small nodes beside large ones can be cheaper than either alone. It is an integer program of a handful of
//! variables; where there are more than a budget allows, or the solver has no answer, kinds are chosen greedily. The
//! result says how far it may be from the best there could be.

#[cfg(test)]
pub(crate) mod tests;

use std::collections::BTreeMap;

use microlp::{ComparisonOp, OptimizationDirection, Problem, Variable};
use muster_core::World;
use muster_core::id::{OfferingRef, PoolIdx};

/// One kind of node that could be bought.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Kind {
    pub(super) offering: OfferingRef,
    /// Members that fit on one.
    pub(super) each: u32,
    /// What one costs, by any measure; the least total is sought.
    pub(super) cost: f64,
    /// How many can be had.
    pub(super) room: u32,
}

/// How many of each kind.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Mix {
    pub(super) nodes: Vec<(OfferingRef, u32)>,
    /// What it costs above the least there could be, in thousandths of that; never too little.
    pub(super) gap: u32,
}

/// What is left of a pool's own limits: nodes, GPUs, and millionths of money per hour.
pub(super) type Left = BTreeMap<PoolIdx, [Option<f64>; 3]>;

/// More members or kinds than these are not worth the time: greedy is close then.
const MEMBERS_MAX: u32 = 10_000;

/// The cheapest mix that holds `members`, if there is one that the kinds' room and the pools' limits allow.
pub(super) fn cheapest(
    world: &World,
    kinds: &[Kind],
    members: u32,
    left: &Left,
    budget: usize,
) -> Option<Mix> {
    let greedy = greedy(world, kinds, members, left);
    let bound = solve(world, kinds, members, left, false).map(|(cost, _)| cost);
    let exact = if kinds.len() <= budget && members <= MEMBERS_MAX {
        solve(world, kinds, members, left, true)
            .map(|(_, counts)| counts)
            .filter(|counts| is_sound(world, kinds, counts, members, left))
    } else {
        None
    };
    let best = [exact, greedy]
        .into_iter()
        .flatten()
        .min_by(|a, b| cost_of(kinds, a).total_cmp(&cost_of(kinds, b)))?;
    let gap = match bound {
        Some(bound) if bound > 0.0 => {
            ((cost_of(kinds, &best) / bound - 1.0).max(0.0) * 1e3).ceil() as u32
        }
        _ => 0,
    };
    let named = kinds.iter().map(|kind| kind.offering).zip(best);
    Some(Mix { nodes: named.filter(|(_, count)| *count > 0).collect(), gap })
}

fn cost_of(kinds: &[Kind], counts: &[u32]) -> f64 {
    kinds.iter().zip(counts).fold(0.0, |sum, (kind, count)| sum + kind.cost * f64::from(*count))
}

/// What one node of a kind takes of its pool's limits.
fn takes(world: &World, kind: &Kind) -> [f64; 3] {
    let spec = &world.offering(kind.offering).spec;
    [1.0, f64::from(spec.gpus), spec.price.0 as f64]
}

/// Whether counts hold all members and break no limit: the solver works with floats, and is checked.
fn is_sound(world: &World, kinds: &[Kind], counts: &[u32], members: u32, left: &Left) -> bool {
    let held: u64 =
        kinds.iter().zip(counts).map(|(kind, n)| u64::from(kind.each) * u64::from(*n)).sum();
    let mut used: BTreeMap<PoolIdx, [f64; 3]> = BTreeMap::new();
    for (kind, count) in kinds.iter().zip(counts) {
        let used = used.entry(kind.offering.pool).or_default();
        for (used, takes) in used.iter_mut().zip(takes(world, kind)) {
            *used += takes * f64::from(*count);
        }
    }
    let within = |(pool, used): (&PoolIdx, &[f64; 3])| {
        let limits = left.get(pool).copied().unwrap_or_default();
        limits.iter().zip(used).all(|(limit, used)| limit.is_none_or(|limit| *used <= limit))
    };
    held >= u64::from(members)
        && kinds.iter().zip(counts).all(|(kind, count)| *count <= kind.room)
        && used.iter().all(within)
}

/// The program with whole nodes, or with parts of nodes for a bound.
fn solve(
    world: &World,
    kinds: &[Kind],
    members: u32,
    left: &Left,
    whole: bool,
) -> Option<(f64, Vec<u32>)> {
    let mut problem = Problem::new(OptimizationDirection::Minimize);
    let most = |kind: &Kind| kind.room.min(members.div_ceil(kind.each.max(1)));
    let vars: Vec<Variable> = kinds
        .iter()
        .map(|kind| match (whole, i32::try_from(most(kind)).unwrap_or(i32::MAX)) {
            (true, most) => problem.add_integer_var(kind.cost, (0, most)),
            (false, most) => problem.add_var(kind.cost, (0.0, f64::from(most))),
        })
        .collect();
    let held: Vec<(Variable, f64)> =
        vars.iter().zip(kinds).map(|(var, kind)| (*var, f64::from(kind.each))).collect();
    problem.add_constraint(held.as_slice(), ComparisonOp::Ge, f64::from(members));
    for (pool, limits) in left {
        for (at, limit) in limits.iter().enumerate() {
            let Some(limit) = limit else { continue };
            let taken: Vec<(Variable, f64)> = vars
                .iter()
                .zip(kinds)
                .filter(|(_, kind)| kind.offering.pool == *pool)
                .map(|(var, kind)| (*var, takes(world, kind)[at]))
                .collect();
            if !taken.is_empty() {
                problem.add_constraint(taken.as_slice(), ComparisonOp::Le, *limit);
            }
        }
    }
    let solution = problem.solve().ok()?.into_solution().ok()?;
    let counts = vars.iter().map(|var| solution.var_value(*var).round().max(0.0) as u32).collect();
    Some((solution.objective(), counts))
}

/// Kind by kind, the one that costs least per member it would hold, until all members have a place.
fn greedy(world: &World, kinds: &[Kind], members: u32, left: &Left) -> Option<Vec<u32>> {
    let mut counts = vec![0; kinds.len()];
    let mut lacking = members;
    while lacking > 0 {
        let fits = |counts: &[u32], at: usize| {
            let mut more = counts.to_vec();
            more[at] += 1;
            is_sound(world, kinds, &more, 0, left)
        };
        let per_member = |at: &usize| kinds[*at].cost / f64::from(kinds[*at].each.min(lacking));
        let next = (0..kinds.len())
            .filter(|at| fits(&counts, *at))
            .min_by(|a, b| per_member(a).total_cmp(&per_member(b)))?;
        // As many of it at once as its members fill, while limits allow.
        let full = (lacking / kinds[next].each.max(1)).max(1);
        let mut taken = 0;
        while taken < full && fits(&counts, next) {
            counts[next] += 1;
            taken += 1;
        }
        lacking = lacking.saturating_sub(taken * kinds[next].each);
    }
    Some(counts)
}
