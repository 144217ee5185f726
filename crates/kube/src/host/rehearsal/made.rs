//! Members that are made of templates: which of them have failed, and which are made again.

use std::collections::BTreeSet;

use muster_core::gang::Phase;
use serde_json::{Value, json};

use super::Rehearsal;
use super::cases::on;
use super::objects::{alone, job, node, pool};
use crate::shelf::Key;

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
fn running() -> Rehearsal {
    let mut stage = Rehearsal::new();
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
fn made_and_ended<'a>(stage: &'a Rehearsal) -> (Vec<&'a str>, Vec<&'a str>) {
    let group = stage.host.groups.get(TRAIN).expect("a gang");
    let names = |keys: &'a BTreeSet<Key>| keys.iter().map(|key| &**key).collect();
    (names(&group.making), names(&group.leaving))
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
        assert_eq!(made_and_ended(&stage).0.len(), 3, "{phase}");
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
    assert!(stage.host.groups.get(TRAIN).is_none_or(|group| group.making.is_empty()));
    // One that comes again and again changes nothing.
    stage.see(deleted);
    assert!(stage.host.groups.get(TRAIN).is_none_or(|group| group.making.is_empty()));
}

#[tokio::test]
async fn members_are_made_some_at_a_time() {
    let mut stage = Rehearsal::new();
    let mut large = gang();
    large["spec"]["roles"][0]["max"] = json!(1_000_000);
    stage.see(large);
    assert_eq!(made_and_ended(&stage).0.len(), 256);
    stage.see(member(0));
    let (made, _) = made_and_ended(&stage);
    assert_eq!(made.len(), 256, "the next has its turn");
    assert!(!made.contains(&"team/train-worker-0"));
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
    let mut stage = Rehearsal::new();
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
    let mut next = Rehearsal::new();
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
    let mut stage = Rehearsal::new();
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
    let mut stage = Rehearsal::new();
    stage.see(suspended(1_000_000));
    assert_eq!(stage.phase("team/train.job"), None);
    let group = stage.host.groups.get("team/train.job").expect("a gang");
    let (why, _) = group.trouble.clone().expect("it is said");
    assert!(why.contains("1000000 pods"), "{why}");
}
