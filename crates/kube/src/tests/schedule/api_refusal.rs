//! Refusals of the API server: no gang holds seats forever that it cannot use, and no victim is stopped in vain.

use muster_core::gang::Phase;
use muster_core::time::Span;
use muster_core::verdict::Verdict;
use serde_json::{Value, json};

use crate::config::Config;
use crate::effects::outcome::Outcome;
use crate::tests::fixture::HostFixture;
use crate::tests::objects::{alone, job, node, of_job, pod};
use crate::tests::schedule::cases::{TRAIN, on};

const OTHER: &str = "team/other.job";

/// A Job of two that has its seats, on a host with this bind timeout.
fn seated(patience: Span) -> HostFixture {
    let mut stage = HostFixture::with(&Config { bind_timeout: patience, ..Config::default() });
    stage.show(job("train", 2), false);
    for at in 0..2 {
        stage.show(node(&format!("n{at}")), false);
        stage.show(pod(&format!("train-{at}"), of_job("train")), false);
    }
    stage.host.run_cycle();
    assert!(matches!(stage.phase(TRAIN), Some(Phase::Admitted { .. })), "{:?}", stage.phase(TRAIN));
    stage
}

fn no() -> Option<String> {
    Some("refused: not today".to_owned())
}

fn why(stage: &HostFixture) -> String {
    let record = stage.host.gangs.get(TRAIN).expect("it has a record");
    record.wait_reason.clone().unwrap_or_default()
}

/// The gang has given its seats back, has the reason, and others get the seats.
fn backs_off(stage: &mut HostFixture, because: &str) {
    assert_eq!(stage.phase(TRAIN), Some(&Phase::Waiting));
    assert!(why(stage).contains(because), "{}", why(stage));
    stage.show(job("other", 2), false);
    stage.show(pod("other-0", of_job("other")), false);
    stage.see(pod("other-1", of_job("other")));
    assert!(matches!(stage.phase(OTHER), Some(Phase::Admitted { .. })), "{:?}", stage.phase(OTHER));
}

#[tokio::test]
async fn refused_placement_gives_the_seats_back_and_retries_after_backoff() {
    let mut stage = seated(Span::mins(5));
    stage.handle_outcome(Outcome::PlacementNotWritten { gang: TRAIN.into(), why: no() });
    assert!(
        matches!(stage.phase(TRAIN), Some(Phase::Admitted { .. })),
        "its timeout has not expired"
    );
    stage.host.config.bind_timeout = Span(0);
    stage.host.run_cycle();
    backs_off(&mut stage, "refused: not today");
    // When its backoff is over and the others are gone it starts.
    for at in 0..2 {
        stage.show(pod(&format!("other-{at}"), of_job("other")), true);
    }
    stage.host.run_cycle();
    assert_eq!(stage.phase(TRAIN), Some(&Phase::Waiting));
    stage.host.config.bind_timeout = Span::mins(5);
    let record = stage.host.gangs.get_mut(TRAIN).expect("it has a record");
    record.api_refusal.as_mut().expect("it was").until = None;
    stage.handle_outcome(Outcome::Requeue(TRAIN.into()));
    assert!(matches!(stage.phase(TRAIN), Some(Phase::Admitted { .. })), "{:?}", stage.phase(TRAIN));
}

#[tokio::test]
async fn refused_binding_gives_the_seats_back_when_no_pod_is_bound() {
    let mut stage = seated(Span::mins(5));
    stage.handle_outcome(Outcome::PlacementWritten(TRAIN.into()));
    for at in 0..2 {
        let (pod, uid) = (format!("team/train-{at}").into(), format!("train-{at}"));
        stage.handle_outcome(Outcome::BindFailed { gang: TRAIN.into(), pod, uid, why: no() });
    }
    stage.host.config.bind_timeout = Span(0);
    stage.host.run_cycle();
    // They were assigned their nodes once more, and are not bound.
    for at in 0..2 {
        let (pod, uid) = (format!("team/train-{at}").into(), format!("train-{at}"));
        stage.handle_outcome(Outcome::BindFailed { gang: TRAIN.into(), pod, uid, why: no() });
    }
    backs_off(&mut stage, "refused: not today");
}

#[tokio::test]
async fn staged_members_have_no_bind_timeout_unless_the_first_are_refused() {
    for refused in [false, true] {
        let mut stage = HostFixture::with(&Config { bind_timeout: Span(0), ..Config::default() });
        let mut launched = job("train", 2);
        launched["apiVersion"] = json!("kubeflow.org/v2beta1");
        launched["kind"] = json!("MPIJob");
        let one = |count: u32| json!({"replicas": count, "template": {"spec": crate::tests::objects::spec()}});
        launched["spec"] = json!({
            "launcherCreationPolicy": "WaitForWorkersReady",
            "mpiReplicaSpecs": {"Launcher": one(1), "Worker": one(1)},
        });
        stage.show(launched, false);
        stage.show(node("n0"), false);
        stage.show(node("n1"), false);
        stage.see(pod("train-worker-0", ("kubeflow.org/v2beta1", "MPIJob", "train")));
        let gang = "team/train.mpijob";
        stage.handle_outcome(Outcome::PlacementWritten(gang.into()));
        let is_seated =
            |stage: &HostFixture| matches!(stage.phase(gang), Some(Phase::Admitted { .. }));
        assert!(is_seated(&stage), "{:?}", stage.phase(gang));
        if refused {
            let (pod, uid) = ("team/train-worker-0".into(), "train-worker-0".to_owned());
            stage.handle_outcome(Outcome::BindFailed { gang: gang.into(), pod, uid, why: no() });
        }
        stage.host.run_cycle();
        stage.host.run_cycle();
        assert_eq!(is_seated(&stage), !refused, "{:?}", stage.phase(gang));
    }
}

#[tokio::test]
async fn unanswered_placement_write_gives_the_seats_back() {
    let mut stage = seated(Span::mins(5));
    stage.host.config.bind_timeout = Span(0);
    stage.host.run_cycle();
    backs_off(&mut stage, "does not store its placement");
}

#[tokio::test]
async fn gang_bound_after_a_refusal_does_not_back_off_later() {
    let mut stage = seated(Span::mins(5));
    stage.handle_outcome(Outcome::PlacementNotWritten { gang: TRAIN.into(), why: no() });
    stage.handle_outcome(Outcome::PlacementWritten(TRAIN.into()));
    stage.handle_outcome(Outcome::PlacementWritten(TRAIN.into()));
    for at in 0..2 {
        stage.see(on(pod(&format!("train-{at}"), of_job("train")), &format!("n{at}")));
    }
    assert!(matches!(stage.phase(TRAIN), Some(Phase::Running { .. })), "{:?}", stage.phase(TRAIN));
    stage.host.config.bind_timeout = Span(0);
    stage.host.run_cycle();
    assert!(matches!(stage.phase(TRAIN), Some(Phase::Running { .. })), "{:?}", stage.phase(TRAIN));
    assert!(stage.host.gangs.get(TRAIN).is_some_and(|record| record.api_refusal.is_none()));
}

/// A gang that runs, and one of higher priority that would preempt it.
fn rivals() -> HostFixture {
    let mut stage = HostFixture::new();
    stage.show(node("n0"), false);
    stage.see(on(alone("low"), "n0"));
    let mut high = alone("high");
    high["spec"]["priority"] = json!(1_000);
    stage.see(high);
    stage
}

const LOW: &str = "team/low.pod";
const HIGH: &str = "team/high.pod";

#[tokio::test]
async fn no_victim_is_stopped_before_the_order_is_stored() {
    let mut stage = rivals();
    let order = stage.order(HIGH).expect("it has an order");
    assert!(matches!(stage.phase(LOW), Some(Phase::Running { .. })), "{:?}", stage.phase(LOW));
    let (id, _) = stage.gang(LOW).expect("it runs");
    let verdict = stage.host.verdicts.iter().find(|(of, _)| *of == id);
    assert_eq!(verdict, Some(&(id, Verdict::Running)), "it is reported as stopping before it is");
    stage.handle_outcome(Outcome::OrderWritten(order));
    assert_eq!(stage.phase(LOW), Some(&Phase::Stopping));
}

#[tokio::test]
async fn no_victim_is_stopped_for_a_refused_order() {
    let mut stage = rivals();
    let order = stage.order(HIGH).expect("it has an order");
    stage.handle_outcome(Outcome::OrderNotWritten {
        order,
        claims: Vec::new(),
        why: "refused".to_owned(),
    });
    assert!(matches!(stage.phase(LOW), Some(Phase::Running { .. })), "{:?}", stage.phase(LOW));
    let (_, high) = stage.gang(HIGH).expect("it waits");
    assert_eq!(high.failed_orders, 1, "the failed order does not count");
    assert!(stage.order(HIGH).is_some_and(|again| again != order), "it is not tried again");
}

#[tokio::test]
async fn claims_of_a_refused_order_are_not_awaited() {
    let (mut stage, claims) = crate::tests::schedule::cases::assembling(2);
    let order = stage.order(TRAIN).expect("it has an order");
    let asked = claims.iter().map(|id| muster_core::id::ClaimId(*id)).collect();
    stage.handle_outcome(Outcome::OrderNotWritten {
        order,
        claims: asked,
        why: "refused".to_owned(),
    });
    let left = stage.claims();
    assert!(claims.iter().all(|id| !left.contains(id)), "{claims:?} are still counted: {left:?}");
    assert!(stage.order(TRAIN).is_some_and(|again| again != order), "it is not tried again");
}

/// A ProvisioningRequest for so many pods with 8 GPUs each.
fn request(uid: &str, count: u32) -> Value {
    json!({
        "apiVersion": "autoscaling.x-k8s.io/v1", "kind": "ProvisioningRequest",
        "metadata": {"name": "room", "namespace": "team", "uid": uid},
        "spec": {"provisioningClassName": "gang.muster.sh",
            "podSets": [{"podTemplateRef": {"name": "room"}, "count": count}]},
    })
}

#[tokio::test]
async fn replaced_provisioning_request_inherits_nothing() {
    let mut stage = HostFixture::new();
    stage.show(node("n0"), false);
    stage.show(node("n1"), false);
    let mut template = json!({
        "apiVersion": "v1", "kind": "PodTemplate",
        "metadata": {"name": "room", "namespace": "team", "uid": "template"},
    });
    template["template"] = json!({"spec": crate::tests::objects::spec()});
    stage.show(template, false);
    stage.see(request("first", 1));
    let name = "team/room.request";
    stage.handle_outcome(Outcome::PlacementWritten(name.into()));
    assert!(matches!(stage.phase(name), Some(Phase::Running { .. })), "{:?}", stage.phase(name));
    // Both are observed before the next cycle.
    stage.show(request("first", 1), true);
    stage.show(request("second", 2), false);
    stage.host.run_cycle();
    let (_, gang) = stage.gang(name).expect("it has a record");
    assert_eq!(gang.spec.roles[0].min, 2, "it has the spec of the first");
    assert!(matches!(gang.phase, Phase::Admitted { .. }), "{:?}", gang.phase);
}

#[tokio::test]
async fn gang_that_repeatedly_does_not_use_its_seats_backs_off() {
    let mut stage = seated(Span::mins(5));
    for times in 1..=4 {
        stage.host.back_off_because(&TRAIN.into(), "its volumes were not provisioned");
        let denied = stage.host.gangs.get(TRAIN).and_then(|record| record.api_refusal.as_ref());
        let backs_off = denied.is_some_and(|denied| denied.until.is_some());
        assert_eq!(backs_off, times > 2, "{times}");
    }
}
