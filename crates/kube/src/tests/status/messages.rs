//! Reports to users and autoscalers: why a gang waits, and why an object is invalid.

use muster_core::gang::Phase;
use serde_json::{Value, json};

use crate::cache::kinds::KindRole;
use crate::tests::fixture::HostFixture;
use crate::tests::objects::{bought_node, job, node, of_job, pod, pool, single_pod};
use crate::tests::schedule::cases::{TRAIN, assembling, on};

impl HostFixture {
    /// The reason of the condition `PodScheduled` on the pods of a gang.
    fn pod_reason(&self, name: &str) -> Option<&'static str> {
        let id = self.host.world.gang_named(name)?;
        let (_, verdict) = self.host.verdicts.iter().find(|(of, _)| *of == id)?;
        self.host.pod_reason(name, verdict, &self.host.status_report(id, verdict))
    }

    fn why_rejected(&self, kind_role: KindRole, name: &str) -> Option<&str> {
        self.host.rejected_objects.get(&(kind_role, name.into())).map(String::as_str)
    }
}

/// The gang of the single pod `one`.
const ONE: &str = "team/one.pod";

/// A pod that requests more than any node or offering has.
fn huge(name: &str) -> Value {
    let mut pod = single_pod(name);
    pod["spec"]["containers"][0]["resources"] = json!({"requests": {"memory": "8Ti"}});
    pod
}

/// A pod as a gang of one, in a queue.
fn in_queue(mut pod: Value, queue: &str) -> Value {
    let gang = pod["metadata"]["name"].clone();
    pod["metadata"]["annotations"] =
        json!({"muster.sh/gang": gang, "muster.sh/gang-size": "1", "muster.sh/queue": queue});
    pod
}

/// The gang that [`in_queue`] makes of the pod `one`.
const QUEUED: &str = "team/one";

fn queue(name: &str, spec: Value) -> Value {
    let (version, metadata) = ("muster.sh/v1alpha1", json!({"name": name, "uid": name}));
    let mut queue = json!({"apiVersion": version, "kind": "Queue", "metadata": metadata});
    queue["spec"] = spec;
    queue["spec"]["namespaces"] = json!({"names": ["team"]});
    queue
}

#[tokio::test]
async fn gang_without_pools_that_does_not_fit_is_unschedulable() {
    let mut fixture = HostFixture::new();
    fixture.see(single_pod("one"));
    assert_eq!(fixture.pod_reason(ONE), Some("Unschedulable"), "from no node to the first");
    let mut fixture = HostFixture::new();
    fixture.show(node("n"), false);
    fixture.see(on(single_pod("other"), "n"));
    fixture.see(single_pod("one"));
    assert_eq!(fixture.pod_reason(ONE), Some("Unschedulable"), "from one to the second");
    fixture.see(huge("huge"));
    assert_eq!(fixture.pod_reason("team/huge.pod"), Some("Unschedulable"), "to larger ones");
}

#[tokio::test]
async fn gang_that_muster_buys_nodes_for_is_not_unschedulable() {
    let (fixture, _) = assembling(2);
    assert_eq!(fixture.pod_reason(TRAIN), Some("WaitingForNodes"));
    let mut small = pool();
    small["spec"]["limits"] = json!({"nodes": 1});
    let mut fixture = HostFixture::new();
    fixture.show(small, false);
    fixture.show(job("train", 2), false);
    fixture.show(pod("train-0", of_job("train")), false);
    fixture.see(pod("train-1", of_job("train")));
    assert_eq!(fixture.pod_reason(TRAIN), Some("WaitingForTurn"), "a limit is to be respected");
}

#[tokio::test]
async fn gang_that_no_pool_can_serve_is_unschedulable() {
    let mut fixture = HostFixture::new();
    fixture.show(pool(), false);
    fixture.see(huge("one"));
    assert_eq!(fixture.pod_reason(ONE), Some("Unschedulable"));
}

#[tokio::test]
async fn gang_is_unschedulable_after_its_pool_is_deleted() {
    let (mut fixture, claims) = assembling(1);
    claims.iter().for_each(|claim| fixture.show(bought_node(*claim), false));
    fixture.host.run_cycle();
    assert!(
        matches!(fixture.phase(TRAIN), Some(Phase::Admitted { .. })),
        "{:?}",
        fixture.phase(TRAIN)
    );
    fixture.show(pool(), true);
    fixture.see(single_pod("one"));
    assert_eq!(fixture.pod_reason(ONE), Some("Unschedulable"));
}

#[tokio::test]
async fn gang_that_waits_for_quota_is_not_unschedulable() {
    let mut fixture = HostFixture::new();
    fixture.show(queue("team", json!({"limit": {"nvidia.com/gpu": 8}})), false);
    fixture.show(node("n"), false);
    fixture.see(in_queue(single_pod("first"), "team"));
    assert!(matches!(fixture.phase("team/first"), Some(Phase::Admitted { .. })));
    fixture.see(in_queue(single_pod("one"), "team"));
    assert_eq!(fixture.pod_reason(QUEUED), Some("WaitingForTurn"));
    // Neither is a gang that exceeds the quota, or is queued behind another.
    fixture.see(in_queue(huge("huge"), "team"));
    assert_eq!(fixture.pod_reason("team/huge"), Some("WaitingForTurn"));
}

#[tokio::test]
async fn gang_that_wants_no_nodes_bought_is_not_unschedulable() {
    let mut fixture = HostFixture::new();
    let mut gang = json!({
        "apiVersion": "muster.sh/v1alpha1", "kind": "Gang",
        "metadata": {"name": "one", "namespace": "team", "uid": "one"},
        "spec": {"roles": [{"name": "worker", "min": 1}], "provisioning": {"mode": "Never"}},
    });
    let mut member = single_pod("one-0");
    member["metadata"]["annotations"] = json!({"muster.sh/gang": "one"});
    member["metadata"]["labels"] = json!({"muster.sh/role": "worker"});
    fixture.show(gang.clone(), false);
    fixture.see(member.clone());
    let record = fixture.host.gangs.get("team/one").map(|record| record.blocked.clone());
    assert_eq!(fixture.pod_reason("team/one"), Some("WaitingForTurn"), "{record:?}");
    gang["spec"]["provisioning"]["mode"] = json!("Reactive");
    fixture.see(gang);
    assert_eq!(fixture.pod_reason("team/one"), Some("Unschedulable"));
}

#[tokio::test]
async fn gang_waits_for_a_queue_that_does_not_exist() {
    let mut fixture = HostFixture::new();
    fixture.show(node("n"), false);
    fixture.see(in_queue(single_pod("one"), "team"));
    let record = fixture.host.gangs.get(QUEUED).expect("a record");
    let (why, _) = record.blocked.clone().expect("a reason");
    assert_eq!(why, "queue `team` does not exist");
    assert!(record.world_refusal.is_some());
    fixture.see(queue("team", json!({})));
    assert!(
        matches!(fixture.phase(QUEUED), Some(Phase::Admitted { .. })),
        "{:?}",
        fixture.phase(QUEUED)
    );
}

#[tokio::test]
async fn gang_in_a_deleted_queue_waits_until_it_is_recreated() {
    let mut fixture = HostFixture::new();
    fixture.show(queue("team", json!({})), false);
    fixture.see(in_queue(single_pod("one"), "team"));
    fixture.see_gone(queue("team", json!({})));
    fixture.see(node("n"));
    assert_eq!(fixture.phase(QUEUED), Some(&Phase::Waiting), "there is room, but no queue");
    assert_eq!(fixture.pod_reason(QUEUED), Some("UnknownQueue"));
    fixture.see(in_queue(single_pod("two"), "team"));
    assert!(fixture.host.gangs.get("team/two").is_some_and(|two| two.world_refusal.is_some()));
    fixture.see(queue("team", json!({})));
    assert!(
        matches!(fixture.phase(QUEUED), Some(Phase::Admitted { .. })),
        "{:?}",
        fixture.phase(QUEUED)
    );
    assert!(fixture.phase("team/two").is_some(), "it is submitted as well");
}

#[tokio::test]
async fn foreign_queue_replaces_a_deleted_queue_of_the_same_name() {
    let mut fixture = HostFixture::new();
    let volcano = |state: &str| {
        json!({
            "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue",
            "metadata": {"name": "team", "uid": "volcano"},
            "spec": {"weight": 1}, "status": {"state": state},
        })
    };
    fixture.show(queue("team", json!({"weight": 3})), false);
    fixture.show(volcano("Open"), false);
    fixture.see_gone(queue("team", json!({"weight": 3})));
    fixture.show(volcano("Closed"), false);
    fixture.show(node("n"), false);
    fixture.see(in_queue(single_pod("one"), "team"));
    assert_eq!(fixture.phase(QUEUED), Some(&Phase::Waiting), "it is closed");
    assert_eq!(fixture.pod_reason(QUEUED), Some("QueueClosed"));
    fixture.see(volcano("Open"));
    assert!(
        matches!(fixture.phase(QUEUED), Some(Phase::Admitted { .. })),
        "{:?}",
        fixture.phase(QUEUED)
    );
}

#[tokio::test]
async fn invalid_object_is_reported_and_blocks_no_gang() {
    let mut fixture = HostFixture::new();
    let mut bad = pool();
    bad["metadata"] = json!({"name": "bad", "uid": "bad"});
    bad["spec"]["schedules"] =
        json!([{"cron": "now and then", "timezone": "UTC", "duration": "1h", "nodes": 1}]);
    fixture.show(bad.clone(), false);
    let orphan = queue("orphan", json!({"parent": "missing"}));
    fixture.show(orphan.clone(), false);
    let greedy = json!({"guaranteed": {"nvidia.com/gpu": 8}, "limit": {"nvidia.com/gpu": 4}});
    fixture.show(queue("greedy", greedy), false);
    fixture.show(pool(), false);
    fixture.see(single_pod("one"));
    assert!(matches!(fixture.phase(ONE), Some(Phase::Assembling(_))), "{:?}", fixture.phase(ONE));
    let why = fixture.why_rejected(KindRole::Pool, "bad").expect("a reason").to_owned();
    assert!(why.contains("cron"), "{why}");
    let why = fixture.why_rejected(KindRole::Queue, "orphan").expect("a reason");
    assert_eq!(why, "queue `missing` does not exist");
    let why = fixture.why_rejected(KindRole::Queue, "greedy").expect("a reason").to_owned();
    assert!(why.contains("guaranteed") || why.contains("limit"), "{why}");
    assert_eq!(fixture.why_rejected(KindRole::Pool, "gpu"), None);
    // The report ends as soon as the object is valid, or deleted.
    bad["spec"]["schedules"] = json!([]);
    fixture.see(bad);
    assert_eq!(fixture.why_rejected(KindRole::Pool, "bad"), None);
    fixture.see(queue("missing", json!({})));
    assert_eq!(fixture.why_rejected(KindRole::Queue, "orphan"), None);
    fixture.see_gone(queue("greedy", json!({})));
    assert_eq!(fixture.why_rejected(KindRole::Queue, "greedy"), None);
}

#[tokio::test]
async fn accepted_condition_has_generation_and_transition_time() {
    let mut fixture = HostFixture::new();
    let mut good = queue("team", json!({}));
    good["metadata"]["generation"] = json!(3);
    good["status"] = json!({"conditions": [
        {"type": "Accepted", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"},
    ]});
    fixture.see(good);
    let object = fixture.host.object_named(KindRole::Queue, "team").expect("seen").clone();
    let condition = fixture
        .host
        .with_transition_time(fixture.host.accepted_condition(KindRole::Queue, &object), &object);
    assert_eq!(
        (&condition["status"], &condition["observedGeneration"]),
        (&json!("True"), &json!(3))
    );
    assert_eq!(condition["lastTransitionTime"], "2026-01-01T00:00:00Z");
    fixture.host.report_acceptance(KindRole::Queue, "team", Some("not so".to_owned()));
    let condition = fixture
        .host
        .with_transition_time(fixture.host.accepted_condition(KindRole::Queue, &object), &object);
    assert_eq!((&condition["status"], &condition["message"]), (&json!("False"), &json!("not so")));
    assert_ne!(condition["lastTransitionTime"], "2026-01-01T00:00:00Z");
}
