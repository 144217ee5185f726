//! Recorded placements that are stale: the previous leader gave the seats to another gang, and ended before it wrote that.

use muster_core::gang::Phase;
use serde_json::{Value, json};

use crate::tests::fixture::HostFixture;
use crate::tests::objects::{job, node, of_job, pod, spec};
use crate::tests::schedule::cases::{TRAIN, on};
use crate::tests::schedule::seats::{assigned_to, seats};

const WINNER: &str = "team/winner.job";

/// The Gang object that Muster created for a workload, with its members placed on these nodes.
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

/// A Job of two with its pods, of which this many are bound.
fn two(fixture: &mut HostFixture, name: &str, bound: usize) {
    fixture.show(job(name, 2), false);
    for (at, node) in ["n0", "n1"].into_iter().enumerate() {
        let member = pod(&format!("{name}-{at}"), of_job(name));
        fixture.show(if at < bound { on(member, node) } else { member }, false);
    }
}

#[tokio::test]
async fn stale_placement_loses_its_seats_to_the_gang_that_has_them() {
    for bound in [2, 1, 0] {
        let mut fixture = HostFixture::new();
        fixture.show(node("n0"), false);
        fixture.show(node("n1"), false);
        // It was stopped, and its pods were recreated.
        two(&mut fixture, "train", 0);
        fixture.show(placed("train.job", "Running", &["n0", "n1"]), false);
        two(&mut fixture, "winner", bound);
        fixture.show(placed("winner.job", "Admitted", &["n0", "n1"]), false);
        fixture.host.run_cycle();
        assert_eq!((seats(&fixture, TRAIN), seats(&fixture, WINNER)), (0, 2), "{bound} are bound");
        assert_eq!(fixture.phase(TRAIN), Some(&Phase::Waiting));
        assert_eq!(assigned_to(&fixture, TRAIN, "train-0"), None);
        assert!(
            fixture.host.ordered_writes.is_busy(TRAIN),
            "the stale placement stays on its object"
        );
        for at in bound..2 {
            let node = format!("n{at}");
            assert_eq!(
                assigned_to(&fixture, WINNER, &format!("winner-{at}")),
                Some(node),
                "{bound} are"
            );
        }
    }
}

#[tokio::test]
async fn recorded_seats_that_are_free_are_kept_for_recreated_pods() {
    let mut fixture = HostFixture::new();
    fixture.show(node("n0"), false);
    fixture.show(node("n1"), false);
    two(&mut fixture, "train", 0);
    fixture.show(placed("train.job", "Running", &["n0", "n1"]), false);
    fixture.host.run_cycle();
    assert_eq!(seats(&fixture, TRAIN), 2);
    assert!(
        assigned_to(&fixture, TRAIN, "train-0").is_some()
            && assigned_to(&fixture, TRAIN, "train-1").is_some()
    );
}

#[tokio::test]
async fn half_bound_gang_whose_other_seats_are_taken_starts_over() {
    let mut fixture = HostFixture::new();
    fixture.show(node("n0"), false);
    fixture.show(node("n1"), false);
    two(&mut fixture, "train", 1);
    fixture.show(placed("train.job", "Admitted", &["n0", "n1"]), false);
    fixture.show(job("other", 1), false);
    fixture.show(on(pod("other-0", of_job("other")), "n1"), false);
    fixture.host.run_cycle();
    assert_eq!(fixture.phase(TRAIN), Some(&Phase::Stopping));
    assert_eq!(assigned_to(&fixture, TRAIN, "train-1"), None);
}

#[tokio::test]
async fn elastic_gang_goes_on_with_the_members_it_has_left() {
    let elastic = json!({
        "apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob",
        "metadata": {"name": "train", "namespace": "team", "uid": "train"},
        "spec": {
            "elasticPolicy": {"minReplicas": 1, "maxReplicas": 2},
            "pytorchReplicaSpecs": {"Worker": {"replicas": 2, "template": {"spec": spec()}}},
        },
    });
    let of = ("kubeflow.org/v1", "PyTorchJob", "train");
    let mut fixture = HostFixture::new();
    fixture.show(node("n0"), false);
    fixture.show(node("n1"), false);
    fixture.show(elastic, false);
    fixture.show(on(pod("train-worker-0", of), "n0"), false);
    fixture.show(pod("train-worker-1", of), false);
    fixture.show(placed("train.pytorchjob", "Running", &["n0", "n1"]), false);
    fixture.show(job("other", 1), false);
    fixture.show(on(pod("other-0", of_job("other")), "n1"), false);
    fixture.host.run_cycle();
    let name = "team/train.pytorchjob";
    assert!(
        matches!(fixture.phase(name), Some(Phase::Running { .. })),
        "{:?}",
        fixture.phase(name)
    );
    assert_eq!((seats(&fixture, name), seats(&fixture, "team/other.job")), (1, 1));
    assert_eq!(assigned_to(&fixture, name, "train-worker-1"), None);
}
