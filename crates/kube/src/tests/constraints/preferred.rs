//! Preferred pod affinity, anti-affinity and topology spread decide placement, and no gang waits for them.

use std::collections::BTreeMap;

use muster_core::gang::{Closeness, Phase};
use serde_json::{Value, json};

use crate::tests::fixture::HostFixture;
use crate::tests::objects::{bought_node, claim, job, node, of_job, pod, pool, single_pod};
use crate::tests::schedule::cases::{TRAIN, on};

const HOST: &str = "kubernetes.io/hostname";
const ZONE: &str = "topology.kubernetes.io/zone";

/// A pod of an app with so many GPUs.
fn of_app(mut pod: Value, app: &str, gpus: u32) -> Value {
    pod["metadata"]["labels"] = json!({"app": app});
    let container = &mut pod["spec"]["containers"][0]["resources"];
    container["limits"]["nvidia.com/gpu"] = json!(gpus.to_string());
    container["requests"]["nvidia.com/gpu"] = json!(gpus.to_string());
    pod
}

/// The same with a preferred term: `podAffinity` or `podAntiAffinity`.
fn with_preferred(mut pod: Value, side: &str, app: &str, key: &str) -> Value {
    let term = json!({"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}});
    let preferred = json!([{"weight": 100, "podAffinityTerm": term}]);
    pod["spec"]["affinity"] =
        json!({side: {"preferredDuringSchedulingIgnoredDuringExecution": preferred}});
    pod
}

/// The same with topology spread over a label (`ScheduleAnyway`).
fn spread(mut pod: Value, app: &str, key: &str) -> Value {
    pod["spec"]["topologySpreadConstraints"] = json!([{
        "topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": app}},
    }]);
    pod
}

fn in_zone(mut node: Value, zone: &str) -> Value {
    node["metadata"]["labels"][ZONE] = json!(zone);
    node
}

/// How many seats gangs with this name prefix have on each node.
fn seats(fixture: &HostFixture, begin: &str) -> BTreeMap<String, u32> {
    let mut seats = BTreeMap::new();
    let world = &fixture.host.world;
    for (_, gang) in world.gangs().filter(|(_, gang)| gang.spec.name.starts_with(begin)) {
        for seat in &gang.seats {
            let node = world.node_name(seat.node).expect("a node").to_string();
            *seats.entry(node).or_default() += u32::from(seat.members);
        }
    }
    seats
}

fn fixture(nodes: u32) -> HostFixture {
    let mut fixture = HostFixture::new();
    for at in 0..nodes {
        fixture.show(in_zone(node(&format!("n{at}")), &format!("z{}", at % 2)), false);
    }
    fixture.host.run_cycle();
    fixture
}

#[tokio::test]
async fn replicas_created_at_once_are_spread_and_share_nodes_if_they_must() {
    let mut fixture = fixture(4);
    let web = |at: u32| spread(of_app(single_pod(&format!("web-{at}")), "web", 1), "web", HOST);
    (0..4).for_each(|at| fixture.show(web(at), false));
    fixture.host.run_cycle();
    assert_eq!(seats(&fixture, "team/web").into_values().collect::<Vec<_>>(), [1, 1, 1, 1]);
    (4..10).for_each(|at| fixture.show(web(at), false));
    fixture.host.run_cycle();
    let mut shared: Vec<u32> = seats(&fixture, "team/web").into_values().collect();
    shared.sort_unstable();
    assert_eq!(shared, [2, 2, 3, 3]);
    // For the last ones only one node has room.
    fixture.show(of_app(single_pod("big"), "big", 5), false);
    (10..32).for_each(|at| fixture.show(web(at), false));
    fixture.host.run_cycle();
    assert_eq!(seats(&fixture, "team/").into_values().sum::<u32>(), 32 - 5 + 1);
}

#[tokio::test]
async fn a_gang_is_spread_over_nodes_and_zones_as_far_as_there_is_room() {
    for (key, expected) in [(HOST, [1, 1, 1, 1]), (ZONE, [0, 0, 2, 2])] {
        let mut fixture = fixture(4);
        fixture.show(job("train", 4), false);
        for at in 0..4 {
            let member = of_app(pod(&format!("train-{at}"), of_job("train")), "train", 1);
            fixture.show(spread(member, "train", key), false);
        }
        fixture.host.run_cycle();
        let there = seats(&fixture, TRAIN);
        let mut shared: Vec<u32> = there.values().copied().collect();
        shared.resize(4, 0);
        shared.sort_unstable();
        assert_eq!(shared, expected, "{key}: {there:?}");
    }
}

#[tokio::test]
async fn preferred_affinity_is_met_unless_the_node_has_no_room() {
    let mut fixture = fixture(4);
    fixture.see(on(of_app(single_pod("web"), "web", 1), "n2"));
    let near =
        |name: &str| with_preferred(of_app(single_pod(name), "db", 7), "podAffinity", "web", HOST);
    fixture.see(near("first"));
    assert_eq!(seats(&fixture, "team/first").into_keys().collect::<Vec<_>>(), ["n2"]);
    fixture.see(near("second"));
    assert_eq!(seats(&fixture, "team/second").len(), 1, "no room is no reason to wait");
}

#[tokio::test]
async fn preferred_anti_affinity_is_met_unless_no_other_node_has_room() {
    let mut fixture = fixture(2);
    fixture.see(on(of_app(single_pod("web"), "web", 1), "n0"));
    let away = |name: &str| {
        with_preferred(of_app(single_pod(name), "db", 7), "podAntiAffinity", "web", HOST)
    };
    fixture.see(away("first"));
    assert_eq!(seats(&fixture, "team/first").into_keys().collect::<Vec<_>>(), ["n1"]);
    fixture.see(away("second"));
    assert_eq!(seats(&fixture, "team/second").into_keys().collect::<Vec<_>>(), ["n0"]);
}

#[tokio::test]
async fn preferred_affinity_among_members_becomes_preferred_closeness() {
    for (key, level) in [(ZONE, "zone"), (HOST, "node")] {
        let mut fixture = fixture(0);
        fixture.show(job("train", 2), false);
        for at in 0..2 {
            let member = of_app(pod(&format!("train-{at}"), of_job("train")), "train", 1);
            fixture.show(with_preferred(member, "podAffinity", "train", key), false);
        }
        fixture.host.run_cycle();
        let closeness = fixture.gang(TRAIN).expect("a gang").1.spec.closeness.clone();
        assert_eq!(closeness, Some(Closeness::Preferred(level.into())));
    }
}

#[tokio::test]
async fn preferences_do_not_rebuild_a_gang_when_other_pods_change() {
    let mut fixture = fixture(0);
    let prefers_web =
        |name: &str| with_preferred(of_app(single_pod(name), "db", 1), "podAffinity", "web", HOST);
    fixture.see(spread(prefers_web("db"), "db", ZONE));
    assert_eq!(fixture.phase("team/db.pod"), Some(&Phase::Waiting));
    fixture.host.constraints.invalidate();
    assert_eq!(fixture.host.constraints.take_invalidated(), Vec::<std::sync::Arc<str>>::new());
    // It waits for room; the pod it prefers has been placed meanwhile, and counts once there is room.
    fixture.show(on(of_app(single_pod("web"), "web", 1), "n2"), false);
    (0..4).for_each(|at| fixture.show(node(&format!("n{at}")), false));
    fixture.host.run_cycle();
    assert_eq!(seats(&fixture, "team/db").into_keys().collect::<Vec<_>>(), ["n2"]);
}

#[tokio::test]
async fn preferences_neither_buy_nor_release_nodes() {
    let mut fixture = fixture(0);
    fixture.see(pool());
    fixture.show(job("train", 4), false);
    for at in 0..4 {
        let member = of_app(pod(&format!("train-{at}"), of_job("train")), "train", 4);
        let member = spread(member, "train", HOST);
        fixture.show(with_preferred(member, "podAntiAffinity", "web", HOST), false);
    }
    fixture.host.run_cycle();
    let claims = fixture.claims();
    assert_eq!(claims.len(), 2, "two on each of two nodes");
    let order = fixture.order(TRAIN);
    // A pod of its preferred anti-affinity is on one of its nodes.
    claims.iter().for_each(|id| fixture.show(claim(*id), false));
    fixture.show(bought_node(claims[0]), false);
    fixture.see(on(of_app(single_pod("web"), "web", 0), &format!("node-{}", claims[0])));
    assert_eq!((fixture.order(TRAIN), fixture.claims()), (order, claims.clone()));
    fixture.see(bought_node(claims[1]));
    assert_eq!(fixture.claims(), claims);
    assert_eq!(seats(&fixture, TRAIN).into_values().collect::<Vec<_>>(), [2, 2]);
}
