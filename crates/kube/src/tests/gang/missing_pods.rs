//! Incomplete gangs: their object is not observed yet, or pods are missing.

use muster_core::Event;
use muster_core::gang::Phase;
use muster_core::plan::{Action, StopReason};
use serde_json::{Value, json};

use crate::tests::fixture::HostFixture;
use crate::tests::objects::{node, of_job, pod, single_pod};
use crate::tests::schedule::cases::{TRAIN, on};
use crate::tests::schedule::seats::{assigned_to, member, running};

/// A pod that names its group by this label or annotation, and declares no more.
fn named(name: &str, kind: &str, mark: &str) -> Value {
    let mut pod = single_pod(name);
    pod["metadata"][kind] = json!({mark: "g"});
    pod
}

#[tokio::test]
async fn pods_observed_before_their_gang_wait_for_it() {
    let mut fixture = HostFixture::new();
    fixture.show(node("n0"), false);
    fixture.show(node("n1"), false);
    fixture.see(named("a", "annotations", "muster.sh/gang"));
    assert_eq!(fixture.phase("team/g"), None, "one of two pods was submitted as the whole gang");
    let blocked = fixture.host.gangs.get("team/g").and_then(|record| record.blocked.clone());
    assert!(blocked.expect("it has a reason").0.contains("how many"));
    fixture.see(json!({
        "apiVersion": "muster.sh/v1alpha1", "kind": "Gang",
        "metadata": {"name": "g", "namespace": "team", "uid": "g"},
        "spec": {"roles": [{"name": "member", "min": 2, "resources": {"nvidia.com/gpu": 8}}]},
    }));
    assert_eq!(fixture.phase("team/g"), None, "half of it was submitted");
    fixture.see(named("b", "annotations", "muster.sh/gang"));
    assert!(matches!(fixture.phase("team/g"), Some(Phase::Admitted { .. })));
}

#[tokio::test]
async fn pods_observed_before_their_pod_group_wait_for_it() {
    let mut fixture = HostFixture::new();
    fixture.show(node("n0"), false);
    fixture.show(node("n1"), false);
    let mark = "pod-group.scheduling.sigs.k8s.io";
    let name = "team/g.koordinator";
    fixture.see(named("a", "labels", mark));
    assert_eq!(fixture.phase(name), None, "one of two pods was submitted as the whole gang");
    fixture.show(named("b", "labels", mark), false);
    fixture.see(json!({"apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "team"}, "spec": {"minMember": 2}}));
    assert!(
        matches!(fixture.phase(name), Some(Phase::Admitted { .. })),
        "{:?}",
        fixture.phase(name)
    );
}

#[tokio::test]
async fn running_gang_goes_on_when_its_group_is_deleted() {
    let mut fixture = HostFixture::new();
    for name in ["a", "b"] {
        fixture.show(node(name), false);
        fixture.show(on(named(name, "annotations", "muster.sh/gang"), name), false);
    }
    fixture.host.run_cycle();
    assert!(matches!(fixture.phase("team/g"), Some(Phase::Running { .. })));
}

#[tokio::test]
async fn stopped_gang_keeps_its_place_while_its_pods_are_recreated() {
    let mut fixture = running(2);
    let (gang, _) = fixture.gang(TRAIN).expect("it runs");
    let lost = fixture.host.world.node_named("n0").expect("seen");
    let reason = StopReason::NodeFailing(lost);
    fixture.host.apply_event(&Event::Decided(Action::Stop { gang, reason }));
    for at in 0..2 {
        fixture.show(on(member(at), &format!("n{at}")), true);
    }
    fixture.host.run_cycle();
    assert_eq!(fixture.phase(TRAIN), Some(&Phase::Waiting), "its pods are missing");
    // Other gangs may use the capacity meanwhile.
    fixture.see(single_pod("other"));
    assert!(matches!(fixture.phase("team/other.pod"), Some(Phase::Admitted { .. })));
    fixture.see_gone(single_pod("other"));
    for at in 0..2 {
        fixture.show(pod(&format!("again-{at}"), of_job("train")), false);
    }
    fixture.host.run_cycle();
    let (id, known) = fixture.gang(TRAIN).expect("a gang");
    assert!(matches!(known.phase, Phase::Admitted { .. }), "{:?}", known.phase);
    assert_eq!((id, known.restarts), (gang, 1), "it is the same gang");
}

#[tokio::test]
async fn replaced_pod_of_the_same_name_is_assigned_a_node_too() {
    let mut fixture = HostFixture::new();
    fixture.show(node("n0"), false);
    fixture.see(single_pod("a"));
    let name = "team/a.pod";
    assert_eq!(assigned_to(&fixture, name, "a").as_deref(), Some("n0"));
    // It was deleted and recreated between two observations.
    let mut other = single_pod("a");
    other["metadata"]["uid"] = json!("another");
    other["spec"]["containers"][0]["resources"]["requests"]["cpu"] = json!("2");
    fixture.see(other);
    assert_eq!(assigned_to(&fixture, name, "a").as_deref(), Some("n0"));
    let (_, gang) = fixture.gang(name).expect("a gang");
    assert_eq!(gang.spec.roles[0].request.amounts.get("cpu"), Some(&2_000), "{:?}", gang.spec);
}
