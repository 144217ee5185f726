//! Owners that make their workloads smaller or larger while these run.

use muster_core::gang::{Phase, members_of};
use muster_core::time::Span;
use serde_json::{Value, json};

use crate::effects::outcome::Outcome;
use crate::tests::fixture::HostFixture;
use crate::tests::objects::{alone, job, node, of_job, pod, spec};
use crate::tests::schedule::cases::{TRAIN, on};
use crate::tests::schedule::seats::{leaving, member, running, seats, told};

const TWO: &str = "team/two.job";

/// A Job of so many pods that wait.
fn rival(stage: &mut HostFixture, pods: u32) {
    stage.show(job("two", pods), false);
    for at in 0..pods {
        stage.show(pod(&format!("two-{at}"), of_job("two")), false);
    }
    stage.host.turn();
}

/// The least and the most members of each role that the World knows of.
fn sizes(stage: &HostFixture, name: &str) -> Vec<(u32, u32)> {
    let (_, gang) = stage.gang(name).expect("a gang");
    gang.spec.roles.iter().map(|role| (role.min, role.max)).collect()
}

fn is_whole_and_unharmed(stage: &HostFixture, name: &str, members: u32) {
    let (_, gang) = stage.gang(name).expect("it runs");
    assert!(matches!(gang.phase, Phase::Running { .. }), "{:?}", gang.phase);
    assert_eq!(members_of(&gang.seats), members);
    assert!(gang.resize.is_none(), "it is made to shrink: {:?}", gang.resize);
    let record = stage.host.gangs.get(name).expect("a gang");
    assert!(record.deleting_pods.is_empty(), "told to go: {:?}", record.deleting_pods);
}

/// What a Job's controller does with a Job of four that is made a Job of two, one step after another.
fn shrink(stage: &mut HostFixture, order: &[&str]) {
    for step in order {
        match *step {
            "owner" => stage.see(job("train", 2)),
            "leave" => (2..4).for_each(|at| {
                stage.see(leaving(on(member(at), &format!("n{at}"))));
            }),
            "gone" => {
                (2..4).for_each(|at| stage.see_gone(on(member(at), &format!("n{at}"))));
            }
            _ => unreachable!("no such step"),
        }
    }
}

#[tokio::test]
async fn seats_follow_a_job_made_smaller_and_the_next_gang_evicts_none() {
    for order in
        [["owner", "leave", "gone"], ["leave", "owner", "gone"], ["leave", "gone", "owner"]]
    {
        let mut stage = running(4);
        stage.see(node("n4"));
        shrink(&mut stage, &order);
        assert_eq!((seats(&stage, TRAIN), sizes(&stage, TRAIN)), (2, vec![(2, 2)]), "{order:?}");
        rival(&mut stage, 3);
        is_whole_and_unharmed(&stage, TRAIN, 2);
        assert!(matches!(stage.phase(TWO), Some(Phase::Admitted { .. })), "{:?}", stage.phase(TWO));
    }
}

#[tokio::test]
async fn rival_that_comes_before_pods_are_gone_takes_only_their_seats() {
    for steps in [&["owner"][..], &["owner", "leave"]] {
        let mut stage = running(4);
        stage.see(node("n4"));
        shrink(&mut stage, steps);
        rival(&mut stage, 3);
        let record = stage.host.gangs.get(TRAIN).expect("a gang");
        let live: Vec<_> =
            record.deleting_pods.iter().filter(|key| key.ends_with(['0', '1'])).collect();
        assert!(live.is_empty(), "{steps:?}: evicted though two others go: {live:?}");
        shrink(&mut stage, &["leave", "gone"]);
        is_whole_and_unharmed(&stage, TRAIN, 2);
        assert!(matches!(stage.phase(TWO), Some(Phase::Admitted { .. })), "{:?}", stage.phase(TWO));
    }
}

const TORCH: (&str, &str, &str) = ("kubeflow.org/v1", "PyTorchJob", "torch");

/// A PyTorchJob of a master, if any, and workers.
fn torch(master: u32, workers: u32, elastic: Option<(u32, u32)>) -> Value {
    let replicas = |replicas: u32| json!({"replicas": replicas, "template": {"spec": spec()}});
    let mut object = json!({
        "apiVersion": TORCH.0, "kind": TORCH.1,
        "metadata": {"name": "torch", "namespace": "team", "uid": "torch"},
        "spec": {"pytorchReplicaSpecs": {"Worker": replicas(workers)}},
    });
    if master > 0 {
        object["spec"]["pytorchReplicaSpecs"]["Master"] = replicas(master);
    }
    if let Some((min, max)) = elastic {
        object["spec"]["elasticPolicy"] = json!({"minReplicas": min, "maxReplicas": max});
    }
    object
}

fn torch_pod(role: &str, at: u32) -> Value {
    let mut pod = pod(&format!("torch-{role}-{at}"), TORCH);
    pod["metadata"]["labels"] = json!({
        "training.kubeflow.org/replica-type": role,
        "training.kubeflow.org/replica-index": at.to_string(),
    });
    pod
}

/// A PyTorchJob whose pods run, one on each node, with one node to spare.
fn torch_runs(master: u32, workers: u32, elastic: Option<(u32, u32)>) -> (HostFixture, Vec<Value>) {
    let mut stage = HostFixture::new();
    stage.show(torch(master, workers, elastic), false);
    let masters = (0..master).map(|at| torch_pod("master", at));
    let pods = masters.chain((0..workers).map(|at| torch_pod("worker", at)));
    let pods_on_nodes = |(at, pod)| on(pod, &format!("n{at}"));
    let pods: Vec<Value> = pods.enumerate().map(pods_on_nodes).collect();
    for (at, pod) in pods.iter().enumerate() {
        stage.show(node(&format!("n{at}")), false);
        stage.show(pod.clone(), false);
    }
    stage.show(node("spare"), false);
    stage.host.turn();
    assert_eq!(seats(&stage, "team/torch.pytorchjob"), master + workers);
    (stage, pods)
}

#[tokio::test]
async fn seats_follow_an_elastic_workload_made_smaller() {
    let (mut stage, pods) = torch_runs(0, 5, Some((2, 5)));
    stage.see(torch(0, 2, Some((2, 5))));
    pods[2..].iter().for_each(|pod| stage.see(leaving(pod.clone())));
    pods[2..].iter().for_each(|pod| stage.see_gone(pod.clone()));
    let name = "team/torch.pytorchjob";
    assert_eq!((seats(&stage, name), sizes(&stage, name)), (2, vec![(2, 2)]));
    rival(&mut stage, 4);
    is_whole_and_unharmed(&stage, name, 2);
    assert!(matches!(stage.phase(TWO), Some(Phase::Admitted { .. })), "{:?}", stage.phase(TWO));
}

#[tokio::test]
async fn seats_follow_a_rigid_workload_of_two_roles_made_smaller() {
    let (mut stage, pods) = torch_runs(1, 3, None);
    stage.see(torch(1, 1, None));
    pods[2..].iter().for_each(|pod| stage.see_gone(pod.clone()));
    let name = "team/torch.pytorchjob";
    assert_eq!((seats(&stage, name), sizes(&stage, name)), (2, vec![(1, 1), (1, 1)]));
    rival(&mut stage, 3);
    is_whole_and_unharmed(&stage, name, 2);
    assert!(matches!(stage.phase(TWO), Some(Phase::Admitted { .. })), "{:?}", stage.phase(TWO));
}

#[tokio::test]
async fn role_that_the_owner_removes_leaves_no_seats_behind() {
    let (mut stage, pods) = torch_runs(1, 2, None);
    stage.see(torch(0, 2, None));
    stage.see_gone(pods[0].clone());
    let name = "team/torch.pytorchjob";
    assert_eq!((seats(&stage, name), sizes(&stage, name)), (2, vec![(2, 2)]));
    is_whole_and_unharmed(&stage, name, 2);
}

#[tokio::test]
async fn member_made_again_keeps_its_seat_while_its_owner_wants_it() {
    let (mut stage, pods) = torch_runs(0, 4, Some((2, 4)));
    stage.see_gone(pods[1].clone());
    let name = "team/torch.pytorchjob";
    assert_eq!(seats(&stage, name), 4);
    // A gang that needs room has the empty seat, and that of no member that runs.
    rival(&mut stage, 2);
    let order = stage.order(TWO).expect("an order");
    let ways = &stage.host.world.orders()[&order].spec.after;
    let nodes: Vec<_> =
        ways.iter().flat_map(|way| way.seats.iter().map(|seat| seat.node)).collect();
    assert_eq!(nodes, [stage.host.world.node_named("n1").expect("a node")]);
    is_whole_and_unharmed(&stage, name, 4);
}

/// What a controller wrote down of a Job: how many seats it has.
fn record(seats: u32) -> Value {
    let seat = |at| json!({"role": "worker", "node": format!("n{at}"), "members": 1});
    json!({
        "apiVersion": "muster.sh/v1alpha1", "kind": "Gang",
        "metadata": {"name": "train.job", "namespace": "team",
            "labels": {"app.kubernetes.io/managed-by": "muster"}},
        "spec": {"roles": []},
        "status": {"phase": "Running", "placement": (0..seats).map(seat).collect::<Vec<_>>()},
    })
}

#[tokio::test]
async fn new_leader_gives_back_seats_of_a_job_made_smaller_meanwhile() {
    let mut stage = HostFixture::new();
    stage.show(job("train", 2), false);
    (0..5).for_each(|at| stage.show(node(&format!("n{at}")), false));
    stage.show(record(4), false);
    (0..2).for_each(|at| stage.show(on(member(at), &format!("n{at}")), false));
    stage.host.turn();
    assert_eq!((seats(&stage, TRAIN), sizes(&stage, TRAIN)), (2, vec![(2, 2)]));
    rival(&mut stage, 3);
    is_whole_and_unharmed(&stage, TRAIN, 2);
    assert!(matches!(stage.phase(TWO), Some(Phase::Admitted { .. })), "{:?}", stage.phase(TWO));
}

#[tokio::test]
async fn new_leader_makes_a_gang_below_its_minimum_whole_where_there_is_room() {
    let mut stage = HostFixture::new();
    stage.show(job("train", 3), false);
    (0..2).for_each(|at| stage.show(node(&format!("n{at}")), false));
    stage.show(record(1), false);
    stage.show(on(member(0), "n0"), false);
    (1..3).for_each(|at| stage.show(member(at), false));
    stage.host.turn();
    assert_eq!(seats(&stage, TRAIN), 1, "there is room for one of two");
    stage.see(node("n2"));
    assert_eq!(seats(&stage, TRAIN), 3);
    stage.handle_outcome(Outcome::PlacementWritten(TRAIN.into()));
    let mut nodes = [told(&stage, TRAIN, "train-1"), told(&stage, TRAIN, "train-2")];
    nodes.sort();
    assert_eq!(nodes.map(Option::unwrap_or_default), ["n1", "n2"]);
    (1..3).for_each(|at| stage.see(on(member(at), &format!("n{at}"))));
    assert_eq!(sizes(&stage, TRAIN), [(3, 3)]);
    is_whole_and_unharmed(&stage, TRAIN, 3);
}

#[tokio::test]
async fn job_made_larger_grows_when_all_of_its_pods_exist_and_fit() {
    let mut stage = running(2);
    (2..4).for_each(|at| stage.see(node(&format!("n{at}"))));
    stage.see(job("train", 4));
    stage.see(member(2));
    assert_eq!(seats(&stage, TRAIN), 2, "one of the two new pods does not exist");
    stage.see(member(3));
    assert_eq!(seats(&stage, TRAIN), 4);
}

fn of_group(at: u32) -> Value {
    let mut pod = alone(&format!("p{at}"));
    pod["metadata"]["annotations"] = json!({"muster.sh/gang": "set", "muster.sh/gang-size": "2"});
    on(pod, &format!("n{at}"))
}

#[tokio::test]
async fn empty_seats_above_the_minimum_expire_where_nothing_says_who_comes() {
    let mut stage = HostFixture::new();
    (0..4).for_each(|at| stage.show(node(&format!("n{at}")), false));
    (0..4).for_each(|at| stage.show(of_group(at), false));
    stage.host.turn();
    let name = "team/set";
    assert_eq!(seats(&stage, name), 4, "{:?}", stage.phase(name));
    stage.see_gone(of_group(3));
    stage.see_gone(of_group(0));
    assert_eq!(seats(&stage, name), 4, "they may come back");
    stage.host.config.bind_timeout = Span::ZERO;
    stage.host.turn();
    assert_eq!(seats(&stage, name), 2);
    stage.see_gone(of_group(1));
    stage.host.turn();
    assert_eq!(seats(&stage, name), 2, "the minimum is kept");
}
