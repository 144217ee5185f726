//! Promise 3, no leak: every node is owed to an order, a gang or a target, or is released within its idle time.

use std::collections::BTreeMap;

use muster_core::id::{ClaimId, PoolIdx};
use muster_core::plan::Target;
use muster_core::pool::PoolSpec;
use muster_core::proactive::{Buffer, Consolidate};

use crate::promises::books::{Books, ClaimEntry};
use crate::promises::nodes::claims::offering;
use crate::promises::{Promise, Violation};

/// Records the planner's targets, and finds those that no pool's spec explains.
pub(crate) fn note(books: &mut Books, targets: &[(PoolIdx, Target)], found: &mut Vec<Violation>) {
    books.targets = targets.iter().copied().collect();
    for (pool, target) in targets {
        let spec = &books.terms.pools[usize::from(pool.0)];
        let mine = || books.claims.values().filter(|claim| claim.offering.pool == *pool);
        let node = |claim: &ClaimEntry| claim.node.and_then(|node| books.nodes.get(&node));
        let goes = |claim: &&ClaimEntry| node(claim).is_some_and(|node| node.noticed.is_some());
        let (free, stopped) = most(spec, mine().count() as u32);
        // Nodes announced to go are replaced beforehand.
        let free = free.saturating_add(mine().filter(goes).count() as u32);
        if target.free > free || target.stopped > stopped {
            let what = format!("{} is to have {target:?}, more than it asks for", spec.name);
            found.push(books.violation(Promise::NoLeak, what));
        }
    }
}

/// The most free and stopped nodes that the spec of a pool of so many nodes can ask for.
fn most(spec: &PoolSpec, nodes: u32) -> (u32, u32) {
    let ahead = &spec.ahead;
    let buffer = match ahead.buffer {
        None => 0,
        Some(Buffer::Nodes(nodes)) => nodes,
        Some(Buffer::Permille(permille)) => (nodes * permille).div_ceil(1_000),
    };
    let scheduled = ahead.schedules.iter().map(|schedule| schedule.nodes).max().unwrap_or(0);
    let expected = match &ahead.forecast {
        Some(spec) if !spec.only_tell => spec.max_nodes.unwrap_or(u32::MAX),
        _ => 0,
    };
    let spare = (nodes * ahead.spare).div_ceil(1_000);
    // How much running gangs could grow is known to them only.
    let growth = if spec.grow { u32::MAX } else { 0 };
    let free = (ahead.warm + buffer).max(scheduled).max(expected);
    (free.saturating_add(spare).saturating_add(growth), ahead.stopped)
}

/// The nodes of one pool that are owed to no order, gang or target.
#[derive(Default)]
struct Spare {
    coming: u32,
    idle_too_long: u32,
    example: Option<ClaimId>,
}

pub(crate) fn check(books: &Books, found: &mut Vec<Violation>) {
    let mut spare: BTreeMap<PoolIdx, Spare> = BTreeMap::new();
    let of_nobody = |claim: &ClaimEntry| !claim.released && claim.order.is_none();
    for (id, claim) in books.claims.iter().filter(|(_, claim)| of_nobody(claim)) {
        if claim.parked {
            continue;
        }
        let node = claim.node.and_then(|node| books.nodes.get(&node));
        let spec = &books.terms.pools[usize::from(claim.offering.pool.0)];
        let promised = offering(books, claim.offering);
        let used = node.is_some_and(|node| node.members + node.holds > 0);
        let ready = node.is_some_and(|node| node.ready && node.lacks(promised).is_none());
        if claim.failed && !used {
            let what = format!("{id:?} has failed, belongs to no order and is not given back");
            found.push(books.violation(Promise::NoLeak, what));
            continue;
        }
        let spare = spare.entry(claim.offering.pool).or_default();
        if !ready && !used {
            spare.coming += 1;
            spare.example = Some(*id);
            let boot = offering(books, claim.offering).boot_time;
            let patience = [spec.patience.launch, spec.patience.register, spec.patience.gpus];
            let most =
                patience.map(|fixture| fixture.max(boot)).iter().fold(boot, |sum, s| sum + *s);
            let most = most.saturating_mul(2); // and time to be asked for again
            if books.now.since(claim.idle_since) > most {
                let what = format!("{id:?} has been under way for nobody for more than {most}");
                found.push(books.violation(Promise::NoLeak, what));
            }
        } else if !used
            && books.now.since(claim.idle_since) >= spec.idle_after
            && spec.consolidate != Consolidate::Never
        {
            spare.idle_too_long += 1;
            spare.example = Some(*id);
        }
    }
    for (pool, Spare { coming, idle_too_long, example }) in spare {
        let target = books.targets.get(&pool).copied().unwrap_or_default();
        let name = &books.terms.pools[usize::from(pool.0)].name;
        if coming > target.free + target.stopped {
            let what = format!(
                "{name}: {coming} nodes are coming for nobody ({example:?}), and {target:?} is wanted"
            );
            found.push(books.violation(Promise::NoLeak, what));
        }
        if idle_too_long > target.free {
            let what = format!(
                "{name}: {idle_too_long} nodes are idle for too long ({example:?}), and {target:?} is wanted"
            );
            found.push(books.violation(Promise::NoLeak, what));
        }
    }
}
