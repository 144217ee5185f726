//! A tenant writes none of the labels and annotations reserved for Muster (marks), names no queue without the right to
//! use it, and cannot claim to be another user.
//!
//! A real API server evaluates the policies of the chart; a controller runs only where the test needs bound pods.

use std::collections::BTreeMap;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use muster_testkit::cluster::{Part, Role, Setup};
use serde_json::{Value, json};

use super::tenancy::gang;
use super::{TENANT, Tenancy, VICTIM};
use crate::fixture::controller::Controller;
use crate::observer::Kind;

/// Every reserved mark.
const MARKS: [&str; 12] = [
    "assigned-node",
    "claim",
    "claims",
    "groups",
    "idle-since",
    "node-selector-added",
    "offering",
    "order",
    "placement",
    "pool",
    "released",
    "source",
];

const OF_TENANT: &str = "namespace: team-a";

fn pod(name: &str, metadata: &str) -> String {
    format!(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: {name}, {OF_TENANT}, {metadata}}}, \
         spec: {{schedulerName: other, containers: [{{name: worker, image: none}}]}}}}"
    )
}

fn job(name: &str, metadata: &str, of_template: &str) -> String {
    format!(
        "{{apiVersion: batch/v1, kind: Job, metadata: {{name: {name}, {OF_TENANT}, {metadata}}}, \
         spec: {{suspend: true, template: {{metadata: {{{of_template}}}, \
         spec: {{schedulerName: other, restartPolicy: Never, containers: [{{name: worker, image: none}}]}}}}}}}}"
    )
}

fn marked_gang(name: &str, metadata: &str, of_template: &str) -> String {
    format!(
        "{{apiVersion: muster.sh/v1alpha1, kind: Gang, metadata: {{name: {name}, {OF_TENANT}, {metadata}}}, \
         spec: {{roles: [{{name: worker, min: 1, template: {{metadata: {{{of_template}}}, \
         spec: {{containers: [{{name: worker, image: none}}]}}}}}}]}}}}"
    )
}

/// Metadata that each policy refuses to every user but Muster.
const REFUSED_WHEN_IN_FORCE: [(&str, &str); 2] = [
    ("annotations: {muster.sh/assigned-node: n0}", "Muster"),
    ("labels: {muster.sh/queue: secret}", "may not use"),
];

impl Tenancy {
    /// Waits until the policies of the chart are in force: the API server takes a moment to load them.
    async fn until_enforced(&self) {
        for (metadata, words) in REFUSED_WHEN_IN_FORCE {
            self.until("the policies are in force", async || {
                let refusal = self.attempt(&pod("probe", metadata)).await.err();
                if refusal.is_none() {
                    self.pods_of_tenant().await.delete("probe", &Default::default()).await.ok()?;
                }
                refusal.filter(|refusal| refusal.contains(words)).map(drop)
            })
            .await;
        }
        let user = "muster.sh/user";
        self.until("users are stamped", async || {
            let pods = self.pods_of_tenant().await;
            let _ = pods.delete("probe", &Default::default()).await;
            self.attempt(&pod("probe", "")).await.ok()?;
            pods.get("probe").await.ok()?.annotations().contains_key(user).then_some(())
        })
        .await;
        self.pods_of_tenant().await.delete("probe", &Default::default()).await.expect("gone");
    }

    async fn pods_of_tenant(&self) -> Api<Pod> {
        Api::namespaced(self.client(Role::Tenant).await, TENANT)
    }

    async fn refuses(&self, what: &str, yaml: &str, words: &str) {
        let refusal = self.attempt(yaml).await.expect_err(what);
        assert!(refusal.contains(words), "{what}: {refusal}");
    }

    async fn takes(&self, what: &str, yaml: &str) {
        self.attempt(yaml).await.unwrap_or_else(|refusal| panic!("{what}: {refusal}"));
    }

    /// Patches an object with a role. The error is the message of the API server.
    async fn patch(&self, role: Role, kind: &str, name: &str, patch: &Value) -> Result<(), String> {
        let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
        let client = self.client(role).await;
        let done = match kind {
            "Pod" => {
                Api::<Pod>::namespaced(client, TENANT).patch(name, &params, &patch).await.map(drop)
            }
            "Job" => {
                Api::<Job>::namespaced(client, TENANT).patch(name, &params, &patch).await.map(drop)
            }
            _ => self.gangs(client).patch(name, &params, &patch).await.map(drop),
        };
        done.map_err(|refusal| refusal.to_string())
    }

    fn gangs(&self, client: kube::Client) -> Api<DynamicObject> {
        Api::namespaced_with(client, TENANT, &Kind::Gang.resource())
    }

    async fn stamp(&self, kind: &str, name: &str) -> Option<String> {
        let client = self.client(Role::Observer).await;
        let marks: BTreeMap<String, String> = match kind {
            "Pod" => {
                Api::<Pod>::namespaced(client, TENANT).get(name).await.ok()?.annotations().clone()
            }
            "Job" => {
                Api::<Job>::namespaced(client, TENANT).get(name).await.ok()?.annotations().clone()
            }
            _ => self.gangs(client).get(name).await.ok()?.annotations().clone(),
        };
        marks.get("muster.sh/user").cloned()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tenant_creates_no_object_with_marks_reserved_for_muster() {
    let Some(tenancy) = Tenancy::start(2).await else { return };
    tenancy.until_enforced().await;
    for mark in MARKS {
        for of in ["annotations", "labels"] {
            let marked = format!("{of}: {{muster.sh/{mark}: 'x'}}");
            let words = format!("muster.sh/{mark}");
            tenancy.refuses("a pod", &pod("p", &marked), &words).await;
            tenancy.refuses("a job", &job("j", &marked, ""), &words).await;
            tenancy.refuses("a job's template", &job("j", "", &marked), &words).await;
            tenancy.refuses("a gang", &marked_gang("g", &marked, ""), &words).await;
            tenancy.refuses("a gang's template", &marked_gang("g", "", &marked), &words).await;
        }
    }
    // An empty mark is refused as well.
    tenancy
        .refuses(
            "no words",
            &pod("p", "annotations: {muster.sh/node-selector-added: ''}"),
            "node-selector-added",
        )
        .await;
    let managed = "labels: {app.kubernetes.io/managed-by: muster}";
    tenancy.refuses("a gang of Muster's", &marked_gang("g", managed, ""), "managed-by").await;
    tenancy.tenant_applies(&marked_gang("g", &managed.replace("muster}", "Helm}"), "")).await;
    let _controller = Controller::start(&tenancy, &["--leader-elect=false"]);
    tenancy.victim_starts("train", 2, 8).await;
    tenancy.until_status(TENANT, "g", |status| status["phase"].is_string()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tenant_changes_no_reserved_mark_and_may_change_all_else() {
    let Some(tenancy) = Tenancy::start(0).await else { return };
    tenancy.until_enforced().await;
    tenancy.takes("a pod", &pod("p", "")).await;
    tenancy.takes("a job", &job("j", "", "")).await;
    tenancy.takes("a gang", &marked_gang("g", "", "")).await;
    // Muster writes its marks on a Gang when it creates one.
    let all: BTreeMap<String, &str> =
        MARKS.iter().map(|mark| (format!("muster.sh/{mark}"), "n0")).collect();
    let made = json!({
        "apiVersion": "muster.sh/v1alpha1", "kind": "Gang",
        "metadata": {"name": "made", "annotations": all, "labels": {"app.kubernetes.io/managed-by": "muster"}},
        "spec": {"roles": [{"name": "worker", "min": 1}]},
    });
    let made = serde_json::from_value(made).expect("a gang");
    let of_muster = tenancy.gangs(tenancy.client(Role::Muster).await);
    of_muster.create(&PostParams::default(), &made).await.expect("Muster's own");
    for (kind, name) in [("Pod", "p"), ("Job", "j"), ("Gang", "g"), ("Gang", "made")] {
        for mark in MARKS {
            let patch = |value: Value| json!({"metadata": {"annotations": {format!("muster.sh/{mark}"): value}}});
            let refused = async |what: &str, value: Value| {
                let refusal = tenancy.patch(Role::Tenant, kind, name, &patch(value)).await;
                assert!(refusal.expect_err(what).contains(mark), "{what} {kind} {mark}");
            };
            if name != "made" {
                refused("set", json!("x")).await;
            }
            if kind != "Gang" {
                let own = tenancy.patch(Role::Muster, kind, name, &patch(json!("n0"))).await;
                own.expect("Muster's own");
            }
            if name != "g" {
                refused("changed", json!("n1")).await;
                refused("removed", Value::Null).await;
            }
        }
        let other = json!({"metadata": {"annotations": {"example.com/note": "mine"}}});
        tenancy.patch(Role::Tenant, kind, name, &other).await.expect("what is the tenant's own");
    }
    let managed = |by: Value| json!({"metadata": {"labels": {"app.kubernetes.io/managed-by": by}}});
    let refusal = tenancy.patch(Role::Tenant, "Gang", "g", &managed(json!("muster"))).await;
    assert!(refusal.expect_err("it is the tenant's").contains("managed-by"));
    let refusal = tenancy.patch(Role::Tenant, "Gang", "made", &managed(Value::Null)).await;
    assert!(refusal.expect_err("it is Muster's").contains("managed-by"));
}

#[tokio::test(flavor = "multi_thread")]
async fn queue_needs_the_right_to_use_it_unless_it_is_the_namespaces_own() {
    let Some(tenancy) = Tenancy::start(0).await else { return };
    tenancy.until_enforced().await;
    let queued = |queue: &str| format!("labels: {{muster.sh/queue: {queue}}}");
    let noted = |queue: &str| format!("annotations: {{muster.sh/queue: {queue}}}");
    let words = "tenant may not use queue team-b";
    let other = VICTIM;
    tenancy.refuses("a gang", &gang(TENANT, "g", 1, 1, "queue: team-b"), words).await;
    for mark in [queued(other), noted(other)] {
        tenancy.refuses("a pod", &pod("p", &mark), words).await;
        tenancy.refuses("a job", &job("j", &mark, ""), words).await;
        tenancy.refuses("a job's template", &job("j", "", &mark), words).await;
        tenancy.refuses("a gang's template", &marked_gang("g", "", &mark), words).await;
        let made_by = |kind: &str| {
            format!(
                "{{apiVersion: apps/v1, kind: {kind}, metadata: {{name: d, {OF_TENANT}}}, spec: {{selector: \
                 {{matchLabels: {{a: b}}}}, template: {{metadata: {{labels: {{a: b}}}}, spec: {{containers: [{{name: \
                 worker, image: none}}]}}}}}}}}"
            )
        };
        for kind in ["Deployment", "ReplicaSet"] {
            let marked = match mark.starts_with("labels") {
                true => {
                    made_by(kind).replace("{a: b}}, spec", "{a: b, muster.sh/queue: team-b}}, spec")
                }
                false => made_by(kind).replace(
                    "labels: {a: b}}",
                    "labels: {a: b}, annotations: {muster.sh/queue: team-b}}",
                ),
            };
            assert!(marked.contains("team-b"));
            tenancy.refuses(kind, &marked, words).await;
        }
    }
    for own in ["default", TENANT] {
        tenancy
            .takes("a gang", &gang(TENANT, &format!("of-{own}"), 1, 1, &format!("queue: {own}")))
            .await;
        tenancy.takes("a pod", &pod(&format!("of-{own}"), &queued(own))).await;
    }
    // A gang cannot be moved to the queue of another team.
    let moved = json!({"spec": {"queue": other}});
    let refusal = tenancy.patch(Role::Tenant, "Gang", "of-default", &moved).await;
    assert!(refusal.expect_err("moved").contains(words));
    tenancy.apply(USE).await.expect("a role");
    tenancy
        .until("the right is given", async || {
            tenancy.attempt(&gang(TENANT, "allowed", 1, 1, "queue: team-b")).await.ok()
        })
        .await;
    tenancy.takes("a pod", &pod("allowed", &queued(other))).await;
    tenancy
        .refuses("a third's", &pod("third", &queued("team-c")), "may not use queue team-c")
        .await;
}

/// Allows the tenant to use one queue of another team.
const USE: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: use-team-b}
rules: [{apiGroups: [muster.sh], resources: [queues], resourceNames: [team-b], verbs: [use]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: use-team-b}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: use-team-b}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: tenant}]
";

#[tokio::test(flavor = "multi_thread")]
async fn user_is_stamped_from_the_request_and_cannot_be_changed() {
    let Some(tenancy) = Tenancy::start(0).await else { return };
    tenancy.until_enforced().await;
    let spoofed = "annotations: {muster.sh/user: victim}";
    tenancy.refuses("a pod", &pod("p", spoofed), "muster.sh/user").await;
    tenancy.refuses("a job", &job("j", spoofed, ""), "muster.sh/user").await;
    tenancy.refuses("a job's template", &job("j", "", spoofed), "muster.sh/user").await;
    tenancy.refuses("a gang", &marked_gang("g", spoofed, ""), "muster.sh/user").await;
    tenancy.refuses("a gang's template", &marked_gang("g", "", spoofed), "muster.sh/user").await;
    tenancy.takes("a pod", &pod("p", "")).await;
    tenancy.takes("a job", &job("j", "", "")).await;
    tenancy.takes("a gang", &marked_gang("g", "", "")).await;
    for (kind, name) in [("Pod", "p"), ("Job", "j"), ("Gang", "g")] {
        assert_eq!(tenancy.stamp(kind, name).await.as_deref(), Some("tenant"), "{kind}");
        let patch = |user: Value| json!({"metadata": {"annotations": {"muster.sh/user": user}}});
        let refusal = tenancy.patch(Role::Tenant, kind, name, &patch(json!("victim"))).await;
        assert!(refusal.expect_err("changed").contains("cannot be changed"), "{kind}");
        // A removed stamp is restored.
        tenancy.patch(Role::Tenant, kind, name, &patch(Value::Null)).await.expect("kept");
        assert_eq!(tenancy.stamp(kind, name).await.as_deref(), Some("tenant"), "{kind}");
    }
    let template =
        json!({"spec": {"template": {"metadata": {"annotations": {"muster.sh/user": "victim"}}}}});
    let refusal = tenancy.patch(Role::Tenant, "Job", "j", &template).await;
    assert!(refusal.expect_err("changed").contains("cannot be changed"));
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_created_by_controllers_have_the_user_of_their_job() {
    let setup = Setup::bare().with(Part::Kwok).with(Part::ControllerManager);
    let Some(tenancy) = Tenancy::with(1, setup).await else { return };
    tenancy.until_enforced().await;
    let runs = job("mine", "", "").replace("suspend: true", "suspend: false");
    tenancy.takes("a job", &runs).await;
    let stamps = async || {
        let pods = tenancy.pods(TENANT).await.into_iter();
        let mine = pods.filter(|pod| pod.name_any().starts_with("mine"));
        mine.map(|pod| pod.annotations().get("muster.sh/user").cloned()).next()
    };
    let stamp = tenancy.until("the Job has a pod", stamps).await;
    assert_eq!(stamp.as_deref(), Some("tenant"));
    // A Deployment's template is not stamped, and a user that it names is not trusted.
    let deployment = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: spoof, namespace: team-a}, spec: {selector: \
        {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}, annotations: {muster.sh/user: victim}}, spec: \
        {containers: [{name: worker, image: none}]}}}}";
    tenancy.takes("a deployment", deployment).await;
    tenancy.until_event(TENANT, "FailedCreate", "muster.sh/user").await;
    let pods = tenancy.pods(TENANT).await;
    assert!(pods.iter().all(|pod| !pod.name_any().starts_with("spoof")));
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_of_labelled_namespaces_are_scheduled_by_muster() {
    let Some(tenancy) = Tenancy::start(1).await else { return };
    tenancy.until_enforced().await;
    let plain =
        |name: &str, scheduler: &str| pod(name, "").replace("schedulerName: other, ", scheduler);
    let scheduler = async |name: &str| {
        let pod = tenancy.pods_of_tenant().await.get(name).await.expect("a pod");
        pod.spec.and_then(|spec| spec.scheduler_name)
    };
    tenancy.takes("before", &plain("before", "")).await;
    assert_eq!(scheduler("before").await.as_deref(), Some("default-scheduler"));
    // A tenant cannot label its namespace.
    let label = "{apiVersion: v1, kind: Namespace, metadata: {name: team-a, labels: {muster.sh/schedule: enabled}}}";
    tenancy.refuses("a label", label, "forbidden").await;
    tenancy.apply(label).await.expect("the administrator's");
    let mut at = 0;
    tenancy
        .until("new pods are Muster's", async || {
            at += 1;
            let name = format!("new-{at}");
            tenancy.attempt(&plain(&name, "")).await.ok()?;
            (scheduler(&name).await.as_deref() == Some("muster")).then_some(())
        })
        .await;
    tenancy.takes("another's", &plain("others", "schedulerName: other, ")).await;
    assert_eq!(scheduler("others").await.as_deref(), Some("other"));
    let _controller = Controller::start(&tenancy, &["--leader-elect=false"]);
    tenancy.until_bound(TENANT, &format!("new-{at}"), 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn replaced_objects_keep_the_user_that_created_them() {
    let Some(tenancy) = Tenancy::start(0).await else { return };
    tenancy.until_enforced().await;
    tenancy.takes("a gang", &marked_gang("g", "", "")).await;
    let gangs = tenancy.gangs(tenancy.client(Role::Tenant).await);
    let mut gang = gangs.get("g").await.expect("a gang");
    gang.metadata.annotations = None;
    gangs.replace("g", &PostParams::default(), &gang).await.expect("replaced");
    assert_eq!(tenancy.stamp("Gang", "g").await.as_deref(), Some("tenant"));
}
