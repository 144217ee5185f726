//! Marks that only Muster writes, forged by a tenant: none of them reserves, binds, joins or evicts anything.

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams};
use muster_testkit::cluster::{Part, Role, Setup};

use super::tenancy::gang;
use super::{TENANT, Tenancy, VICTIM};
use crate::controller::Controller;
use crate::observer::Kind;

const ARGS: [&str; 1] = ["--leader-elect=false"];

/// The tenant's queue, which allows so many GPUs.
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

/// An object that says it is Muster's, with these annotations.
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

/// Pods of a scheduler that does not exist, whose annotations say where Muster has seated them.
fn seats(begin: &str) -> String {
    let marks = |at: u32| {
        format!(
            "annotations: {{muster.sh/assigned-node: n{at}, muster.sh/node-selector-added: 'true', muster.sh/queue: {TENANT}}}"
        )
    };
    let none = "schedulerName: nobody-at-all";
    (0..4).map(|at| pod(&format!("{begin}-{at}"), &marks(at), none)).collect()
}

/// A placement in an annotation, for three members that wait.
fn placement(name: &str) -> String {
    let seat = |at: u32| format!(r#"{{"role": "member", "node": "n{at}", "members": 1}}"#);
    let said = format!("[{}, {}, {}]", seat(0), seat(1), seat(2));
    let marks = format!("{{muster.sh/placement: '{said}', muster.sh/source: gang/{name}}}");
    let pods: String = (0..3).map(|at| member(name, 3, at, OWN)).collect();
    musters_own(name, &marks) + &pods
}

/// Every mark that Muster writes on nodes, claims and objects of its own, on things of the tenant.
fn others(begin: &str) -> String {
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
    config + &pod(&format!("{begin}-marked"), marks, "schedulerName: nobody-at-all")
}

/// Pods that name a seat and have the gate that Muster lifts, or the name of Muster's scheduler, in a queue without room.
fn seats_of_served_pods(begin: &str) -> String {
    let marks = |at: u32| {
        format!(
            "labels: {{muster.sh/gang: {begin}, muster.sh/queue: {TENANT}}}, \
             annotations: {{muster.sh/assigned-node: n{at}, muster.sh/node-selector-added: 'true', muster.sh/gang-size: '2'}}"
        )
    };
    let gated = "schedulerName: nobody-at-all, schedulingGates: [{name: muster.sh/gang}]";
    pod(&format!("{begin}-0"), &marks(0), gated) + &pod(&format!("{begin}-1"), &marks(1), OWN)
}

/// A gang that lists a group of the victim, under a name that gangs of several groups have.
fn groups(name: &str) -> String {
    let marks = format!(
        r#"{{muster.sh/groups: '["{TENANT}/left", "{VICTIM}/train"]', muster.sh/placement: '[]'}}"#
    );
    let pods: String = (0..2).map(|at| member(name, 2, at, OWN)).collect();
    musters_own(name, &marks) + &pods
}

#[tokio::test(flavor = "multi_thread")]
async fn forged_marks_reserve_and_bind_nothing_before_and_after_a_change_of_leader() {
    let Some(tenancy) = Tenancy::without_policies(4, Setup::bare().with(Part::Kwok)).await else {
        return;
    };
    tenancy.apply(&queue(1)).await.expect("a queue");
    // Before anything runs.
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
    // While it runs, and then the next one finds all of it.
    tenancy.tenant_applies(&seats("more")).await;
    tenancy.tenant_applies(&placement("again")).await;
    tenancy.victim_starts("second", 1, 8).await;
    assert_eq!(tenancy.bound(TENANT, "").await, 0);
    controller.kill();
    end(&tenancy, VICTIM, "second").await;
    let _next = Controller::start(&tenancy, &ARGS);
    tenancy.victim_starts("third", 1, 8).await;
    assert_eq!(tenancy.bound(TENANT, "").await, 0);
    assert_eq!(tenancy.bound(VICTIM, "train").await, 3, "a gang that runs was disturbed");
    assert_eq!(held(&tenancy).await, 0);
    tenancy.until_event(TENANT, "WaitingForMembers", "several groups").await;
}

/// GPUs that the tenant's queue holds by Muster's books.
async fn held(tenancy: &Tenancy) -> u64 {
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

/// Removes a gang and its pods, as if a kubelet and the garbage collector had seen to it.
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
async fn node_names_written_by_hand_stay_within_the_queue_and_members_are_not_lent() {
    let Some(tenancy) = Tenancy::without_policies(4, Setup::bare().with(Part::Kwok)).await else {
        return;
    };
    tenancy.apply(&queue(8)).await.expect("a queue");
    // That they run beyond their queue is the tenant's doing, and not Muster's.
    tenancy.excuse("the queue team-a has");
    let controller = Controller::start(&tenancy, &ARGS);
    tenancy.victim_starts("train", 1, 8).await;
    let on = tenancy.pods(VICTIM).await[0].spec.clone().and_then(|spec| spec.node_name);
    let free: Vec<String> =
        (0..4).map(|at| format!("n{at}")).filter(|node| Some(node) != on.as_ref()).collect();
    // Two gangs of one, put on nodes by their owner: its queue allows one of them.
    for (at, node) in free.iter().take(2).enumerate() {
        let there = format!("{OWN}, nodeName: {node}");
        tenancy.tenant_applies(&member(&format!("hand-{at}"), 1, 0, &there)).await;
    }
    tenancy.until_event(TENANT, "BoundOutsideQueue", "Muster did not bind").await;
    // Pods that say they are the victim's: by its label, and by an owner reference to its Gang.
    let all = gangs(&tenancy).await;
    let uid = all.iter().find(|gang| gang.name_any() == "train").and_then(ResourceExt::uid);
    let owner = format!(
        "labels: {{muster.sh/gang: train, muster.sh/role: worker, muster.sh/index: '0', muster.sh/queue: {TENANT}}}, \
         annotations: {{muster.sh/gang-size: '1'}}, \
         ownerReferences: [{{apiVersion: muster.sh/v1alpha1, kind: Gang, name: train, uid: {}, controller: true}}]",
        uid.expect("the victim's gang")
    );
    tenancy.tenant_applies(&pod("train-worker-0", &owner, OWN)).await;
    // On time, on the node that is left.
    tenancy.victim_starts("second", 1, 8).await;
    assert_eq!(tenancy.bound(TENANT, "hand").await, 2, "they run, whoever put them there");
    assert!(held(&tenancy).await <= 8, "its queue was charged beyond its limit");
    let seats = tenancy.status(VICTIM, "train").await["placement"].clone();
    controller.kill();
    let _next = Controller::start(&tenancy, &ARGS);
    // Everything is full. When the tenant's pods end the next gang starts.
    end(&tenancy, TENANT, "hand").await;
    tenancy.victim_starts("third", 2, 8).await;
    assert_eq!(tenancy.bound(VICTIM, "train").await, 1);
    assert_eq!(tenancy.status(VICTIM, "train").await["placement"], seats);
    assert_eq!(tenancy.bound(TENANT, "train").await, 0);
    assert!(held(&tenancy).await <= 8);
}

/// A pod of a group that is said by annotations alone, and that names these groups.
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
async fn groups_that_name_the_victims_group_join_nothing() {
    let Some(tenancy) = Tenancy::without_policies(3, Setup::bare().with(Part::Kwok)).await else {
        return;
    };
    let both = format!(r#"["{TENANT}/left", "{VICTIM}/right"]"#);
    let controller = Controller::start(&tenancy, &ARGS);
    // One that waits, and one that its owner has put on a node so that it has started.
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
        assert_eq!(placed.count(), 0, "the victim was joined without a word of it");
        end(&tenancy, VICTIM, "right").await;
        if at == 0 {
            // An object that says they were joined, for the next leader to find.
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
