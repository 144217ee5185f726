//! Queues and pools, changed while they are in use.

use insta::assert_snapshot;
use muster_core::Event;
use muster_core::event::{Refusal, Stale};
use muster_core::gang::GangSpec;
use muster_core::plan::Action;
use muster_core::queue::QueueSpec;
use muster_testkit::build;

use crate::fixture::Fixture;

fn queue(name: &str, parent: Option<&str>) -> Event {
    let spec = QueueSpec { parent: parent.map(Into::into), ..QueueSpec::open(name) };
    Event::QueueSet(spec)
}

#[test]
fn queue_usage_moves_with_the_queue() {
    let mut fixture = Fixture::new();
    fixture.ok(queue("left", None)).ok(queue("right", None));
    fixture.ok(queue("team", Some("left"))).ok(queue("lab", Some("team")));
    let mut spec = build::gang("train", 1, 4);
    spec.queue = "lab".into();
    fixture.node("a1", 8).gang(spec);
    assert_eq!(fixture.admit("train", &[("a1", 0x0f)]), Ok(()));
    assert_snapshot!(fixture.show(), @"
    node a1: 4 of 8 gpus, 99 cores free, 1 seats
    queue left: 4 gpus
    queue team: 4 gpus
    queue lab: 4 gpus
    gang train since 0s: Admitted, 0 restarts, 0 failed
    ");
    fixture.ok(queue("team", Some("right")));
    assert_snapshot!(fixture.show(), @"
    node a1: 4 of 8 gpus, 99 cores free, 1 seats
    queue right: 4 gpus
    queue team: 4 gpus
    queue lab: 4 gpus
    gang train since 0s: Admitted, 0 restarts, 0 failed
    ");
    fixture.ok(queue("team", None));
    assert_snapshot!(fixture.show(), @"
    node a1: 4 of 8 gpus, 99 cores free, 1 seats
    queue team: 4 gpus
    queue lab: 4 gpus
    gang train since 0s: Admitted, 0 restarts, 0 failed
    ");
    let train = fixture.id("train");
    fixture.ok(Event::GangEnded(train));
    assert!(!fixture.show().contains("queue"), "nothing is held");
}

#[test]
fn queue_cannot_be_its_own_ancestor() {
    let mut fixture = Fixture::new();
    fixture.ok(queue("a", None)).ok(queue("b", Some("a"))).ok(queue("c", Some("b")));
    for parent in ["a", "b", "c"] {
        assert_eq!(fixture.tell(queue("a", Some(parent))), Err(Refusal::QueueCycle("a".into())));
    }
    assert_eq!(fixture.tell(queue("d", Some("e"))), Err(Refusal::UnknownQueue("e".into())));
    assert_eq!(fixture.tell(queue("d", Some("d"))), Err(Refusal::UnknownQueue("d".into())));
    fixture.ok(queue("c", Some("a"))).ok(queue("b", Some("c")));
}

#[test]
fn undeclared_queue_takes_no_gangs_and_keeps_those_it_has() {
    let mut fixture = Fixture::new();
    let in_team = |name| GangSpec { queue: "team".into(), ..build::gang(name, 1, 4) };
    fixture.node("a1", 8).ok(queue("team", None)).ok(queue("below", Some("team")));
    fixture.gang(in_team("one")).gang(in_team("two"));
    assert_eq!(fixture.admit("one", &[("a1", 0x0f)]), Ok(()));
    fixture.ok(Event::QueueGone("team".into()));
    let unknown = || Err(Refusal::UnknownQueue("team".into()));
    assert_eq!(fixture.tell(Event::GangSubmitted(in_team("three"))), unknown());
    assert_eq!(fixture.tell(queue("other", Some("team"))), unknown());
    assert_eq!(fixture.tell(Event::QueueGone("team".into())), unknown());
    assert_eq!(
        fixture.tell(Event::QueueGone("nobody".into())),
        Err(Refusal::UnknownQueue("nobody".into()))
    );
    // Gangs in it may change and be cancelled.
    let larger = GangSpec { priority: 7, ..in_team("two") };
    fixture.ok(Event::GangChanged(larger));
    // It is declared again as it was.
    let team = |fixture: &Fixture| {
        let found = fixture.world.queues().iter().find(|(_, queue)| &*queue.spec.name == "team");
        let (_, queue) = found.expect("it is kept");
        (queue.gone, queue.usage.gpu_milli)
    };
    assert_eq!(team(&fixture), (true, 4_000));
    fixture.ok(queue("team", None));
    assert_eq!(team(&fixture), (false, 4_000));
    fixture.ok(Event::GangSubmitted(in_team("three")));
}

#[test]
fn default_queue_always_exists() {
    let mut fixture = Fixture::new();
    let mut tight = QueueSpec::open("default");
    tight.limit.gpu_milli = Some(2_000);
    fixture.ok(Event::QueueSet(tight)).ok(Event::QueueGone("default".into()));
    fixture.node("a1", 8).gang(build::gang("one", 1, 4));
    assert_eq!(fixture.admit("one", &[("a1", 0x0f)]), Ok(()));
}

#[test]
fn lowered_limit_blocks_new_gangs_only() {
    let mut fixture = Fixture::new();
    fixture.node("a1", 8).gang(build::gang("one", 1, 4)).gang(build::gang("two", 1, 1));
    assert_eq!(fixture.admit("one", &[("a1", 0x0f)]), Ok(()));
    let mut tight = QueueSpec::open("default");
    tight.limit.gpu_milli = Some(2_000);
    fixture.ok(Event::QueueSet(tight));
    assert_eq!(fixture.admit("two", &[("a1", 0x10)]), Err(Stale::Queue.into()));
    assert_snapshot!(fixture.show(), @"
    node a1: 4 of 8 gpus, 99 cores free, 1 seats
    queue default: 4 gpus
    gang one since 0s: Admitted, 0 restarts, 0 failed
    gang two since 0s: Waiting, 0 restarts, 0 failed
    ");
}

#[test]
fn changed_pool_keeps_its_claims() {
    let mut fixture = Fixture::new();
    let (a, b) = (build::offering("a", 10.0), build::offering("b", 12.0));
    fixture.ok(Event::PoolSet(build::pool("p", vec![a.clone(), b.clone()])));
    fixture.gang(build::gang("train", 1, 8));
    fixture.place(fixture.order("train", &[], &[0xff]));
    // In reverse order, and with one more.
    let c = build::offering("c", 5.0);
    fixture.ok(Event::PoolSet(build::pool("p", vec![c, b.clone(), a])));
    assert_snapshot!(fixture.show(), @"
    queue default: 8 gpus
    pool p: 1 nodes, 8 gpus, 10.00 hourly: a*1 b*0 c*0
    claim c0 train-0-0: Requested
    gang train since 0s: Assembling(o0), 0 restarts, 0 failed
    ");
    // An unlisted offering stays for its claims, with no room for more.
    fixture.ok(Event::PoolSet(build::pool("p", vec![b])));
    assert_snapshot!(fixture.show(), @"
    queue default: 8 gpus
    pool p: 1 nodes, 8 gpus, 10.00 hourly: a*1 b*0 c*0
    claim c0 train-0-0: Requested
    gang train since 0s: Assembling(o0), 0 restarts, 0 failed
    ");
    let pool = fixture.world.pools().values().next().expect("a pool");
    let rooms: Vec<u32> = (0..3).map(|slot| pool.room(slot)).collect();
    assert_eq!(rooms, [0, u32::MAX, 0]);
}

#[test]
fn relisted_offering_keeps_its_record() {
    let mut fixture = Fixture::new();
    let (a, b) = (build::offering("a", 10.0), build::offering("b", 12.0));
    fixture.ok(Event::PoolSet(build::pool("p", vec![a.clone()])));
    fixture.gang(build::gang("train", 1, 8)).gang(build::gang("next", 1, 8));
    fixture.place(fixture.order("train", &[], &[0xff]));
    fixture.ok(Event::PoolSet(build::pool("p", vec![b.clone()])));
    let order = fixture.order("next", &[], &[0xff]);
    let refused = fixture.tell(Event::Decided(Action::Order(order.clone())));
    assert_eq!(refused, Err(Stale::Pool.into()), "it is retired");
    fixture.ok(Event::PoolSet(build::pool("p", vec![b, a])));
    fixture.place(order);
    assert_snapshot!(fixture.show(), @"
    queue default: 16 gpus
    pool p: 2 nodes, 16 gpus, 20.00 hourly: a*2 b*0
    claim c0 train-0-0: Requested
    claim c1 next-1-0: Requested
    gang train since 0s: Assembling(o0), 0 restarts, 0 failed
    gang next since 0s: Assembling(o1), 0 restarts, 0 failed
    ");
}

#[test]
fn room_is_the_minimum_of_all_limits() {
    let mut spec = build::pool("p", vec![build::offering("a", 10.0)]);
    spec.limits.nodes = Some(7);
    let room = |spec: &muster_core::pool::PoolSpec| {
        let mut fixture = Fixture::new();
        fixture.ok(Event::PoolSet(spec.clone()));
        fixture.world.pools().values().next().expect("a pool").room(0)
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
fn pool_with_invalid_nodes_is_refused() {
    let mut fixture = Fixture::new();
    let mut huge = build::offering("a", 10.0);
    huge.gpus = 65;
    let refused = fixture.tell(Event::PoolSet(build::pool("p", vec![huge])));
    assert_eq!(refused, Err(Refusal::TooManyDevices("p".into())));
}
