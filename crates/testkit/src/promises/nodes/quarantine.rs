//! No new member starts on a node that is about to go, or that has failed too often.

use std::sync::Arc;

use muster_core::Fact;
use muster_core::id::{GangId, NodeIdx};
use muster_core::time::{Span, Time};

use crate::promises::books::Books;
use crate::promises::{Promise, Violation};

/// How often a node that came with the cluster has failed under its gangs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Strikes {
    count: u32,
    last: Time,
}

/// The promise: after the second failure within a day a node is quarantined for half an hour, and for twice as long
/// after each further one, up to sixteen hours.
const FORGIVEN: Span = Span::hours(24);
const TOLERATED: u32 = 2;
const SHUNNED: Span = Span::mins(30);
const DOUBLED_AT_MOST: u32 = 5;

pub(crate) fn note(books: &mut Books, fact: &Fact, found: &mut Vec<Violation>) {
    match fact {
        Fact::NodeNoticed { node, by } => {
            let now = books.now;
            if let Some(node) = books.nodes.get_mut(node) {
                node.noticed = (*by < Time::MAX).then_some(now);
            }
        }
        Fact::NodeLost { node, .. } => strike(books, *node),
        Fact::MembersStarted { gang, node, .. } => start(books, *gang, *node, found),
        _ => {}
    }
}

fn strike(books: &mut Books, node: NodeIdx) {
    let Some(node) = books.nodes.get(&node) else { return };
    // A bought node is replaced by another, and a node that went as announced did not fail.
    if node.claim.is_some() || node.members + node.holds == 0 || node.noticed.is_some() {
        return;
    }
    let now = books.now;
    let known = books.strikes.entry(node.name.clone()).or_insert(Strikes { count: 0, last: now });
    let count = if now.since(known.last) >= FORGIVEN { 1 } else { known.count + 1 };
    *known = Strikes { count, last: now };
}

/// Until when no new member may start on a node of this name, if it is observed now.
pub(crate) fn until(books: &Books, name: &Arc<str>) -> Option<Time> {
    let strikes = books.strikes.get(name)?;
    let beyond = strikes.count.checked_sub(TOLERATED)?;
    let until = strikes.last + SHUNNED.saturating_mul(1 << beyond.min(DOUBLED_AT_MOST));
    (books.now < until).then_some(until)
}

fn start(books: &Books, gang: GangId, node: NodeIdx, found: &mut Vec<Violation>) {
    let Some(here) = books.nodes.get(&node) else { return };
    let resizing = books.gangs.get(&gang).and_then(|entry| entry.resizing);
    // Members that were already assigned there start, and are told to stop.
    let late = here.noticed.is_some_and(|at| resizing.is_none_or(|resizing| resizing.told >= at));
    let shunned = here.shunned.is_some_and(|until| books.now < until);
    if late || shunned {
        let why = if late { "is about to go" } else { "has failed too often" };
        let what = format!("{} started on {}, which {why}", books.name(gang), here.name);
        found.push(books.violation(Promise::WholeGangDisruption, what));
    }
}

#[cfg(test)]
mod tests {
    use muster_core::plan::StopReason;
    use muster_core::time::Time;

    use crate::promises::fixture::{Fixture, NODE, elastic};

    #[test]
    fn no_new_member_starts_on_a_node_that_is_about_to_go() {
        let mut fixture = Fixture::new(&[]);
        let early = fixture.submit(elastic("early", 1, 4));
        fixture.start(early, 1);
        fixture.notice(Time(3_600_000));
        assert_eq!(fixture.broken(), [""; 0]);
        let late = fixture.submit(elastic("late", 1, 4));
        fixture.start(late, 1);
        assert_eq!(fixture.broken(), ["late started on n, which is about to go"]);
        fixture.notice(Time::MAX);
        fixture.resizing(early, 1, 2);
        fixture.add_members(early, 1);
        assert_eq!(fixture.broken().len(), 1, "it stays after all");
    }

    #[test]
    fn no_member_starts_on_a_node_that_has_just_failed_twice() {
        let mut fixture = Fixture::new(&[]);
        let gang = fixture.submit(elastic("a", 1, 4));
        for failures in 1..=2 {
            fixture.start(gang, 1);
            fixture.lose_node();
            fixture.stop(gang, StopReason::NodeLost(NODE));
            assert_eq!(fixture.broken(), [""; 0], "after {failures} failures");
            fixture.pass(10);
            fixture.see_node();
        }
        fixture.pass(19);
        fixture.start(gang, 1);
        assert_eq!(fixture.broken(), ["a started on n, which has failed too often"]);
        fixture.drop_members(gang, 1);
        fixture.pass(1);
        fixture.start(gang, 1);
        assert_eq!(fixture.broken().len(), 1, "half an hour later it may be tried again");
    }
}
