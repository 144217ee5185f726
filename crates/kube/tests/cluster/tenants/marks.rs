//! Marks that only Muster writes, forged by a tenant: none of them reserves, binds, joins or evicts anything.

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams};
use muster_testkit::cluster::{Part, Role, Setup};

use super::tenancy::gang;
use super::{TENANT, Tenancy, VICTIM};
use crate::fixture::controller::Controller;
use crate::observer::Kind;

const ARGS: [&str; 1] = ["--leader-elect=false"];

/// The tenant's queue, with this limit of GPUs.
fn queue(gpus: u32) -> String {
    format!(
        "{{apiVersion: muster.sh/v1alpha1, kind: Queue, metadata: {{name: {TENANT}}}, \
         spec: {{limit: {{nvidia.com/gpu: {gpus}}}}}}}"
    )
}

/// A pod of the tenant with 8 GPUs, with more metadata and more of its spec.
fn pod(name: &str, metadata: &str, spec: &str) -> String {
    format!(
        "
---
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: {TENANT}, {metadata}}}
spec: {{{spec}, containers: [{{name: a, image: none, resources: {{limits: {{nvidia.com/gpu: 8}}}}}}]}}
"
    )
}

/// A pod of a gang that is sized by annotations alone.
fn member(of: &str, size: u32, at: u32, spec: &str) -> String {
    let marks = format!(
        "labels: {{muster.sh/gang: {of}, muster.sh/queue: {TENANT}}}, \
         annotations: {{muster.sh/gang-size: '{size}'}}"
    );
    pod(&format!("{of}-{at}"), &marks, spec)
}

const OWN: &str = "schedulerName: muster";

/// A Gang labelled as managed by Muster, with these annotations.
fn musters_own(name: &str, annotations: &str) -> String {
    format!(
        "
---
apiVersion: muster.sh/v1alpha1
kind: Gang
metadata: {{name: {name}, namespace: {TENANT}, labels: {{app.kubernetes.io/managed-by: muster}}, annotations: {annotations}}}
spec: {{queue: {TENANT}, roles: [{{name: member, min: 3, resources: {{nvidia.com/gpu: 8}}}}]}}
"
    )
}

/// Pods of a scheduler that does not exist, with forged assigned nodes.
fn seats(prefix: &str) -> String {
    let marks = |at: u32| {
        format!(
            "annotations: {{muster.sh/assigned-node: n{at}, muster.sh/node-selector-added: 'true', muster.sh/queue: {TENANT}}}"
        )
    };
    let none = "schedulerName: nobody-at-all";
    (0..4).map(|at| pod(&format!("{prefix}-{at}"), &marks(at), none)).collect()
}

/// A forged placement annotation, for three waiting members.
fn placement(name: &str) -> String {
    let seat = |at: u32| format!(r#"{{"role": "member", "node": "n{at}", "members": 1}}"#);
    let message = format!("[{}, {}, {}]", seat(0), seat(1), seat(2));
    let marks = format!("{{muster.sh/placement: '{message}', muster.sh/source: gang/{name}}}");
    let pods: String = (0..3).map(|at| member(name, 3, at, OWN)).collect();
    musters_own(name, &marks) + &pods
}

/// Every mark that Muster writes on nodes, claims and its own objects, on objects of the tenant.
fn others(prefix: &str) -> String {
    let marks = "labels: {muster.sh/claim: '1', muster.sh/pool: gpu, muster.sh/order: '1', muster.sh/learned-state: small}, \
                 annotations: {muster.sh/claim: '1', muster.sh/claims: '1 2', muster.sh/released: 'true', \
                 muster.sh/idle-since: '2020-01-01T00:00:00Z', muster.sh/offering: a/b/c}";
    let config = format!(
        "
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: muster-memory, namespace: {TENANT}, labels: {{muster.sh/learned-state: small}}}}
data: {{queues: '{{}}', users: '{{}}', at: '2030-01-01T00:00:00Z'}}
"
    );
    config + &pod(&format!("{prefix}-marked"), marks, "schedulerName: nobody-at-all")
}

/// Pods with a forged assigned node and Muster's gate or scheduler name, in a queue without room.
fn seats_of_served_pods(prefix: &str) -> String {
    let marks = |at: u32| {
        format!(
            "labels: {{muster.sh/gang: {prefix}, muster.sh/queue: {TENANT}}}, \
             annotations: {{muster.sh/assigned-node: n{at}, muster.sh/node-selector-added: 'true', muster.sh/gang-size: '2'}}"
        )
    };
    let gated = "schedulerName: nobody-at-all, schedulingGates: [{name: muster.sh/gang}]";
    pod(&format!("{prefix}-0"), &marks(0), gated) + &pod(&format!("{prefix}-1"), &marks(1), OWN)
}

/// A gang that lists a group of the victim, with the name of a merged gang.
fn groups(name: &str) -> String {
    let marks = format!(
        r#"{{muster.sh/groups: '["{TENANT}/left", "{VICTIM}/train"]', muster.sh/placement: '[]'}}"#
    );
    let pods: String = (0..2).map(|at| member(name, 2, at, OWN)).collect();
    musters_own(name, &marks) + &pods
}

#[tokio::test(flavor = "multi_thread")]
async fn forged_marks_reserve_and_bind_nothing_under_either_leader() {
    let Some(tenancy) = Tenancy::without_policies(4, Setup::bare().with(Part::Kwok)).await else {
        return;
    };
    tenancy.apply(&queue(1)).await.expect("a queue");
    // Written before the controller starts.
    for yaml in [
        seats("seat"),
        placement("spoof"),
        others("odd"),
        seats_of_served_pods("served"),
        groups("left.0.joined"),
    ] {
        tenancy.tenant_applies(&yaml).await;
    }
    let controller = Controller::start(&tenancy, &ARGS);
    tenancy.victim_starts("train", 3, 8).await;
    // Written while it runs; the next leader finds all of it.
    tenancy.tenant_applies(&seats("more")).await;
    tenancy.tenant_applies(&placement("again")).await;
    tenancy.victim_starts("second", 1, 8).await;
    assert_eq!(tenancy.bound(TENANT, "").await, 0);
    controller.kill();
    end(&tenancy, VICTIM, "second").await;
    let _next = Controller::start(&tenancy, &ARGS);
    tenancy.victim_starts("third", 1, 8).await;
    assert_eq!(tenancy.bound(TENANT, "").await, 0);
    assert_eq!(tenancy.bound(VICTIM, "train").await, 3, "a running gang was evicted");
    assert_eq!(held_gpus(&tenancy).await, 0);
    tenancy.until_event(TENANT, "WaitingForMembers", "several groups").await;
}

/// GPUs that the tenant's queue holds, by its status.
async fn held_gpus(tenancy: &Tenancy) -> u64 {
    let client = tenancy.client(Role::Observer).await;
    let queues: Api<DynamicObject> = Api::all_with(client, &Kind::Queue.resource());
    let queue = queues.get(TENANT).await.expect("a queue");
    let held = queue.data.pointer("/status/held/nvidia.com~1gpu").cloned().unwrap_or_default();
    held.as_u64().or_else(|| held.as_str()?.parse().ok()).unwrap_or(0)
}

/// The Gangs of all namespaces.
async fn gangs(tenancy: &Tenancy) -> Vec<DynamicObject> {
    let client = tenancy.client(Role::Observer).await;
    let gangs: Api<DynamicObject> = Api::all_with(client, &Kind::Gang.resource());
    gangs.list(&ListParams::default()).await.expect("gangs").items
}

/// Removes a gang and its pods, as a kubelet and the garbage collector would.
async fn end(tenancy: &Tenancy, namespace: &str, name: &str) {
    let client = tenancy.client(Role::Admin).await;
    let kind = Kind::Gang.resource();
    let gangs: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &kind);
    drop(gangs.delete(name, &DeleteParams::default()).await);
    let pods: Api<Pod> = Api::namespaced(client, namespace);
    for pod in tenancy.pods(namespace).await {
        if pod.name_any().starts_with(name) {
            let now = DeleteParams::default().grace_period(0);
            pods.delete(&pod.name_any(), &now).await.expect("removed");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_with_node_names_stay_in_their_queue_and_join_no_other_gang() {
    let Some(tenancy) = Tenancy::without_policies(4, Setup::bare().with(Part::Kwok)).await else {
        return;
    };
    tenancy.apply(&queue(8)).await.expect("a queue");
    // The tenant, and not Muster, exceeds the limit of the queue here.
    tenancy.allow_violation("the queue team-a has");
    let controller = Controller::start(&tenancy, &ARGS);
    tenancy.victim_starts("train", 1, 8).await;
    let on = tenancy.pods(VICTIM).await[0].spec.clone().and_then(|spec| spec.node_name);
    let free: Vec<String> =
        (0..4).map(|at| format!("n{at}")).filter(|node| Some(node) != on.as_ref()).collect();
    // Two gangs of one pod with a node name set by their owner: the queue allows one of them.
    for (at, node) in free.iter().take(2).enumerate() {
        let there = format!("{OWN}, nodeName: {node}");
        tenancy.tenant_applies(&member(&format!("hand-{at}"), 1, 0, &there)).await;
    }
    tenancy.until_event(TENANT, "BoundOutsideQueue", "Muster did not bind").await;
    // A pod that claims to be the victim's: by its label, and by an owner reference to its Gang.
    let all = gangs(&tenancy).await;
    let uid = all.iter().find(|gang| gang.name_any() == "train").and_then(ResourceExt::uid);
    let owner = format!(
        "labels: {{muster.sh/gang: train, muster.sh/role: worker, muster.sh/index: '0', muster.sh/queue: {TENANT}}}, \
         annotations: {{muster.sh/gang-size: '1'}}, \
         ownerReferences: [{{apiVersion: muster.sh/v1alpha1, kind: Gang, name: train, uid: {}, controller: true}}]",
        uid.expect("the victim's gang")
    );
    tenancy.tenant_applies(&pod("train-worker-0", &owner, OWN)).await;
    // The victim starts on the remaining node.
    tenancy.victim_starts("second", 1, 8).await;
    assert_eq!(
        tenancy.bound(TENANT, "hand").await,
        2,
        "they run with the node name of their owner"
    );
    assert!(held_gpus(&tenancy).await <= 8, "its queue was charged beyond its limit");
    let seats = tenancy.status(VICTIM, "train").await["placement"].clone();
    controller.kill();
    let _next = Controller::start(&tenancy, &ARGS);
    // All nodes are full. When the tenant's pods end the next gang starts.
    end(&tenancy, TENANT, "hand").await;
    tenancy.victim_starts("third", 2, 8).await;
    assert_eq!(tenancy.bound(VICTIM, "train").await, 1);
    assert_eq!(tenancy.status(VICTIM, "train").await["placement"], seats);
    assert_eq!(tenancy.bound(TENANT, "train").await, 0);
    assert!(held_gpus(&tenancy).await <= 8);
}

/// A pod of a group that only annotations describe, and that names these groups.
fn grouped(namespace: &str, name: &str, groups: &str, spec: &str) -> String {
    let listed = match groups.is_empty() {
        true => String::new(),
        false => format!("gang.scheduling.koordinator.sh/groups: '{groups}', "),
    };
    let marks = format!(
        "annotations: {{{listed}gang.scheduling.koordinator.sh/name: {name}, \
         gang.scheduling.koordinator.sh/min-available: '1'}}"
    );
    pod(name, &marks, spec)
        .replace(&format!("namespace: {TENANT}"), &format!("namespace: {namespace}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_that_name_the_victims_group_are_not_merged_with_it() {
    let Some(tenancy) = Tenancy::without_policies(3, Setup::bare().with(Part::Kwok)).await else {
        return;
    };
    let both = format!(r#"["{TENANT}/left", "{VICTIM}/right"]"#);
    let controller = Controller::start(&tenancy, &ARGS);
    // A group that waits, and one that is started by a node name set by its owner.
    tenancy.tenant_applies(&grouped(TENANT, "left", &both, OWN)).await;
    let there = format!("{OWN}, nodeName: n0");
    tenancy.tenant_applies(&grouped(TENANT, "left2", &both.replace("left", "left2"), &there)).await;
    for at in 0..2 {
        tenancy.apply(&grouped(VICTIM, "right", "", OWN)).await.expect("the victim's pod");
        tenancy.until_bound(VICTIM, "right", 1).await;
        let all = gangs(&tenancy).await;
        assert!(all.iter().any(|gang| gang.name_any() == "right.koordinator"), "it is by itself");
        let joined = all.iter().filter(|gang| gang.name_any().ends_with(".joined"));
        let placed = joined.filter(|gang| gang.data.pointer("/status/placement").is_some());
        assert_eq!(placed.count(), 0, "the victim was merged without its consent");
        end(&tenancy, VICTIM, "right").await;
        if at == 0 {
            // A forged object of a merged gang, for the next leader.
            let forged = musters_own(
                "left.00000000000000000000000000000000.joined",
                &format!("{{muster.sh/groups: '{both}'}}"),
            );
            tenancy.tenant_applies(&forged).await;
        }
    }
    controller.kill();
    let _next = Controller::start(&tenancy, &ARGS);
    tenancy.apply(&grouped(VICTIM, "right", "", OWN)).await.expect("the victim's pod");
    tenancy.until_bound(VICTIM, "right", 1).await;
    tenancy.apply(&gang(VICTIM, "beside", 1, 8, "")).await.expect("a gang");
    tenancy.until_bound(VICTIM, "beside", 1).await;
    assert_eq!(tenancy.bound(TENANT, "left").await, 1, "only the pod that its owner put there");
}
