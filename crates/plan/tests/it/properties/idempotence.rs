//! Decisions applied twice, and decisions applied too late.

use insta::assert_snapshot;
use muster_core::event::{Refusal, Stale};
use muster_core::gang::Phase;
use muster_core::order::ClaimState;
use muster_core::plan::Action;
use muster_core::{Event, World};

use super::random_runs::{Scene, for_each_plan};
use crate::dsl::Bench;

#[test]
fn applying_a_decision_twice_is_applying_it_once() {
    for_each_plan("applying_a_decision_twice_is_applying_it_once", 15, |scene| {
        let mut world = scene.bench.world.clone();
        for action in scene.decided.actions() {
            let event = Event::Decided(action.clone());
            world.apply(scene.bench.now, &event).expect("a plan just made is accepted");
            let once = format!("{world:?}");
            let again = world.apply(scene.bench.now, &event);
            assert_eq!(format!("{world:?}"), once, "{action:?}");
            // An order that is rolled back is forgotten, so that is the one decision refused when applied again.
            let forgets = matches!(action, Action::RollBack { .. });
            assert_eq!(again.is_ok(), !forgets, "{action:?}: {again:?}");
        }
    });
}

#[test]
fn a_stale_decision_is_refused_and_changes_nothing() {
    for_each_plan("a_stale_decision_is_refused_and_changes_nothing", 15, |scene| {
        let Scene { rng, bench, past, .. } = scene;
        for action in past.iter().rev().take(12).filter(|_| rng.percent(40)) {
            let mut world = bench.world.clone();
            let before = format!("{world:?}");
            let told = world.apply(bench.now, &Event::Decided(action.clone()));
            let changed = format!("{world:?}") != before;
            assert!(!changed || told.is_ok(), "refused, but not without trace: {action:?}");
            assert!(!changed || !in_force(&bench.world, action), "done again: {action:?}");
            let is_order = matches!(action, Action::Order(_));
            assert!(!changed || !is_order, "an order is placed once: {action:?}");
        }
    });
}

/// Whether the decision is in force already.
fn in_force(world: &World, action: &Action) -> bool {
    match action {
        Action::Admit { gang, seats } => world.gang(*gang).is_some_and(|gang| gang.seats == *seats),
        Action::Release { claim } => world.claims().get(claim).is_some_and(|claim| claim.releasing),
        Action::Order(spec) => world.orders().contains_key(&spec.id),
        Action::Stop { gang, .. } => {
            world.gang(*gang).is_some_and(|gang| gang.phase == Phase::Stopping)
        }
        Action::Resize { gang, seats } => world.gang(*gang).is_some_and(|gang| {
            gang.resize.as_ref().map_or(&gang.seats, |resize| &resize.to) == seats
        }),
        Action::RollBack { order, .. } => !world.orders().contains_key(order),
        Action::TopUp { order, claim, .. } => world
            .orders()
            .get(order)
            .is_some_and(|order| order.spec.claims.iter().any(|(id, _)| id == claim)),
        Action::Exchange { gets, ready, .. } => world
            .orders()
            .get(gets)
            .is_some_and(|order| order.spec.claims.iter().any(|(id, _)| id == ready)),
        Action::Stock { claims } => claims.iter().all(|(id, _)| {
            world.claims().get(id).is_some_and(|claim| claim.state != ClaimState::Stopped)
        }),
        Action::Retry { claim, attempt } => {
            world.claims().get(claim).is_some_and(|claim| claim.retries >= *attempt)
        }
        Action::Park { claim } => world
            .claims()
            .get(claim)
            .is_some_and(|claim| matches!(claim.state, ClaimState::Stopping | ClaimState::Stopped)),
        Action::Retire { claim } => world.claims().get(claim).is_some_and(|claim| claim.retiring),
    }
}

/// Plans, applies a change, and returns what becomes of each decision then.
fn check_late(before: &str, meanwhile: &str) -> String {
    let mut bench = Bench::new();
    before.lines().for_each(|line| bench.line(line));
    let decided = muster_plan::plan(&bench.world, bench.now, &bench.policy);
    meanwhile.lines().for_each(|line| bench.line(line));
    let mut said = Vec::new();
    for action in decided.actions() {
        let world = format!("{:?}", bench.world);
        said.push(match bench.tell(Event::Decided(action.clone())) {
            Ok(()) => "accepted".to_owned(),
            Err(refusal) => {
                assert_eq!(format!("{:?}", bench.world), world, "unchanged by {action:?}");
                format!("refused: {refusal}")
            }
        });
    }
    said.join("\n")
}

#[test]
fn an_admission_is_checked_again_against_the_present() {
    let case = "
        queue team gpu=8
        node a1 gpus=8
        gang train 1x8gpu queue=team
    ";
    assert_snapshot!(check_late(case, ""), @"accepted");
    assert_snapshot!(check_late(case, "lost a1"), @"refused: a seat is no longer free");
    assert_snapshot!(check_late(case, "node a1 gpus=8 ready=no"), @"refused: a seat is no longer free");
    assert_snapshot!(check_late(case, "node a1 gpus=4"), @"refused: a seat is no longer free");
    assert_snapshot!(check_late(case, "cancel train"), @"refused: gang g0 does not exist");
    assert_snapshot!(check_late(case, "queue team gpu=4"), @"refused: the queue's limit would be exceeded");
    assert_snapshot!(check_late(case, "gang fast 1x1gpu prio=1\nplan"), @"refused: a seat is no longer free");
}

#[test]
fn an_order_is_checked_again_against_the_present() {
    let case = "
        queue team gpu=16
        node a1 gpus=8 zone=a
        pool p nodes=1 : zone=a price=10
        gang train 2x8gpu queue=team
    ";
    assert_snapshot!(check_late(case, ""), @"accepted");
    assert_snapshot!(check_late(case, "lost a1"), @"refused: a seat is no longer free");
    assert_snapshot!(check_late(case, "cancel train"), @"refused: gang g0 does not exist");
    assert_snapshot!(check_late(case, "queue team gpu=8"), @"refused: the queue's limit would be exceeded");
    assert_snapshot!(check_late(case, "pool p nodes=0 : zone=a price=10"), @"refused: the pool has no room left");
    assert_snapshot!(check_late(case, "pool p : zone=b price=10"), @"refused: the pool has no room left");
    assert_snapshot!(check_late(case, "gang fast 1x8gpu prio=1 never\nplan"), @"refused: a seat is no longer free");
}

#[test]
fn an_order_completes_only_with_the_seats_it_holds() {
    let case = "
        pool p : zone=a price=10
        gang train 2x8gpu
        plan
        ready c[0..1]
    ";
    assert_snapshot!(check_late(case, ""), @"accepted");
    assert_snapshot!(check_late(case, "ready c0 ready=no"), @"refused: the order is no longer assembling");
    assert_snapshot!(check_late(case, "lost c1"), @"refused: the order is no longer assembling");
}

#[test]
fn a_release_is_checked_again_against_the_present() {
    let case = "
        pool p idle=0s : zone=a price=10
        gang train 1x8gpu
        plan
        ready c0
        plan
        end train
    ";
    assert_snapshot!(check_late(case, ""), @"accepted");
    assert_snapshot!(check_late(case, "gang fast 1x8gpu\nplan"), @"refused: the node is in use");
    assert_snapshot!(check_late(case, "gang more 2x8gpu\nplan"), @"refused: the node is in use");
    assert_snapshot!(check_late(case, "lost c0\nforgotten c0"), @"refused: claim c0 does not exist");
}

#[test]
fn fewer_members_than_the_minimum_are_refused() {
    let mut bench = Bench::new();
    bench.line("node a[1..2] gpus=8");
    bench.line("gang train 2x8gpu");
    let decided = muster_plan::plan(&bench.world, bench.now, &bench.policy);
    let Some(Action::Admit { gang, seats }) = decided.actions().next() else { panic!("it fits") };
    for seats in [vec![], vec![seats[0]], vec![seats[0]; 2], vec![seats[0], seats[1], seats[1]]] {
        let too_few = Event::Decided(Action::Admit { gang: *gang, seats: seats.clone() });
        let why = if seats.len() == 2 { Stale::Seat } else { Stale::BelowMin };
        assert_eq!(bench.tell(too_few), Err(Refusal::Stale(why)), "{seats:?}");
    }
}
