//! What-if: what would let a gang start now.
//!
//! Every answer comes from placing the gang, by the same code as ever, in a world changed a little: a few more nodes,
//! fewer members, looser closeness, or a higher priority. Nothing is guessed.

use muster_core::World;
use muster_core::gang::{Closeness, Gang, Phase};
use muster_core::id::{ClassIdx, DomainIdx, GangId};
use muster_core::plan::Plan;
use muster_core::queue::Usage;
use muster_core::time::Time;
use muster_core::verdict::{Help, Verdict};

use super::expected_starts::expected_starts;
use crate::cycle::{Cycle, Outcome, Served, decide_starts};
use crate::order::quota;
use crate::place::{Fits, asks, place};
use crate::policy::Policy;
use crate::predict;
use crate::provision::offerings_for;
use crate::reserve::{Bookings, booked_nodes};
use crate::scratch::Scratch;

/// The state of a gang, and what would change it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Why {
    /// The planner's verdict.
    pub verdict: Verdict,
    /// When it is expected to start if no other gang comes; none when waiting alone does not start it.
    pub start: Option<Time>,
    /// What would let it start now.
    pub helps: Vec<Help>,
}

/// Explains the state of a gang; `None` when there is no such gang, or the host has not reported everything.
pub fn why(world: &World, now: Time, policy: &Policy, id: GangId) -> Option<Why> {
    let policy = Policy { explain: true, ..policy.clone() };
    let mut plan = Plan::default();
    let gang = world.gang(id)?;
    let outcome = decide_starts(world, now, &policy, &mut plan);
    if let Outcome::NotSynced = outcome {
        return None;
    }
    let verdict = plan.verdicts.iter().find(|(of, _)| *of == id).map(|(_, v)| v.clone())?;
    let Outcome::Served(Served { mut cycle, holes, waiting }) = outcome else {
        return Some(Why { verdict, start: None, helps: Vec::new() });
    };
    let bookings = holes.bookings;
    let helps = match verdict {
        Verdict::Waiting { .. } => helps(&mut cycle, &bookings, gang),
        _ => Vec::new(),
    };
    let start = expected_starts(&cycle, bookings, &waiting).get(&id).copied();
    Some(Why { verdict, start, helps })
}

/// Nodes added in a what-if, at most.
const MORE_NODES: u32 = 4_096;
/// Kinds of nodes to add that are reported, at most: those of which the fewest are needed.
const KINDS: usize = 3;
/// Leaves in which more nodes of a kind are tried for members that must stay together.
const PLACES: usize = 8;
/// Gangs considered as victims, at most.
const VICTIMS: usize = 256;

/// Everything that would let a gang start now.
pub(crate) fn helps(cycle: &mut Cycle<'_>, bookings: &Bookings<'_>, gang: &Gang) -> Vec<Help> {
    let mut helps = Vec::new();
    if let Some(Closeness::Required(level)) = &gang.spec.closeness {
        let mut loose = gang.clone();
        loose.spec.closeness = Some(Closeness::Preferred(level.clone()));
        if starts_now(cycle, bookings, &loose, &|_, _| {}) {
            helps.push(Help::Closeness);
        }
    }
    helps.extend(more_nodes(cycle, bookings, gang));
    helps.extend(higher_priority(cycle, gang));
    helps.extend(fewer_members(cycle, bookings, gang));
    helps
}

/// Whether a gang starts now, delaying no booked gang, in a world changed so at every time.
fn starts_now(
    cycle: &Cycle<'_>,
    bookings: &Bookings<'_>,
    gang: &Gang,
    change: &dyn Fn(&mut Scratch<'_>, Time),
) -> bool {
    let mut now = cycle.scratch.later();
    change(&mut now, cycle.now);
    if quota::over_limit(&now, gang).is_some() {
        return false;
    }
    let belief = cycle.policy.order.belief().of_newcomers();
    let ends = predict::end(cycle.scratch.world, gang, belief, cycle.now);
    let ahead = &bookings.0[..bookings.before(ends)];
    // Nodes that come up until then are not here, and no gang is booked on nodes that the change adds.
    let mut nodes = booked_nodes(ahead);
    nodes.retain(|node| cycle.scratch.node_state(*node).is_some());
    for booking in ahead {
        let mut then = booking.then.later();
        change(&mut then, booking.start);
        for node in &nodes {
            if let (Some(free), Some(later)) = (now.node_state(*node), then.node_state(*node)) {
                now.set_node_state(*node, free.common(&later));
            }
        }
    }
    place(&mut now, &mut Fits::default(), gang).is_ok()
}

/// The kinds of nodes of which the fewest more would do.
fn more_nodes(cycle: &mut Cycle<'_>, bookings: &Bookings<'_>, gang: &Gang) -> Vec<Help> {
    let world = cycle.scratch.world;
    let mut kinds: Vec<(ClassIdx, DomainIdx, Help)> = Vec::new();
    let close = matches!(gang.spec.closeness, Some(Closeness::Required(_)));
    for ask in asks(&cycle.scratch, gang) {
        for offering in offerings_for(cycle, gang, &ask) {
            let listed = world.offering(offering);
            kinds.push((listed.class, listed.leaf, Help::Nodes { offering, count: 0 }));
        }
        for (node, here) in world.nodes().filter(|(_, here)| here.usable && here.claim.is_none()) {
            // The leaf of a node matters only to members that must stay together.
            let alike = kinds.iter().filter(|(class, ..)| *class == here.class);
            let enough = alike.clone().count() >= if close { PLACES } else { 1 };
            let known = enough || alike.clone().any(|(_, leaf, _)| *leaf == here.leaf);
            let suits = !known
                && cycle.fits.score(&cycle.scratch, ask.sig, here.class, here.leaf).is_some();
            if suits {
                kinds.push((here.class, here.leaf, Help::NodesLike { node, count: 0 }));
            }
        }
    }
    let most = gang.spec.min_members().min(MORE_NODES);
    let mut found: Vec<(u32, Help)> = Vec::new();
    for (class, leaf, help) in kinds {
        let enough = |count: u32| {
            starts_now(cycle, bookings, gang, &|scratch, _| {
                for _ in 0..count {
                    scratch.appear(class, leaf);
                }
            })
        };
        if let Some(count) = least(most, enough) {
            found.push((count, with_count(help, count)));
        }
    }
    found.sort_by_key(|(count, _)| *count);
    found.dedup_by(|a, b| same_kind(world, &a.1, &b.1));
    found.into_iter().take(KINDS).map(|(_, help)| help).collect()
}

fn with_count(help: Help, count: u32) -> Help {
    match help {
        Help::Nodes { offering, .. } => Help::Nodes { offering, count },
        Help::NodesLike { node, .. } => Help::NodesLike { node, count },
        other => other,
    }
}

/// Whether two answers speak of nodes that look the same, wherever they stand.
fn same_kind(world: &World, a: &Help, b: &Help) -> bool {
    let class = |help: &Help| match help {
        Help::NodesLike { node, .. } => world.node(*node).map(|node| node.class),
        _ => None,
    };
    class(a).is_some() && class(a) == class(b)
}

/// The lowest priority at which it would start, and the gangs that would have to stop for it.
fn higher_priority(cycle: &Cycle<'_>, gang: &Gang) -> Option<Help> {
    let world = cycle.scratch.world;
    let own = gang.spec.priority;
    let mut running: Vec<(GangId, &Gang)> = world
        .gangs()
        .filter(|(_, other)| matches!(other.phase, Phase::Running { .. } | Phase::Admitted { .. }))
        .collect();
    // The lowest priority first, and of those the youngest: they lose least.
    running.sort_by_key(|(id, other)| (other.spec.priority, std::cmp::Reverse(*id)));
    running.truncate(VICTIMS);
    let fits_without = |victims: &[(GangId, &Gang)]| {
        let mut base = Scratch::new(world);
        for (_, victim) in victims {
            base.rise(victim, &victim.seats);
            quota::refund_later(&mut base, victim, &victim.seats);
        }
        quota::over_limit(&base, gang).is_none()
            && place(&mut base, &mut Fits::default(), gang).is_ok()
    };
    let ahead = world.waiting().iter().map(|waiter| waiter.priority).max().unwrap_or(own);
    if fits_without(&[]) {
        let priority = ahead.saturating_add(1);
        return (priority > own).then_some(Help::Priority { priority, instead_of: Vec::new() });
    }
    if gang.spec.disruption.never_preempts {
        return None; // no gang is stopped for it, whatever its priority
    }
    let levels: Vec<i32> = running.iter().map(|(_, other)| other.spec.priority).collect();
    let enough = |level: i32| {
        let below = levels.partition_point(|priority| *priority <= level);
        fits_without(&running[..below]).then_some(below)
    };
    let mut distinct = levels.clone();
    distinct.dedup();
    let (level, below) = distinct.into_iter().find_map(|level| Some((level, enough(level)?)))?;
    let mut victims = running[..below].to_vec();
    // A gang that need not stop is spared, those of the highest priority first.
    for at in (0..victims.len()).rev() {
        let spared = victims.remove(at);
        if !fits_without(&victims) {
            victims.insert(at, spared);
        }
    }
    let priority = level.saturating_add(1).max(own);
    let instead_of = victims.into_iter().map(|(id, _)| id).collect();
    Some(Help::Priority { priority, instead_of })
}

/// The most members of a role with which it would start, if fewer would do.
fn fewer_members(cycle: &Cycle<'_>, bookings: &Bookings<'_>, gang: &Gang) -> Option<Help> {
    let world = cycle.scratch.world;
    let roles = gang.spec.roles.iter().enumerate().filter(|(_, role)| role.min > 1);
    for (role, spec) in roles {
        let with = |count: u32| {
            let mut fewer = gang.clone();
            let spec = &mut fewer.spec.roles[role];
            // With fewer, as if it had never wanted more.
            spec.max = if spec.min == spec.max { count } else { spec.max };
            spec.min = count;
            fewer.wants = Usage::default();
            for (role, sig) in fewer.spec.roles.iter().zip(&fewer.sigs) {
                let signature = world.signature(*sig);
                fewer.wants.add(&signature.key.amounts, signature.gpu_milli(), role.min);
            }
            starts_now(cycle, bookings, &fewer, &|_, _| {})
        };
        // Counted as members left out, so that the fewest left out is the least.
        if let Some(left_out) = least(spec.min - 1, |out| with(spec.min - out)) {
            return Some(Help::Members { role: role as u16, count: spec.min - left_out });
        }
    }
    None
}

/// The least count from 1 to `most` that is enough, if more is never worse.
fn least(most: u32, enough: impl Fn(u32) -> bool) -> Option<u32> {
    if most == 0 || !enough(most) {
        return None;
    }
    let (mut low, mut high) = (1, most);
    while low < high {
        let middle = low + (high - low) / 2;
        if enough(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Some(low)
}
