//! Verdicts: why a gang does not start, and whether it ever can.

use std::collections::BTreeMap;

use muster_core::gang::{Closeness, Gang};
use muster_core::id::{ClassIdx, DomainIdx, PoolIdx, SigIdx};
use muster_core::node::Node;
use muster_core::pool::PoolUsage;
use muster_core::signature::Reach;
use muster_core::topology::{Level, ROOT};
use muster_core::verdict::Blocker;

use crate::cycle::Cycle;
use crate::place::{Ask, Misfit, asks};
use crate::provision::{is_sold, members_per_node, offerings_for, over_budget};

/// A misfit as a blocker.
pub(crate) fn blocker(misfit: Misfit) -> Blocker {
    match misfit {
        Misfit::Role { role, fits, needs } => Blocker::NoFreeCapacity { role, fits, needs },
        Misfit::Together => Blocker::RolesCompete,
    }
}

/// Why a gang could not start even if everything were empty and every pool at its limit.
///
/// The count is never too low, so a gang that is called infeasible is; one that is not may still be kept from
/// starting by how its roles compete.
pub(crate) fn infeasible(cycle: &mut Cycle<'_>, gang: &Gang) -> Option<Blocker> {
    let required =
        gang.level.filter(|_| matches!(gang.spec.closeness, Some(Closeness::Required(_))));
    for ask in asks(&cycle.scratch, gang) {
        let most = max_members_ever(cycle, gang, &ask, required);
        if most >= u64::from(ask.count) {
            continue;
        }
        let (role, needs) = (ask.role, ask.count);
        let offerings = offerings_for(cycle, gang, &ask);
        let offered = offerings.iter().any(|offering| is_sold(cycle.scratch.world, *offering));
        if most == 0 && !offered {
            return Some(Blocker::RoleFitsNowhere { role });
        }
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        return Some(Blocker::NeverEnough { role, most, needs, offered });
    }
    None
}

/// The pool whose budget, all of it, does not pay for a gang that could run if it were larger.
pub(crate) fn beyond_budget(cycle: &mut Cycle<'_>, gang: &Gang) -> Option<Blocker> {
    for ask in asks(&cycle.scratch, gang) {
        let offerings = offerings_for(cycle, gang, &ask);
        let found = over_budget(cycle.scratch.world, &offerings, |_| PoolUsage::default());
        if found.is_some() {
            return found;
        }
    }
    None
}

/// Members of a role that could ever run at once, in the best domain if they must stay within one. Roles
/// that ask for the same under the same conditions share the answer for the length of a cycle.
fn max_members_ever(cycle: &mut Cycle<'_>, gang: &Gang, ask: &Ask, required: Option<Level>) -> u64 {
    let key = (ask.sig, required, gang.queue, gang.spec.provisioning.timeout);
    if let Some(most) = cycle.memo.most_ever.get(&key) {
        return *most;
    }
    let topology = cycle.scratch.world.topology();
    let domains: Vec<DomainIdx> = match required {
        Some(Level::Domain(level)) => {
            let domains = topology.of_level(level).iter().copied();
            domains.filter(|domain| topology.is_named(*domain)).collect()
        }
        Some(Level::Node) | None => vec![ROOT],
    };
    let one_node = required == Some(Level::Node);
    let most = domains.into_iter().map(|domain| most_in(cycle, gang, ask, domain, one_node)).max();
    let most = most.unwrap_or(0);
    cycle.memo.most_ever.insert(key, most);
    most
}

/// Members of a role that fit in a domain with every node empty and every pool at its limit.
fn most_in(
    cycle: &mut Cycle<'_>,
    gang: &Gang,
    ask: &Ask,
    domain: DomainIdx,
    one_node: bool,
) -> u64 {
    let world = cycle.scratch.world;
    let signature = world.signature(ask.sig);
    let mut most: u64 = 0;
    let mut largest: u64 = 0;
    for (class, nodes) in static_nodes_for(cycle, ask.sig, domain) {
        let each = u64::from(signature.times_fits(&world.empty_state(class)));
        most = most.saturating_add(each * u64::from(nodes));
        largest = largest.max(each);
    }
    for (members, each) in pools_for(cycle, gang, ask, domain) {
        most = most.saturating_add(members);
        largest = largest.max(each);
    }
    if one_node { largest } else { most }
}

/// Nodes that came with the cluster and suit a signature, by class.
fn static_nodes_for(cycle: &mut Cycle<'_>, sig: SigIdx, domain: DomainIdx) -> Vec<(ClassIdx, u32)> {
    let world = cycle.scratch.world;
    let signature = world.signature(sig);
    if signature.must == Reach::Class {
        let mut classes = world.standing(domain).entries().to_vec();
        classes.retain(|(class, _)| cycle.fits.score(&cycle.scratch, sig, *class, ROOT).is_some());
        return classes;
    }
    // Constraints that look at places or names are settled node by node; few gangs get here.
    let topology = world.topology();
    let suits = |node: &Node| {
        let shape = world.class(node.class);
        node.claim.is_none()
            && topology.contains(domain, node.leaf)
            && signature.score(shape, topology, node.leaf, Some(&node.name)).is_some()
    };
    world.nodes().filter(|(_, node)| suits(node)).map(|(_, node)| (node.class, 1)).collect()
}

/// Per pool, the most members its offerings in a domain could host at once, and on one node.
fn pools_for(cycle: &mut Cycle<'_>, gang: &Gang, ask: &Ask, domain: DomainIdx) -> Vec<(u64, u64)> {
    let world = cycle.scratch.world;
    let mut found: BTreeMap<PoolIdx, (u64, u64, u64)> = BTreeMap::new();
    for offering in offerings_for(cycle, gang, ask) {
        if !world.topology().contains(domain, world.offering(offering).leaf) {
            continue;
        }
        let pool = &world.pools()[offering.pool];
        let slot = usize::from(offering.slot);
        let alone = u64::from(pool.room_beside(slot, &PoolUsage::default(), 0));
        // The pool's limits hold for all of its offerings together: no mix has more nodes than the one
        // that those limits allow most of.
        let shared = u64::from(pool.room_within_limits(slot, &PoolUsage::default()));
        let each = u64::from(members_per_node(cycle, offering, ask));
        let entry = found.entry(offering.pool).or_default();
        entry.0 = entry.0.saturating_add(each.saturating_mul(alone));
        entry.1 = entry.1.max(shared);
        if alone > 0 {
            entry.2 = entry.2.max(each);
        }
    }
    found
        .into_values()
        .map(|(sum, shared, each)| (sum.min(shared.saturating_mul(each)), each))
        .collect()
}
