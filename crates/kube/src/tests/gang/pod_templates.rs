//! Pods created from templates: which of them have failed, and which are recreated.

use std::collections::BTreeSet;

use muster_core::gang::Phase;
use serde_json::{Value, json};

use crate::cache::store::Key;
use crate::config::Config;
use crate::effects::outcome::Outcome;
use crate::tests::fixture::HostFixture;
use crate::tests::objects::{job, node, pool, single_pod};
use crate::tests::schedule::cases::on;

const TRAIN: &str = "team/train";

/// A Gang of two to three members, each on a node of its own.
fn gang() -> Value {
    json!({
        "apiVersion": "muster.sh/v1alpha1", "kind": "Gang",
        "metadata": {"name": "train", "namespace": "team", "uid": "train"},
        "spec": {"roles": [{
            "name": "worker", "min": 2, "max": 3, "resources": {"nvidia.com/gpu": 8},
            "template": {"spec": {"containers": [{"name": "worker"}]}},
        }]},
    })
}

fn member(at: u32) -> Value {
    let mut pod = single_pod(&format!("train-worker-{at}"));
    pod["metadata"]["labels"] = json!({
        "muster.sh/gang": "train", "muster.sh/role": "worker", "muster.sh/index": at.to_string(),
    });
    on(pod, &format!("n{at}"))
}

/// A deleted pod with the final phase that its kubelet reports before it is removed.
fn evicted(at: u32, phase: &str) -> Value {
    let mut pod = ended(at, phase);
    pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    pod
}

fn ended(at: u32, phase: &str) -> Value {
    let mut pod = member(at);
    pod["status"]["phase"] = json!(phase);
    pod
}

/// Three members run.
fn running() -> HostFixture {
    let mut fixture = HostFixture::new();
    fixture.show(gang(), false);
    for at in 0..3 {
        fixture.show(node(&format!("n{at}")), false);
        fixture.show(member(at), false);
    }
    fixture.host.run_cycle();
    assert!(
        matches!(fixture.phase(TRAIN), Some(Phase::Running { .. })),
        "{:?}",
        fixture.phase(TRAIN)
    );
    fixture
}

/// Pods that are being created, and pods that are being deleted.
fn creating_and_deleting<'a>(fixture: &'a HostFixture) -> (Vec<&'a str>, Vec<&'a str>) {
    let record = fixture.host.gangs.get(TRAIN).expect("a gang");
    let names = |keys: &'a BTreeSet<Key>| keys.iter().map(|key| &**key).collect();
    (names(&record.creating_pods), names(&record.deleting_pods))
}

#[tokio::test]
async fn evicted_member_has_not_failed_and_is_recreated() {
    for phase in ["Failed", "Succeeded"] {
        let mut fixture = running();
        fixture.see(evicted(2, phase));
        assert!(matches!(fixture.phase(TRAIN), Some(Phase::Running { .. })), "{phase}");
        assert_eq!(creating_and_deleting(&fixture), (vec![], vec![]), "{phase}: the others go on");
        fixture.see_gone(evicted(2, phase));
        assert_eq!(
            creating_and_deleting(&fixture),
            (vec!["team/train-worker-2"], vec![]),
            "{phase}"
        );
    }
}

#[tokio::test]
async fn gang_goes_on_when_all_members_were_evicted() {
    for phase in ["Failed", "Succeeded"] {
        let mut fixture = running();
        for at in 0..3 {
            fixture.see(evicted(at, phase));
        }
        assert!(fixture.phase(TRAIN).is_some(), "{phase}: it was treated as finished");
        for at in 0..3 {
            fixture.see_gone(evicted(at, phase));
        }
        assert!(fixture.phase(TRAIN).is_some(), "{phase}: it was treated as finished");
        assert_eq!(
            creating_and_deleting(&fixture).0,
            ["team/train-worker-0"],
            "{phase}: the first create is a probe"
        );
        fixture.see(waiting(0));
        let rest = ["team/train-worker-1", "team/train-worker-2"];
        assert_eq!(creating_and_deleting(&fixture).0, rest, "{phase}");
    }
}

#[tokio::test]
async fn evicted_pod_left_by_the_kubelet_is_deleted_and_recreated() {
    let mut fixture = running();
    let mut evicted = ended(1, "Failed");
    evicted["status"]["conditions"] =
        json!([{"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}]);
    fixture.see(evicted.clone());
    assert_eq!(
        creating_and_deleting(&fixture),
        (vec![], vec!["team/train-worker-1"]),
        "the others go on"
    );
    fixture.see_gone(evicted);
    assert_eq!(creating_and_deleting(&fixture), (vec!["team/train-worker-1"], vec![]));
}

#[tokio::test]
async fn failed_member_ends_its_gang() {
    let mut fixture = running();
    fixture.see(ended(0, "Failed"));
    let (made, gone) = creating_and_deleting(&fixture);
    assert!(made.is_empty(), "{made:?}");
    assert_eq!(gone, ["team/train-worker-1", "team/train-worker-2"]);
    // The final phases of the others, which are deleted, change nothing.
    fixture.see(evicted(1, "Failed"));
    fixture.see(evicted(2, "Failed"));
    assert_eq!(fixture.phase(TRAIN), None, "no pod is left");
    for at in 1..3 {
        fixture.see_gone(evicted(at, "Failed"));
    }
    assert!(creating_and_deleting(&fixture).0.is_empty(), "no pod is recreated");
}

#[tokio::test]
async fn no_pod_is_created_for_a_gang_that_is_being_deleted() {
    let mut fixture = running();
    let mut deleted = gang();
    deleted["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    deleted["metadata"]["finalizers"] = json!(["foregroundDeletion"]);
    fixture.see(deleted.clone());
    for at in 0..3 {
        fixture.see(evicted(at, "Failed"));
        fixture.see_gone(evicted(at, "Failed"));
    }
    assert_eq!(fixture.phase(TRAIN), None);
    assert!(fixture.host.gangs.get(TRAIN).is_none_or(|record| record.creating_pods.is_empty()));
    // Repeated events change nothing.
    fixture.see(deleted);
    assert!(fixture.host.gangs.get(TRAIN).is_none_or(|record| record.creating_pods.is_empty()));
}

#[tokio::test]
async fn members_are_created_after_a_probe_and_then_in_batches() {
    let mut fixture = HostFixture::new();
    let mut large = gang();
    large["spec"]["roles"][0]["max"] = json!(10_000);
    fixture.see(large);
    for expected in [1, 4, 16, 64, 256, 256] {
        let (made, _) = creating_and_deleting(&fixture);
        assert_eq!(made.len(), expected);
        let index = |name: &str| name.rsplit('-').next().and_then(|at| at.parse::<u32>().ok());
        let made: Vec<u32> = made.iter().filter_map(|name| index(name)).collect();
        made.into_iter().for_each(|at| fixture.show(waiting(at), false));
        fixture.host.run_cycle();
    }
}

#[tokio::test]
async fn refused_members_are_created_again_after_a_backoff() {
    let mut fixture = HostFixture::new();
    fixture.see(gang());
    let (gang, pod) = (TRAIN.into(), "team/train-worker-0".into());
    let why = "pod train-worker-0 cannot be created: refused: no".to_owned();
    fixture.handle_outcome(Outcome::PodCreateFailed { gang, pod, why });
    assert!(creating_and_deleting(&fixture).0.is_empty(), "it is created again at once");
    fixture.handle_outcome(Outcome::Requeue(TRAIN.into()));
    assert!(creating_and_deleting(&fixture).0.is_empty(), "its backoff is not over");
    // Its status has the reason, although no pod exists that could have it.
    let record = fixture.host.gangs.get(TRAIN).expect("a gang");
    assert!(fixture.host.has_no_created_pods(record));
    let (why, _) = record.blocked.clone().expect("it has a reason");
    assert!(why.contains("cannot be created"), "{why}");
}

#[tokio::test]
async fn gang_over_the_member_limit_has_the_reason_and_no_pods() {
    let mut fixture = HostFixture::new();
    let mut large = gang();
    large["spec"]["roles"][0]["max"] = json!(u64::MAX);
    large["spec"]["roles"].as_array_mut().expect("roles").push(gang()["spec"]["roles"][0].clone());
    fixture.see(large);
    assert!(creating_and_deleting(&fixture).0.is_empty());
    let record = fixture.host.gangs.get(TRAIN).expect("a gang");
    let (why, _) = record.blocked.clone().expect("it has a reason");
    assert!(why.contains("--max-gang-members"), "{why}");
    assert!(fixture.host.has_no_created_pods(record), "its status has the reason");
}

#[tokio::test]
async fn gangs_over_the_namespace_limit_wait_until_others_end() {
    let config = Config { max_gangs_per_namespace: 2, ..Config::default() };
    let mut fixture = HostFixture::with(&config);
    let name = |at: u32| format!("team/pod-{at}.pod");
    (0..3).for_each(|at| fixture.see(single_pod(&format!("pod-{at}"))));
    let known = |fixture: &HostFixture| -> Vec<bool> {
        (0..3).map(|at| fixture.phase(&name(at)).is_some()).collect()
    };
    assert_eq!(known(&fixture), [true, true, false]);
    let record = fixture.host.gangs.get(&name(2)).expect("it has a record");
    let (why, _) = record.blocked.clone().expect("it has a reason");
    assert!(why.contains("--max-gangs-per-namespace"), "{why}");
    // Another namespace has its own limit, and a gang with a bound pod is never left out.
    let mut other = single_pod("other");
    other["metadata"]["namespace"] = json!("elsewhere");
    fixture.see(other);
    assert!(fixture.phase("elsewhere/other.pod").is_some());
    fixture.see_gone(single_pod("pod-0"));
    fixture.host.gang_counts.checked_at = None;
    fixture.host.run_cycle();
    assert_eq!(known(&fixture), [false, true, true]);
    let mut next = HostFixture::with(&config);
    next.show(node("n0"), false);
    (0..2).for_each(|at| next.show(single_pod(&format!("pod-{at}")), false));
    next.see(on(single_pod("pod-2"), "n0"));
    assert!(next.phase(&name(2)).is_some(), "a running pod is left out");
}

/// A member that waits.
fn waiting(at: u32) -> Value {
    let mut pod = member(at);
    pod["spec"]["nodeName"] = json!(null);
    pod["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "muster.sh/v1alpha1", "kind": "Gang", "name": "train", "uid": "train",
        "controller": true,
    }]);
    pod
}

#[tokio::test]
async fn no_object_is_created_in_place_of_a_deleted_gang() {
    let mut fixture = HostFixture::new();
    fixture.show(gang(), false);
    for at in 0..3 {
        fixture.show(waiting(at), false);
    }
    fixture.host.run_cycle();
    assert_eq!(fixture.phase(TRAIN), Some(&Phase::Waiting));
    fixture.see_gone(gang());
    assert_eq!(fixture.phase(TRAIN), None, "it is still planned");
    assert!(
        fixture.host.generated_gang_object(TRAIN).is_none(),
        "a user who creates it again would write into Muster's object"
    );
    // Nor by a new leader that has never observed the Gang.
    let mut next = HostFixture::new();
    for at in 0..3 {
        next.show(waiting(at), false);
    }
    next.host.run_cycle();
    assert_eq!(next.phase(TRAIN), None);
    // It goes on when the Gang exists again.
    for at in 0..3 {
        fixture.show(waiting(at), false);
    }
    fixture.see(gang());
    assert_eq!(fixture.phase(TRAIN), Some(&Phase::Waiting));
}

/// A suspended Job that waits to be admitted.
fn suspended(pods: u32) -> Value {
    let mut held = job("train", pods);
    held["spec"]["suspend"] = json!(true);
    held["metadata"]["annotations"] = json!({"muster.sh/admit": "unsuspend"});
    held
}

#[tokio::test]
async fn no_order_for_a_suspended_job_that_is_being_deleted() {
    let mut fixture = HostFixture::new();
    fixture.see(pool());
    fixture.see(suspended(2));
    assert!(fixture.order("team/train.job").is_some(), "{:?}", fixture.phase("team/train.job"));
    let mut deleted = suspended(2);
    deleted["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    fixture.see(deleted);
    assert_eq!(fixture.phase("team/train.job"), None);
    assert!(fixture.host.world.orders().is_empty());
}

#[tokio::test]
async fn suspended_job_over_the_member_limit_has_the_reason() {
    let mut fixture = HostFixture::new();
    fixture.see(suspended(1_000_000));
    assert_eq!(fixture.phase("team/train.job"), None);
    let record = fixture.host.gangs.get("team/train.job").expect("a gang");
    let (why, _) = record.blocked.clone().expect("it has a reason");
    assert!(why.contains("1000000 members"), "{why}");
}
