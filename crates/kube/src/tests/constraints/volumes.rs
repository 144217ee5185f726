//! Static PersistentVolumes for claims with `WaitForFirstConsumer`, and attach limits of nodes.

use std::collections::BTreeMap;

use muster_core::gang::Phase;
use muster_core::time::Span;
use serde_json::{Value, json};

use crate::config::Config;
use crate::constraints::volumes::binding::VolumeBinding;
use crate::effects::outcome::Outcome;
use crate::tests::fixture::HostFixture;
use crate::tests::objects::{job, node, of_job, pod, single_pod};
use crate::tests::schedule::cases::{TRAIN, on};
use crate::tests::schedule::seats::{assigned_to, seats};

const HOST: &str = "kubernetes.io/hostname";

fn class() -> Value {
    json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "local"},
        "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer",
    })
}

/// A volume of so many gigabytes that only one node reaches.
fn volume(name: &str, on: &str, size: u32) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name, "uid": name},
        "spec": {
            "storageClassName": "local", "capacity": {"storage": format!("{size}Gi")},
            "accessModes": ["ReadWriteOnce"],
            "nodeAffinity": {"required": {"nodeSelectorTerms": [
                {"matchExpressions": [{"key": HOST, "operator": "In", "values": [on]}]},
            ]}},
        },
        "status": {"phase": "Available"},
    })
}

/// The same with a claim ref.
fn with_claim_ref(mut volume: Value, claim: &str) -> Value {
    volume["spec"]["claimRef"] = json!({"namespace": "team", "name": claim, "uid": claim});
    volume
}

fn claim(name: &str, size: u32) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "team", "uid": name},
        "spec": {
            "storageClassName": "local", "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": format!("{size}Gi")}},
        },
    })
}

/// The same when it is bound to a volume.
fn bound_to(mut claim: Value, volume: &str) -> Value {
    claim["metadata"]["annotations"] = json!({"pv.kubernetes.io/bind-completed": "yes"});
    claim["spec"]["volumeName"] = json!(volume);
    claim
}

/// A pod with one GPU that uses claims.
fn using(mut pod: Value, claims: &[&str]) -> Value {
    let volume = |name: &&str| json!({"name": name, "persistentVolumeClaim": {"claimName": name}});
    pod["spec"]["volumes"] = claims.iter().map(volume).collect();
    let one = json!({"nvidia.com/gpu": "1"});
    pod["spec"]["containers"][0]["resources"] = json!({"limits": one, "requests": one});
    pod
}

/// A cluster of so many nodes with these volumes: name, node and size.
fn cluster(nodes: u32, volumes: &[(&str, &str, u32)]) -> HostFixture {
    cluster_with(&Config::default(), nodes, volumes)
}

fn cluster_with(config: &Config, nodes: u32, volumes: &[(&str, &str, u32)]) -> HostFixture {
    let mut fixture = HostFixture::with(config);
    fixture.show(class(), false);
    (0..nodes).for_each(|at| fixture.show(node(&format!("n{at}")), false));
    for (name, on, size) in volumes {
        fixture.show(volume(name, on, *size), false);
    }
    fixture
}

/// The Job `train` of so many pods, each with a claim of its own for ten gigabytes: `train-0`, ...
fn train(fixture: &mut HostFixture, pods: u32) {
    fixture.show(job("train", pods), false);
    for at in 0..pods {
        let name = format!("train-{at}");
        fixture.show(claim(&name, 10), false);
        fixture.show(using(pod(&name, of_job("train")), &[&name]), false);
    }
    fixture.host.run_cycle();
}

/// The nodes that a gang has seats on, one for each member.
fn places(fixture: &HostFixture, gang: &str) -> Vec<String> {
    let Some((_, gang)) = fixture.gang(gang) else { return Vec::new() };
    let on = |seat: &muster_core::gang::Seat| {
        let name = fixture.host.world.node_name(seat.node).expect("seen").to_string();
        vec![name; usize::from(seat.members)]
    };
    let mut places: Vec<String> = gang.seats.iter().flat_map(on).collect();
    places.sort();
    places
}

/// The static volumes chosen for claims.
fn chosen(fixture: &HostFixture, gang: &str) -> BTreeMap<String, String> {
    let binding = fixture.host.gangs.get(gang).and_then(|group| group.volume_binding.as_ref());
    binding.map(VolumeBinding::chosen).unwrap_or_default()
}

#[tokio::test]
async fn members_go_where_static_volumes_are_and_are_bound_after_claims() {
    let volumes = [("v1", "n1", 10), ("v2", "n2", 10), ("v3", "n3", 10)];
    let mut fixture = cluster(4, &volumes);
    train(&mut fixture, 3);
    assert_eq!(places(&fixture, TRAIN), ["n1", "n2", "n3"]);
    assert_eq!(chosen(&fixture, TRAIN), BTreeMap::new(), "its placement is not written yet");
    fixture.handle_outcome(Outcome::PlacementWritten(TRAIN.into()));
    let chosen = chosen(&fixture, TRAIN);
    assert_eq!(chosen.values().collect::<Vec<_>>().len(), 3, "{chosen:?}");
    for at in 0..3 {
        let (name, all) = (format!("train-{at}"), assigned_to(&fixture, TRAIN, "train-0"));
        assert_eq!(all, None, "no pod is bound before all claims are bound");
        let of = chosen[&format!("team/{name}")].clone();
        let (_, on, size) = volumes.into_iter().find(|(of_it, ..)| *of_it == of).expect("one");
        fixture.see(with_claim_ref(volume(&of, on, size), &name));
        fixture.see(bound_to(claim(&name, 10), &of));
    }
    for at in 0..3 {
        let on = assigned_to(&fixture, TRAIN, &format!("train-{at}")).expect("bound");
        let of = &chosen[&format!("team/train-{at}")];
        assert_eq!(*of, on.replace('n', "v"), "each goes where its volume is");
    }
}

#[tokio::test]
async fn a_node_takes_as_many_members_as_it_has_large_enough_volumes() {
    let volumes = [("a", "n0", 10), ("b", "n0", 20), ("c", "n0", 5), ("d", "n1", 10)];
    let mut fixture = cluster(2, &volumes);
    train(&mut fixture, 3);
    assert_eq!(places(&fixture, TRAIN), ["n0", "n0", "n1"]);
    // With one volume less the gang does not fit, and gets no seats.
    let mut fixture = cluster(2, &volumes[1..]);
    train(&mut fixture, 3);
    assert_eq!(seats(&fixture, TRAIN), 0);
    fixture.see(volume("e", "n1", 10));
    assert_eq!(places(&fixture, TRAIN), ["n0", "n1", "n1"]);
}

#[tokio::test]
async fn a_member_with_two_claims_gets_the_smallest_matching_volumes() {
    let mut fixture = cluster(2, &[("a", "n0", 100), ("b", "n1", 50), ("c", "n1", 100)]);
    fixture.show(claim("small", 10), false);
    fixture.show(claim("large", 60), false);
    fixture.see(using(single_pod("one"), &["small", "large"]));
    let name = "team/one.pod";
    assert_eq!(places(&fixture, name), ["n1"]);
    let chosen = chosen(&fixture, name);
    assert_eq!((&*chosen["team/small"], &*chosen["team/large"]), ("b", "c"));
}

#[tokio::test]
async fn a_static_volume_is_bound_to_one_claim() {
    let mut fixture = cluster(1, &[("a", "n0", 10)]);
    for name in ["one", "two"] {
        fixture.show(claim(name, if name == "one" { 10 } else { 5 }), false);
        fixture.show(using(single_pod(name), &[name]), false);
    }
    fixture.host.run_cycle();
    let held: Vec<&str> = ["one", "two"]
        .into_iter()
        .filter(|pod| seats(&fixture, &format!("team/{pod}.pod")) > 0)
        .collect();
    assert_eq!(held.len(), 1, "{held:?}");
    let (first, second) = if held == ["one"] { ("one", "two") } else { ("two", "one") };
    let (gang, other) = (format!("team/{first}.pod"), format!("team/{second}.pod"));
    assert_eq!(chosen(&fixture, &gang)[&format!("team/{first}")], "a");
    let size = if first == "one" { 10 } else { 5 };
    fixture.see(with_claim_ref(volume("a", "n0", 10), first));
    fixture.see(bound_to(claim(first, size), "a"));
    assert_eq!(assigned_to(&fixture, &gang, first).as_deref(), Some("n0"));
    fixture.see(on(using(single_pod(first), &[first]), "n0"));
    assert_eq!(seats(&fixture, &other), 0);
    // The claim stays bound when its pod is gone; the volume is free again when its claim ref is removed.
    fixture.see_gone(on(using(single_pod(first), &[first]), "n0"));
    assert_eq!(seats(&fixture, &other), 0, "the volume has a claim ref");
    fixture.see(volume("a", "n0", 10));
    assert_eq!(seats(&fixture, &other), 1);
}

#[tokio::test]
async fn volume_binding_timeout_releases_volumes_and_the_gang_starts_over() {
    let config = Config { volume_binding_timeout: Span::ZERO, ..Config::default() };
    let mut fixture = cluster_with(&config, 2, &[("a", "n0", 10), ("b", "n1", 10)]);
    train(&mut fixture, 2);
    fixture.handle_outcome(Outcome::PlacementWritten(TRAIN.into()));
    fixture.host.run_cycle();
    assert_eq!(
        fixture.phase(TRAIN).map(|phase| matches!(phase, Phase::Running { .. })),
        Some(false)
    );
    assert!(
        fixture.host.gangs.get(TRAIN).expect("a gang").volume_binding.is_none(),
        "it still waits"
    );
    // Another claim has one of them by the time the next placement is written: then it takes neither.
    fixture.see(with_claim_ref(volume("b", "n1", 10), "other"));
    fixture.host.config.volume_binding_timeout = Span::mins(1);
    fixture.handle_outcome(Outcome::PlacementWritten(TRAIN.into()));
    let binding = fixture.host.gangs.get(TRAIN).and_then(|group| group.volume_binding.as_ref());
    assert!(binding.is_some_and(|binding| binding.chosen().is_empty()), "{binding:?}");
    fixture.host.config.volume_binding_timeout = Span::ZERO;
    fixture.host.run_cycle();
    assert_eq!(seats(&fixture, TRAIN), 0);
}

/// The Gang object with a written placement.
fn recorded(nodes: &[&str]) -> Value {
    let seat = |node: &&str| json!({"role": "worker", "node": node, "members": 1});
    json!({
        "apiVersion": "muster.sh/v1alpha1", "kind": "Gang",
        "metadata": {"name": "train.job", "namespace": "team",
            "labels": {"app.kubernetes.io/managed-by": "muster"}},
        "spec": {"roles": []},
        "status": {"phase": "Admitted", "placement": nodes.iter().map(seat).collect::<Vec<_>>()},
    })
}

#[tokio::test]
async fn a_new_leader_keeps_written_claim_refs_and_chooses_the_rest() {
    let mut fixture = cluster(4, &[("v1", "n1", 10), ("v2", "n2", 10), ("v4", "n0", 10)]);
    // The previous leader had written one of three claim refs, that of the last claim.
    fixture.show(with_claim_ref(volume("v3", "n3", 10), "train-2"), false);
    fixture.show(recorded(&["n1", "n2", "n3"]), false);
    train(&mut fixture, 3);
    assert_eq!(places(&fixture, TRAIN), ["n1", "n2", "n3"]);
    let chosen = chosen(&fixture, TRAIN);
    let mut taken: Vec<&str> = chosen.values().map(String::as_str).collect();
    taken.sort_unstable();
    assert_eq!(taken, ["v1", "v2"], "{chosen:?}");
    assert!(!chosen.contains_key("team/train-2"), "it has one");
    // No other gang gets those volumes.
    fixture.show(claim("other", 10), false);
    fixture.show(claim("late", 10), false);
    fixture.see(using(single_pod("other"), &["other"]));
    fixture.see(using(single_pod("late"), &["late"]));
    assert_eq!(places(&fixture, "team/other.pod"), ["n0"]);
    assert_eq!(seats(&fixture, "team/late.pod"), 0);
}

#[tokio::test]
async fn a_volume_that_several_nodes_reach_is_bound_to_one_claim() {
    let mut fixture = cluster(2, &[]);
    let reachable_everywhere = |name: &str| {
        let mut reachable_everywhere = volume(name, "n0", 10);
        reachable_everywhere["spec"]["nodeAffinity"] = Value::Null;
        reachable_everywhere
    };
    fixture.show(reachable_everywhere("a"), false);
    for name in ["one", "two"] {
        fixture.show(claim(name, 10), false);
        fixture.show(using(single_pod(name), &[name]), false);
    }
    fixture.host.run_cycle();
    let count =
        |fixture: &HostFixture| seats(fixture, "team/one.pod") + seats(fixture, "team/two.pod");
    assert_eq!(count(&fixture), 1, "one volume, two claims");
    fixture.see(reachable_everywhere("b"));
    assert_eq!(count(&fixture), 2);
}

#[tokio::test]
async fn a_claim_gets_a_matching_static_volume_before_provisioning() {
    let mut fixture = cluster(1, &[("a", "n0", 10)]);
    let mut late = class();
    late["provisioner"] = json!("example.com/disks");
    fixture.show(late, false);
    fixture.show(claim("one", 10), false);
    fixture.see(using(single_pod("one"), &["one"]));
    assert_eq!(chosen(&fixture, "team/one.pod")["team/one"], "a");
    fixture.show(claim("two", 10), false);
    fixture.see(using(single_pod("two"), &["two"]));
    assert_eq!(seats(&fixture, "team/two.pod"), 1, "it is provisioned where it goes");
    assert_eq!(chosen(&fixture, "team/two.pod"), BTreeMap::new());
}

/// A claim that is bound to a volume of a CSI driver.
fn attached(fixture: &mut HostFixture, name: &str) {
    let mut volume = with_claim_ref(volume(&format!("pv-{name}"), "n0", 10), name);
    volume["spec"]["nodeAffinity"] = Value::Null;
    volume["spec"]["csi"] = json!({"driver": "example.com", "volumeHandle": name});
    fixture.show(volume, false);
    fixture.show(bound_to(claim(name, 10), &format!("pv-{name}")), false);
}

fn limit(node: &str, count: u32) -> Value {
    json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": node},
        "spec": {"drivers": [
            {"name": "example.com", "nodeID": node, "allocatable": {"count": count}},
        ]},
    })
}

#[tokio::test]
async fn a_node_attaches_no_more_volumes_than_its_limit() {
    let mut fixture = cluster(2, &[]);
    fixture.show(limit("n0", 2), false);
    fixture.show(limit("n1", 0), false);
    ["x", "y", "z", "foreign"].iter().for_each(|name| attached(&mut fixture, name));
    let mut foreign = on(using(single_pod("foreign"), &["foreign"]), "n0");
    foreign["spec"]["schedulerName"] = json!("other");
    fixture.see(foreign.clone());
    fixture.see(using(single_pod("x"), &["x"]));
    assert_eq!(places(&fixture, "team/x.pod"), ["n0"]);
    fixture.see(using(single_pod("y"), &["y"]));
    assert_eq!(seats(&fixture, "team/y.pod"), 0, "two are there");
    // Another pod with a volume that is attached already takes nothing.
    fixture.see(using(single_pod("again"), &["x"]));
    assert_eq!(places(&fixture, "team/again.pod"), ["n0"]);
    fixture.see_gone(foreign);
    assert_eq!(places(&fixture, "team/y.pod"), ["n0"]);
    fixture.see(using(single_pod("z"), &["z"]));
    assert_eq!(seats(&fixture, "team/z.pod"), 0);
    fixture.see(limit("n1", 1));
    assert_eq!(places(&fixture, "team/z.pod"), ["n1"]);
}

#[tokio::test]
async fn a_volume_shared_by_members_counts_once_per_node() {
    let mut fixture = cluster(1, &[]);
    fixture.show(limit("n0", 3), false);
    ["data", "train-0", "train-1", "more"].iter().for_each(|name| attached(&mut fixture, name));
    fixture.show(job("train", 2), false);
    for at in 0..2 {
        let name = format!("train-{at}");
        fixture.show(using(pod(&name, of_job("train")), &["data", &name]), false);
    }
    fixture.host.run_cycle();
    assert_eq!(places(&fixture, TRAIN), ["n0", "n0"], "two of their own and one for both");
    fixture.see(using(single_pod("more"), &["more"]));
    assert_eq!(seats(&fixture, "team/more.pod"), 0);
    // With a limit of two they do not fit, although each alone would.
    let mut fixture = cluster(1, &[]);
    fixture.show(limit("n0", 2), false);
    ["data", "train-0", "train-1"].iter().for_each(|name| attached(&mut fixture, name));
    fixture.show(job("train", 2), false);
    for at in 0..2 {
        let name = format!("train-{at}");
        fixture.show(using(pod(&name, of_job("train")), &["data", &name]), false);
    }
    fixture.host.run_cycle();
    assert_eq!(seats(&fixture, TRAIN), 0);
}
