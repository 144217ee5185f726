//! Promises about nodes, claims and orders: limits and budgets, no leak, atomic rollback, no hold-and-wait.

use std::collections::BTreeMap;

use muster_core::Fact;
use muster_core::id::{ClaimId, GangId, NodeIdx, OfferingRef, OrderId};
use muster_core::money::Money;
use muster_core::order::{ClaimFailure, RollbackReason};
use muster_core::time::{Span, Time};

use crate::promises::books::{Books, ClaimEntry, NodeEntry, OrderEntry};
use crate::promises::nodes::quarantine;
use crate::promises::{Promise, Violation};

pub(crate) fn note(books: &mut Books, fact: &Fact, found: &mut Vec<Violation>) {
    match fact {
        Fact::OrderPlaced { order, gang, claims, holds, after, deadline } => {
            let placed = Placed { claims, holds, after, deadline: *deadline };
            place(books, *order, *gang, &placed, found);
        }
        Fact::OrderCompleted { order, .. } => close(books, *order, None),
        Fact::OrderRolledBack { order, reason, .. } => close(books, *order, Some(*reason)),
        Fact::OrderToppedUp { order, lost, claim, .. } => top_up(books, *order, *lost, *claim),
        Fact::OrdersExchanged { gets, coming, gives, ready } => {
            top_up(books, *gets, *coming, *ready);
            top_up(books, *gives, *ready, *coming);
            for (claim, order) in [(ready, gets), (coming, gives)] {
                if let Some(entry) = books.claims.get_mut(claim) {
                    entry.order = Some(*order);
                }
            }
        }
        Fact::ClaimRequested { claim, offering } => request(books, *claim, *offering, found),
        // It is retried soon; the order may just not wait for it for ever.
        Fact::ClaimFailed { failure, .. } if failure.is_transient() => {}
        Fact::ClaimParked { claim } | Fact::ClaimStopped { claim } | Fact::ClaimWoken { claim } => {
            if let Some(entry) = books.claims.get_mut(claim) {
                entry.parked = !matches!(fact, Fact::ClaimWoken { .. });
                entry.idle_since = books.now;
            }
        }
        Fact::ClaimFailed { claim, .. } => {
            if let Some(entry) = books.claims.get_mut(claim) {
                entry.failed = true;
            }
        }
        Fact::ClaimReleased { claim } => {
            let Some(entry) = books.claims.get_mut(claim) else { return };
            entry.released = true;
            let members =
                entry.node.and_then(|node| books.nodes.get(&node)).map_or(0, |node| node.members);
            if members > 0 {
                let what = format!("{claim:?} was given back with {members} members on it");
                found.push(books.violation(Promise::WholeGangDisruption, what));
            }
        }
        Fact::ClaimGone { claim } => {
            books.claims.remove(claim);
        }
        Fact::NodeSeen { node, name, claim, allocatable, gpus, ready } => {
            let known = books.nodes.remove(node).filter(|known| known.name == *name);
            let noticed = known.as_ref().and_then(|known| known.noticed);
            let (used, devices, members, holds) = known
                .map_or((BTreeMap::new(), [0; 64], 0, 0), |known| {
                    (known.used, known.devices, known.members, known.holds)
                });
            let shunned = quarantine::until(books, name);
            let entry = NodeEntry {
                name: name.clone(),
                claim: *claim,
                allocatable: allocatable.clone(),
                gpus: *gpus,
                ready: *ready,
                used,
                devices,
                members,
                holds,
                noticed,
                shunned,
            };
            books.nodes.insert(*node, entry);
            if let Some(claim) = claim.and_then(|claim| books.claims.get_mut(&claim)) {
                if claim.node.is_none() || members == 0 {
                    claim.idle_since = books.now;
                }
                claim.node = Some(*node);
            }
        }
        Fact::NodeLost { node, .. } => {
            books.nodes.remove(node);
            for (gang, entry) in &mut books.gangs {
                if entry.members.iter().any(|seat| seat.node == *node) {
                    entry.lost_node = true;
                    books.touched.insert(*gang);
                }
            }
            for claim in books.claims.values_mut().filter(|claim| claim.node == Some(*node)) {
                claim.node = None;
                claim.failed |= !claim.parked;
            }
        }
        _ => {}
    }
}

pub(crate) fn check(books: &Books, found: &mut Vec<Violation>) {
    for (id, order) in &books.orders {
        let failed =
            order.claims.iter().find(|claim| books.claims.get(claim).is_none_or(|c| c.failed));
        if let Some(claim) = failed {
            let what = format!("{id:?} still assembles although {claim:?} failed");
            found.push(books.violation(Promise::AtomicRollback, what));
        }
        if books.now >= order.deadline {
            let what = format!("{id:?} still assembles at or after its deadline");
            found.push(books.violation(Promise::AtomicRollback, what));
        }
        if !books.gangs.contains_key(&order.gang) {
            let what = format!("{id:?} holds capacity for {:?}, which is over", order.gang);
            found.push(books.violation(Promise::NoHoldAndWait, what));
        }
    }
}

pub(crate) fn offering(books: &Books, at: OfferingRef) -> &muster_core::pool::OfferingSpec {
    &books.terms.pools[usize::from(at.pool.0)].offerings[usize::from(at.slot)]
}

/// The content of an order.
struct Placed<'f> {
    claims: &'f [(ClaimId, OfferingRef)],
    holds: &'f [NodeIdx],
    after: &'f [GangId],
    deadline: Time,
}

/// How long victims may take to leave beyond their grace, before the order is rolled back.
const SLACK: Span = Span::mins(2);

fn place(
    books: &mut Books,
    id: OrderId,
    gang: GangId,
    &Placed { claims, holds, after, deadline }: &Placed<'_>,
    found: &mut Vec<Violation>,
) {
    let placed = books.now;
    let grace = |gang| books.gangs.get(gang).map(|entry| entry.spec.disruption.grace);
    let longest = after.iter().filter_map(grace).max();
    let Some(entry) = books.gangs.get_mut(&gang) else {
        let what = format!("{id:?} was placed for {gang:?}, which is over");
        found.push(books.violation(Promise::NoHoldAndWait, what));
        return;
    };
    let mut promised = placed + entry.spec.provisioning.timeout;
    if let Some(grace) = longest {
        promised += grace + SLACK;
    }
    let second = entry.order.replace(id).filter(|order| *order != id);
    let running = !entry.members.is_empty();
    if !entry.mends {
        books.served.insert(gang);
    }
    if deadline > promised {
        let what = format!("{id:?} may hold capacity until {deadline:?}, past its gang's timeout");
        found.push(books.violation(Promise::NoHoldAndWait, what));
    }
    if second.is_some() || running {
        let what = format!("{id:?} was placed for {gang:?}, which has capacity already");
        found.push(books.violation(Promise::NoHoldAndWait, what));
    }
    for (_, at) in claims.iter().filter(|(claim, _)| !books.claims.contains_key(claim)) {
        let since = books.blamed.get(at).map(|blamed| placed.since(*blamed));
        if since.is_some_and(|since| since < books.terms.avoid_at_least) {
            let what = format!("{id:?} asks for {at:?} again right after it failed");
            found.push(books.violation(Promise::AtomicRollback, what));
        }
    }
    let claims: Vec<ClaimId> = claims.iter().map(|(claim, _)| *claim).collect();
    for claim in &claims {
        // Unassigned until now.
        if let Some(entry) = books.claims.get_mut(claim) {
            entry.order = Some(id);
        }
    }
    books.hold(holds);
    let holds = holds.to_vec();
    let (after, evicted) = (after.to_vec(), Vec::new());
    let entry = OrderEntry { gang, claims, holds, placed, deadline, after, evicted };
    books.orders.insert(id, entry);
}

fn close(books: &mut Books, id: OrderId, rolled_back: Option<RollbackReason>) {
    let Some(order) = books.orders.remove(&id) else { return };
    for claim in &order.claims {
        if let Some(claim) = books.claims.get_mut(claim) {
            claim.order = None;
            claim.idle_since = books.now;
        }
    }
    books.let_go(&order.holds);
    let blamed = match rolled_back {
        Some(RollbackReason::ClaimFailed(_, ClaimFailure::Vanished)) => None,
        Some(RollbackReason::ClaimFailed(claim, _) | RollbackReason::Overdue(claim, _)) => {
            Some(claim)
        }
        _ => None,
    };
    if let Some(claim) = blamed.and_then(|claim| books.claims.get(&claim)) {
        books.blamed.insert(claim.offering, books.now);
    }
    if let Some(entry) = books.gangs.get_mut(&order.gang) {
        entry.order = None;
        entry.promised = rolled_back.is_none();
        if entry.cancelled && entry.members.is_empty() {
            books.gangs.remove(&order.gang);
        }
    }
    debug_assert!(order.placed <= books.now);
}

/// One claim of an order is replaced by another.
fn top_up(books: &mut Books, order: OrderId, lost: ClaimId, claim: ClaimId) {
    let Some(entry) = books.orders.get_mut(&order) else { return };
    entry.claims.iter_mut().filter(|id| **id == lost).for_each(|id| *id = claim);
    if let Some(gone) = books.claims.get_mut(&lost) {
        gone.order = None;
    }
    if let Some(new) = books.claims.get_mut(&claim) {
        new.order = Some(order);
    }
}

fn request(books: &mut Books, id: ClaimId, at: OfferingRef, found: &mut Vec<Violation>) {
    let order =
        books.orders.iter().find(|(_, order)| order.claims.contains(&id)).map(|(order, _)| *order);
    let entry = ClaimEntry {
        offering: at,
        order,
        node: None,
        failed: false,
        released: false,
        parked: false,
        idle_since: books.now,
    };
    if books.claims.insert(id, entry).is_some() {
        found.push(books.violation(Promise::CrashSafety, format!("{id:?} was asked for twice")));
    }
    let spec = &books.terms.pools[usize::from(at.pool.0)];
    let of_pool = || books.claims.values().filter(|claim| claim.offering.pool == at.pool);
    let nodes = of_pool().count() as u32;
    let of_offering = of_pool().filter(|claim| claim.offering == at).count() as u32;
    let gpus: u32 = of_pool().map(|claim| u32::from(offering(books, claim.offering).gpus)).sum();
    let hourly =
        of_pool().map(|c| offering(books, c.offering).price).fold(Money::ZERO, |sum, p| sum + p);
    let limits = &spec.limits;
    let over = limits.nodes.is_some_and(|limit| nodes > limit)
        || limits.gpus.is_some_and(|limit| gpus > limit)
        || limits.hourly_spend.is_some_and(|limit| hourly > limit)
        || offering(books, at).max.is_some_and(|limit| of_offering > limit);
    if over {
        let what = format!(
            "pool {}: {nodes} nodes, {gpus} GPUs, {hourly} per hour, over a limit",
            spec.name
        );
        found.push(books.violation(Promise::NoOvercommit, what));
    }
}
