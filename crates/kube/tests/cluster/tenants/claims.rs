//! A tenant claims queues, priorities, users, costs and times in its own objects.
//!
//! The API server accepts each attempt, since it is the tenant's own object, and it has no effect: its status reports
//! why, gangs of others keep running, and the victim, whose queue has a guarantee, starts.

use std::collections::BTreeSet;

use kube::ResourceExt;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind};
use muster_testkit::cluster::{Part, Role, Setup};
use serde_json::Value;

use super::tenancy::gang;
use super::{TENANT, Tenancy, VICTIM};
use crate::fixture::controller::Controller;
use crate::fixture::manifests::HIGH_PRIORITY;
use crate::observer::Kind;

/// The victim's queue has a guarantee of three nodes, reclaimed within seconds; the tenant has a queue of its own; both
/// share one.
const QUEUES: &str = "
apiVersion: muster.sh/v1alpha1
kind: Queue
metadata: {name: team-b}
spec: {guaranteed: {nvidia.com/gpu: 24}, reclaimWithin: 5s}
---
apiVersion: muster.sh/v1alpha1
kind: Queue
metadata: {name: team-a}
spec: {}
---
apiVersion: muster.sh/v1alpha1
kind: Queue
metadata: {name: shared}
spec: {userLimit: {nvidia.com/gpu: 8}, namespaces: {names: [team-a], selector: {matchLabels: {kubernetes.io/metadata.name: team-b}}}}
";

const VOLCANO: [&str; 5] =
    ["--leader-elect=false", "--scheduler-name", "muster", "--scheduler-name", "volcano"];
const KINDS: [&str; 3] = [
    "volcano/scheduling.volcano.sh_podgroups",
    "volcano/scheduling.volcano.sh_queues",
    "cluster-autoscaler/autoscaling.x-k8s.io_provisioningrequests",
];

/// Gangs of the tenant: name, claimed fields, and the reason for which they wait.
const GANGS: [(&str, &str, &str); 8] = [
    ("loud", "priority: 2147483647", "PriorityNotAllowed"),
    ("just-above", "priority: 1", "PriorityNotAllowed"),
    ("classy", "priorityClassName: high", "PriorityNotAllowed"),
    ("cuckoo", "queue: team-b", "NamespaceNotAllowed"),
    ("cuckoo-late", "queue: team-b\n  deadline: 2020-01-01T00:00:00Z", "NamespaceNotAllowed"),
    ("slow", "disruption: {grace: 520w}", "NotAllowed"),
    ("long", "disruption: {minRuntime: 520w}", "NotAllowed"),
    ("patient", "provisioning: {timeout: 520w}", "NotAllowed"),
];

/// A pod of the tenant.
fn pod(name: &str, scheduler: &str, annotations: &str) -> String {
    format!(
        "
---
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: {TENANT}, annotations: {{{annotations}}}}}
spec:
  schedulerName: {scheduler}
  containers:
  - {{name: worker, image: none, resources: {{limits: {{nvidia.com/gpu: 8}}, requests: {{cpu: 1}}}}}}
"
    )
}

/// A group of Volcano with one pod.
fn group(name: &str, spec: &str) -> String {
    let pod = pod(name, "volcano", &format!("scheduling.k8s.io/group-name: {name}"));
    format!(
        "
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {{name: {name}, namespace: {TENANT}}}
spec: {{minMember: 1, {spec}}}
{pod}"
    )
}

/// A ProvisioningRequest whose template has the highest possible priority; no admission checks templates.
const REQUEST: &str = "
apiVersion: v1
kind: PodTemplate
metadata: {name: room, namespace: team-a}
template:
  spec:
    priority: 2147483647
    containers:
    - {name: worker, image: none, resources: {limits: {nvidia.com/gpu: 8}, requests: {cpu: 1}}}
---
apiVersion: autoscaling.x-k8s.io/v1
kind: ProvisioningRequest
metadata: {name: room, namespace: team-a}
spec:
  provisioningClassName: gang.muster.sh
  podSets: [{podTemplateRef: {name: room}, count: 3}]
";

fn has_reason(reason: &str) -> impl Fn(&Value) -> bool {
    move |status| status["reason"] == reason
}

/// Whether a gang waits for room under the limit of its user, or behind another gang of that user that does.
fn is_limited(status: &Value) -> bool {
    matches!(status["reason"].as_str(), Some("UserLimit" | "QueuedBehind"))
}

/// UIDs of the victim's pods with this prefix that are not terminating.
async fn victims(tenancy: &Tenancy, prefix: &str) -> BTreeSet<String> {
    let mine = tenancy.pods(VICTIM).await.into_iter();
    let mine = mine.filter(|pod| {
        pod.name_any().starts_with(prefix) && pod.metadata.deletion_timestamp.is_none()
    });
    mine.filter_map(|pod| pod.metadata.uid).collect()
}

async fn delete(tenancy: &Tenancy, namespace: &str, name: &str) {
    let admin = tenancy.client(Role::Admin).await;
    let gangs: Api<DynamicObject> = Api::namespaced_with(admin, namespace, &Kind::Gang.resource());
    gangs.delete(name, &DeleteParams::default()).await.expect("it is there");
    tenancy.until_bound(namespace, name, 0).await;
}

async fn victim_starts_in(tenancy: &Tenancy, queue: &str, name: &str, members: u32) {
    let more = format!("queue: {queue}");
    tenancy.apply(&gang(VICTIM, name, members, 8, &more)).await.expect("the victim's gang");
    tenancy.until_bound(VICTIM, name, members as usize).await;
}

/// Waits until the request has failed with this text in its message.
async fn until_request_fails(tenancy: &Tenancy, words: &str) {
    let kind = GroupVersionKind::gvk("autoscaling.x-k8s.io", "v1", "ProvisioningRequest");
    let observer = tenancy.client(Role::Observer).await;
    let requests: Api<DynamicObject> =
        Api::namespaced_with(observer, TENANT, &ApiResource::from_gvk(&kind));
    tenancy
        .until("the request is given up", async || {
            let request = requests.get("room").await.ok()?;
            let all = request.data.pointer("/status/conditions")?.as_array()?.clone();
            let failed =
                all.iter().find(|one| one["type"] == "Failed" && one["status"] == "True")?;
            failed["message"].as_str()?.contains(words).then_some(())
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn claimed_queues_and_priorities_preempt_and_start_nothing() {
    let Some(tenancy) = Tenancy::without_policies(3, Setup::bare().with(Part::Kwok)).await else {
        return;
    };
    let Some(()) = tenancy.define_or_skip(&KINDS).await else { return };
    tenancy.apply(QUEUES).await.expect("queues");
    tenancy.apply(HIGH_PRIORITY).await.expect("a class");
    let _controller = Controller::start(&tenancy, &VOLCANO);
    // In the default queue, where a higher priority would preempt it.
    tenancy.victim_starts("base", 3, 8).await;
    let base = victims(&tenancy, "base").await;
    for (name, claim, _) in GANGS {
        tenancy.tenant_applies(&gang(TENANT, name, 3, 8, claim)).await;
    }
    let marks = "muster.sh/gang: marked, muster.sh/gang-size: '1', muster.sh/queue: team-b";
    tenancy.tenant_applies(&pod("marked", "muster", marks)).await;
    // The chart grants no rights to kinds of other systems: an administrator creates these.
    tenancy.apply(&group("stray", "queue: team-b")).await.expect("a group");
    tenancy
        .apply(&group("named", "queue: default, priorityClassName: high"))
        .await
        .expect("a group");
    tenancy.apply(REQUEST).await.expect("a request");
    for (name, _, reason) in GANGS {
        tenancy.until_status(TENANT, name, has_reason(reason)).await;
    }
    tenancy.until_status(TENANT, "marked", has_reason("NamespaceNotAllowed")).await;
    tenancy.until_status(TENANT, "stray.volcano", has_reason("NamespaceNotAllowed")).await;
    tenancy.until_status(TENANT, "named.volcano", |status| status["phase"] == "Waiting").await;
    until_request_fails(&tenancy, "its priority is 2147483647").await;
    let message = tenancy.status(TENANT, "loud").await["message"].to_string();
    assert!(message.contains("2147483647") && message.contains("queue default"), "{message}");
    assert_eq!(victims(&tenancy, "base").await, base, "a claim preempted a running gang");
    assert_eq!(tenancy.bound(TENANT, "").await, 0);
    victim_starts_in(&tenancy, "team-b", "train", 3).await;
    assert_eq!(tenancy.bound(TENANT, "").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn borrowed_capacity_is_reclaimed_whatever_the_tenant_declares() {
    // The garbage collector removes pods with their Gang.
    let setup = Setup::bare().with(Part::Kwok).with(Part::ControllerManager);
    let Some(tenancy) = Tenancy::without_policies(3, setup).await else { return };
    tenancy.apply(QUEUES).await.expect("queues");
    let _controller = Controller::start(&tenancy, &["--leader-elect=false"]);
    let firm = "queue: team-a\n  disruption: {preemptible: false}";
    tenancy.tenant_applies(&gang(TENANT, "firm", 3, 8, firm)).await;
    tenancy.until_status(TENANT, "firm", has_reason("BeyondGuarantee")).await;
    let loan = "queue: team-a
  costOfWaiting: 9000000000
  deadline: 2020-01-01T00:00:00Z
  expectedDuration: 5200w
  disruption: {grace: 1s, minRuntime: 23h, checkpoint: {every: 1h, restart: 5200w}}";
    tenancy.tenant_applies(&gang(TENANT, "loan", 3, 8, loan)).await;
    tenancy.until_bound(TENANT, "loan", 3).await;
    victim_starts_in(&tenancy, "team-b", "train", 3).await;
    assert_eq!(tenancy.bound(TENANT, "").await, 0);
    delete(&tenancy, TENANT, "loan").await;
    delete(&tenancy, VICTIM, "train").await;
    // A gang that has grown onto borrowed nodes, and declares that shrinking takes a century.
    let wide = "queue: team-a\n  scaling: {resizeCost: 5200w}\n  expectedDuration: 5200w";
    let wide = gang(TENANT, "wide", 1, 8, wide).replace("min: 1,", "min: 1, max: 3,");
    tenancy.tenant_applies(&wide).await;
    tenancy.until_bound(TENANT, "wide", 3).await;
    victim_starts_in(&tenancy, "team-b", "again", 2).await;
    tenancy.until_bound(TENANT, "wide", 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn user_limit_is_neither_evaded_nor_used_up_for_others() {
    let Some(tenancy) = Tenancy::without_policies(3, Setup::bare().with(Part::Kwok)).await else {
        return;
    };
    tenancy.apply(QUEUES).await.expect("queues");
    let _controller = Controller::start(&tenancy, &["--leader-elect=false"]);
    // First as the victim, whose limit would be used up.
    let as_user = |user: &str| format!("queue: shared\n  user: {user}");
    tenancy.tenant_applies(&gang(TENANT, "spoof", 1, 8, &as_user("namespace/team-b"))).await;
    tenancy.until_bound(TENANT, "spoof", 1).await;
    tenancy.until_event(TENANT, "UnsupportedField", "spec.user does not count").await;
    for (name, user) in [("alice", "alice"), ("bob", "bob")] {
        tenancy.tenant_applies(&gang(TENANT, name, 1, 8, &as_user(user))).await;
        tenancy.until_status(TENANT, name, is_limited).await;
    }
    // A user annotation is not trusted without the admission policy.
    let stamped = gang(TENANT, "stamped", 1, 8, "queue: shared").replace(
        "metadata: {name: stamped,",
        "metadata: {annotations: {muster.sh/user: eve}, name: stamped,",
    );
    tenancy.tenant_applies(&stamped).await;
    tenancy.until_status(TENANT, "stamped", is_limited).await;
    victim_starts_in(&tenancy, "shared", "own", 1).await;
    assert_eq!(tenancy.bound(TENANT, "").await, 1);
}
