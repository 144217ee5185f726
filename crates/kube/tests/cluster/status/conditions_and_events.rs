//! Conditions and events: `Unschedulable` only where a node from elsewhere would help, events on pods, and the
//! `Accepted` condition of invalid objects.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::events::v1::Event;
use kube::ResourceExt;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams};
use kube::runtime::watcher;
use muster_testkit::cluster::{Cluster, Role};

use crate::fixture::clusters::{karpenter_cluster, kwok_cluster};
use crate::fixture::controller::Controller;
use crate::fixture::fault_injection::Faults;
use crate::fixture::manifests::{POOL, job, pod};
use crate::fixture::objects::submit;
use crate::fixture::pods::{bound_with_prefix, remove_pods};
use crate::fixture::proxy::Proxy;
use crate::fixture::unreachable_webhook::{UNREACHABLE_WEBHOOK, remove_unreachable_webhook};

/// Every reason that the condition `PodScheduled` ever had, by pod.
#[derive(Clone, Default)]
struct Reasons(Arc<Mutex<BTreeMap<String, Vec<String>>>>);

impl Reasons {
    /// Watches from now on.
    async fn watch(cluster: &Cluster) -> Self {
        let all = Self::default();
        let pods: Api<Pod> = Api::all(cluster.client(Role::Observer).await);
        let noted = all.clone();
        tokio::spawn(async move {
            let mut seen = std::pin::pin!(watcher(pods, watcher::Config::default()));
            while let Some(Ok(event)) = seen.next().await {
                let (watcher::Event::Apply(pod) | watcher::Event::InitApply(pod)) = event else {
                    continue;
                };
                let conditions = pod.status.iter().flat_map(|status| &status.conditions).flatten();
                let placed = conditions.filter(|one| one.type_ == "PodScheduled");
                let reasons = placed.filter_map(|one| one.reason.clone());
                noted
                    .0
                    .lock()
                    .expect("no holder panics")
                    .entry(pod.name_any())
                    .or_default()
                    .extend(reasons);
            }
        });
        all
    }

    /// The reasons of pods with this prefix.
    fn of(&self, prefix: &str) -> Vec<String> {
        let all = self.0.lock().expect("no holder panics");
        all.iter()
            .filter(|(pod, _)| pod.starts_with(prefix))
            .flat_map(|(_, noted)| noted.clone())
            .collect()
    }
}

const QUEUE: &str = "
apiVersion: muster.sh/v1alpha1
kind: Queue
metadata: {name: small}
spec: {limit: {nvidia.com/gpu: 8}, namespaces: {names: [default]}}
";

fn in_queue(gang: &str, at: u32, of: u32, queue: &str) -> String {
    let marks =
        format!("muster.sh/gang: {gang}, muster.sh/gang-size: '{of}', muster.sh/queue: {queue}");
    pod(&format!("{gang}-{at}"), 8, "", &marks, "")
}

async fn events_of(cluster: &Cluster, kind: &str, name: &str, reason: &str) -> Vec<Event> {
    let events: Api<Event> = Api::all(cluster.client(Role::Observer).await);
    let mut all =
        events.list(&ListParams::default()).await.map(|all| all.items).unwrap_or_default();
    all.retain(|one| {
        let about = one.regarding.clone().unwrap_or_default();
        about.kind.as_deref() == Some(kind)
            && about.name.as_deref() == Some(name)
            && one.reason.as_deref() == Some(reason)
    });
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn gang_waiting_for_quota_or_a_pool_is_never_unschedulable() {
    let Some(cluster) = karpenter_cluster().await else { return };
    let reasons = Reasons::watch(&cluster).await;
    cluster.apply(QUEUE).await.expect("a queue");
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    // There are no nodes: an autoscaler must see the pod as unschedulable, since no pool can help.
    submit(&cluster, &in_queue("first", 0, 1, "small")).await;
    cluster
        .until("it is unschedulable", async || {
            reasons.of("first").contains(&"Unschedulable".to_owned()).then_some(())
        })
        .await;
    cluster.apply(POOL).await.expect("a pool");
    cluster
        .until("it is bound", async || {
            (bound_with_prefix(&cluster, "first").await == 1).then_some(())
        })
        .await;
    // Its queue is full now; and a Job gets its nodes from the pool, after its pods have reported that they wait for
    // them.
    submit(&cluster, &in_queue("second", 0, 1, "small")).await;
    cluster.apply(UNREACHABLE_WEBHOOK).await.expect("a webhook");
    submit(&cluster, &job("bought", 2, 8)).await;
    cluster
        .until("its pods report what it waits for", async || {
            let noted = reasons.of("bought");
            noted.iter().any(|reason| reason != "WaitingForMembers").then_some(())
        })
        .await;
    remove_unreachable_webhook(&cluster).await;
    cluster
        .until("they are bound", async || {
            (bound_with_prefix(&cluster, "bought").await == 2).then_some(())
        })
        .await;
    cluster
        .until("quota is reported", async || {
            reasons.of("second").contains(&"WaitingForTurn".to_owned()).then_some(())
        })
        .await;
    for gang in ["second", "bought"] {
        let noted = reasons.of(gang);
        assert!(!noted.contains(&"Unschedulable".to_owned()), "{gang}: {noted:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_get_events_of_their_gang_also_without_all_members() {
    let Some(cluster) = kwok_cluster(4).await else { return };
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    submit(&cluster, &in_queue("train", 0, 4, "default")).await;
    cluster
        .until("the pod reports missing members", async || {
            events_of(&cluster, "Pod", "train-0", "WaitingForMembers").await.first().cloned()
        })
        .await;
    for at in 1..3 {
        submit(&cluster, &in_queue("train", at, 4, "default")).await;
    }
    let pods: Api<Pod> = Api::namespaced(cluster.client(Role::Observer).await, "default");
    cluster
        .until("the pod reports one missing member", async || {
            let all = pods.get("train-0").await.ok()?.status?.conditions?;
            let mut messages = all.iter().filter_map(|one| one.message.as_deref());
            messages.any(|said| said.contains("3 of 4")).then_some(())
        })
        .await;
    submit(&cluster, &in_queue("train", 3, 4, "default")).await;
    for at in 0..3 {
        let noted = cluster
            .until("pods report their node", async || {
                events_of(&cluster, "Pod", &format!("train-{at}"), "Scheduled").await.pop()
            })
            .await;
        assert!(noted.note.is_some_and(|note| note.contains("assigned to n")));
    }
    // At most three pods of a gang get the event. Missing members are reported once, although their number has changed.
    assert!(events_of(&cluster, "Pod", "train-3", "Scheduled").await.is_empty());
    let noted = events_of(&cluster, "Pod", "train-0", "WaitingForMembers").await;
    assert!(matches!(&noted[..], [once] if once.series.is_none()), "{noted:?}");
    // A missing queue is named.
    submit(&cluster, &in_queue("lost", 0, 1, "nowhere")).await;
    let noted = cluster
        .until("the pod reports the missing queue", async || {
            events_of(&cluster, "Pod", "lost-0", "UnknownQueue").await.pop()
        })
        .await;
    assert!(noted.note.is_some_and(|note| note.contains("nowhere")));
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_object_reports_it_and_stops_no_other() {
    let Some(cluster) = kwok_cluster(1).await else { return };
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    let bad = POOL.replace(
        "idleAfter: 10s",
        "idleAfter: 10s\n  schedules: [{cron: '99 * * * *', duration: 1h, nodes: 1}]",
    );
    cluster.apply(&bad).await.expect("the server takes it");
    let orphan =
        QUEUE.replace("small", "orphan").replace("limit: {nvidia.com/gpu: 8}", "parent: nobody");
    cluster.apply(&orphan).await.expect("the server takes it");
    let second = "apiVersion: muster.sh/v1alpha1\nkind: Topology\nmetadata: {name: NAME}\nspec: {levels: [{name: rack, label: example.com/rack}]}\n";
    for name in ["first", "second"] {
        cluster.apply(&second.replace("NAME", name)).await.expect("a topology");
    }
    submit(&cluster, &in_queue("train", 0, 1, "default")).await;
    cluster
        .until("others start", async || {
            (bound_with_prefix(&cluster, "train").await == 1).then_some(())
        })
        .await;
    let said = until_accepted(&cluster, "Pool", "gpu", "False").await;
    assert!(said.contains("spec.schedules") && said.contains("cron"), "{said}");
    let said = until_accepted(&cluster, "Queue", "orphan", "False").await;
    assert!(said.contains("nobody"), "{said}");
    until_accepted(&cluster, "Topology", "first", "True").await;
    let said = until_accepted(&cluster, "Topology", "second", "False").await;
    assert!(said.contains("first"), "{said}");
    for (kind, name) in [("Pool", "gpu"), ("Queue", "orphan"), ("Topology", "second")] {
        cluster
            .until(&format!("{kind} {name} has an event"), async || {
                events_of(&cluster, kind, name, "InvalidSpec").await.pop()
            })
            .await;
    }
    // A corrected object is accepted.
    cluster.apply(POOL).await.expect("it is good");
    cluster.apply(&QUEUE.replace("small", "nobody")).await.expect("it is good");
    until_accepted(&cluster, "Pool", "gpu", "True").await;
    until_accepted(&cluster, "Queue", "orphan", "True").await;
}

/// Waits until the condition `Accepted` of the current generation has this status, and returns its message.
async fn until_accepted(cluster: &Cluster, kind: &str, name: &str, status: &str) -> String {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("muster.sh", "v1alpha1", kind));
    let objects: Api<DynamicObject> =
        Api::all_with(cluster.client(Role::Observer).await, &resource);
    cluster
        .until(&format!("{kind} {name} is accepted: {status}"), async || {
            let object = objects.get(name).await.ok()?;
            let said = &object.data["status"];
            let seen = said["observedGeneration"].as_i64() == object.metadata.generation;
            let accepted =
                said["conditions"].as_array()?.iter().find(|one| one["type"] == "Accepted")?;
            let is_so = accepted["status"] == status && seen;
            is_so.then(|| accepted["message"].as_str().unwrap_or_default().to_owned())
        })
        .await
}

/// Whether this many pods with this prefix have the condition `PodScheduled`.
async fn have_condition(cluster: &Cluster, prefix: &str, count: usize) -> bool {
    let pods: Api<Pod> = Api::namespaced(cluster.client(Role::Observer).await, "default");
    let all = pods.list(&ListParams::default()).await.map(|list| list.items).unwrap_or_default();
    let is_told = |pod: &&Pod| {
        let mut conditions = pod.status.iter().flat_map(|status| &status.conditions).flatten();
        pod.name_any().starts_with(prefix) && conditions.any(|one| one.type_ == "PodScheduled")
    };
    all.iter().filter(is_told).count() == count
}

#[tokio::test(flavor = "multi_thread")]
async fn pod_status_patch_that_conflicts_is_retried() {
    let Some(cluster) = kwok_cluster(1).await else { return };
    let proxy = Proxy::start(&cluster, 1).await;
    // Only pod statuses conflict: the Gang object is written before, and must not be what waits.
    proxy.set(Faults { pod_status_conflict: 1_000, ..Faults::NONE });
    let since = std::time::Instant::now();
    let _controller = Controller::start_through(&proxy, &cluster, &["--leader-elect=false"]);
    for name in ["wide-0", "wide-1"] {
        let marks = "muster.sh/gang: wide, muster.sh/gang-size: '2'";
        cluster.apply(&pod(name, 8, "", marks, "")).await.expect("a pod");
    }
    let lost = |proxy: &Proxy| {
        let requests = proxy.requests_since(since);
        requests.iter().filter(|one| one.resource == "pods/status").count()
    };
    // More than the immediate retries of both pods.
    cluster.until("patches have lost", async || (lost(&proxy) > 20).then_some(())).await;
    assert!(
        !have_condition(&cluster, "wide", 1).await && !have_condition(&cluster, "wide", 2).await
    );
    proxy.set(Faults::NONE);
    cluster
        .until("both have the condition", async || {
            have_condition(&cluster, "wide", 2).await.then_some(())
        })
        .await;
    // A pod that is created again gets the condition of its gang.
    remove_pods(&cluster, "wide-1").await;
    let marks = "muster.sh/gang: wide, muster.sh/gang-size: '2'";
    cluster.apply(&pod("wide-1", 8, "", marks, "")).await.expect("a pod");
    cluster
        .until("both have the condition again", async || {
            have_condition(&cluster, "wide", 2).await.then_some(())
        })
        .await;
}
