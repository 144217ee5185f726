//! A tenant claims what is another's by saying so: queues, priorities, users, costs, and time.
//!
//! Each attempt is taken by the API server, since it is the tenant's own object, and comes to nothing: it is told why in
//! its status, what others run goes on, and the victim, whose queue has a guarantee, starts.

use std::collections::BTreeSet;

use kube::ResourceExt;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind};
use muster_testkit::cluster::{Part, Role, Setup};
use serde_json::Value;

use super::tenancy::gang;
use super::{TENANT, Tenancy, VICTIM};
use crate::controller::Controller;
use crate::observer::Kind;
use crate::words::HIGH;

/// The victim can count on three nodes and has them back in seconds; the tenant has a queue of its own; both share one.
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

/// What the tenant claims in a Gang, and why it waits.
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

/// A request for room whose template, which no admission has seen, has the highest priority there is.
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

fn is_told(reason: &str) -> impl Fn(&Value) -> bool {
    move |status| status["reason"] == reason
}

/// Whether a gang waits for room under the limit of its user, or behind another gang of that user that does.
fn is_limited(status: &Value) -> bool {
    matches!(status["reason"].as_str(), Some("UserLimit" | "QueuedBehind"))
}

/// The pods of the victim that are bound.
async fn victims(tenancy: &Tenancy, begin: &str) -> BTreeSet<String> {
    let mine = tenancy.pods(VICTIM).await.into_iter();
    let mine = mine.filter(|pod| {
        pod.name_any().starts_with(begin) && pod.metadata.deletion_timestamp.is_none()
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

/// Waits until the request was given up in these words.
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
async fn claimed_queues_and_priorities_stop_nobody_and_start_nothing() {
    let Some(tenancy) = Tenancy::without_policies(3, Setup::bare().with(Part::Kwok)).await else {
        return;
    };
    let Some(()) = tenancy.define_or_skip(&KINDS).await else { return };
    tenancy.apply(QUEUES).await.expect("queues");
    tenancy.apply(HIGH).await.expect("a class");
    let _controller = Controller::start(&tenancy, &VOLCANO);
    // In the queue of everybody, where a higher priority would stop it.
    tenancy.victim_starts("base", 3, 8).await;
    let base = victims(&tenancy, "base").await;
    for (name, claim, _) in GANGS {
        tenancy.tenant_applies(&gang(TENANT, name, 3, 8, claim)).await;
    }
    let marks = "muster.sh/gang: marked, muster.sh/gang-size: '1', muster.sh/queue: team-b";
    tenancy.tenant_applies(&pod("marked", "muster", marks)).await;
    // The chart gives no rights to kinds of other systems: an administrator has done it.
    tenancy.apply(&group("stray", "queue: team-b")).await.expect("a group");
    tenancy
        .apply(&group("named", "queue: default, priorityClassName: high"))
        .await
        .expect("a group");
    tenancy.apply(REQUEST).await.expect("a request");
    for (name, _, reason) in GANGS {
        tenancy.until_status(TENANT, name, is_told(reason)).await;
    }
    tenancy.until_status(TENANT, "marked", is_told("NamespaceNotAllowed")).await;
    tenancy.until_status(TENANT, "stray.volcano", is_told("NamespaceNotAllowed")).await;
    tenancy.until_status(TENANT, "named.volcano", |status| status["phase"] == "Waiting").await;
    until_request_fails(&tenancy, "its priority is 2147483647").await;
    let message = tenancy.status(TENANT, "loud").await["message"].to_string();
    assert!(message.contains("2147483647") && message.contains("queue default"), "{message}");
    assert_eq!(victims(&tenancy, "base").await, base, "what runs was stopped by a claim");
    assert_eq!(tenancy.bound(TENANT, "").await, 0);
    victim_starts_in(&tenancy, "team-b", "train", 3).await;
    assert_eq!(tenancy.bound(TENANT, "").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_tenant_borrows_comes_back_whatever_it_declares() {
    // Pods go with the Gang that they were made for.
    let setup = Setup::bare().with(Part::Kwok).with(Part::ControllerManager);
    let Some(tenancy) = Tenancy::without_policies(3, setup).await else { return };
    tenancy.apply(QUEUES).await.expect("queues");
    let _controller = Controller::start(&tenancy, &["--leader-elect=false"]);
    let firm = "queue: team-a\n  disruption: {preemptible: false}";
    tenancy.tenant_applies(&gang(TENANT, "firm", 3, 8, firm)).await;
    tenancy.until_status(TENANT, "firm", is_told("BeyondGuarantee")).await;
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
    // One that has grown onto it, and says that giving it back takes a century.
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
    // As the victim first, so that its share would be gone.
    let as_user = |user: &str| format!("queue: shared\n  user: {user}");
    tenancy.tenant_applies(&gang(TENANT, "spoof", 1, 8, &as_user("namespace/team-b"))).await;
    tenancy.until_bound(TENANT, "spoof", 1).await;
    tenancy.until_event(TENANT, "UnsupportedField", "spec.user does not count").await;
    for (name, user) in [("alice", "alice"), ("bob", "bob")] {
        tenancy.tenant_applies(&gang(TENANT, name, 1, 8, &as_user(user))).await;
        tenancy.until_status(TENANT, name, is_limited).await;
    }
    // A stamp that no admission policy keeps is worth as little.
    let stamped = gang(TENANT, "stamped", 1, 8, "queue: shared").replace(
        "metadata: {name: stamped,",
        "metadata: {annotations: {muster.sh/user: eve}, name: stamped,",
    );
    tenancy.tenant_applies(&stamped).await;
    tenancy.until_status(TENANT, "stamped", is_limited).await;
    victim_starts_in(&tenancy, "shared", "own", 1).await;
    assert_eq!(tenancy.bound(TENANT, "").await, 1);
}
