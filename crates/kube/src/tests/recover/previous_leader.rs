//! What the previous leader has left: deleted queues, offerings without stock, failed orders.

use muster_core::gang::Phase;
use muster_core::id::{ClaimId, OfferingRef, PoolIdx};
use muster_core::order::ClaimFailure;
use muster_core::time::Time;
use muster_core::{Event, verdict};
use serde_json::{Value, json};

use crate::tests::fixture::HostFixture;
use crate::tests::objects::{job, node, of_job, pod, pool};
use crate::tests::schedule::cases::{TRAIN, assembling, on};
use crate::tests::schedule::seats::{assigned_to, seats};

fn in_queue(mut pod: Value, queue: &str) -> Value {
    pod["metadata"]["annotations"] = json!({"muster.sh/queue": queue});
    pod
}

/// A Job of two in a deleted queue, with this many of its pods bound.
fn job_in_deleted_queue(bound: u32) -> HostFixture {
    let mut fixture = HostFixture::new();
    fixture.show(job("train", 2), false);
    for at in 0..2 {
        fixture.show(node(&format!("n{at}")), false);
        let member = in_queue(pod(&format!("train-{at}"), of_job("train")), "gone");
        let place = format!("n{at}");
        fixture.show(if at < bound { on(member, &place) } else { member }, false);
    }
    fixture.host.run_cycle();
    fixture
}

#[tokio::test]
async fn gang_running_in_a_deleted_queue_goes_on_under_the_next_leader() {
    let mut fixture = job_in_deleted_queue(2);
    assert!(
        matches!(fixture.phase(TRAIN), Some(Phase::Running { .. })),
        "{:?}",
        fixture.phase(TRAIN)
    );
    assert_eq!(seats(&fixture, TRAIN), 2);
    // Its nodes are used, and the queue accepts no other gang.
    fixture.show(job("other", 1), false);
    fixture.see(pod("other-0", of_job("other")));
    assert_eq!(fixture.phase("team/other.job"), Some(&Phase::Waiting));
    fixture.show(job("late", 1), false);
    fixture.see(in_queue(pod("late-0", of_job("late")), "gone"));
    assert_eq!(fixture.phase("team/late.job"), None, "the queue is closed");
    // A failed member gets its seat again when it is recreated.
    let mut failed = on(in_queue(pod("train-1", of_job("train")), "gone"), "n1");
    failed["status"]["phase"] = json!("Failed");
    fixture.see(failed);
    fixture.see(in_queue(pod("train-1-again", of_job("train")), "gone"));
    assert_eq!(assigned_to(&fixture, TRAIN, "train-1-again").as_deref(), Some("n1"));
}

#[tokio::test]
async fn gang_waiting_in_a_deleted_queue_is_blocked_with_the_reason() {
    let fixture = job_in_deleted_queue(0);
    assert_eq!(fixture.phase(TRAIN), None);
    let why = fixture.host.gangs.get(TRAIN).and_then(|record| record.blocked.clone());
    assert!(why.is_some_and(|(why, _)| why.contains("gone")));
}

/// The offering of the pool [`pool`].
const OFFERING: OfferingRef = OfferingRef { pool: PoolIdx(0), slot: 0 };

/// The Pool object with its status written.
fn pool_with_status(fixture: &HostFixture) -> Value {
    let mut pool = pool();
    pool["status"] = fixture.host.pool_status(PoolIdx(0));
    pool
}

#[tokio::test]
async fn next_leader_avoids_an_offering_without_stock() {
    let (mut fixture, claims) = assembling(2);
    let at = fixture.host.supply_status.at_last();
    for claim in claims {
        fixture.host.apply_event(&Event::ClaimFailed(ClaimId(claim), ClaimFailure::StockOut));
    }
    fixture.host.run_cycle();
    assert_eq!(fixture.order(TRAIN), None, "{:?}", fixture.host.verdicts);
    assert!(fixture.host.supply_status.at_last() > at, "the status is written at once");
    let pool = pool_with_status(&fixture);
    assert_eq!(pool["status"]["offerings"][0]["name"], "gpu8/zone-a/on-demand");
    let mut next = HostFixture::new();
    next.show(pool, false);
    next.show(job("train", 2), false);
    for at in 0..2 {
        next.show(pod(&format!("train-{at}"), of_job("train")), false);
    }
    next.host.run_cycle();
    assert_eq!(next.order(TRAIN), None, "it requests what was refused a moment ago");
    let [(_, verdict::Verdict::Waiting { blockers, .. })] = &*next.host.verdicts else {
        panic!("{:?}", next.host.verdicts)
    };
    let avoided = |one: &verdict::Blocker| matches!(one, verdict::Blocker::OfferingsAvoided { .. });
    assert!(blockers.iter().any(avoided), "{blockers:?}");
    let health = |fixture: &HostFixture| fixture.host.world.offering(OFFERING).health;
    assert_eq!(health(&next).streak, health(&fixture).streak);
    assert!(health(&next).is_out());
}

#[tokio::test]
async fn healthy_offerings_are_not_in_the_pool_status() {
    let (fixture, _) = assembling(1);
    assert_eq!(pool_with_status(&fixture)["status"]["offerings"], Value::Null);
}

#[tokio::test]
async fn invalid_offering_status_is_ignored() {
    for offerings in [json!("x"), json!([{"name": 7}]), json!([{"name": "a", "failures": -1}])] {
        let mut odd = pool();
        odd["status"] = json!({"offerings": offerings});
        let mut fixture = HostFixture::new();
        fixture.show(odd, false);
        fixture.show(job("train", 1), false);
        fixture.see(pod("train-0", of_job("train")));
        assert!(fixture.order(TRAIN).is_some());
    }
}

#[tokio::test]
async fn failed_orders_count_under_the_next_leader() {
    let gang_object = |last: &str| {
        json!({
            "apiVersion": "muster.sh/v1alpha1", "kind": "Gang",
            "metadata": {"name": "train.job", "namespace": "team", "uid": "gang",
                "labels": {"app.kubernetes.io/managed-by": "muster"}},
            "spec": {}, "status": {"failedOrders": 3, "lastFailedOrder": last},
        })
    };
    for (last, counted) in [("2026-11-01T10:00:00Z", 3), ("2026-10-01T10:00:00Z", 0)] {
        let mut fixture = HostFixture::new();
        let mut submitted = job("train", 1);
        submitted["metadata"]["creationTimestamp"] = json!("2026-10-15T10:00:00Z");
        fixture.show(submitted, false);
        fixture.show(pod("train-0", of_job("train")), false);
        fixture.show(gang_object(last), false);
        fixture.host.run_cycle();
        let (_, gang) = fixture.gang(TRAIN).expect("it waits");
        assert_eq!(gang.failed_orders, counted, "{last}");
        assert_eq!(gang.last_failure.is_some_and(|at| at > Time::ZERO), counted > 0);
    }
}
