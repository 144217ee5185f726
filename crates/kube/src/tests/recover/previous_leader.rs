//! What whoever led before has left behind: queues that are gone, offerings that failed, orders that did.

use muster_core::gang::Phase;
use muster_core::id::{ClaimId, OfferingRef, PoolIdx};
use muster_core::order::ClaimFailure;
use muster_core::time::Time;
use muster_core::{Event, verdict};
use serde_json::{Value, json};

use crate::tests::fixture::HostFixture;
use crate::tests::objects::{job, node, of_job, pod, pool};
use crate::tests::schedule::cases::{TRAIN, assembling, on};
use crate::tests::schedule::seats::{seats, told};

fn in_queue(mut pod: Value, queue: &str) -> Value {
    pod["metadata"]["annotations"] = json!({"muster.sh/queue": queue});
    pod
}

/// A Job of two in a queue that nobody declares any more; how many of its pods are somewhere.
fn of_a_queue_that_is_gone(bound: u32) -> HostFixture {
    let mut stage = HostFixture::new();
    stage.show(job("train", 2), false);
    for at in 0..2 {
        stage.show(node(&format!("n{at}")), false);
        let member = in_queue(pod(&format!("train-{at}"), of_job("train")), "gone");
        let place = format!("n{at}");
        stage.show(if at < bound { on(member, &place) } else { member }, false);
    }
    stage.host.turn();
    stage
}

#[tokio::test]
async fn who_runs_in_a_queue_that_was_deleted_goes_on_under_the_next_leader() {
    let mut stage = of_a_queue_that_is_gone(2);
    assert!(matches!(stage.phase(TRAIN), Some(Phase::Running { .. })), "{:?}", stage.phase(TRAIN));
    assert_eq!(seats(&stage, TRAIN), 2);
    // Nobody is put on top of it, and nobody else is taken in there.
    stage.show(job("other", 1), false);
    stage.see(pod("other-0", of_job("other")));
    assert_eq!(stage.phase("team/other.job"), Some(&Phase::Waiting));
    stage.show(job("late", 1), false);
    stage.see(in_queue(pod("late-0", of_job("late")), "gone"));
    assert_eq!(stage.phase("team/late.job"), None, "the queue takes nobody");
    // One that fails finds its seat when it is made again.
    let mut failed = on(in_queue(pod("train-1", of_job("train")), "gone"), "n1");
    failed["status"]["phase"] = json!("Failed");
    stage.see(failed);
    stage.see(in_queue(pod("train-1-again", of_job("train")), "gone"));
    assert_eq!(told(&stage, TRAIN, "train-1-again").as_deref(), Some("n1"));
}

#[tokio::test]
async fn who_waits_in_a_queue_that_was_deleted_is_told_that_it_is_not_there() {
    let stage = of_a_queue_that_is_gone(0);
    assert_eq!(stage.phase(TRAIN), None);
    let why = stage.host.gangs.get(TRAIN).and_then(|group| group.blocked.clone());
    assert!(why.is_some_and(|(why, _)| why.contains("gone")));
}

/// The offering of the pool [`pool`].
const OFFERING: OfferingRef = OfferingRef { pool: PoolIdx(0), slot: 0 };

/// As the pool's object says when it is told how it stands.
fn pool_as_told(stage: &HostFixture) -> Value {
    let mut told = pool();
    told["status"] = stage.host.pool_status(PoolIdx(0));
    told
}

#[tokio::test]
async fn what_had_run_out_is_not_asked_for_at_once_by_the_next_leader() {
    let (mut stage, claims) = assembling(2);
    let at = stage.host.supply_status.at_last();
    for claim in claims {
        stage.host.apply_event(&Event::ClaimFailed(ClaimId(claim), ClaimFailure::StockOut));
    }
    stage.host.turn();
    assert_eq!(stage.order(TRAIN), None, "{:?}", stage.host.verdicts);
    assert!(stage.host.supply_status.at_last() > at, "it is written down at once");
    let pool = pool_as_told(&stage);
    assert_eq!(pool["status"]["offerings"][0]["name"], "gpu8/zone-a/on-demand");
    let mut next = HostFixture::new();
    next.show(pool, false);
    next.show(job("train", 2), false);
    for at in 0..2 {
        next.show(pod(&format!("train-{at}"), of_job("train")), false);
    }
    next.host.turn();
    assert_eq!(next.order(TRAIN), None, "it is asked for what was refused a moment ago");
    let [(_, verdict::Verdict::Waiting { blockers, .. })] = &*next.host.verdicts else {
        panic!("{:?}", next.host.verdicts)
    };
    let avoided = |one: &verdict::Blocker| matches!(one, verdict::Blocker::OfferingsAvoided { .. });
    assert!(blockers.iter().any(avoided), "{blockers:?}");
    let health = |stage: &HostFixture| stage.host.world.offering(OFFERING).health;
    assert_eq!(health(&next).streak, health(&stage).streak);
    assert!(health(&next).is_out());
}

#[tokio::test]
async fn nothing_is_said_of_offerings_that_are_as_good_as_any() {
    let (stage, _) = assembling(1);
    assert_eq!(pool_as_told(&stage)["status"]["offerings"], Value::Null);
}

#[tokio::test]
async fn what_is_said_of_offerings_and_makes_no_sense_stops_nobody() {
    for offerings in [json!("x"), json!([{"name": 7}]), json!([{"name": "a", "failures": -1}])] {
        let mut odd = pool();
        odd["status"] = json!({"offerings": offerings});
        let mut stage = HostFixture::new();
        stage.show(odd, false);
        stage.show(job("train", 1), false);
        stage.see(pod("train-0", of_job("train")));
        assert!(stage.order(TRAIN).is_some());
    }
}

#[tokio::test]
async fn orders_that_failed_count_under_the_next_leader() {
    let gang_object = |last: &str| {
        json!({
            "apiVersion": "muster.sh/v1alpha1", "kind": "Gang",
            "metadata": {"name": "train.job", "namespace": "team", "uid": "gang",
                "labels": {"app.kubernetes.io/managed-by": "muster"}},
            "spec": {}, "status": {"failedOrders": 3, "lastFailedOrder": last},
        })
    };
    for (last, counted) in [("2026-11-01T10:00:00Z", 3), ("2026-10-01T10:00:00Z", 0)] {
        let mut stage = HostFixture::new();
        let mut submitted = job("train", 1);
        submitted["metadata"]["creationTimestamp"] = json!("2026-10-15T10:00:00Z");
        stage.show(submitted, false);
        stage.show(pod("train-0", of_job("train")), false);
        stage.show(gang_object(last), false);
        stage.host.turn();
        let (_, gang) = stage.gang(TRAIN).expect("it waits");
        assert_eq!(gang.failed_orders, counted, "{last}");
        assert_eq!(gang.last_failure.is_some_and(|at| at > Time::ZERO), counted > 0);
    }
}
