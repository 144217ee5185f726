//! Queues and pools, written and rewritten while they are in use.

use insta::assert_snapshot;
use muster_core::Event;
use muster_core::event::{Refusal, Stale};
use muster_core::gang::GangSpec;
use muster_core::plan::Action;
use muster_core::queue::QueueSpec;
use muster_testkit::build;

use crate::books::Books;

fn queue(name: &str, parent: Option<&str>) -> Event {
    let spec = QueueSpec { parent: parent.map(Into::into), ..QueueSpec::open(name) };
    Event::QueueSet(spec)
}

#[test]
fn what_a_queue_holds_moves_with_it() {
    let mut books = Books::new();
    books.ok(queue("left", None)).ok(queue("right", None));
    books.ok(queue("team", Some("left"))).ok(queue("lab", Some("team")));
    let mut spec = build::gang("train", 1, 4);
    spec.queue = "lab".into();
    books.node("a1", 8).gang(spec);
    assert_eq!(books.admit("train", &[("a1", 0x0f)]), Ok(()));
    assert_snapshot!(books.show(), @"
    node a1: 4 of 8 gpus, 99 cores free, 1 seats
    queue left: 4 gpus
    queue team: 4 gpus
    queue lab: 4 gpus
    gang train since 0s: Admitted, 0 restarts, 0 failed
    ");
    books.ok(queue("team", Some("right")));
    assert_snapshot!(books.show(), @"
    node a1: 4 of 8 gpus, 99 cores free, 1 seats
    queue right: 4 gpus
    queue team: 4 gpus
    queue lab: 4 gpus
    gang train since 0s: Admitted, 0 restarts, 0 failed
    ");
    books.ok(queue("team", None));
    assert_snapshot!(books.show(), @"
    node a1: 4 of 8 gpus, 99 cores free, 1 seats
    queue team: 4 gpus
    queue lab: 4 gpus
    gang train since 0s: Admitted, 0 restarts, 0 failed
    ");
    let train = books.id("train");
    books.ok(Event::GangEnded(train));
    assert!(!books.show().contains("queue"), "nobody holds anything");
}

#[test]
fn a_queue_is_never_below_itself() {
    let mut books = Books::new();
    books.ok(queue("a", None)).ok(queue("b", Some("a"))).ok(queue("c", Some("b")));
    for parent in ["a", "b", "c"] {
        assert_eq!(books.tell(queue("a", Some(parent))), Err(Refusal::QueueCycle("a".into())));
    }
    assert_eq!(books.tell(queue("d", Some("e"))), Err(Refusal::UnknownQueue("e".into())));
    assert_eq!(books.tell(queue("d", Some("d"))), Err(Refusal::UnknownQueue("d".into())));
    books.ok(queue("c", Some("a"))).ok(queue("b", Some("c")));
}

#[test]
fn a_queue_that_is_gone_takes_nobody_and_keeps_those_it_has() {
    let mut books = Books::new();
    let in_team = |name| GangSpec { queue: "team".into(), ..build::gang(name, 1, 4) };
    books.node("a1", 8).ok(queue("team", None)).ok(queue("below", Some("team")));
    books.gang(in_team("one")).gang(in_team("two"));
    assert_eq!(books.admit("one", &[("a1", 0x0f)]), Ok(()));
    books.ok(Event::QueueGone("team".into()));
    let unknown = || Err(Refusal::UnknownQueue("team".into()));
    assert_eq!(books.tell(Event::GangSubmitted(in_team("three"))), unknown());
    assert_eq!(books.tell(queue("other", Some("team"))), unknown());
    assert_eq!(books.tell(Event::QueueGone("team".into())), unknown());
    assert_eq!(
        books.tell(Event::QueueGone("nobody".into())),
        Err(Refusal::UnknownQueue("nobody".into()))
    );
    // Who is in it may change, and go.
    let larger = GangSpec { priority: 7, ..in_team("two") };
    books.ok(Event::GangChanged(larger));
    // It comes back as it was.
    let team = |books: &Books| {
        let found = books.world.queues().iter().find(|(_, queue)| &*queue.spec.name == "team");
        let (_, queue) = found.expect("it is kept");
        (queue.gone, queue.usage.gpu_milli)
    };
    assert_eq!(team(&books), (true, 4_000));
    books.ok(queue("team", None));
    assert_eq!(team(&books), (false, 4_000));
    books.ok(Event::GangSubmitted(in_team("three")));
}

#[test]
fn the_default_queue_is_always_there() {
    let mut books = Books::new();
    let mut tight = QueueSpec::open("default");
    tight.limit.gpu_milli = Some(2_000);
    books.ok(Event::QueueSet(tight)).ok(Event::QueueGone("default".into()));
    books.node("a1", 8).gang(build::gang("one", 1, 4));
    assert_eq!(books.admit("one", &[("a1", 0x0f)]), Ok(()));
}

#[test]
fn a_limit_below_what_is_held_stops_nobody_but_newcomers() {
    let mut books = Books::new();
    books.node("a1", 8).gang(build::gang("one", 1, 4)).gang(build::gang("two", 1, 1));
    assert_eq!(books.admit("one", &[("a1", 0x0f)]), Ok(()));
    let mut tight = QueueSpec::open("default");
    tight.limit.gpu_milli = Some(2_000);
    books.ok(Event::QueueSet(tight));
    assert_eq!(books.admit("two", &[("a1", 0x10)]), Err(Stale::Queue.into()));
    assert_snapshot!(books.show(), @"
    node a1: 4 of 8 gpus, 99 cores free, 1 seats
    queue default: 4 gpus
    gang one since 0s: Admitted, 0 restarts, 0 failed
    gang two since 0s: Waiting, 0 restarts, 0 failed
    ");
}

#[test]
fn a_rewritten_pool_keeps_its_claims_where_they_are() {
    let mut books = Books::new();
    let (a, b) = (build::offering("a", 10.0), build::offering("b", 12.0));
    books.ok(Event::PoolSet(build::pool("p", vec![a.clone(), b.clone()])));
    books.gang(build::gang("train", 1, 8));
    books.place(books.order("train", &[], &[0xff]));
    // The other way around, and with one more.
    let c = build::offering("c", 5.0);
    books.ok(Event::PoolSet(build::pool("p", vec![c, b.clone(), a])));
    assert_snapshot!(books.show(), @"
    queue default: 8 gpus
    pool p: 1 nodes, 8 gpus, 10.00 hourly: a*1 b*0 c*0
    claim c0 train-0-0: Requested
    gang train since 0s: Assembling(o0), 0 restarts, 0 failed
    ");
    // What is no longer listed stays for its claims, with no room for more.
    books.ok(Event::PoolSet(build::pool("p", vec![b])));
    assert_snapshot!(books.show(), @"
    queue default: 8 gpus
    pool p: 1 nodes, 8 gpus, 10.00 hourly: a*1 b*0 c*0
    claim c0 train-0-0: Requested
    gang train since 0s: Assembling(o0), 0 restarts, 0 failed
    ");
    let pool = books.world.pools().values().next().expect("a pool");
    let rooms: Vec<u32> = (0..3).map(|slot| pool.room(slot)).collect();
    assert_eq!(rooms, [0, u32::MAX, 0]);
}

#[test]
fn a_retired_offering_comes_back_as_itself() {
    let mut books = Books::new();
    let (a, b) = (build::offering("a", 10.0), build::offering("b", 12.0));
    books.ok(Event::PoolSet(build::pool("p", vec![a.clone()])));
    books.gang(build::gang("train", 1, 8)).gang(build::gang("next", 1, 8));
    books.place(books.order("train", &[], &[0xff]));
    books.ok(Event::PoolSet(build::pool("p", vec![b.clone()])));
    let order = books.order("next", &[], &[0xff]);
    let refused = books.tell(Event::Decided(Action::Order(order.clone())));
    assert_eq!(refused, Err(Stale::Pool.into()), "it is retired");
    books.ok(Event::PoolSet(build::pool("p", vec![b, a])));
    books.place(order);
    assert_snapshot!(books.show(), @"
    queue default: 16 gpus
    pool p: 2 nodes, 16 gpus, 20.00 hourly: a*2 b*0
    claim c0 train-0-0: Requested
    claim c1 next-1-0: Requested
    gang train since 0s: Assembling(o0), 0 restarts, 0 failed
    gang next since 0s: Assembling(o1), 0 restarts, 0 failed
    ");
}

#[test]
fn room_is_the_tightest_of_all_limits() {
    let mut spec = build::pool("p", vec![build::offering("a", 10.0)]);
    spec.limits.nodes = Some(7);
    let room = |spec: &muster_core::pool::PoolSpec| {
        let mut books = Books::new();
        books.ok(Event::PoolSet(spec.clone()));
        books.world.pools().values().next().expect("a pool").room(0)
    };
    assert_eq!(room(&spec), 7);
    spec.limits.gpus = Some(47);
    assert_eq!(room(&spec), 5);
    spec.limits.hourly_spend = muster_core::money::Money::from_units(49.99);
    assert_eq!(room(&spec), 4);
    spec.offerings[0].max = Some(3);
    assert_eq!(room(&spec), 3);
}

#[test]
fn a_pool_of_impossible_nodes_is_refused() {
    let mut books = Books::new();
    let mut huge = build::offering("a", 10.0);
    huge.gpus = 65;
    let refused = books.tell(Event::PoolSet(build::pool("p", vec![huge])));
    assert_eq!(refused, Err(Refusal::TooManyDevices("p".into())));
}
