//! What people and autoscalers are told: why a gang waits, and what of an object was not understood.

use muster_core::gang::Phase;
use serde_json::{Value, json};

use crate::cache::kinds::KindRole;
use crate::tests::fixture::HostFixture;
use crate::tests::objects::{alone, bought, job, node, of_job, pod, pool};
use crate::tests::schedule::cases::{TRAIN, assembling, on};

impl HostFixture {
    /// The one word that the pods of a gang are told.
    fn pods_are_told(&self, name: &str) -> Option<&'static str> {
        let id = self.host.world.gang_named(name)?;
        let (_, verdict) = self.host.verdicts.iter().find(|(of, _)| *of == id)?;
        self.host.pod_reason(name, verdict, &self.host.status_report(id, verdict))
    }

    fn why_refused(&self, kind_role: KindRole, name: &str) -> Option<&str> {
        self.host.rejected_objects.get(&(kind_role, name.into())).map(String::as_str)
    }
}

/// A pod by itself is a gang of this name.
const ONE: &str = "team/one.pod";

/// A pod that asks for more than any node or offering has.
fn huge(name: &str) -> Value {
    let mut pod = alone(name);
    pod["spec"]["containers"][0]["resources"] = json!({"requests": {"memory": "8Ti"}});
    pod
}

/// The same as a gang of one, in a queue.
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
async fn without_pools_whoever_does_not_fit_asks_other_autoscalers() {
    let mut stage = HostFixture::new();
    stage.see(alone("one"));
    assert_eq!(stage.pods_are_told(ONE), Some("Unschedulable"), "from no node to the first");
    let mut stage = HostFixture::new();
    stage.show(node("n"), false);
    stage.see(on(alone("other"), "n"));
    stage.see(alone("one"));
    assert_eq!(stage.pods_are_told(ONE), Some("Unschedulable"), "from one to the second");
    stage.see(huge("huge"));
    assert_eq!(stage.pods_are_told("team/huge.pod"), Some("Unschedulable"), "to larger ones");
}

#[tokio::test]
async fn who_gets_nodes_from_muster_asks_nobody_else() {
    let (stage, _) = assembling(2);
    assert_eq!(stage.pods_are_told(TRAIN), Some("WaitingForNodes"));
    let mut small = pool();
    small["spec"]["limits"] = json!({"nodes": 1});
    let mut stage = HostFixture::new();
    stage.show(small, false);
    stage.show(job("train", 2), false);
    stage.show(pod("train-0", of_job("train")), false);
    stage.see(pod("train-1", of_job("train")));
    assert_eq!(stage.pods_are_told(TRAIN), Some("WaitingForTurn"), "a limit is to be respected");
}

#[tokio::test]
async fn a_pool_that_cannot_serve_a_gang_does_not_silence_it() {
    let mut stage = HostFixture::new();
    stage.show(pool(), false);
    stage.see(huge("one"));
    assert_eq!(stage.pods_are_told(ONE), Some("Unschedulable"));
}

#[tokio::test]
async fn a_pool_that_is_gone_silences_nobody() {
    let (mut stage, claims) = assembling(1);
    claims.iter().for_each(|claim| stage.show(bought(*claim), false));
    stage.host.run_cycle();
    assert!(matches!(stage.phase(TRAIN), Some(Phase::Admitted { .. })), "{:?}", stage.phase(TRAIN));
    stage.show(pool(), true);
    stage.see(alone("one"));
    assert_eq!(stage.pods_are_told(ONE), Some("Unschedulable"));
}

#[tokio::test]
async fn who_waits_for_quota_asks_nobody() {
    let mut stage = HostFixture::new();
    stage.show(queue("team", json!({"limit": {"nvidia.com/gpu": 8}})), false);
    stage.show(node("n"), false);
    stage.see(in_queue(alone("first"), "team"));
    assert!(matches!(stage.phase("team/first"), Some(Phase::Admitted { .. })));
    stage.see(in_queue(alone("one"), "team"));
    assert_eq!(stage.pods_are_told(QUEUED), Some("WaitingForTurn"));
    // Neither does who could never have it, nor who stands behind.
    stage.see(in_queue(huge("huge"), "team"));
    assert_eq!(stage.pods_are_told("team/huge"), Some("WaitingForTurn"));
}

#[tokio::test]
async fn who_wants_no_nodes_bought_asks_nobody() {
    let mut stage = HostFixture::new();
    let mut gang = json!({
        "apiVersion": "muster.sh/v1alpha1", "kind": "Gang",
        "metadata": {"name": "one", "namespace": "team", "uid": "one"},
        "spec": {"roles": [{"name": "worker", "min": 1}], "provisioning": {"mode": "Never"}},
    });
    let mut member = alone("one-0");
    member["metadata"]["annotations"] = json!({"muster.sh/gang": "one"});
    member["metadata"]["labels"] = json!({"muster.sh/role": "worker"});
    stage.show(gang.clone(), false);
    stage.see(member.clone());
    let group = stage.host.gangs.get("team/one").map(|group| group.blocked.clone());
    assert_eq!(stage.pods_are_told("team/one"), Some("WaitingForTurn"), "{group:?}");
    gang["spec"]["provisioning"]["mode"] = json!("Reactive");
    stage.see(gang);
    assert_eq!(stage.pods_are_told("team/one"), Some("Unschedulable"));
}

#[tokio::test]
async fn a_queue_that_is_not_there_is_named_and_waited_for() {
    let mut stage = HostFixture::new();
    stage.show(node("n"), false);
    stage.see(in_queue(alone("one"), "team"));
    let group = stage.host.gangs.get(QUEUED).expect("a group");
    let (why, _) = group.blocked.clone().expect("it is said");
    assert_eq!(why, "queue `team` does not exist");
    assert!(group.world_refusal.is_some());
    stage.see(queue("team", json!({})));
    assert!(
        matches!(stage.phase(QUEUED), Some(Phase::Admitted { .. })),
        "{:?}",
        stage.phase(QUEUED)
    );
}

#[tokio::test]
async fn who_waits_in_a_queue_that_is_deleted_waits_for_it_to_come_back() {
    let mut stage = HostFixture::new();
    stage.show(queue("team", json!({})), false);
    stage.see(in_queue(alone("one"), "team"));
    stage.see_gone(queue("team", json!({})));
    stage.see(node("n"));
    assert_eq!(stage.phase(QUEUED), Some(&Phase::Waiting), "there is room, but no queue");
    assert_eq!(stage.pods_are_told(QUEUED), Some("UnknownQueue"));
    stage.see(in_queue(alone("two"), "team"));
    assert!(stage.host.gangs.get("team/two").is_some_and(|two| two.world_refusal.is_some()));
    stage.see(queue("team", json!({})));
    assert!(
        matches!(stage.phase(QUEUED), Some(Phase::Admitted { .. })),
        "{:?}",
        stage.phase(QUEUED)
    );
    assert!(stage.phase("team/two").is_some(), "it is taken in as well");
}

#[tokio::test]
async fn another_systems_queue_takes_the_place_of_one_that_is_deleted() {
    let mut stage = HostFixture::new();
    let volcano = |state: &str| {
        json!({
            "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue",
            "metadata": {"name": "team", "uid": "volcano"},
            "spec": {"weight": 1}, "status": {"state": state},
        })
    };
    stage.show(queue("team", json!({"weight": 3})), false);
    stage.show(volcano("Open"), false);
    stage.see_gone(queue("team", json!({"weight": 3})));
    stage.show(volcano("Closed"), false);
    stage.show(node("n"), false);
    stage.see(in_queue(alone("one"), "team"));
    assert_eq!(stage.phase(QUEUED), Some(&Phase::Waiting), "it is closed");
    assert_eq!(stage.pods_are_told(QUEUED), Some("QueueClosed"));
    stage.see(volcano("Open"));
    assert!(
        matches!(stage.phase(QUEUED), Some(Phase::Admitted { .. })),
        "{:?}",
        stage.phase(QUEUED)
    );
}

#[tokio::test]
async fn an_object_that_cannot_be_understood_is_said_so_and_stops_nobody() {
    let mut stage = HostFixture::new();
    let mut bad = pool();
    bad["metadata"] = json!({"name": "bad", "uid": "bad"});
    bad["spec"]["schedules"] =
        json!([{"cron": "now and then", "timezone": "UTC", "duration": "1h", "nodes": 1}]);
    stage.show(bad.clone(), false);
    let orphan = queue("orphan", json!({"parent": "nobody"}));
    stage.show(orphan.clone(), false);
    let greedy = json!({"guaranteed": {"nvidia.com/gpu": 8}, "limit": {"nvidia.com/gpu": 4}});
    stage.show(queue("greedy", greedy), false);
    stage.show(pool(), false);
    stage.see(alone("one"));
    assert!(matches!(stage.phase(ONE), Some(Phase::Assembling(_))), "{:?}", stage.phase(ONE));
    let why = stage.why_refused(KindRole::Pool, "bad").expect("it is said").to_owned();
    assert!(why.contains("cron"), "{why}");
    let why = stage.why_refused(KindRole::Queue, "orphan").expect("it is said");
    assert_eq!(why, "queue `nobody` does not exist");
    let why = stage.why_refused(KindRole::Queue, "greedy").expect("it is said").to_owned();
    assert!(why.contains("guaranteed") || why.contains("limit"), "{why}");
    assert_eq!(stage.why_refused(KindRole::Pool, "gpu"), None);
    // It is well as soon as it is understood, or gone.
    bad["spec"]["schedules"] = json!([]);
    stage.see(bad);
    assert_eq!(stage.why_refused(KindRole::Pool, "bad"), None);
    stage.see(queue("nobody", json!({})));
    assert_eq!(stage.why_refused(KindRole::Queue, "orphan"), None);
    stage.see_gone(queue("greedy", json!({})));
    assert_eq!(stage.why_refused(KindRole::Queue, "greedy"), None);
}

#[tokio::test]
async fn a_condition_says_which_rewriting_of_an_object_it_is_about_and_since_when() {
    let mut stage = HostFixture::new();
    let mut good = queue("team", json!({}));
    good["metadata"]["generation"] = json!(3);
    good["status"] = json!({"conditions": [
        {"type": "Accepted", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"},
    ]});
    stage.see(good);
    let object = stage.host.object_named(KindRole::Queue, "team").expect("seen").clone();
    let said = stage.host.since(stage.host.judgement(KindRole::Queue, &object), &object);
    assert_eq!((&said["status"], &said["observedGeneration"]), (&json!("True"), &json!(3)));
    assert_eq!(said["lastTransitionTime"], "2026-01-01T00:00:00Z");
    stage.host.report_acceptance(KindRole::Queue, "team", Some("not so".to_owned()));
    let said = stage.host.since(stage.host.judgement(KindRole::Queue, &object), &object);
    assert_eq!((&said["status"], &said["message"]), (&json!("False"), &json!("not so")));
    assert_ne!(said["lastTransitionTime"], "2026-01-01T00:00:00Z");
}
