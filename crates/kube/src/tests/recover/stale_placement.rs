//! What is written down and is out of date: whoever led before gave the seats to others, and was ended before it could say so.

use muster_core::gang::Phase;
use serde_json::{Value, json};

use crate::tests::fixture::HostFixture;
use crate::tests::objects::{job, node, of_job, pod, spec};
use crate::tests::schedule::cases::{TRAIN, on};
use crate::tests::schedule::seats::{seats, told};

const WINNER: &str = "team/winner.job";

/// The Gang that Muster made of a workload, whose members were told to go to these nodes.
fn placed(name: &str, phase: &str, nodes: &[&str]) -> Value {
    let seat = |node: &&str| json!({"role": "worker", "node": node, "members": 1});
    json!({
        "apiVersion": "muster.sh/v1alpha1", "kind": "Gang",
        "metadata": {"name": name, "namespace": "team",
            "labels": {"app.kubernetes.io/managed-by": "muster"}},
        "spec": {"roles": []},
        "status": {"phase": phase, "placement": nodes.iter().map(seat).collect::<Vec<_>>()},
    })
}

/// The members of a Job of two, of whom so many are on their nodes.
fn two(stage: &mut HostFixture, name: &str, bound: usize) {
    stage.show(job(name, 2), false);
    for (at, node) in ["n0", "n1"].into_iter().enumerate() {
        let member = pod(&format!("{name}-{at}"), of_job(name));
        stage.show(if at < bound { on(member, node) } else { member }, false);
    }
}

#[tokio::test]
async fn seats_that_another_was_given_are_not_had_by_both() {
    for bound in [2, 1, 0] {
        let mut stage = HostFixture::new();
        stage.show(node("n0"), false);
        stage.show(node("n1"), false);
        // It was stopped, and its pods were made again.
        two(&mut stage, "train", 0);
        stage.show(placed("train.job", "Running", &["n0", "n1"]), false);
        two(&mut stage, "winner", bound);
        stage.show(placed("winner.job", "Admitted", &["n0", "n1"]), false);
        stage.host.turn();
        assert_eq!((seats(&stage, TRAIN), seats(&stage, WINNER)), (0, 2), "{bound} are bound");
        assert_eq!(stage.phase(TRAIN), Some(&Phase::Waiting));
        assert_eq!(told(&stage, TRAIN, "train-0"), None);
        assert!(
            stage.host.ordered_writes.is_busy(TRAIN),
            "what is out of date stays on its object"
        );
        for at in bound..2 {
            let node = format!("n{at}");
            assert_eq!(told(&stage, WINNER, &format!("winner-{at}")), Some(node), "{bound} are");
        }
    }
}

#[tokio::test]
async fn seats_that_nobody_else_has_are_kept_for_whoever_comes_back() {
    let mut stage = HostFixture::new();
    stage.show(node("n0"), false);
    stage.show(node("n1"), false);
    two(&mut stage, "train", 0);
    stage.show(placed("train.job", "Running", &["n0", "n1"]), false);
    stage.host.turn();
    assert_eq!(seats(&stage, TRAIN), 2);
    assert!(told(&stage, TRAIN, "train-0").is_some() && told(&stage, TRAIN, "train-1").is_some());
}

#[tokio::test]
async fn half_a_gang_whose_other_half_has_no_room_any_more_starts_over() {
    let mut stage = HostFixture::new();
    stage.show(node("n0"), false);
    stage.show(node("n1"), false);
    two(&mut stage, "train", 1);
    stage.show(placed("train.job", "Admitted", &["n0", "n1"]), false);
    stage.show(job("other", 1), false);
    stage.show(on(pod("other-0", of_job("other")), "n1"), false);
    stage.host.turn();
    assert_eq!(stage.phase(TRAIN), Some(&Phase::Stopping));
    assert_eq!(told(&stage, TRAIN, "train-1"), None);
}

#[tokio::test]
async fn who_gave_members_up_goes_on_with_those_it_has() {
    let elastic = json!({
        "apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob",
        "metadata": {"name": "train", "namespace": "team", "uid": "train"},
        "spec": {
            "elasticPolicy": {"minReplicas": 1, "maxReplicas": 2},
            "pytorchReplicaSpecs": {"Worker": {"replicas": 2, "template": {"spec": spec()}}},
        },
    });
    let of = ("kubeflow.org/v1", "PyTorchJob", "train");
    let mut stage = HostFixture::new();
    stage.show(node("n0"), false);
    stage.show(node("n1"), false);
    stage.show(elastic, false);
    stage.show(on(pod("train-worker-0", of), "n0"), false);
    stage.show(pod("train-worker-1", of), false);
    stage.show(placed("train.pytorchjob", "Running", &["n0", "n1"]), false);
    stage.show(job("other", 1), false);
    stage.show(on(pod("other-0", of_job("other")), "n1"), false);
    stage.host.turn();
    let name = "team/train.pytorchjob";
    assert!(matches!(stage.phase(name), Some(Phase::Running { .. })), "{:?}", stage.phase(name));
    assert_eq!((seats(&stage, name), seats(&stage, "team/other.job")), (1, 1));
    assert_eq!(told(&stage, name, "train-worker-1"), None);
}
