//! Members that are made of templates: which of them have failed, and which are made again.

use std::collections::BTreeSet;

use muster_core::gang::Phase;
use serde_json::{Value, json};

use crate::cache::store::Key;
use crate::effects::outcome::Outcome;
use crate::run::Config;
use crate::tests::fixture::HostFixture;
use crate::tests::objects::{alone, job, node, pool};
use crate::tests::schedule::cases::on;

const TRAIN: &str = "team/train";

/// A Gang of two members that may be three, each with a node of its own.
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
    let mut pod = alone(&format!("train-worker-{at}"));
    pod["metadata"]["labels"] = json!({
        "muster.sh/gang": "train", "muster.sh/role": "worker", "muster.sh/index": at.to_string(),
    });
    on(pod, &format!("n{at}"))
}

/// As a kubelet shows a pod that was deleted, before it is removed.
fn sent_away(at: u32, phase: &str) -> Value {
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
    let mut stage = HostFixture::new();
    stage.show(gang(), false);
    for at in 0..3 {
        stage.show(node(&format!("n{at}")), false);
        stage.show(member(at), false);
    }
    stage.host.turn();
    assert!(matches!(stage.phase(TRAIN), Some(Phase::Running { .. })), "{:?}", stage.phase(TRAIN));
    stage
}

/// Pods that are being made, and pods that are told to go.
fn made_and_ended<'a>(stage: &'a HostFixture) -> (Vec<&'a str>, Vec<&'a str>) {
    let record = stage.host.gangs.get(TRAIN).expect("a gang");
    let names = |keys: &'a BTreeSet<Key>| keys.iter().map(|key| &**key).collect();
    (names(&record.creating_pods), names(&record.deleting_pods))
}

#[tokio::test]
async fn a_member_that_was_sent_away_has_not_failed_and_is_made_again() {
    for phase in ["Failed", "Succeeded"] {
        let mut stage = running();
        stage.see(sent_away(2, phase));
        assert!(matches!(stage.phase(TRAIN), Some(Phase::Running { .. })), "{phase}");
        assert_eq!(made_and_ended(&stage), (vec![], vec![]), "{phase}: the others go on");
        stage.see_gone(sent_away(2, phase));
        assert_eq!(made_and_ended(&stage), (vec!["team/train-worker-2"], vec![]), "{phase}");
    }
}

#[tokio::test]
async fn a_gang_all_of_whose_members_were_sent_away_goes_on() {
    for phase in ["Failed", "Succeeded"] {
        let mut stage = running();
        for at in 0..3 {
            stage.see(sent_away(at, phase));
        }
        assert!(stage.phase(TRAIN).is_some(), "{phase}: it was taken for done");
        for at in 0..3 {
            stage.see_gone(sent_away(at, phase));
        }
        assert!(stage.phase(TRAIN).is_some(), "{phase}: it was taken for done");
        assert_eq!(
            made_and_ended(&stage).0,
            ["team/train-worker-0"],
            "{phase}: one is tried first"
        );
        stage.see(waiting(0));
        let rest = ["team/train-worker-1", "team/train-worker-2"];
        assert_eq!(made_and_ended(&stage).0, rest, "{phase}");
    }
}

#[tokio::test]
async fn a_member_that_was_evicted_and_left_lying_is_removed_and_made_again() {
    let mut stage = running();
    let mut evicted = ended(1, "Failed");
    evicted["status"]["conditions"] =
        json!([{"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}]);
    stage.see(evicted.clone());
    assert_eq!(made_and_ended(&stage), (vec![], vec!["team/train-worker-1"]), "the others go on");
    stage.see_gone(evicted);
    assert_eq!(made_and_ended(&stage), (vec!["team/train-worker-1"], vec![]));
}

#[tokio::test]
async fn a_member_that_fails_by_itself_ends_its_gang() {
    let mut stage = running();
    stage.see(ended(0, "Failed"));
    let (made, gone) = made_and_ended(&stage);
    assert!(made.is_empty(), "{made:?}");
    assert_eq!(gone, ["team/train-worker-1", "team/train-worker-2"]);
    // What the others say when they are told to go changes nothing.
    stage.see(sent_away(1, "Failed"));
    stage.see(sent_away(2, "Failed"));
    assert_eq!(stage.phase(TRAIN), None, "nobody is left");
    for at in 1..3 {
        stage.see_gone(sent_away(at, "Failed"));
    }
    assert!(made_and_ended(&stage).0.is_empty(), "nobody is made again");
}

#[tokio::test]
async fn nobody_is_made_for_a_gang_that_is_being_deleted() {
    let mut stage = running();
    let mut deleted = gang();
    deleted["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    deleted["metadata"]["finalizers"] = json!(["foregroundDeletion"]);
    stage.see(deleted.clone());
    for at in 0..3 {
        stage.see(sent_away(at, "Failed"));
        stage.see_gone(sent_away(at, "Failed"));
    }
    assert_eq!(stage.phase(TRAIN), None);
    assert!(stage.host.gangs.get(TRAIN).is_none_or(|record| record.creating_pods.is_empty()));
    // One that comes again and again changes nothing.
    stage.see(deleted);
    assert!(stage.host.gangs.get(TRAIN).is_none_or(|record| record.creating_pods.is_empty()));
}

#[tokio::test]
async fn members_are_made_one_at_first_and_then_some_at_a_time() {
    let mut stage = HostFixture::new();
    let mut large = gang();
    large["spec"]["roles"][0]["max"] = json!(10_000);
    stage.see(large);
    for expected in [1, 4, 16, 64, 256, 256] {
        let (made, _) = made_and_ended(&stage);
        assert_eq!(made.len(), expected);
        let index = |name: &str| name.rsplit('-').next().and_then(|at| at.parse::<u32>().ok());
        let made: Vec<u32> = made.iter().filter_map(|name| index(name)).collect();
        made.into_iter().for_each(|at| stage.show(waiting(at), false));
        stage.host.turn();
    }
}

#[tokio::test]
async fn members_that_are_refused_are_made_again_after_a_pause() {
    let mut stage = HostFixture::new();
    stage.see(gang());
    let (gang, pod) = (TRAIN.into(), "team/train-worker-0".into());
    let why = "pod train-worker-0 cannot be made: refused: no".to_owned();
    stage.handle_outcome(Outcome::PodCreateFailed { gang, pod, why });
    assert!(made_and_ended(&stage).0.is_empty(), "it is made again at once");
    stage.handle_outcome(Outcome::Requeue(TRAIN.into()));
    assert!(made_and_ended(&stage).0.is_empty(), "its pause is not over");
    // Its owner is told, although there is no pod to tell.
    let record = stage.host.gangs.get(TRAIN).expect("a gang");
    assert!(stage.host.has_no_created_pods(record));
    let (why, _) = record.blocked.clone().expect("it is said");
    assert!(why.contains("cannot be made"), "{why}");
}

#[tokio::test]
async fn a_gang_of_too_many_members_is_told_so_and_none_is_made() {
    let mut stage = HostFixture::new();
    let mut large = gang();
    large["spec"]["roles"][0]["max"] = json!(u64::MAX);
    large["spec"]["roles"].as_array_mut().expect("roles").push(gang()["spec"]["roles"][0].clone());
    stage.see(large);
    assert!(made_and_ended(&stage).0.is_empty());
    let record = stage.host.gangs.get(TRAIN).expect("a gang");
    let (why, _) = record.blocked.clone().expect("it is said");
    assert!(why.contains("--max-gang-members"), "{why}");
    assert!(stage.host.has_no_created_pods(record), "its owner is told");
}

#[tokio::test]
async fn gangs_beyond_the_bound_of_their_namespace_wait_and_come_in_when_others_end() {
    let config = Config { max_gangs_per_namespace: 2, ..Config::default() };
    let mut stage = HostFixture::with(&config);
    let name = |at: u32| format!("team/pod-{at}.pod");
    (0..3).for_each(|at| stage.see(alone(&format!("pod-{at}"))));
    let known = |stage: &HostFixture| -> Vec<bool> {
        (0..3).map(|at| stage.phase(&name(at)).is_some()).collect()
    };
    assert_eq!(known(&stage), [true, true, false]);
    let record = stage.host.gangs.get(&name(2)).expect("it is known of");
    let (why, _) = record.blocked.clone().expect("it is said");
    assert!(why.contains("--max-gangs-per-namespace"), "{why}");
    // Another namespace has its own bound, and one that has a node is never left out.
    let mut other = alone("other");
    other["metadata"]["namespace"] = json!("elsewhere");
    stage.see(other);
    assert!(stage.phase("elsewhere/other.pod").is_some());
    stage.see_gone(alone("pod-0"));
    stage.host.gang_counts.looked = None;
    stage.host.turn();
    assert_eq!(known(&stage), [false, true, true]);
    let mut next = HostFixture::with(&config);
    next.show(node("n0"), false);
    (0..2).for_each(|at| next.show(alone(&format!("pod-{at}")), false));
    next.see(on(alone("pod-2"), "n0"));
    assert!(next.phase(&name(2)).is_some(), "a pod that runs is left out");
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
async fn nothing_takes_the_place_of_a_gang_that_was_deleted() {
    let mut stage = HostFixture::new();
    stage.show(gang(), false);
    for at in 0..3 {
        stage.show(waiting(at), false);
    }
    stage.host.turn();
    assert_eq!(stage.phase(TRAIN), Some(&Phase::Waiting));
    stage.see_gone(gang());
    assert_eq!(stage.phase(TRAIN), None, "it is planned for nobody");
    assert!(stage.host.gang_object(TRAIN).is_none(), "who writes it again writes into another");
    // Nor for who leads next and has never seen it.
    let mut next = HostFixture::new();
    for at in 0..3 {
        next.show(waiting(at), false);
    }
    next.host.turn();
    assert_eq!(next.phase(TRAIN), None);
    // It goes on when it is there again.
    for at in 0..3 {
        stage.show(waiting(at), false);
    }
    stage.see(gang());
    assert_eq!(stage.phase(TRAIN), Some(&Phase::Waiting));
}

/// A Job that waits to be let run.
fn suspended(pods: u32) -> Value {
    let mut held = job("train", pods);
    held["spec"]["suspend"] = json!(true);
    held["metadata"]["annotations"] = json!({"muster.sh/admit": "unsuspend"});
    held
}

#[tokio::test]
async fn nothing_is_bought_for_a_job_that_is_being_deleted() {
    let mut stage = HostFixture::new();
    stage.see(pool());
    stage.see(suspended(2));
    assert!(stage.order("team/train.job").is_some(), "{:?}", stage.phase("team/train.job"));
    let mut deleted = suspended(2);
    deleted["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    stage.see(deleted);
    assert_eq!(stage.phase("team/train.job"), None);
    assert!(stage.host.world.orders().is_empty());
}

#[tokio::test]
async fn a_job_of_more_pods_than_anybody_has_is_told_so() {
    let mut stage = HostFixture::new();
    stage.see(suspended(1_000_000));
    assert_eq!(stage.phase("team/train.job"), None);
    let record = stage.host.gangs.get("team/train.job").expect("a gang");
    let (why, _) = record.blocked.clone().expect("it is said");
    assert!(why.contains("1000000 members"), "{why}");
}
