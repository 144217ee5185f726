//! Gangs that are not all there: their object is not seen yet, or their pods are away.

use muster_core::Event;
use muster_core::gang::Phase;
use muster_core::plan::{Action, StopReason};
use serde_json::{Value, json};

use crate::tests::fixture::HostFixture;
use crate::tests::objects::{alone, node, of_job, pod};
use crate::tests::schedule::cases::{TRAIN, on};
use crate::tests::schedule::seats::{member, running, told};

/// A pod that names its group by this mark, and says no more.
fn named(name: &str, kind: &str, mark: &str) -> Value {
    let mut pod = alone(name);
    pod["metadata"][kind] = json!({mark: "g"});
    pod
}

#[tokio::test]
async fn pods_that_are_seen_before_their_gang_wait_for_it() {
    let mut stage = HostFixture::new();
    stage.show(node("n0"), false);
    stage.show(node("n1"), false);
    stage.see(named("a", "annotations", "muster.sh/gang"));
    assert_eq!(stage.phase("team/g"), None, "one of two was taken for all");
    let trouble = stage.host.gangs.get("team/g").and_then(|record| record.blocked.clone());
    assert!(trouble.expect("it is said").0.contains("how many"));
    stage.see(json!({
        "apiVersion": "muster.sh/v1alpha1", "kind": "Gang",
        "metadata": {"name": "g", "namespace": "team", "uid": "g"},
        "spec": {"roles": [{"name": "member", "min": 2, "resources": {"nvidia.com/gpu": 8}}]},
    }));
    assert_eq!(stage.phase("team/g"), None, "half of it was taken in");
    stage.see(named("b", "annotations", "muster.sh/gang"));
    assert!(matches!(stage.phase("team/g"), Some(Phase::Admitted { .. })));
}

#[tokio::test]
async fn pods_that_are_seen_before_their_pod_group_wait_for_it() {
    let mut stage = HostFixture::new();
    stage.show(node("n0"), false);
    stage.show(node("n1"), false);
    let mark = "pod-group.scheduling.sigs.k8s.io";
    let name = "team/g.koordinator";
    stage.see(named("a", "labels", mark));
    assert_eq!(stage.phase(name), None, "one of two was taken for all");
    stage.show(named("b", "labels", mark), false);
    stage.see(json!({"apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "team"}, "spec": {"minMember": 2}}));
    assert!(matches!(stage.phase(name), Some(Phase::Admitted { .. })), "{:?}", stage.phase(name));
}

#[tokio::test]
async fn a_gang_that_runs_goes_on_when_its_group_is_removed() {
    let mut stage = HostFixture::new();
    for name in ["a", "b"] {
        stage.show(node(name), false);
        stage.show(on(named(name, "annotations", "muster.sh/gang"), name), false);
    }
    stage.host.turn();
    assert!(matches!(stage.phase("team/g"), Some(Phase::Running { .. })));
}

#[tokio::test]
async fn a_gang_keeps_its_place_while_its_pods_are_made_again() {
    let mut stage = running(2);
    let (gang, _) = stage.gang(TRAIN).expect("it runs");
    let lost = stage.host.world.node_named("n0").expect("seen");
    let reason = StopReason::NodeFailing(lost);
    stage.host.apply_event(&Event::Decided(Action::Stop { gang, reason }));
    for at in 0..2 {
        stage.show(on(member(at), &format!("n{at}")), true);
    }
    stage.host.turn();
    assert_eq!(stage.phase(TRAIN), Some(&Phase::Waiting), "its pods are away");
    // Others may have the room meanwhile.
    stage.see(alone("other"));
    assert!(matches!(stage.phase("team/other.pod"), Some(Phase::Admitted { .. })));
    stage.see_gone(alone("other"));
    for at in 0..2 {
        stage.show(pod(&format!("again-{at}"), of_job("train")), false);
    }
    stage.host.turn();
    let (id, known) = stage.gang(TRAIN).expect("a gang");
    assert!(matches!(known.phase, Phase::Admitted { .. }), "{:?}", known.phase);
    assert_eq!((id, known.restarts), (gang, 1), "it is the gang it was");
}

#[tokio::test]
async fn another_pod_of_the_same_name_is_told_its_node_too() {
    let mut stage = HostFixture::new();
    stage.show(node("n0"), false);
    stage.see(alone("a"));
    let name = "team/a.pod";
    assert_eq!(told(&stage, name, "a").as_deref(), Some("n0"));
    // It went and came while nobody looked.
    let mut other = alone("a");
    other["metadata"]["uid"] = json!("another");
    other["spec"]["containers"][0]["resources"]["requests"]["cpu"] = json!("2");
    stage.see(other);
    assert_eq!(told(&stage, name, "a").as_deref(), Some("n0"));
    let (_, gang) = stage.gang(name).expect("a gang");
    assert_eq!(gang.spec.roles[0].request.amounts.get("cpu"), Some(&2_000), "{:?}", gang.spec);
}
