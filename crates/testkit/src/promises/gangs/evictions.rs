//! Evictions have a cause: only of gangs that may be evicted, only for a gang that is then sure to start, within the
//! queue's eviction budget, and not again before that gang has started.

#[cfg(test)]
pub(crate) mod tests;

use std::collections::VecDeque;

use muster_core::Fact;
use muster_core::id::{GangId, OrderId};
use muster_core::order::RollbackReason;
use muster_core::plan::StopReason;
use muster_core::queue::QueueSpec;
use muster_core::time::{Span, Time};

use crate::promises::books::{Books, GangEntry};
use crate::promises::queue::quota::queue_path;
use crate::promises::{Promise, Violation};

/// A gang that others were stopped for and that has not started since.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Debt {
    by: GangId,
    order: OrderId,
}

pub(crate) fn note(books: &mut Books, fact: &Fact, found: &mut Vec<Violation>) {
    match fact {
        Fact::GangStopping { gang, reason } => told(books, *gang, *reason, found),
        // A gang without grace is told and stopped at once.
        Fact::GangStopped { gang, reason } if !is_stopping(books, *gang) => {
            told(books, *gang, *reason, found);
        }
        Fact::GangStarted { gang } | Fact::GangEnded { gang } | Fact::GangCancelled { gang } => {
            books.victims.retain(|_, debt| debt.by != *gang);
        }
        Fact::OrderPlaced { gang, after, .. } => asked(books, *gang, after, found),
        Fact::OrderRolledBack { order, reason, .. } => given_up(books, *order, *reason, found),
        _ => {}
    }
}

fn is_stopping(books: &Books, gang: GangId) -> bool {
    let entry = books.gangs.get(&gang);
    let resizes = entry.and_then(|entry| entry.resizing).is_some_and(|resizing| !resizing.done);
    books.leaving.contains_key(&gang) && !resizes
}

/// A gang was told to stop.
fn told(books: &mut Books, gang: GangId, reason: StopReason, found: &mut Vec<Violation>) {
    if let Some(entry) = books.gangs.get_mut(&gang) {
        // All of it stops, whatever resize it was told before; seats it has left already were part of that.
        entry.resizing = entry.resizing.filter(|resizing| resizing.done);
    }
    let Some(entry) = books.gangs.get(&gang) else { return };
    let unfounded = match reason {
        StopReason::NodeLost(_) | StopReason::Cancelled => None,
        StopReason::NodeFailing(node) => {
            let noticed = books.nodes.get(&node).is_some_and(|here| here.noticed.is_some());
            // A gang without grace has stopped already when the reason is recorded.
            let sat = entry.members.iter().map(|seat| seat.node).chain(entry.shed.iter().copied());
            let sits = sat.into_iter().any(|under| under == node);
            (!noticed || !sits).then_some("no node under it is about to go")
        }
        StopReason::Moved if !entry.spec.may_move() => Some("it may not be moved"),
        StopReason::Preempted(by) if !is_higher(books, by, entry) => {
            Some("whoever needs its seats has no higher priority")
        }
        StopReason::Rotated(_) if !turn_is_over(books, entry) => Some("its turn is not over"),
        StopReason::Moved
        | StopReason::Preempted(_)
        | StopReason::Reclaimed(_)
        | StopReason::Rotated(_) => unprotected(books, entry, reason),
    };
    if let Some(why) = unfounded {
        let what = format!("{} was stopped ({reason:?}), but {why}", entry.spec.name);
        found.push(books.violation(Promise::WholeGangDisruption, what));
    }
    if reason.is_eviction() {
        count(books, gang, reason, found);
        owe(books, gang, reason, found);
    }
}

fn is_higher(books: &Books, by: GangId, entry: &GangEntry) -> bool {
    books.gangs.get(&by).is_some_and(|by| {
        by.spec.priority > entry.spec.priority && !by.spec.disruption.never_preempts
    })
}

/// Checks the victims of a gang. A gang that never preempts has no victims of its own queue, unless it is its time
/// slice.
fn asked(books: &Books, gang: GangId, after: &[GangId], found: &mut Vec<Violation>) {
    let Some(entry) = books.gangs.get(&gang).filter(|one| one.spec.disruption.never_preempts)
    else {
        return;
    };
    let queue = &entry.spec.queue;
    let turns = |queue: &QueueSpec| queue.time_slice.is_some();
    if queue_path(&books.terms.queues, queue).next().is_some_and(turns) {
        return;
    }
    for other in after.iter().filter_map(|other| books.gangs.get(other)) {
        if other.spec.queue == *queue {
            let what = format!(
                "{} is preempted for {}, which never preempts",
                other.spec.name, entry.spec.name
            );
            found.push(books.violation(Promise::WholeGangDisruption, what));
        }
    }
}

/// How long all of a gang has run.
fn ran(books: &Books, entry: &GangEntry) -> Span {
    entry.started.map_or(Span::ZERO, |at| books.now.since(at))
}

fn turn_is_over(books: &Books, entry: &GangEntry) -> bool {
    let slice = |queue: &QueueSpec| queue.time_slice;
    let slice = queue_path(&books.terms.queues, &entry.spec.queue).find_map(slice);
    slice.is_some_and(|slice| ran(books, entry) >= slice)
}

/// Why a gang may not be evicted now, if so.
fn unprotected(books: &Books, entry: &GangEntry, reason: StopReason) -> Option<&'static str> {
    let disruption = &entry.spec.disruption;
    if !disruption.preemptible {
        return Some("it may not be stopped for others");
    }
    let mut protected = disruption.min_runtime;
    if let StopReason::Reclaimed(by) = reason
        && let Some(by) = books.gangs.get(&by)
        && let Some(lender) = queue_path(&books.terms.queues, &by.spec.queue).next()
    {
        // Lent capacity is reclaimed in time, whatever the borrower's minimum run time, and whenever it started.
        let within = lender.reclaims_within();
        if books.now.since(by.submitted) >= within {
            return None;
        }
        protected = protected.min(within);
    }
    (ran(books, entry) < protected).then_some("it has not run for as long as it may")
}

/// Counts an eviction against its queue's budget. Reclaims are not limited by it.
fn count(books: &mut Books, gang: GangId, reason: StopReason, found: &mut Vec<Violation>) {
    let (now, queue) = (books.now, books.gangs[&gang].spec.queue.clone());
    if matches!(reason, StopReason::Reclaimed(_)) {
        return;
    }
    let spec = books.terms.queues.iter().find(|spec| spec.name == queue);
    let most = spec.and_then(|spec| spec.evictions_per_hour);
    let recent: &mut VecDeque<Time> = books.evictions.entry(queue.clone()).or_default();
    while recent.front().is_some_and(|at| now.since(*at) >= Span::hours(1)) {
        recent.pop_front();
    }
    recent.push_back(now);
    if let Some(most) = most.filter(|most| recent.len() > *most as usize) {
        let count = recent.len();
        let what =
            format!("{count} gangs of {queue} were evicted within an hour, and {most} may be");
        found.push(books.violation(Promise::WholeGangDisruption, what));
    }
}

/// The gang that holds an order with this victim, and owes it a start.
fn owe(books: &mut Books, gang: GangId, reason: StopReason, found: &mut Vec<Violation>) {
    let waits = |order: &OrderId| books.orders[order].after.contains(&gang);
    let order = match reason.by() {
        Some(by) => books.gangs.get(&by).and_then(|by| by.order).filter(waits),
        None => books.orders.keys().copied().find(waits),
    };
    let Some(order) = order else {
        if let Some(by) = reason.by() {
            let (name, by) = (books.name(gang), books.name(by));
            let what = format!("{name} was stopped for {by}, which has no order that waits for it");
            found.push(books.violation(Promise::WholeGangDisruption, what));
        }
        return; // moved for its own sake, or to save nodes
    };
    let entry = books.orders.get_mut(&order).expect("just found");
    entry.evicted.push(gang);
    let by = entry.gang;
    if let Some(first) = books.victims.insert(gang, Debt { by, order }) {
        let (name, first) = (books.name(gang), books.name(first.by));
        let what = format!("{name} was stopped again before {first} has started");
        found.push(books.violation(Promise::WholeGangDisruption, what));
    }
}

/// An order with stopped victims is rolled back only for an external cause.
fn given_up(books: &mut Books, id: OrderId, reason: RollbackReason, found: &mut Vec<Violation>) {
    let Some(order) = books.orders.get(&id).filter(|order| !order.evicted.is_empty()) else {
        return;
    };
    match reason {
        RollbackReason::ClaimFailed(..)
        | RollbackReason::Overdue(..)
        | RollbackReason::DeadlinePassed
        | RollbackReason::NodeLost(_)
        | RollbackReason::NodeUnsuitable(_)
        | RollbackReason::WayClosed
        | RollbackReason::NotWritten
        | RollbackReason::GangGone => books.victims.retain(|_, debt| debt.order != id),
        RollbackReason::NotNeeded => {
            let (victim, by) = (books.name(order.evicted[0]), books.name(order.gang));
            let what = format!("{victim} was stopped for {by}, which gave its order up");
            found.push(books.violation(Promise::WholeGangDisruption, what));
        }
    }
}
