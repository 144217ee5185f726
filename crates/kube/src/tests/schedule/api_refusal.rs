//! Refusals of the API server: no gang holds seats forever that it cannot use, and no victim is stopped in vain.

use muster_core::gang::Phase;
use muster_core::time::Span;
use muster_core::verdict::Verdict;
use serde_json::{Value, json};

use crate::config::Config;
use crate::effects::outcome::Outcome;
use crate::tests::fixture::HostFixture;
use crate::tests::objects::{job, node, of_job, pod, single_pod};
use crate::tests::schedule::cases::{TRAIN, on};

const OTHER: &str = "team/other.job";

/// A Job of two that has its seats, on a host with this bind timeout.
fn seated(patience: Span) -> HostFixture {
    let mut fixture = HostFixture::with(&Config { bind_timeout: patience, ..Config::default() });
    fixture.show(job("train", 2), false);
    for at in 0..2 {
        fixture.show(node(&format!("n{at}")), false);
        fixture.show(pod(&format!("train-{at}"), of_job("train")), false);
    }
    fixture.host.run_cycle();
    assert!(
        matches!(fixture.phase(TRAIN), Some(Phase::Admitted { .. })),
        "{:?}",
        fixture.phase(TRAIN)
    );
    fixture
}

fn no() -> Option<String> {
    Some("refused: not today".to_owned())
}

fn why(fixture: &HostFixture) -> String {
    let record = fixture.host.gangs.get(TRAIN).expect("it has a record");
    record.wait_reason.clone().unwrap_or_default()
}

/// The gang has given its seats back, has the reason, and others get the seats.
fn backs_off(fixture: &mut HostFixture, because: &str) {
    assert_eq!(fixture.phase(TRAIN), Some(&Phase::Waiting));
    assert!(why(fixture).contains(because), "{}", why(fixture));
    fixture.show(job("other", 2), false);
    fixture.show(pod("other-0", of_job("other")), false);
    fixture.see(pod("other-1", of_job("other")));
    assert!(
        matches!(fixture.phase(OTHER), Some(Phase::Admitted { .. })),
        "{:?}",
        fixture.phase(OTHER)
    );
}

#[tokio::test]
async fn refused_placement_gives_the_seats_back_and_retries_after_backoff() {
    let mut fixture = seated(Span::mins(5));
    fixture.handle_outcome(Outcome::PlacementNotWritten { gang: TRAIN.into(), why: no() });
    assert!(
        matches!(fixture.phase(TRAIN), Some(Phase::Admitted { .. })),
        "its timeout has not expired"
    );
    fixture.host.config.bind_timeout = Span(0);
    fixture.host.run_cycle();
    backs_off(&mut fixture, "refused: not today");
    // When its backoff is over and the others are gone it starts.
    for at in 0..2 {
        fixture.show(pod(&format!("other-{at}"), of_job("other")), true);
    }
    fixture.host.run_cycle();
    assert_eq!(fixture.phase(TRAIN), Some(&Phase::Waiting));
    fixture.host.config.bind_timeout = Span::mins(5);
    let record = fixture.host.gangs.get_mut(TRAIN).expect("it has a record");
    record.api_refusal.as_mut().expect("it was").until = None;
    fixture.handle_outcome(Outcome::Requeue(TRAIN.into()));
    assert!(
        matches!(fixture.phase(TRAIN), Some(Phase::Admitted { .. })),
        "{:?}",
        fixture.phase(TRAIN)
    );
}

#[tokio::test]
async fn refused_binding_gives_the_seats_back_when_no_pod_is_bound() {
    let mut fixture = seated(Span::mins(5));
    fixture.handle_outcome(Outcome::PlacementWritten(TRAIN.into()));
    for at in 0..2 {
        let (pod, uid) = (format!("team/train-{at}").into(), format!("train-{at}"));
        fixture.handle_outcome(Outcome::BindFailed { gang: TRAIN.into(), pod, uid, why: no() });
    }
    fixture.host.config.bind_timeout = Span(0);
    fixture.host.run_cycle();
    // They were assigned their nodes once more, and are not bound.
    for at in 0..2 {
        let (pod, uid) = (format!("team/train-{at}").into(), format!("train-{at}"));
        fixture.handle_outcome(Outcome::BindFailed { gang: TRAIN.into(), pod, uid, why: no() });
    }
    backs_off(&mut fixture, "refused: not today");
}

#[tokio::test]
async fn staged_members_have_no_bind_timeout_unless_the_first_are_refused() {
    for refused in [false, true] {
        let mut fixture = HostFixture::with(&Config { bind_timeout: Span(0), ..Config::default() });
        let mut launched = job("train", 2);
        launched["apiVersion"] = json!("kubeflow.org/v2beta1");
        launched["kind"] = json!("MPIJob");
        let one = |count: u32| json!({"replicas": count, "template": {"spec": crate::tests::objects::spec()}});
        launched["spec"] = json!({
            "launcherCreationPolicy": "WaitForWorkersReady",
            "mpiReplicaSpecs": {"Launcher": one(1), "Worker": one(1)},
        });
        fixture.show(launched, false);
        fixture.show(node("n0"), false);
        fixture.show(node("n1"), false);
        fixture.see(pod("train-worker-0", ("kubeflow.org/v2beta1", "MPIJob", "train")));
        let gang = "team/train.mpijob";
        fixture.handle_outcome(Outcome::PlacementWritten(gang.into()));
        let is_seated =
            |fixture: &HostFixture| matches!(fixture.phase(gang), Some(Phase::Admitted { .. }));
        assert!(is_seated(&fixture), "{:?}", fixture.phase(gang));
        if refused {
            let (pod, uid) = ("team/train-worker-0".into(), "train-worker-0".to_owned());
            fixture.handle_outcome(Outcome::BindFailed { gang: gang.into(), pod, uid, why: no() });
        }
        fixture.host.run_cycle();
        fixture.host.run_cycle();
        assert_eq!(is_seated(&fixture), !refused, "{:?}", fixture.phase(gang));
    }
}

#[tokio::test]
async fn unanswered_placement_write_gives_the_seats_back() {
    let mut fixture = seated(Span::mins(5));
    fixture.host.config.bind_timeout = Span(0);
    fixture.host.run_cycle();
    backs_off(&mut fixture, "does not store its placement");
}

#[tokio::test]
async fn gang_bound_after_a_refusal_does_not_back_off_later() {
    let mut fixture = seated(Span::mins(5));
    fixture.handle_outcome(Outcome::PlacementNotWritten { gang: TRAIN.into(), why: no() });
    fixture.handle_outcome(Outcome::PlacementWritten(TRAIN.into()));
    fixture.handle_outcome(Outcome::PlacementWritten(TRAIN.into()));
    for at in 0..2 {
        fixture.see(on(pod(&format!("train-{at}"), of_job("train")), &format!("n{at}")));
    }
    assert!(
        matches!(fixture.phase(TRAIN), Some(Phase::Running { .. })),
        "{:?}",
        fixture.phase(TRAIN)
    );
    fixture.host.config.bind_timeout = Span(0);
    fixture.host.run_cycle();
    assert!(
        matches!(fixture.phase(TRAIN), Some(Phase::Running { .. })),
        "{:?}",
        fixture.phase(TRAIN)
    );
    assert!(fixture.host.gangs.get(TRAIN).is_some_and(|record| record.api_refusal.is_none()));
}

/// A gang that runs, and one of higher priority that would preempt it.
fn rivals() -> HostFixture {
    let mut fixture = HostFixture::new();
    fixture.show(node("n0"), false);
    fixture.see(on(single_pod("low"), "n0"));
    let mut high = single_pod("high");
    high["spec"]["priority"] = json!(1_000);
    fixture.see(high);
    fixture
}

const LOW: &str = "team/low.pod";
const HIGH: &str = "team/high.pod";

#[tokio::test]
async fn no_victim_is_stopped_before_the_order_is_stored() {
    let mut fixture = rivals();
    let order = fixture.order(HIGH).expect("it has an order");
    assert!(matches!(fixture.phase(LOW), Some(Phase::Running { .. })), "{:?}", fixture.phase(LOW));
    let (id, _) = fixture.gang(LOW).expect("it runs");
    let verdict = fixture.host.verdicts.iter().find(|(of, _)| *of == id);
    assert_eq!(verdict, Some(&(id, Verdict::Running)), "it is reported as stopping before it is");
    fixture.handle_outcome(Outcome::OrderWritten(order));
    assert_eq!(fixture.phase(LOW), Some(&Phase::Stopping));
}

#[tokio::test]
async fn no_victim_is_stopped_for_a_refused_order() {
    let mut fixture = rivals();
    let order = fixture.order(HIGH).expect("it has an order");
    fixture.handle_outcome(Outcome::OrderNotWritten {
        order,
        claims: Vec::new(),
        why: "refused".to_owned(),
    });
    assert!(matches!(fixture.phase(LOW), Some(Phase::Running { .. })), "{:?}", fixture.phase(LOW));
    let (_, high) = fixture.gang(HIGH).expect("it waits");
    assert_eq!(high.failed_orders, 1, "the failed order does not count");
    assert!(fixture.order(HIGH).is_some_and(|again| again != order), "it is not tried again");
}

#[tokio::test]
async fn claims_of_a_refused_order_are_not_awaited() {
    let (mut fixture, claims) = crate::tests::schedule::cases::assembling(2);
    let order = fixture.order(TRAIN).expect("it has an order");
    let asked = claims.iter().map(|id| muster_core::id::ClaimId(*id)).collect();
    fixture.handle_outcome(Outcome::OrderNotWritten {
        order,
        claims: asked,
        why: "refused".to_owned(),
    });
    let left = fixture.claims();
    assert!(claims.iter().all(|id| !left.contains(id)), "{claims:?} are still counted: {left:?}");
    assert!(fixture.order(TRAIN).is_some_and(|again| again != order), "it is not tried again");
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
    let mut fixture = HostFixture::new();
    fixture.show(node("n0"), false);
    fixture.show(node("n1"), false);
    let mut template = json!({
        "apiVersion": "v1", "kind": "PodTemplate",
        "metadata": {"name": "room", "namespace": "team", "uid": "template"},
    });
    template["template"] = json!({"spec": crate::tests::objects::spec()});
    fixture.show(template, false);
    fixture.see(request("first", 1));
    let name = "team/room.request";
    fixture.handle_outcome(Outcome::PlacementWritten(name.into()));
    assert!(
        matches!(fixture.phase(name), Some(Phase::Running { .. })),
        "{:?}",
        fixture.phase(name)
    );
    // Both are observed before the next cycle.
    fixture.show(request("first", 1), true);
    fixture.show(request("second", 2), false);
    fixture.host.run_cycle();
    let (_, gang) = fixture.gang(name).expect("it has a record");
    assert_eq!(gang.spec.roles[0].min, 2, "it has the spec of the first");
    assert!(matches!(gang.phase, Phase::Admitted { .. }), "{:?}", gang.phase);
}

#[tokio::test]
async fn gang_that_repeatedly_does_not_use_its_seats_backs_off() {
    let mut fixture = seated(Span::mins(5));
    for times in 1..=4 {
        fixture.host.back_off_because(&TRAIN.into(), "its volumes were not provisioned");
        let denied = fixture.host.gangs.get(TRAIN).and_then(|record| record.api_refusal.as_ref());
        let backs_off = denied.is_some_and(|denied| denied.until.is_some());
        assert_eq!(backs_off, times > 2, "{times}");
    }
}
