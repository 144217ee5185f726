//! Texts about changes of running gangs: stops, resizes, and notices of nodes that go away.

use muster_core::World;
use muster_core::gang::members_of;
use muster_core::id::{GangId, NodeIdx};
use muster_core::plan::StopReason;
use muster_core::time::{Span, Time};

use crate::figures::{count, span};
use crate::words;

/// The word for a stop in the timeline.
pub(crate) fn word(reason: StopReason) -> &'static str {
    match reason {
        StopReason::Preempted(_) => "preempt",
        StopReason::Reclaimed(_) => "reclaim",
        StopReason::Rotated(_) => "rotate",
        StopReason::Moved => "move",
        StopReason::NodeLost(_) | StopReason::NodeFailing(_) | StopReason::Cancelled => "stop",
    }
}

/// The text of a start, with the number of members and the time from the first start to the last.
pub(crate) fn started(world: &World, gang: GangId, members: u32, spread: Span) -> String {
    let known = world.gang(gang);
    let rigid = known.is_none_or(|gang| gang.spec.is_rigid());
    let text = match members {
        1 if rigid => "started".to_owned(),
        _ if rigid => format!("all {members} members started together (spread {} ms)", spread.0),
        _ => {
            let most = known.map_or(0, |gang| gang.spec.roles.iter().map(|role| role.max).sum());
            let had = count(members as usize, "member");
            format!("{had} of at most {most} started together (spread {} ms)", spread.0)
        }
    };
    match known.map(|gang| gang.work.kept) {
        Some(kept) if kept > Span::ZERO => format!("{text}, with {} of its work done", span(kept)),
        _ => text,
    }
}

/// The text of a stop request; `None` for a gang without a grace period, which stops in the same instant.
pub(crate) fn stopping(world: &World, gang: GangId, reason: StopReason) -> Option<String> {
    let grace = world.gang(gang)?.spec.disruption.grace;
    let why = words::stop(world, reason);
    (grace > Span::ZERO).then(|| format!("asked to stop within {}: {why}", span(grace)))
}

/// The text of a completed stop; without the reason if that was printed at the request.
pub(crate) fn stopped(world: &World, gang: GangId, reason: StopReason, announced: bool) -> String {
    let mut text = "stopped whole".to_owned();
    if !announced {
        text += &format!(": {}", words::stop(world, reason));
    }
    // A cancelled gang is not in the world any more.
    if let Some(gang) = world.gang(gang) {
        text += &format!("; back in its place in the queue, {}", words::kept(gang));
    }
    text
}

/// The word and the text of a resize request.
pub(crate) fn resizing(world: &World, gang: GangId, from: u32, to: u32) -> (&'static str, String) {
    let word = match to {
        _ if to > from => "grow",
        _ if to < from => "shrink",
        _ => "resize",
    };
    let order = world.preempted_for(gang).and_then(|order| world.orders().get(&order));
    let room = order.map(|order| words::gang(world, order.spec.gang));
    let room = room.map_or_else(String::new, |name| format!(", to make room for {name}"));
    (word, format!("from {from} to {}{room}", count(to as usize, "member")))
}

/// The number of members of a gang.
pub(crate) fn members(world: &World, gang: GangId) -> String {
    let members = world.gang(gang).map_or(0, |gang| members_of(&gang.seats));
    count(members as usize, "member")
}

/// The text of a notice that a node will go away.
pub(crate) fn noticed(world: &World, now: Time, node: NodeIdx, by: Time) -> String {
    let name = world.node_name(node).map_or("a node", |name| name);
    let users: Vec<GangId> = world.gangs_on(node).iter().map(|(gang, _)| *gang).collect();
    let under = match users.as_slice() {
        [] => String::new(),
        users => format!(" under {}", words::gangs(world, users)),
    };
    match by {
        Time::MAX => format!("{name} stays after all"),
        _ if by <= now => format!("{name}{under} is not trusted any more"),
        _ => format!("{name}{under} will be gone in {}", span(by.since(now))),
    }
}

#[cfg(test)]
mod tests {
    use muster_core::device::DeviceSet;
    use muster_core::event::Event;
    use muster_core::gang::Seat;
    use muster_core::plan::Action;

    use super::*;

    const BOTH: &str = "
{kind: Node, metadata: {name: n}, spec: {allocatable: {cpu: 8}}}
---
kind: Gang
metadata: {name: small}
spec:
  roles: [{name: w, min: 2, max: 6, resources: {cpu: 1}}]
  disruption: {grace: 2m, checkpoint: {every: 10m, restart: 1m}}
---
{kind: Gang, metadata: {name: big}, spec: {priority: 1, roles: [{name: w, min: 8, resources: {cpu: 1}}]}}
";
    const SMALL: GangId = GangId(0);
    const BIG: GangId = GangId(1);

    fn after(mins: u64) -> Time {
        Time::ZERO + Span::mins(mins)
    }

    /// A node, `small` running on it with six members of six, and `big` waiting.
    fn world() -> World {
        let read = muster_api::read_texts(&[("both.yaml", BOTH)]).expect("it is good");
        let mut world = World::new(read.levels);
        let queues = read.queues.into_iter().map(Event::QueueSet);
        let nodes = read.nodes.into_iter().map(Event::NodeSeen);
        let gangs = read.gangs.into_iter().map(|gang| Event::GangSubmitted(gang.spec));
        let seat = Seat { devices: DeviceSet::default(), node: NodeIdx(0), role: 0, members: 6 };
        let admit = Event::Decided(Action::Admit { gang: SMALL, seats: vec![seat] });
        for event in queues.chain(nodes).chain(gangs).chain([admit, Event::GangStarted(SMALL)]) {
            world.apply(Time::ZERO, &event).expect("it fits");
        }
        world
    }

    #[test]
    fn stop_with_grace_prints_request_and_completion() {
        let mut world = world();
        let reason = StopReason::Preempted(BIG);
        let stop = Event::Decided(Action::Stop { gang: SMALL, reason });
        world.apply(after(25), &stop).expect("it runs");
        assert_eq!(
            stopping(&world, SMALL, reason).as_deref(),
            Some("asked to stop within 2m00s: it is preempted for default/big of higher priority")
        );
        world.apply(after(27), &Event::GangStopped(SMALL)).expect("it is stopping");
        assert_eq!(
            stopped(&world, SMALL, reason, true),
            "stopped whole; back in its place in the queue, 20m00s of its work is kept"
        );
        assert_eq!(stopping(&world, BIG, StopReason::Moved), None, "it has no grace");
    }

    #[test]
    fn every_stop_reason_has_a_word_and_a_text() {
        let world = world();
        let back = "; back in its place in the queue, its work is lost";
        for (reason, word_for_it, why) in [
            (StopReason::NodeLost(NodeIdx(0)), "stop", "a node under it failed"),
            (StopReason::NodeFailing(NodeIdx(0)), "stop", "a node under it is about to be lost"),
            (StopReason::Cancelled, "stop", "it was cancelled"),
            (StopReason::Moved, "move", "it is moved to other nodes"),
            (
                StopReason::Preempted(BIG),
                "preempt",
                "it is preempted for default/big of higher priority",
            ),
            (StopReason::Reclaimed(BIG), "reclaim", "default/big reclaims what its queue had lent"),
            (StopReason::Rotated(BIG), "rotate", "its time slice is over, and default/big is next"),
            (
                StopReason::Preempted(GangId(7)),
                "preempt",
                "it is preempted for another gang of higher priority",
            ),
        ] {
            assert_eq!(word(reason), word_for_it);
            assert_eq!(
                stopped(&world, SMALL, reason, false),
                format!("stopped whole: {why}{back}")
            );
        }
        assert_eq!(
            stopped(&world, GangId(7), StopReason::Cancelled, false),
            "stopped whole: it was cancelled"
        );
    }

    #[test]
    fn resizes_are_grow_or_shrink() {
        let world = world();
        let text = |from, to| resizing(&world, SMALL, from, to);
        assert_eq!(text(2, 6), ("grow", "from 2 to 6 members".to_owned()));
        assert_eq!(text(6, 1), ("shrink", "from 6 to 1 member".to_owned()));
        assert_eq!(members(&world, SMALL), "6 members");
    }

    #[test]
    fn start_shows_members_and_saved_work() {
        let mut world = world();
        let spread = Span::ZERO;
        let few = "2 members of at most 6 started together (spread 0 ms)";
        assert_eq!(started(&world, SMALL, 2, spread), few);
        let all = "all 8 members started together (spread 0 ms)";
        assert_eq!(started(&world, BIG, 8, spread), all);
        assert_eq!(started(&world, BIG, 1, spread), "started");
        let stop = Event::Decided(Action::Stop { gang: SMALL, reason: StopReason::Moved });
        world.apply(after(15), &stop).expect("it runs");
        world.apply(after(15), &Event::GangStopped(SMALL)).expect("it is stopping");
        let again = format!("{few}, with 10m00s of its work done");
        assert_eq!(started(&world, SMALL, 2, spread), again);
    }

    #[test]
    fn notice_names_the_node_and_its_gangs() {
        let world = world();
        for (by, text) in [
            (after(2), "n under default/small will be gone in 2m00s"),
            (Time::ZERO, "n under default/small is not trusted any more"),
            (Time::MAX, "n stays after all"),
        ] {
            assert_eq!(noticed(&world, Time::ZERO, NodeIdx(0), by), text);
        }
    }
}
