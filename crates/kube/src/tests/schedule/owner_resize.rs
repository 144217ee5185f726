//! Workloads that their owners shrink or enlarge while they run.

use muster_core::gang::{Phase, members_of};
use muster_core::time::Span;
use serde_json::{Value, json};

use crate::effects::outcome::Outcome;
use crate::tests::fixture::HostFixture;
use crate::tests::objects::{job, node, of_job, pod, single_pod, spec};
use crate::tests::schedule::cases::{TRAIN, on};
use crate::tests::schedule::seats::{assigned_to, leaving, member, running, seats};

const TWO: &str = "team/two.job";

/// A Job of so many pods that wait.
fn rival(fixture: &mut HostFixture, pods: u32) {
    fixture.show(job("two", pods), false);
    for at in 0..pods {
        fixture.show(pod(&format!("two-{at}"), of_job("two")), false);
    }
    fixture.host.run_cycle();
}

/// The minimum and maximum of each role in the World.
fn sizes(fixture: &HostFixture, name: &str) -> Vec<(u32, u32)> {
    let (_, gang) = fixture.gang(name).expect("a gang");
    gang.spec.roles.iter().map(|role| (role.min, role.max)).collect()
}

fn is_whole_and_unharmed(fixture: &HostFixture, name: &str, members: u32) {
    let (_, gang) = fixture.gang(name).expect("it runs");
    assert!(matches!(gang.phase, Phase::Running { .. }), "{:?}", gang.phase);
    assert_eq!(members_of(&gang.seats), members);
    assert!(gang.resize.is_none(), "the planner shrinks it: {:?}", gang.resize);
    let record = fixture.host.gangs.get(name).expect("a gang");
    assert!(record.deleting_pods.is_empty(), "evicted: {:?}", record.deleting_pods);
}

/// The steps of the Job controller when a Job of four becomes a Job of two.
fn shrink(fixture: &mut HostFixture, order: &[&str]) {
    for step in order {
        match *step {
            "owner" => fixture.see(job("train", 2)),
            "leave" => (2..4).for_each(|at| {
                fixture.see(leaving(on(member(at), &format!("n{at}"))));
            }),
            "gone" => {
                (2..4).for_each(|at| fixture.see_gone(on(member(at), &format!("n{at}"))));
            }
            _ => unreachable!("no such step"),
        }
    }
}

#[tokio::test]
async fn seats_of_a_shrunk_job_are_returned_and_the_next_gang_evicts_none() {
    for order in
        [["owner", "leave", "gone"], ["leave", "owner", "gone"], ["leave", "gone", "owner"]]
    {
        let mut fixture = running(4);
        fixture.see(node("n4"));
        shrink(&mut fixture, &order);
        assert_eq!(
            (seats(&fixture, TRAIN), sizes(&fixture, TRAIN)),
            (2, vec![(2, 2)]),
            "{order:?}"
        );
        rival(&mut fixture, 3);
        is_whole_and_unharmed(&fixture, TRAIN, 2);
        assert!(
            matches!(fixture.phase(TWO), Some(Phase::Admitted { .. })),
            "{:?}",
            fixture.phase(TWO)
        );
    }
}

#[tokio::test]
async fn rival_submitted_before_the_pods_end_takes_only_their_seats() {
    for steps in [&["owner"][..], &["owner", "leave"]] {
        let mut fixture = running(4);
        fixture.see(node("n4"));
        shrink(&mut fixture, steps);
        rival(&mut fixture, 3);
        let record = fixture.host.gangs.get(TRAIN).expect("a gang");
        let live: Vec<_> =
            record.deleting_pods.iter().filter(|key| key.ends_with(['0', '1'])).collect();
        assert!(live.is_empty(), "{steps:?}: evicted though two others go: {live:?}");
        shrink(&mut fixture, &["leave", "gone"]);
        is_whole_and_unharmed(&fixture, TRAIN, 2);
        assert!(
            matches!(fixture.phase(TWO), Some(Phase::Admitted { .. })),
            "{:?}",
            fixture.phase(TWO)
        );
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
    let mut fixture = HostFixture::new();
    fixture.show(torch(master, workers, elastic), false);
    let masters = (0..master).map(|at| torch_pod("master", at));
    let pods = masters.chain((0..workers).map(|at| torch_pod("worker", at)));
    let pods_on_nodes = |(at, pod)| on(pod, &format!("n{at}"));
    let pods: Vec<Value> = pods.enumerate().map(pods_on_nodes).collect();
    for (at, pod) in pods.iter().enumerate() {
        fixture.show(node(&format!("n{at}")), false);
        fixture.show(pod.clone(), false);
    }
    fixture.show(node("spare"), false);
    fixture.host.run_cycle();
    assert_eq!(seats(&fixture, "team/torch.pytorchjob"), master + workers);
    (fixture, pods)
}

#[tokio::test]
async fn seats_of_a_shrunk_elastic_workload_are_returned() {
    let (mut fixture, pods) = torch_runs(0, 5, Some((2, 5)));
    fixture.see(torch(0, 2, Some((2, 5))));
    pods[2..].iter().for_each(|pod| fixture.see(leaving(pod.clone())));
    pods[2..].iter().for_each(|pod| fixture.see_gone(pod.clone()));
    let name = "team/torch.pytorchjob";
    assert_eq!((seats(&fixture, name), sizes(&fixture, name)), (2, vec![(2, 2)]));
    rival(&mut fixture, 4);
    is_whole_and_unharmed(&fixture, name, 2);
    assert!(matches!(fixture.phase(TWO), Some(Phase::Admitted { .. })), "{:?}", fixture.phase(TWO));
}

#[tokio::test]
async fn seats_of_a_shrunk_rigid_workload_of_two_roles_are_returned() {
    let (mut fixture, pods) = torch_runs(1, 3, None);
    fixture.see(torch(1, 1, None));
    pods[2..].iter().for_each(|pod| fixture.see_gone(pod.clone()));
    let name = "team/torch.pytorchjob";
    assert_eq!((seats(&fixture, name), sizes(&fixture, name)), (2, vec![(1, 1), (1, 1)]));
    rival(&mut fixture, 3);
    is_whole_and_unharmed(&fixture, name, 2);
    assert!(matches!(fixture.phase(TWO), Some(Phase::Admitted { .. })), "{:?}", fixture.phase(TWO));
}

#[tokio::test]
async fn role_removed_by_the_owner_leaves_no_seats() {
    let (mut fixture, pods) = torch_runs(1, 2, None);
    fixture.see(torch(0, 2, None));
    fixture.see_gone(pods[0].clone());
    let name = "team/torch.pytorchjob";
    assert_eq!((seats(&fixture, name), sizes(&fixture, name)), (2, vec![(2, 2)]));
    is_whole_and_unharmed(&fixture, name, 2);
}

#[tokio::test]
async fn recreated_member_keeps_its_seat_while_its_owner_wants_it() {
    let (mut fixture, pods) = torch_runs(0, 4, Some((2, 4)));
    fixture.see_gone(pods[1].clone());
    let name = "team/torch.pytorchjob";
    assert_eq!(seats(&fixture, name), 4);
    // A gang that needs capacity gets the empty seat, and that of no running member.
    rival(&mut fixture, 2);
    let order = fixture.order(TWO).expect("an order");
    let ways = &fixture.host.world.orders()[&order].spec.after;
    let nodes: Vec<_> =
        ways.iter().flat_map(|way| way.seats.iter().map(|seat| seat.node)).collect();
    assert_eq!(nodes, [fixture.host.world.node_named("n1").expect("a node")]);
    is_whole_and_unharmed(&fixture, name, 4);
}

/// The Gang object of a Job, with a recorded placement of so many seats.
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
async fn new_leader_returns_seats_of_a_job_shrunk_meanwhile() {
    let mut fixture = HostFixture::new();
    fixture.show(job("train", 2), false);
    (0..5).for_each(|at| fixture.show(node(&format!("n{at}")), false));
    fixture.show(record(4), false);
    (0..2).for_each(|at| fixture.show(on(member(at), &format!("n{at}")), false));
    fixture.host.run_cycle();
    assert_eq!((seats(&fixture, TRAIN), sizes(&fixture, TRAIN)), (2, vec![(2, 2)]));
    rival(&mut fixture, 3);
    is_whole_and_unharmed(&fixture, TRAIN, 2);
    assert!(matches!(fixture.phase(TWO), Some(Phase::Admitted { .. })), "{:?}", fixture.phase(TWO));
}

#[tokio::test]
async fn new_leader_completes_a_gang_below_its_minimum_if_it_fits() {
    let mut fixture = HostFixture::new();
    fixture.show(job("train", 3), false);
    (0..2).for_each(|at| fixture.show(node(&format!("n{at}")), false));
    fixture.show(record(1), false);
    fixture.show(on(member(0), "n0"), false);
    (1..3).for_each(|at| fixture.show(member(at), false));
    fixture.host.run_cycle();
    assert_eq!(seats(&fixture, TRAIN), 1, "one of two fits");
    fixture.see(node("n2"));
    assert_eq!(seats(&fixture, TRAIN), 3);
    fixture.handle_outcome(Outcome::PlacementWritten(TRAIN.into()));
    let mut nodes =
        [assigned_to(&fixture, TRAIN, "train-1"), assigned_to(&fixture, TRAIN, "train-2")];
    nodes.sort();
    assert_eq!(nodes.map(Option::unwrap_or_default), ["n1", "n2"]);
    (1..3).for_each(|at| fixture.see(on(member(at), &format!("n{at}"))));
    assert_eq!(sizes(&fixture, TRAIN), [(3, 3)]);
    is_whole_and_unharmed(&fixture, TRAIN, 3);
}

#[tokio::test]
async fn enlarged_job_grows_when_all_its_pods_exist_and_fit() {
    let mut fixture = running(2);
    (2..4).for_each(|at| fixture.see(node(&format!("n{at}"))));
    fixture.see(job("train", 4));
    fixture.see(member(2));
    assert_eq!(seats(&fixture, TRAIN), 2, "one of the two new pods does not exist");
    fixture.see(member(3));
    assert_eq!(seats(&fixture, TRAIN), 4);
}

fn of_group(at: u32) -> Value {
    let mut pod = single_pod(&format!("p{at}"));
    pod["metadata"]["annotations"] = json!({"muster.sh/gang": "set", "muster.sh/gang-size": "2"});
    on(pod, &format!("n{at}"))
}

#[tokio::test]
async fn empty_seats_above_the_minimum_expire_without_a_declared_size() {
    let mut fixture = HostFixture::new();
    (0..4).for_each(|at| fixture.show(node(&format!("n{at}")), false));
    (0..4).for_each(|at| fixture.show(of_group(at), false));
    fixture.host.run_cycle();
    let name = "team/set";
    assert_eq!(seats(&fixture, name), 4, "{:?}", fixture.phase(name));
    fixture.see_gone(of_group(3));
    fixture.see_gone(of_group(0));
    assert_eq!(seats(&fixture, name), 4, "they may be recreated");
    fixture.host.config.bind_timeout = Span::ZERO;
    fixture.host.run_cycle();
    assert_eq!(seats(&fixture, name), 2);
    fixture.see_gone(of_group(1));
    fixture.host.run_cycle();
    assert_eq!(seats(&fixture, name), 2, "the minimum is kept");
}
