//! Properties of every plan of every random case.

use std::collections::{BTreeMap, BTreeSet};

use muster_core::device::WHOLE;
use muster_core::gang::{Closeness, Gang, Phase, Seat, without};
use muster_core::id::{GangId, Id, NodeIdx};
use muster_core::order::{Place, VictimSeats};
use muster_core::plan::{Action, StopReason};
use muster_core::resource::NamedAmounts;
use muster_core::topology::{Level, Levels};
use muster_core::{Plan, World};
use muster_plan::{Policy, plan};

use super::seeds::{self, Rng, for_seeds};
use super::story::Story;
use crate::dsl::Bench;

/// One plan of a random case, before it is applied.
pub(crate) struct Scene<'a> {
    pub(crate) rng: &'a mut Rng,
    pub(crate) bench: &'a Bench,
    pub(crate) decided: &'a Plan,
    /// Everything decided before, oldest first.
    pub(crate) past: &'a [Action],
}

/// Runs random cases with a plan after about every other step; each plan must be accepted whole.
pub(crate) fn for_each_plan(test: &str, seeds: u64, mut each: impl FnMut(Scene<'_>)) {
    for_seeds(test, seeds, |rng| {
        let (mut story, mut past) = (Story::begin(rng), Vec::new());
        for _ in 0..60 {
            story.step(rng);
            if rng.percent(60) {
                let decided = story.decide();
                each(Scene { rng, bench: &story.bench, decided: &decided, past: &past });
                story.act(&decided);
                past.extend(decided.actions().cloned());
            }
        }
    });
}

#[test]
fn no_plan_is_refused_the_moment_it_is_made() {
    let mut done: BTreeMap<&str, u32> = BTreeMap::new();
    for_each_plan("no_plan_is_refused_the_moment_it_is_made", 100, |scene| {
        for action in scene.decided.actions() {
            *done.entry(kind(action)).or_default() += 1;
        }
    });
    // The cases cover every kind of decision more than once.
    let often = done.len() == 17 && done.values().all(|times| *times >= 3);
    assert!(often || seeds::chosen().is_some(), "{done:?}");
}

fn kind(action: &Action) -> &'static str {
    match action {
        Action::Admit { .. } => "admit",
        Action::Order(_) => "order",
        Action::RollBack { .. } => "roll back",
        Action::Stop { reason, .. } => match reason {
            StopReason::NodeLost(_) | StopReason::Cancelled => "stop",
            StopReason::NodeFailing(_) => "stop in time",
            StopReason::Moved => "move",
            StopReason::Preempted(_) => "preempt",
            StopReason::Reclaimed(_) => "reclaim",
            StopReason::Rotated(_) => "rotate",
        },
        Action::Resize { .. } => "resize",
        Action::Release { .. } => "release",
        Action::TopUp { .. } => "top up",
        Action::Exchange { .. } => "exchange",
        Action::Stock { .. } => "stock",
        Action::Retry { .. } => "retry",
        Action::Park { .. } => "park",
        Action::Retire { .. } => "retire",
    }
}

#[test]
fn no_device_and_no_core_is_given_twice() {
    for_each_plan("no_device_and_no_core_is_given_twice", 25, |scene| {
        let world = &scene.bench.world;
        let given = given(world, scene.decided);
        let mut taken = all_seats(world);
        taken.retain(|(gang, _)| !given.iter().any(|(other, _)| std::ptr::eq(*gang, *other)));
        // A victim keeps its seats until it has left, and other gangs are promised them.
        let leaving = leaving(world, scene.decided);
        let leaves = |gang: &Gang, seat: &Seat| {
            leaving.iter().any(|(other, its)| std::ptr::eq(gang, *other) && its == seat)
        };
        taken.retain(|(gang, seat)| !leaves(gang, seat));
        taken.extend(&given);
        let mut devices: BTreeMap<(NodeIdx, usize), u32> = BTreeMap::new();
        let mut amounts: BTreeMap<NodeIdx, NamedAmounts> = BTreeMap::new();
        for (gang, seat) in taken {
            let request = &gang.spec.roles[usize::from(seat.role)].request;
            let share = request.gpu.as_ref().map_or(0, |gpu| u32::from(gpu.share));
            for device in seat.devices.iter() {
                *devices.entry((seat.node, device)).or_default() += share;
            }
            for (name, amount) in &request.amounts {
                let used = amounts.entry(seat.node).or_default();
                *used.entry(name.clone()).or_default() += amount * u64::from(seat.members);
            }
        }
        let too_much = devices.iter().find(|(_, share)| **share > u32::from(WHOLE));
        assert_eq!(too_much, None, "a device beyond the whole");
        // A node may shrink under the members on it, but no member is put where there is nothing left.
        for (gang, seat) in given {
            let here = world.node(seat.node).expect("a seat on a node that is here");
            let shape = world.class(here.class);
            let there = |device| device < usize::from(shape.gpus);
            assert!(seat.devices.iter().all(there), "{} has no such device", here.name);
            for name in gang.spec.roles[usize::from(seat.role)].request.amounts.keys() {
                let used = amounts[&seat.node][name];
                let has =
                    shape.allocatable.iter().find(|(id, _)| *world.names().name(*id) == **name);
                let has = has.map_or(0, |(_, amount)| amount);
                assert!(used <= has, "{} has {has} {name} and gives {used}", here.name);
            }
        }
    });
}

#[test]
fn every_stopped_gang_is_an_eligible_victim_of_an_order() {
    for_each_plan("every_stopped_gang_is_an_eligible_victim_of_an_order", 50, |scene| {
        let world = &scene.bench.world;
        for action in scene.decided.actions() {
            let Action::Stop { gang: id, reason } = action else { continue };
            let Some(by) = reason.by() else { continue };
            let gang = world.gang(*id).expect("it runs");
            let other = world.gang(by).expect("it waits");
            let orders = ways(world, scene.decided).filter(|(of, _)| *of == by);
            let way = orders.map(|(_, way)| way).find(|way| way.gang == *id);
            let way = way.unwrap_or_else(|| panic!("{} is stopped in vain", gang.spec.name));
            assert_eq!(way.stop, Some(*reason), "it makes way for that");
            assert!(without(&gang.seats, &way.seats).is_empty(), "it is stopped whole");
            assert!(gang.spec.disruption.preemptible, "{} did not agree", gang.spec.name);
            let (own, its) = (other.spec.priority, gang.spec.priority);
            match reason {
                StopReason::Preempted(_) => assert!(own > its, "of priority {own} and {its}"),
                StopReason::Rotated(_) => assert!(other.queue == gang.queue && own >= its),
                _ => assert_ne!(other.queue, gang.queue, "nobody lends to itself"),
            }
        }
    });
}

#[test]
fn gangs_shrink_only_for_an_order_or_a_node_that_goes() {
    for_each_plan("gangs_shrink_only_for_an_order_or_a_node_that_goes", 50, |scene| {
        let world = &scene.bench.world;
        for action in scene.decided.actions() {
            let Action::Resize { gang: id, seats } = action else { continue };
            let gang = world.gang(*id).expect("it runs");
            let left = without(&gang.seats, seats);
            let stays = |seat: &&Seat| world.node(seat.node).is_some_and(|n| n.notice.is_none());
            if left.iter().any(|seat| stays(&seat)) {
                let way = ways(world, scene.decided).find(|(_, way)| way.gang == *id);
                let (_, way) = way.unwrap_or_else(|| panic!("{} shrinks", gang.spec.name));
                assert!(without(&left, &way.seats).is_empty(), "no more than it was asked for");
            }
        }
    });
}

/// Left alone, with a host that does everything at once, every case comes to rest: gangs do not preempt each other
/// back and forth.
#[test]
fn every_random_case_comes_to_rest() {
    for_seeds("every_random_case_comes_to_rest", 50, |rng| {
        let mut story = Story::begin(rng);
        for _ in 0..40 {
            story.step(rng);
            if rng.percent(60) {
                let decided = story.decide();
                story.act(&decided);
            }
        }
        story.line("run 2h every 5m".to_owned());
    });
}

/// The victims of each order, as decided just now or before.
fn ways<'a>(
    world: &'a World,
    decided: &'a Plan,
) -> impl Iterator<Item = (GangId, &'a VictimSeats)> + 'a {
    let decided = decided.actions().filter_map(|action| match action {
        Action::Order(spec) => Some((spec.gang, &spec.after)),
        _ => None,
    });
    let before = world.orders().values().map(|order| (order.spec.gang, &order.after));
    decided.chain(before).flat_map(|(gang, after)| after.iter().map(move |way| (gang, way)))
}

/// Seats that victims leave for another gang, as decided just now or before.
fn leaving<'w>(world: &'w World, decided: &Plan) -> Vec<(&'w Gang, Seat)> {
    let mut leaving = Vec::new();
    for (_, way) in ways(world, decided) {
        let gang = world.gang(way.gang).expect("it is there");
        leaving.extend(way.seats.iter().map(|seat| (gang, *seat)));
    }
    leaving
}

/// Seats on nodes that are here, as decided just now.
fn given<'w>(world: &'w World, decided: &Plan) -> Vec<(&'w Gang, Seat)> {
    let mut given = Vec::new();
    for action in decided.actions() {
        match action {
            Action::Admit { gang, seats } => {
                let gang = world.gang(*gang).expect("it is there");
                given.extend(seats.iter().map(|seat| (gang, *seat)));
            }
            Action::Order(spec) => {
                let gang = world.gang(spec.gang).expect("it is there");
                given.extend(spec.reservations.iter().filter_map(|r| match r.place {
                    Place::Node(node) => Some((
                        gang,
                        Seat { devices: r.devices, node, role: r.role, members: r.members },
                    )),
                    Place::Claim(_) => None,
                }));
            }
            _ => {}
        }
    }
    given
}

/// All seats: those of members and those held by an order.
fn all_seats(world: &World) -> Vec<(&Gang, Seat)> {
    let mut seats = Vec::new();
    for (_, gang) in world.gangs() {
        let held = match gang.phase {
            Phase::Assembling(order) => &world.orders()[&order].held[..],
            _ => &[],
        };
        seats.extend(gang.seats.iter().chain(held).map(|seat| (gang, *seat)));
    }
    seats
}

#[test]
fn every_admission_is_whole_and_as_close_as_required() {
    for_each_plan("every_admission_is_whole_and_as_close_as_required", 25, |scene| {
        let world = &scene.bench.world;
        for action in scene.decided.actions() {
            let Action::Admit { gang, seats } = action else { continue };
            let gang = world.gang(*gang).expect("it is there");
            for (role, spec) in gang.spec.roles.iter().enumerate() {
                let seated = seats.iter().filter(|seat| usize::from(seat.role) == role);
                let seated: u32 = seated.map(|seat| u32::from(seat.members)).sum();
                let whole = spec.min <= seated && seated <= spec.max;
                assert!(whole, "{seated} members of {}", spec.name);
            }
            if let (Some(Closeness::Required(_)), Some(level)) = (&gang.spec.closeness, gang.level)
            {
                let places: BTreeSet<_> =
                    seats.iter().map(|seat| place(world, seat.node, level)).collect();
                assert_eq!(places.len(), 1, "{} is spread over {places:?}", gang.spec.name);
                assert!(!places.contains(&None), "{} is nowhere in particular", gang.spec.name);
            }
        }
    });
}

/// The names of all domains from the widest level down to `level`; none without a name at `level` itself.
fn place(world: &World, node: NodeIdx, level: Level) -> Option<Vec<String>> {
    let here = world.node(node).expect("a seat on a node that is here");
    let levels = Levels::default();
    let label = |at: usize| world.topology().label_at(here.leaf, &levels.0[at].label);
    match level {
        Level::Node => Some(vec![here.name.to_string()]),
        Level::Domain(level) => {
            label(level.index())?;
            let name = |at| label(at).map_or_else(String::new, |name| name.to_string());
            Some((0..=level.index()).map(name).collect())
        }
    }
}

#[test]
fn the_same_events_give_the_same_plan_byte_for_byte() {
    for_each_plan("the_same_events_give_the_same_plan_byte_for_byte", 25, |scene| {
        let Scene { rng, bench, decided, .. } = scene;
        if !rng.percent(10) {
            return;
        }
        let mut again = World::new(Levels::default());
        for (at, event) in &bench.events {
            again.apply(*at, event).expect("it was accepted the first time");
        }
        // Policies and events are data: what was saved is what is replayed.
        let saved = serde_json::to_string(&bench.policy).expect("plain data");
        let policy: Policy = serde_json::from_str(&saved).expect("plain data");
        let replayed = plan(&again, bench.now, &policy);
        let bytes = |plan: &Plan| serde_json::to_string(plan).expect("plain data");
        assert_eq!(bytes(&replayed), bytes(decided));
    });
}
