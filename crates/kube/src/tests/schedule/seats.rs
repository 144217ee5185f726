//! Seats of members that fail, finish, or are recreated.

use muster_core::gang::{Phase, members_of};
use muster_core::time::Span;
use serde_json::{Value, json};

use crate::config::Config;
use crate::effects::outcome::Outcome;
use crate::tests::fixture::HostFixture;
use crate::tests::objects::{job, node, of_job, pod};
use crate::tests::schedule::cases::{TRAIN, on};

/// A member of the Job `train`.
pub(crate) fn member(at: u32) -> Value {
    pod(&format!("train-{at}"), of_job("train"))
}

pub(crate) fn ended(mut pod: Value, phase: &str) -> Value {
    pod["status"]["phase"] = json!(phase);
    pod
}

pub(crate) fn leaving(mut pod: Value) -> Value {
    pod["metadata"]["deletionTimestamp"] = json!("2026-11-01T10:00:00Z");
    pod
}

/// A Job whose pods run, one on each node.
pub(crate) fn running(pods: u32) -> HostFixture {
    let mut fixture = HostFixture::new();
    fixture.show(job("train", pods), false);
    for at in 0..pods {
        fixture.show(node(&format!("n{at}")), false);
        fixture.show(on(member(at), &format!("n{at}")), false);
    }
    fixture.host.run_cycle();
    assert!(
        matches!(fixture.phase(TRAIN), Some(Phase::Running { .. })),
        "{:?}",
        fixture.phase(TRAIN)
    );
    fixture
}

/// How many members a gang has seats for.
pub(crate) fn seats(fixture: &HostFixture, name: &str) -> u32 {
    fixture.gang(name).map_or(0, |(_, gang)| members_of(&gang.seats))
}

/// The node that a pod is assigned to.
pub(crate) fn assigned_to(fixture: &HostFixture, gang: &str, pod: &str) -> Option<String> {
    let record = fixture.host.gangs.get(gang)?;
    record.assigned_nodes.get(&*format!("team/{pod}")).map(ToString::to_string)
}

#[tokio::test]
async fn recreated_member_gets_the_seat_of_the_failed_one() {
    let mut fixture = running(2);
    fixture.see(ended(on(member(1), "n1"), "Failed"));
    fixture.show(job("other", 1), false);
    fixture.see(pod("other-0", of_job("other")));
    assert_eq!(
        fixture.phase("team/other.job"),
        Some(&Phase::Waiting),
        "its seat was given to another gang"
    );
    assert_eq!(seats(&fixture, TRAIN), 2);
    fixture.see(pod("train-1-again", of_job("train")));
    assert_eq!(assigned_to(&fixture, TRAIN, "train-1-again").as_deref(), Some("n1"));
}

#[tokio::test]
async fn finished_members_give_up_their_seats_also_in_the_placement() {
    let mut fixture = running(3);
    let recorded = fixture.host.gangs.get(TRAIN).expect("a gang").placement_writes_pending;
    // The two events may come in any order.
    fixture.show(ended(on(member(2), "n2"), "Failed"), false);
    fixture.see(ended(on(member(1), "n1"), "Succeeded"));
    assert_eq!(seats(&fixture, TRAIN), 2);
    assert_eq!(
        fixture.host.gangs.get(TRAIN).expect("a gang").placement_writes_pending,
        recorded + 1
    );
    fixture.show(job("other", 1), false);
    fixture.see(pod("other-0", of_job("other")));
    let place = fixture.gang("team/other.job").map(|(_, gang)| gang.seats[0].node);
    assert_eq!(place, fixture.host.world.node_named("n1"), "the seat of the one that is done");
    fixture.see(pod("train-2-again", of_job("train")));
    assert_eq!(assigned_to(&fixture, TRAIN, "train-2-again").as_deref(), Some("n2"));
}

#[tokio::test]
async fn member_that_succeeds_while_terminating_keeps_its_seat() {
    let mut fixture = running(2);
    fixture.see(leaving(ended(on(member(1), "n1"), "Succeeded")));
    assert_eq!(seats(&fixture, TRAIN), 2);
}

/// A Job that has given up these indexes.
fn given_up(pods: u32, indexes: &str) -> Value {
    let mut job = job("train", pods);
    job["spec"]["backoffLimitPerIndex"] = json!(1);
    job["status"] = json!({"failedIndexes": indexes});
    job
}

fn indexed(mut pod: Value, index: u32) -> Value {
    pod["metadata"]["labels"] =
        json!({"batch.kubernetes.io/job-completion-index": index.to_string()});
    pod
}

#[tokio::test]
async fn failed_index_gives_up_its_seat() {
    let mut fixture = running(3);
    let failed = |name: &str| ended(on(indexed(pod(name, of_job("train")), 2), "n2"), "Failed");
    // It failed twice, and may be recreated.
    fixture.show(failed("train-2"), false);
    fixture.see(failed("train-2-again"));
    assert_eq!(seats(&fixture, TRAIN), 3, "it may be recreated");
    fixture.see(given_up(3, "2"));
    assert_eq!(seats(&fixture, TRAIN), 2);
    fixture.show(job("other", 1), false);
    fixture.see(pod("other-0", of_job("other")));
    let place = fixture.gang("team/other.job").map(|(_, gang)| gang.seats[0].node);
    assert_eq!(place, fixture.host.world.node_named("n2"));
    // A member that fails otherwise keeps its seat, and the rest goes on.
    fixture.see(ended(on(indexed(member(1), 1), "n1"), "Failed"));
    assert_eq!(seats(&fixture, TRAIN), 2);
    fixture.see(indexed(pod("train-1-again", of_job("train")), 1));
    assert_eq!(assigned_to(&fixture, TRAIN, "train-1-again").as_deref(), Some("n1"));
}

#[tokio::test]
async fn failed_index_of_an_owned_job_gives_up_its_seat() {
    let set = json!({
        "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
        "metadata": {"name": "set", "namespace": "team", "uid": "set"},
        "spec": {"replicatedJobs": [{"name": "w", "replicas": 1, "template": job("train", 2)}]},
    });
    let below = |mut job: Value| {
        job["metadata"]["ownerReferences"] = json!([{"apiVersion": "jobset.x-k8s.io/v1alpha2",
            "kind": "JobSet", "name": "set", "uid": "set", "controller": true}]);
        job
    };
    let of_set = |at: u32| {
        let mut pod = indexed(member(at), at);
        pod["metadata"]["labels"]["jobset.sigs.k8s.io/replicatedjob-name"] = json!("w");
        on(pod, &format!("n{at}"))
    };
    let mut fixture = HostFixture::new();
    fixture.show(set, false);
    fixture.show(below(job("train", 2)), false);
    for at in 0..2 {
        fixture.show(node(&format!("n{at}")), false);
        fixture.show(of_set(at), false);
    }
    fixture.host.run_cycle();
    let name = "team/set.jobset";
    assert_eq!(seats(&fixture, name), 2, "{:?}", fixture.phase(name));
    fixture.see(ended(of_set(1), "Failed"));
    assert_eq!(seats(&fixture, name), 2);
    fixture.see(below(given_up(2, "0-1")));
    assert_eq!(seats(&fixture, name), 1, "only the failed index gives up its seat");
}

fn cordoned(mut node: Value) -> Value {
    node["spec"]["unschedulable"] = json!(true);
    node
}

fn unready(mut node: Value) -> Value {
    node["status"]["conditions"] = json!([{"type": "Ready", "status": "False"}]);
    node
}

#[tokio::test]
async fn no_recreated_member_is_bound_to_a_drained_node() {
    let mut fixture = running(2);
    fixture.show(node("spare"), false);
    fixture.see(cordoned(node("n1")));
    assert!(matches!(fixture.phase(TRAIN), Some(Phase::Running { .. })), "nothing is lost yet");
    fixture.see(leaving(on(member(1), "n1")));
    fixture.see_gone(on(member(1), "n1"));
    assert!(
        matches!(fixture.phase(TRAIN), Some(Phase::Running { .. })),
        "no member waits for its seat"
    );
    fixture.see(pod("train-1-again", of_job("train")));
    assert_eq!(assigned_to(&fixture, TRAIN, "train-1-again"), None);
    assert_eq!(fixture.phase(TRAIN), Some(&Phase::Stopping), "it starts over as a whole");
}

#[tokio::test]
async fn gang_waits_for_a_not_ready_node_until_the_bind_timeout() {
    let mut fixture = running(2);
    fixture.see(unready(node("n1")));
    fixture.host.config.bind_timeout = Span::ZERO;
    fixture.host.run_cycle();
    assert!(matches!(fixture.phase(TRAIN), Some(Phase::Running { .. })), "all members are bound");
    fixture.host.config.bind_timeout = Span::mins(5);
    fixture.see(ended(on(member(1), "n1"), "Failed"));
    fixture.see(pod("train-1-again", of_job("train")));
    assert_eq!(
        assigned_to(&fixture, TRAIN, "train-1-again"),
        None,
        "it was bound to a node that is not ready"
    );
    assert!(
        matches!(fixture.phase(TRAIN), Some(Phase::Running { .. })),
        "{:?}",
        fixture.phase(TRAIN)
    );
    fixture.see(node("n1"));
    assert_eq!(assigned_to(&fixture, TRAIN, "train-1-again").as_deref(), Some("n1"));
}

#[tokio::test]
async fn gang_whose_node_does_not_come_back_starts_over() {
    let mut fixture = running(2);
    fixture.show(unready(node("n1")), false);
    fixture.show(ended(on(member(1), "n1"), "Failed"), false);
    fixture.see(pod("train-1-again", of_job("train")));
    fixture.host.config.bind_timeout = Span::ZERO;
    fixture.host.run_cycle();
    assert_eq!(fixture.phase(TRAIN), Some(&Phase::Stopping));
}

#[tokio::test]
async fn admitted_gang_does_not_start_when_one_node_is_gone() {
    let mut fixture = HostFixture::new();
    fixture.show(job("train", 2), false);
    for at in 0..2 {
        fixture.show(node(&format!("n{at}")), false);
        fixture.show(member(at), false);
    }
    fixture.host.run_cycle();
    fixture.see(unready(node("n1")));
    fixture.handle_outcome(Outcome::PlacementWritten(TRAIN.into()));
    assert!(
        fixture.host.gangs.get(TRAIN).expect("a gang").assigned_nodes.is_empty(),
        "one of two starts"
    );
    fixture.see(node("n1"));
    assert_eq!(fixture.host.gangs.get(TRAIN).expect("a gang").assigned_nodes.len(), 2);
}

/// The Gang that Muster creates for the Job, with a placement of two members.
fn record(phase: &str) -> Value {
    let seat = |node: &str| json!({"role": "worker", "node": node, "members": 1});
    json!({
        "apiVersion": "muster.sh/v1alpha1", "kind": "Gang",
        "metadata": {"name": "train.job", "namespace": "team",
            "labels": {"app.kubernetes.io/managed-by": "muster"}},
        "spec": {"roles": []},
        "status": {"phase": phase, "placement": [seat("n0"), seat("n1")]},
    })
}

/// A Job of which one pod is bound and one is not, as a new leader finds it.
fn found_in_part(phase: &str) -> HostFixture {
    let mut fixture =
        HostFixture::with(&Config { bind_timeout: Span::mins(5), ..Config::default() });
    fixture.show(job("train", 2), false);
    for at in 0..2 {
        fixture.show(node(&format!("n{at}")), false);
    }
    fixture.show(record(phase), false);
    fixture.show(on(member(0), "n0"), false);
    fixture.host.run_cycle();
    assert!(
        matches!(fixture.phase(TRAIN), Some(Phase::Running { .. })),
        "{:?}",
        fixture.phase(TRAIN)
    );
    assert_eq!(seats(&fixture, TRAIN), 2);
    fixture.host.config.bind_timeout = Span::ZERO;
    fixture.host.run_cycle();
    fixture
}

#[tokio::test]
async fn new_leader_does_not_wait_forever_for_half_a_gang() {
    assert_eq!(found_in_part("Admitted").phase(TRAIN), Some(&Phase::Stopping));
    let fixture = found_in_part("Running");
    assert!(matches!(fixture.phase(TRAIN), Some(Phase::Running { .. })), "it was fully bound once");
}

#[tokio::test]
async fn new_leader_does_not_stop_a_gang_that_is_to_grow() {
    let mut fixture = HostFixture::new();
    fixture.show(job("train", 4), false);
    for at in 0..2 {
        fixture.show(node(&format!("n{at}")), false);
        fixture.show(on(member(at), &format!("n{at}")), false);
    }
    fixture.show(record("Running"), false);
    for at in 2..4 {
        fixture.show(member(at), false);
    }
    fixture.host.run_cycle();
    let (_, gang) = fixture.gang(TRAIN).expect("it runs");
    assert!(matches!(gang.phase, Phase::Running { .. }), "{:?}", gang.phase);
    assert_eq!((gang.spec.roles[0].min, seats(&fixture, TRAIN)), (2, 2));
}
