//! Objects that are replaced between two steps: outcomes and state of the former do not count for the latter.

use muster_core::gang::Phase;
use serde_json::{Value, json};

use crate::cache::kinds::KindRole;
use crate::effects::outcome::Outcome;
use crate::tests::fixture::HostFixture;
use crate::tests::objects::{job, node, of_job, pod, single_pod};
use crate::tests::schedule::cases::{TRAIN, assembling, on};

const PAIR: &str = "team/pair";

fn half(name: &str, uid: &str) -> Value {
    let mut pod = single_pod(name);
    pod["metadata"]["uid"] = json!(uid);
    pod["metadata"]["annotations"] = json!({"muster.sh/gang": "pair", "muster.sh/gang-size": "2"});
    pod
}

/// A pair that has its seats and whose placement is being written.
fn pair() -> HostFixture {
    let mut fixture = HostFixture::new();
    fixture.show(node("n0"), false);
    fixture.show(node("n1"), false);
    fixture.show(half("a", "a"), false);
    fixture.show(half("b", "b"), false);
    fixture.host.run_cycle();
    assert!(
        matches!(fixture.phase(PAIR), Some(Phase::Admitted { .. })),
        "{:?}",
        fixture.phase(PAIR)
    );
    fixture
}

fn unready(mut node: Value) -> Value {
    node["status"]["conditions"] = json!([{"type": "Ready", "status": "False"}]);
    node
}

#[tokio::test]
async fn placement_written_for_former_seats_binds_no_pod() {
    let mut fixture = pair();
    let (id, _) = fixture.gang(PAIR).expect("it has seats");
    fixture.show(unready(node("n0")), false);
    fixture.host.stop_gang(id, muster_core::plan::StopReason::Moved);
    fixture.host.run_cycle();
    assert_eq!(fixture.phase(PAIR), Some(&Phase::Waiting));
    // Only now comes the outcome of the first placement write.
    fixture.handle_outcome(Outcome::PlacementWritten(PAIR.into()));
    fixture.see(node("n0"));
    assert!(
        matches!(fixture.phase(PAIR), Some(Phase::Admitted { .. })),
        "{:?}",
        fixture.phase(PAIR)
    );
    fixture.see(half("a", "a"));
    let assigned = |fixture: &HostFixture| {
        fixture.host.gangs.get(PAIR).map_or(0, |of| of.assigned_nodes.len())
    };
    assert_eq!(assigned(&fixture), 0, "they are bound before their placement is written");
    fixture.handle_outcome(Outcome::PlacementWritten(PAIR.into()));
    assert_eq!(assigned(&fixture), 2);
}

#[tokio::test]
async fn outcome_of_a_deleted_pod_does_not_affect_its_namesake() {
    let mut fixture = pair();
    fixture.handle_outcome(Outcome::PlacementWritten(PAIR.into()));
    fixture.see_gone(half("a", "a"));
    fixture.see(half("a", "again"));
    let assigned = |fixture: &HostFixture| {
        fixture
            .host
            .gangs
            .get(PAIR)
            .is_some_and(|record| record.assigned_nodes.contains_key("team/a"))
    };
    assert!(assigned(&fixture), "it has the seat of the first");
    let not_bound = |uid: &str| Outcome::BindFailed {
        gang: PAIR.into(),
        pod: "team/a".into(),
        uid: uid.to_owned(),
        why: None,
    };
    fixture.host.handle_outcome(not_bound("a"));
    assert!(assigned(&fixture), "it may be bound by now, and is assigned another node");
    fixture.host.handle_outcome(not_bound("again"));
    assert!(!assigned(&fixture));
}

fn in_queue(mut pod: Value, queue: &str) -> Value {
    pod["metadata"]["annotations"] = json!({"muster.sh/queue": queue});
    pod
}

fn queue(name: &str) -> Value {
    json!({
        "apiVersion": "muster.sh/v1alpha1", "kind": "Queue",
        "metadata": {"name": name, "uid": name},
        "spec": {"namespaces": {"names": ["team"]}, "maxPriority": 1000},
    })
}

#[tokio::test]
async fn gang_moved_to_a_missing_queue_does_not_start_in_the_old_one() {
    let mut fixture = HostFixture::new();
    let mut submitted = job("train", 1);
    submitted["metadata"]["creationTimestamp"] = json!("2026-10-15T10:00:00Z");
    fixture.show(submitted, false);
    fixture.see(pod("train-0", of_job("train")));
    assert_eq!(fixture.phase(TRAIN), Some(&Phase::Waiting));
    fixture.see(in_queue(pod("train-0", of_job("train")), "later"));
    fixture.see(node("n0"));
    assert_eq!(fixture.phase(TRAIN), None, "it starts in a queue that it has left");
    let why = fixture.host.gangs.get(TRAIN).and_then(|record| record.blocked.clone());
    assert!(why.is_some_and(|(why, _)| why.contains("later")), "it has no reason");
    fixture.show(unready(node("n0")), false);
    fixture.see(queue("later"));
    let (_, gang) = fixture.gang(TRAIN).expect("it is submitted");
    assert_eq!(&*gang.spec.queue, "later");
    assert_eq!(gang.submitted.0, 1_792_058_400_000, "it has lost its place");
}

#[tokio::test]
async fn order_is_not_completed_for_a_queue_its_gang_has_left() {
    let (mut fixture, _) = assembling(1);
    fixture.see(queue("next"));
    let order = fixture.order(TRAIN);
    fixture.see(in_queue(pod("train-0", of_job("train")), "next"));
    assert_ne!(fixture.order(TRAIN), order, "its nodes are charged to another queue");
    let (_, gang) = fixture.gang(TRAIN).expect("it waits");
    assert_eq!(&*gang.spec.queue, "next");
    fixture.see(in_queue(pod("train-0", of_job("train")), "nowhere"));
    assert_eq!(fixture.order(TRAIN), None);
    assert_eq!(fixture.phase(TRAIN), None);
}

#[tokio::test]
async fn priority_class_created_after_its_gangs_counts() {
    let mut fixture = HostFixture::new();
    let mut held = job("train", 1);
    held["spec"]["suspend"] = json!(true);
    held["spec"]["template"]["spec"]["priorityClassName"] = json!("high");
    held["metadata"]["annotations"] = json!({"muster.sh/admit": "unsuspend"});
    fixture.see(held);
    let priority = |fixture: &HostFixture| fixture.gang(TRAIN).map(|(_, gang)| gang.spec.priority);
    assert_eq!(priority(&fixture), Some(0));
    fixture.see(json!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
        "metadata": {"name": "high", "uid": "high"}, "value": 1000,
    }));
    assert_eq!(priority(&fixture), Some(1000));
}

#[tokio::test]
async fn one_pod_that_never_preempts_decides_for_its_gang() {
    for (said, never_preempts) in
        [(None, false), (Some("PreemptLowerPriority"), false), (Some("Never"), true)]
    {
        let mut fixture = HostFixture::new();
        fixture.show(job("train", 2), false);
        fixture.show(pod("train-0", of_job("train")), false);
        let mut second = pod("train-1", of_job("train"));
        second["spec"]["preemptionPolicy"] = json!(said);
        fixture.see(second);
        let (_, gang) = fixture.gang(TRAIN).expect("it is submitted");
        assert_eq!(gang.spec.disruption.never_preempts, never_preempts, "{said:?}");
    }
}

#[tokio::test]
async fn group_with_a_never_preempting_class_stops_no_gang() {
    let class = |policy: &str| {
        json!({
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
            "metadata": {"name": "high", "uid": "high"}, "value": 1000, "preemptionPolicy": policy,
        })
    };
    let mut fixture = HostFixture::new();
    fixture.show(queue("default"), false);
    fixture.show(node("n0"), false);
    fixture.show(pod("low-0", of_job("low")), false);
    fixture.see(job("low", 1));
    assert!(matches!(fixture.phase("team/low.job"), Some(Phase::Admitted { .. })));
    fixture.see(class("Never"));
    let mut held = job("train", 1);
    held["spec"]["suspend"] = json!(true);
    held["spec"]["template"]["spec"]["priorityClassName"] = json!("high");
    held["metadata"]["annotations"] = json!({"muster.sh/admit": "unsuspend"});
    fixture.see(held);
    let (_, gang) = fixture.gang(TRAIN).expect("it is submitted");
    assert_eq!((gang.spec.priority, gang.spec.disruption.never_preempts), (1000, true));
    let low = |fixture: &HostFixture| fixture.phase("team/low.job").cloned();
    assert!(matches!(low(&fixture), Some(Phase::Admitted { .. })), "{:?}", low(&fixture));
    fixture.see(class("PreemptLowerPriority"));
    fixture.handle_outcome(Outcome::OrderWritten(fixture.order(TRAIN).expect("it has an order")));
    assert_eq!(low(&fixture), Some(Phase::Waiting), "it had not begun, and is gone at once");
}

#[tokio::test]
async fn state_of_deleted_objects_is_dropped() {
    let mut fixture = HostFixture::new();
    for at in 0..3 {
        let name = format!("waits-{at}");
        let mut waits = single_pod(&name);
        waits["metadata"]["annotations"] = json!({
            "autoscaling.x-k8s.io/consume-provisioning-request": format!("room-{at}"),
        });
        fixture.see(waits.clone());
        assert_eq!(fixture.host.served_requests.awaited_count(), 1);
        fixture.see_gone(waits);
    }
    assert_eq!(
        fixture.host.served_requests.awaited_count(),
        0,
        "requests that never come are awaited"
    );
    for at in 0..3 {
        let mut odd = queue(&format!("q{at}"));
        odd["spec"] = json!({"weight": "heavy"});
        fixture.see(odd.clone());
        fixture.host.supply_status.write_soon();
        fixture.host.run_cycle();
        assert_eq!(fixture.host.supply_status.remembers(KindRole::Queue), 1);
        fixture.see_gone(odd);
        let mut odd = json!({"apiVersion": "muster.sh/v1alpha1", "kind": "Topology",
            "metadata": {"name": format!("t{at}"), "uid": "t"}, "spec": {"levels": "odd"}});
        fixture.see(odd.clone());
        fixture.host.supply_status.write_soon();
        fixture.host.run_cycle();
        assert_eq!(fixture.host.rejected_objects.len(), 1, "{:?}", fixture.host.rejected_objects);
        odd["metadata"]["deletionTimestamp"] = json!("2026-10-15T10:00:00Z");
        fixture.see_gone(odd);
    }
    fixture.host.supply_status.write_soon();
    fixture.host.run_cycle();
    assert_eq!(fixture.host.supply_status.remembers(KindRole::Queue), 0);
    assert!(fixture.host.rejected_objects.is_empty(), "{:?}", fixture.host.rejected_objects);
}

#[tokio::test]
async fn stop_is_written_to_the_status_at_once_for_every_reason() {
    let mut fixture = pair();
    fixture.handle_outcome(Outcome::PlacementWritten(PAIR.into()));
    fixture.see(on(half("a", "a"), "n0"));
    fixture.see_gone(half("b", "b"));
    fixture.host.config.bind_timeout = muster_core::time::Span::ZERO;
    fixture.host.run_cycle();
    assert_eq!(fixture.phase(PAIR), Some(&Phase::Stopping));
    assert!(fixture.host.written_status.is_stop_recorded(PAIR), "its status is written much later");
}
