//! What is found is true whether it fits or not: gangs that run already, claims from before, second thoughts.

use insta::assert_snapshot;
use muster_core::Event;
use muster_core::event::{Refusal, Sitting, Stale};
use muster_core::gang::GangSpec;
use muster_core::id::{ClaimId, OfferingRef, PoolIdx};
use muster_core::plan::{Action, StopReason};
use muster_core::time::{Span, Time};
use muster_testkit::build;

use crate::books::Books;

/// Finds members of a gang's first role on nodes.
fn found(books: &Books, gang: &str, on: &[(&str, u16)]) -> Event {
    let sitting = on.iter().map(|(node, members)| {
        let node = books.world.node_named(node).expect("a node");
        Sitting { role: 0, node, members: *members }
    });
    Event::GangFound { gang: books.id(gang), since: Time(0), sitting: sitting.collect() }
}

/// Finds a claim that was asked for just now.
fn claim_found(claim: u32, offering: OfferingRef) -> Event {
    Event::ClaimFound { claim: ClaimId(claim), offering, asked: Time::MAX, launched: None }
}

#[test]
fn a_gang_that_runs_already_has_its_seats() {
    let mut books = Books::new();
    books.node("a1", 8).node("a2", 8).gang(build::gang("train", 3, 4));
    let event = found(&books, "train", &[("a1", 2), ("a2", 1)]);
    books.ok(event);
    assert_snapshot!(books.show(), @"
    node a1: 0 of 8 gpus, 98 cores free, 2 seats
    node a2: 4 of 8 gpus, 99 cores free, 1 seats
    queue default: 12 gpus
    gang train since 0s: Running, 0 restarts, 0 failed
    ");
}

/// A gang is these members on these nodes.
fn turned_out(books: &Books, spec: &GangSpec, on: &[(u16, &str, u16)]) -> Event {
    let sitting = on.iter().map(|(role, node, members)| {
        let node = books.world.node_named(node).expect("a node");
        Sitting { role: *role, node, members: *members }
    });
    Event::GangTurnedOut { spec: spec.clone(), sitting: sitting.collect() }
}

#[test]
fn who_turns_out_to_be_other_members_has_the_room_it_had_and_what_is_free() {
    let mut books = Books::new();
    books.node("a1", 8).node("a2", 8).gang(build::gang("train", 8, 1));
    let event = found(&books, "train", &[("a1", 6), ("a2", 2)]);
    books.ok(event);
    books.gang(build::gang("other", 1, 2));
    let event = found(&books, "other", &[("a1", 1)]);
    books.ok(event);
    let mut spec = build::gang("train", 1, 4);
    spec.roles.push(build::role("rest", 2, 2));
    // A node of eight of which others have two.
    let too_much = turned_out(&books, &spec, &[(0, "a1", 1), (1, "a1", 2)]);
    assert_eq!(books.tell(too_much), Err(Refusal::Stale(Stale::Seat)));
    let too_few = turned_out(&books, &spec, &[(0, "a1", 1), (1, "a2", 1)]);
    assert_eq!(books.tell(too_few), Err(Refusal::Stale(Stale::BelowMin)));
    let event = turned_out(&books, &spec, &[(0, "a1", 1), (1, "a1", 1), (1, "a2", 1)]);
    books.ok(event);
    assert_snapshot!(books.show(), @"
    node a1: 0 of 8 gpus, 97 cores free, 3 seats
    node a2: 6 of 8 gpus, 99 cores free, 1 seats
    queue default: 10 gpus
    gang train since 0s: Running, 0 restarts, 0 failed
    gang other since 0s: Running, 0 restarts, 0 failed
    ");
}

#[test]
fn members_found_on_a_node_that_shows_no_devices_have_them_when_it_does() {
    let mut books = Books::new();
    let dark = build::node("a1", 0, &[]);
    books.ok(Event::NodeSeen(dark)).gang(build::gang("train", 1, 4)).gang(build::gang("o", 1, 8));
    let event = found(&books, "train", &[("a1", 1)]);
    books.ok(event).node("a1", 8);
    assert_snapshot!(books.show(), @"
    node a1: 4 of 8 gpus, 99 cores free, 1 seats
    queue default: 4 gpus
    gang train since 0s: Running, 0 restarts, 0 failed
    gang o since 0s: Waiting, 0 restarts, 0 failed
    ");
    assert_eq!(books.admit("o", &[("a1", 0xff)]), Err(Stale::Seat.into()));
    let train = books.id("train");
    books.ok(Event::GangEnded(train));
    assert_eq!(books.admit("o", &[("a1", 0xff)]), Ok(()));
}

#[test]
fn members_that_are_done_leave_their_seats_and_the_others_stay() {
    let mut books = Books::new();
    books.node("a1", 8).node("a2", 8).gang(build::gang("train", 3, 4));
    for on in [&[("a1", 2), ("a2", 1)][..], &[("a1", 1)]] {
        let event = found(&books, "train", on);
        books.ok(event);
    }
    assert_snapshot!(books.show(), @"
    node a1: 4 of 8 gpus, 99 cores free, 1 seats
    node a2: 8 of 8 gpus, 100 cores free, 0 seats
    queue default: 4 gpus
    gang train since 0s: Running, 0 restarts, 0 failed
    ");
    let train = books.id("train");
    books.ok(Event::GangEnded(train));
    assert_snapshot!(books.show(), @"
    node a1: 8 of 8 gpus, 100 cores free, 0 seats
    node a2: 8 of 8 gpus, 100 cores free, 0 seats
    ");
}

#[test]
fn more_than_fits_counts_and_leaves_nothing_to_others() {
    let mut books = Books::new();
    books.node("a1", 8).gang(build::gang("train", 3, 4)).gang(build::gang("other", 1, 1));
    let event = found(&books, "train", &[("a1", 3)]);
    books.ok(event);
    assert_eq!(books.admit("other", &[("a1", 0x01)]), Err(Stale::Seat.into()));
    let train = books.id("train");
    books.ok(Event::GangEnded(train));
    assert_eq!(books.admit("other", &[("a1", 0x01)]), Ok(()));
}

#[test]
fn a_gang_on_a_node_that_is_not_ready_runs_all_the_same() {
    let mut books = Books::new();
    let mut shut = build::node("a1", 8, &[]);
    shut.ready = false;
    books.ok(Event::NodeSeen(shut)).gang(build::gang("train", 1, 8));
    let event = found(&books, "train", &[("a1", 1)]);
    books.ok(event);
    assert_snapshot!(books.show(), @"
    node a1: 0 of 8 gpus, 99 cores free, 1 seats unusable
    queue default: 8 gpus
    gang train since 0s: Running, 0 restarts, 0 failed
    ");
}

#[test]
fn nobody_is_found_on_no_node_or_in_no_role() {
    let mut books = Books::new();
    books.node("a1", 8).gang(build::gang("train", 1, 8));
    let (gang, since) = (books.id("train"), Time(0));
    let node = books.world.node_named("a1").expect("a node");
    let stale = Err(Refusal::Stale(Stale::Gang));
    assert_eq!(books.tell(Event::GangFound { gang, since, sitting: Vec::new() }), stale);
    let sitting = vec![Sitting { role: 1, node, members: 1 }];
    assert_eq!(books.tell(Event::GangFound { gang, since, sitting }), stale);
}

#[test]
fn a_claim_that_is_found_counts_also_beyond_the_limit() {
    let mut books = Books::new();
    let mut pool = build::pool("p", vec![build::offering("a", 10.0)]);
    pool.limits.nodes = Some(1);
    books.ok(Event::PoolSet(pool));
    let offering = OfferingRef { pool: PoolIdx(0), slot: 0 };
    books.ok(claim_found(7, offering)).ok(claim_found(9, offering));
    assert_eq!(books.world.next_claim(), ClaimId(10));
    assert_eq!(books.world.claims().len(), 2);
    let nowhere = OfferingRef { pool: PoolIdx(0), slot: 3 };
    let refused = Err(Refusal::UnknownClaim(ClaimId(11)));
    assert_eq!(books.tell(claim_found(11, nowhere)), refused);
}

#[test]
fn a_claim_that_is_found_is_as_old_as_it_is() {
    let mut books = Books::new();
    books.ok(Event::PoolSet(build::pool("p", vec![build::offering("a", 10.0)]))).later(60);
    let offering = OfferingRef { pool: PoolIdx(0), slot: 0 };
    let mins = |mins| Time::ZERO + Span::mins(mins);
    let found = |claim, asked, launched| Event::ClaimFound {
        claim: ClaimId(claim),
        offering,
        asked,
        launched,
    };
    books.ok(found(1, mins(10), None)).ok(found(2, mins(10), Some(mins(20))));
    // Whoever wrote it down had a clock that is ahead.
    books.ok(found(3, mins(90), Some(mins(95))));
    // What is known is known better than by what is written on it.
    books.ok(found(1, mins(1), Some(mins(2))));
    let times = books.world.claims().values().map(|claim| {
        let mins = |at: Time| at.since(Time::ZERO).0 / 60_000;
        format!("{:?} asked {} since {}", claim.state, mins(claim.requested), mins(claim.since))
    });
    assert_snapshot!(times.collect::<Vec<_>>().join("\n"), @"
    Requested asked 10 since 10
    Launched asked 10 since 20
    Launched asked 60 since 60
    ");
}

#[test]
fn a_node_is_idle_for_as_long_as_was_written_down_unless_somebody_is_on_it() {
    let mut books = Books::new();
    books.later(60).node("a1", 8).node("a2", 8).gang(build::gang("train", 1, 8));
    let event = found(&books, "train", &[("a1", 1)]);
    books.ok(event);
    let idle = |name: &str, mins| Event::NodeIdle {
        name: name.into(),
        since: Time::ZERO + Span::mins(mins),
    };
    books.ok(idle("a1", 5)).ok(idle("a2", 5)).ok(idle("a2", 90));
    let since = |books: &Books, name| {
        let node = books.world.node_named(name).expect("a node");
        books.world.node(node).expect("there").idle_since.since(Time::ZERO).0 / 60_000
    };
    assert_eq!((since(&books, "a1"), since(&books, "a2")), (60, 5));
    let nowhere = Err(Refusal::UnknownNode("a3".into()));
    assert_eq!(books.tell(idle("a3", 5)), nowhere);
}

#[test]
fn numbers_never_go_back() {
    let mut books = Books::new();
    books.ok(Event::NumbersFrom(50)).ok(Event::NumbersFrom(20));
    assert_eq!((books.world.next_claim(), books.world.next_order().0), (ClaimId(50), 50));
}

#[test]
fn second_thoughts_keep_the_place_and_change_what_is_wanted() {
    let mut books = Books::new();
    books.node("a1", 8).gang(build::gang("train", 3, 4)).gang(build::gang("later", 1, 8));
    books.ok(Event::GangChanged(build::gang("train", 2, 4)));
    let first = books.world.waiting()[0].id;
    assert_eq!(first, books.id("train"));
    assert_eq!(books.admit("train", &[("a1", 0x0f), ("a1", 0xf0)]), Ok(()));
}

#[test]
fn who_has_seats_cannot_become_another() {
    let mut books = Books::new();
    books.node("a1", 8).gang(build::gang("train", 2, 4));
    assert_eq!(books.admit("train", &[("a1", 0x0f), ("a1", 0xf0)]), Ok(()));
    let stale = Err(Refusal::Stale(Stale::Gang));
    assert_eq!(books.tell(Event::GangChanged(build::gang("train", 2, 3))), stale);
    let mut urgent = build::gang("train", 2, 4);
    urgent.priority = 9;
    books.ok(Event::GangChanged(urgent));
    let gone = Err(Refusal::NoSuchGang("nobody".into()));
    assert_eq!(books.tell(Event::GangChanged(build::gang("nobody", 1, 1))), gone);
}

#[test]
fn who_runs_never_lacks_what_it_never_had_and_is_larger_when_it_starts_anew() {
    let mut books = Books::new();
    books.node("a1", 8).gang(build::gang("train", 2, 4));
    assert_eq!(books.admit("train", &[("a1", 0x0f), ("a1", 0xf0)]), Ok(()));
    let gang = books.id("train");
    books.ok(Event::GangStarted(gang)).ok(Event::GangChanged(build::gang("train", 4, 4)));
    let sizes = |books: &Books| {
        let role = &books.world.gang(gang).expect("a gang").spec.roles[0];
        (role.min, role.max)
    };
    assert_eq!(sizes(&books), (2, 2));
    let stop = Action::Stop { gang, reason: StopReason::Moved };
    books.ok(Event::Decided(stop)).ok(Event::GangStopped(gang));
    assert_eq!(sizes(&books), (4, 4));
}

#[test]
fn who_thinks_better_of_it_while_it_runs_starts_anew_as_it_was() {
    let mut books = Books::new();
    books.node("a1", 8).gang(build::gang("train", 2, 4));
    assert_eq!(books.admit("train", &[("a1", 0x0f), ("a1", 0xf0)]), Ok(()));
    let gang = books.id("train");
    books.ok(Event::GangChanged(build::gang("train", 4, 4)));
    books.ok(Event::GangChanged(build::gang("train", 2, 4)));
    let stop = Action::Stop { gang, reason: StopReason::Moved };
    books.ok(Event::Decided(stop)).ok(Event::GangStopped(gang));
    assert_eq!(books.world.gang(gang).expect("a gang").spec.roles[0].min, 2);
}
