//! Servers that say no: nobody holds seats for ever that it may not use, and nobody is disturbed for nothing.

use muster_core::gang::Phase;
use muster_core::time::Span;
use muster_core::verdict::Verdict;
use serde_json::{Value, json};

use crate::effects::outcome::Outcome;
use crate::run::Config;
use crate::tests::fixture::HostFixture;
use crate::tests::objects::{alone, job, node, of_job, pod};
use crate::tests::schedule::cases::{TRAIN, on};

const OTHER: &str = "team/other.job";

/// A Job of two that has its seats, on a host that is patient for so long.
fn seated(patience: Span) -> HostFixture {
    let mut stage = HostFixture::with(&Config { bind_timeout: patience, ..Config::default() });
    stage.show(job("train", 2), false);
    for at in 0..2 {
        stage.show(node(&format!("n{at}")), false);
        stage.show(pod(&format!("train-{at}"), of_job("train")), false);
    }
    stage.host.turn();
    assert!(matches!(stage.phase(TRAIN), Some(Phase::Admitted { .. })), "{:?}", stage.phase(TRAIN));
    stage
}

fn no() -> Option<String> {
    Some("refused: not today".to_owned())
}

fn why(stage: &HostFixture) -> String {
    let record = stage.host.gangs.get(TRAIN).expect("it is there");
    record.wait_reason.clone().unwrap_or_default()
}

/// It has given its seats back, says why, and others have them.
fn is_left_alone(stage: &mut HostFixture, because: &str) {
    assert_eq!(stage.phase(TRAIN), Some(&Phase::Waiting));
    assert!(why(stage).contains(because), "{}", why(stage));
    stage.show(job("other", 2), false);
    stage.show(pod("other-0", of_job("other")), false);
    stage.see(pod("other-1", of_job("other")));
    assert!(matches!(stage.phase(OTHER), Some(Phase::Admitted { .. })), "{:?}", stage.phase(OTHER));
}

#[tokio::test]
async fn who_may_not_be_written_down_gives_its_seats_back_and_tries_again_later() {
    let mut stage = seated(Span::mins(5));
    stage.handle_outcome(Outcome::PlacementNotWritten { gang: TRAIN.into(), why: no() });
    assert!(matches!(stage.phase(TRAIN), Some(Phase::Admitted { .. })), "it has some time");
    stage.host.config.bind_timeout = Span(0);
    stage.host.turn();
    is_left_alone(&mut stage, "refused: not today");
    // When its pause is over and the others are gone it has its turn.
    for at in 0..2 {
        stage.show(pod(&format!("other-{at}"), of_job("other")), true);
    }
    stage.host.turn();
    assert_eq!(stage.phase(TRAIN), Some(&Phase::Waiting));
    stage.host.config.bind_timeout = Span::mins(5);
    let record = stage.host.gangs.get_mut(TRAIN).expect("it is there");
    record.api_refusal.as_mut().expect("it was").until = None;
    stage.handle_outcome(Outcome::Requeue(TRAIN.into()));
    assert!(matches!(stage.phase(TRAIN), Some(Phase::Admitted { .. })), "{:?}", stage.phase(TRAIN));
}

#[tokio::test]
async fn who_may_not_be_bound_gives_its_seats_back_although_nobody_of_it_is_anywhere() {
    let mut stage = seated(Span::mins(5));
    stage.handle_outcome(Outcome::PlacementWritten(TRAIN.into()));
    for at in 0..2 {
        let (pod, uid) = (format!("team/train-{at}").into(), format!("train-{at}"));
        stage.handle_outcome(Outcome::BindFailed { gang: TRAIN.into(), pod, uid, why: no() });
    }
    stage.host.config.bind_timeout = Span(0);
    stage.host.turn();
    // They were told their nodes once more, and are not there.
    for at in 0..2 {
        let (pod, uid) = (format!("team/train-{at}").into(), format!("train-{at}"));
        stage.handle_outcome(Outcome::BindFailed { gang: TRAIN.into(), pod, uid, why: no() });
    }
    is_left_alone(&mut stage, "refused: not today");
}

#[tokio::test]
async fn members_that_come_in_stages_have_no_time_to_keep_unless_the_first_of_them_are_refused() {
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
        stage.host.turn();
        stage.host.turn();
        assert_eq!(is_seated(&stage), !refused, "{:?}", stage.phase(gang));
    }
}

#[tokio::test]
async fn who_is_never_answered_gives_its_seats_back() {
    let mut stage = seated(Span::mins(5));
    stage.host.config.bind_timeout = Span(0);
    stage.host.turn();
    is_left_alone(&mut stage, "does not take down");
}

#[tokio::test]
async fn who_was_bound_at_last_is_not_left_alone_for_what_was_before() {
    let mut stage = seated(Span::mins(5));
    stage.handle_outcome(Outcome::PlacementNotWritten { gang: TRAIN.into(), why: no() });
    stage.handle_outcome(Outcome::PlacementWritten(TRAIN.into()));
    stage.handle_outcome(Outcome::PlacementWritten(TRAIN.into()));
    for at in 0..2 {
        stage.see(on(pod(&format!("train-{at}"), of_job("train")), &format!("n{at}")));
    }
    assert!(matches!(stage.phase(TRAIN), Some(Phase::Running { .. })), "{:?}", stage.phase(TRAIN));
    stage.host.config.bind_timeout = Span(0);
    stage.host.turn();
    assert!(matches!(stage.phase(TRAIN), Some(Phase::Running { .. })), "{:?}", stage.phase(TRAIN));
    assert!(stage.host.gangs.get(TRAIN).is_some_and(|record| record.api_refusal.is_none()));
}

/// One that runs, and one of higher priority that would have its room.
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
async fn nobody_makes_way_before_it_is_written_down_for_whom() {
    let mut stage = rivals();
    let order = stage.order(HIGH).expect("it has an order");
    assert!(matches!(stage.phase(LOW), Some(Phase::Running { .. })), "{:?}", stage.phase(LOW));
    let (id, _) = stage.gang(LOW).expect("it runs");
    let told = stage.host.verdicts.iter().find(|(of, _)| *of == id);
    assert_eq!(told, Some(&(id, Verdict::Running)), "it is said to stop before it does");
    stage.handle_outcome(Outcome::OrderWritten(order));
    assert_eq!(stage.phase(LOW), Some(&Phase::Stopping));
}

#[tokio::test]
async fn nobody_makes_way_for_an_order_that_is_refused() {
    let mut stage = rivals();
    let order = stage.order(HIGH).expect("it has an order");
    stage.handle_outcome(Outcome::OrderNotWritten {
        order,
        claims: Vec::new(),
        why: "refused".to_owned(),
    });
    assert!(matches!(stage.phase(LOW), Some(Phase::Running { .. })), "{:?}", stage.phase(LOW));
    let (_, high) = stage.gang(HIGH).expect("it waits");
    assert_eq!(high.failed_orders, 1, "it does not count");
    assert!(stage.order(HIGH).is_some_and(|again| again != order), "it is not tried again");
}

#[tokio::test]
async fn what_was_never_asked_for_is_not_waited_for_when_its_order_is_refused() {
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

/// A request for so many pods with 8 GPUs each.
fn request(uid: &str, count: u32) -> Value {
    json!({
        "apiVersion": "autoscaling.x-k8s.io/v1", "kind": "ProvisioningRequest",
        "metadata": {"name": "room", "namespace": "team", "uid": uid},
        "spec": {"provisioningClassName": "gang.muster.sh",
            "podSets": [{"podTemplateRef": {"name": "room"}, "count": count}]},
    })
}

#[tokio::test]
async fn a_request_that_was_replaced_has_nothing_of_the_one_before() {
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
    // Both are seen before anybody looks.
    stage.show(request("first", 1), true);
    stage.show(request("second", 2), false);
    stage.host.turn();
    let (_, gang) = stage.gang(name).expect("it is there");
    assert_eq!(gang.spec.roles[0].min, 2, "it is what the first was");
    assert!(matches!(gang.phase, Phase::Admitted { .. }), "{:?}", gang.phase);
}

#[tokio::test]
async fn a_gang_that_has_its_seats_for_nothing_again_and_again_is_left_alone() {
    let mut stage = seated(Span::mins(5));
    for times in 1..=4 {
        stage.host.back_off_because(&TRAIN.into(), "its volumes were not made");
        let denied = stage.host.gangs.get(TRAIN).and_then(|record| record.api_refusal.as_ref());
        let is_left_alone = denied.is_some_and(|denied| denied.until.is_some());
        assert_eq!(is_left_alone, times > 2, "{times}");
    }
}
