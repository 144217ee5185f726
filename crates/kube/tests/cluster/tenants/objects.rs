//! Objects that cannot be read, or are too large, deep, odd or many, hide no other object and stop no scheduling.

use muster_testkit::cluster::Role;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{TENANT, Tenancy};
use crate::fixture::controller::Controller;

/// A value that must not appear in any log.
const SECRET: &str = "hunter2-do-not-log";

/// Kinds of other systems, with CRDs that keep every field.
const FOREIGN: [(&str, &str, &str, &str); 3] = [
    ("scheduling.x-k8s.io", "v1alpha1", "PodGroup", "podgroups"),
    ("kubeflow.org", "v1", "PyTorchJob", "pytorchjobs"),
    ("ray.io", "v1", "RayCluster", "rayclusters"),
];

/// JSON with this nesting depth.
fn deep(levels: usize) -> String {
    format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels))
}

fn definition((group, version, kind, plural): (&str, &str, &str, &str)) -> String {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase()},
            "versions": [{"name": version, "served": true, "storage": true,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema":
                    {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
        },
    })
    .to_string()
}

/// Sends a raw body as the tenant, also one that no client library would send.
async fn post(tenancy: &Tenancy, path: &str, body: String) -> Result<(), String> {
    let client = tenancy.client(Role::Tenant).await;
    let request = http::Request::post(format!("/{path}"))
        .header("content-type", "application/json")
        .body(body.into_bytes())
        .expect("a request");
    client.request_text(request).await.map(drop).map_err(|error| error.to_string())
}

/// The reason in the status of a Gang of the tenant, read without parsing the rest.
async fn reason_of(tenancy: &Tenancy, name: &str) -> String {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Gang {
        status: Status,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Status {
        reason: String,
    }
    let client = tenancy.client(Role::Observer).await;
    let request = http::Request::get(format!("/{GANGS}/{name}")).body(Vec::new());
    let text = client.request_text(request.expect("a request")).await.unwrap_or_default();
    serde_json::from_str::<Gang>(&text).unwrap_or_default().status.reason
}

/// Deletes the attempts, so that clients that parse whole objects can read the rest.
async fn clean(tenancy: &Tenancy) {
    let client = tenancy.client(Role::Admin).await;
    for path in [GANGS, GROUPS, TORCH, RAYS, JOBS, PODS, TEMPLATES, CLAIMS] {
        let request = http::Request::delete(format!("/{path}")).body(Vec::new());
        client.request_text(request.expect("a request")).await.expect("deleted");
    }
}

/// A Gang of the tenant with this JSON in its template.
fn gang(name: &str, odd: &str) -> String {
    format!(
        r#"{{"apiVersion":"muster.sh/v1alpha1","kind":"Gang","metadata":{{"name":"{name}","namespace":"{TENANT}"}},
        "spec":{{"roles":[{{"name":"worker","min":1,"resources":{{"cpu":"1"}},"template":{{"spec":{{
            "containers":[{{"name":"a","image":"none","env":[{{"name":"TOKEN","value":"{SECRET}"}}]}}],"junk":{odd}}}}}}}]}}}}"#
    )
}

fn foreign(api_version: &str, kind: &str, name: &str, rest: &str) -> String {
    format!(
        r#"{{"apiVersion":"{api_version}","kind":"{kind}","metadata":{{"name":"{name}","namespace":"{TENANT}"}},{rest}}}"#
    )
}

fn pod(name: &str, metadata: &Value, request: &str) -> String {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": metadata,
        "spec": {"schedulerName": "muster", "containers": [{"name": "a", "image": "none",
            "resources": {"requests": {"cpu": request}, "limits": {"cpu": request}}}]},
    });
    pod["metadata"]["name"] = json!(name);
    pod.to_string()
}

const GANGS: &str = "apis/muster.sh/v1alpha1/namespaces/team-a/gangs";
const GROUPS: &str = "apis/scheduling.x-k8s.io/v1alpha1/namespaces/team-a/podgroups";
const TORCH: &str = "apis/kubeflow.org/v1/namespaces/team-a/pytorchjobs";
const RAYS: &str = "apis/ray.io/v1/namespaces/team-a/rayclusters";
const JOBS: &str = "apis/batch/v1/namespaces/team-a/jobs";
const PODS: &str = "api/v1/namespaces/team-a/pods";
const TEMPLATES: &str = "api/v1/namespaces/team-a/podtemplates";
const CLAIMS: &str = "api/v1/namespaces/team-a/persistentvolumeclaims";

/// Every attempt: description, path and body.
fn attempts() -> Vec<(&'static str, &'static str, String)> {
    let job = |name: &str, owner: &str, annotation: &str| {
        json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": name, "annotations": {"muster.sh/admit": "true", "note": annotation},
                "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": owner,
                    "uid": "0", "controller": true}]},
            "spec": {"suspend": true, "template": {"spec": {"restartPolicy": "Never",
                "containers": [{"name": "a", "image": "none"}]}}},
        })
        .to_string()
    };
    let torch = |name: &str, replicas: &str| {
        let spec = format!(r#""spec":{{"pytorchReplicaSpecs":{replicas}}}"#);
        foreign("kubeflow.org/v1", "PyTorchJob", name, &spec)
    };
    let group = |name: &str, spec: &str| {
        let spec = format!(r#""spec":{spec}"#);
        foreign("scheduling.x-k8s.io/v1alpha1", "PodGroup", name, &spec)
    };
    let marks = |marks: Value| json!({ "annotations": marks });
    let deep_text = "[".repeat(50_000);
    vec![
        ("a template 200 levels deep", GANGS, gang("deep", &deep(200))),
        ("a template 5,000 levels deep", GANGS, gang("deeper", &deep(5_000))),
        (
            "a template of 540 KB",
            GANGS,
            gang("huge", &format!("[{}{{}}]", "{\"a\":{}},".repeat(60_000))),
        ),
        ("keys that are given twice", GANGS, gang("twice", r#"1,"junk":{"a":1,"a":{"a":[]}}"#)),
        ("nulls", GANGS, gang("nulls", "null").replace("\"image\":\"none\"", "\"image\":null")),
        (
            "more members than there are numbers",
            GANGS,
            gang("many", "1").replace("\"min\":1", "\"min\":2147483648"),
        ),
        (
            "control characters and a wide alphabet",
            GANGS,
            gang("odd", r#""\u0000\u001b[2J\ud83e\udd80\u202e""#).replace(
                "\"spec\":{\"roles\"",
                r#""spec":{"user":"\u001b]0;x\u0007\u202e","roles""#,
            ),
        ),
        ("a foreign group 1,000 levels deep", GROUPS, group("deep", &deep(1_000))),
        ("a foreign group that is a list", GROUPS, group("list", "[1,[2],{}]")),
        (
            "a foreign group with numbers beyond counting",
            GROUPS,
            group(
                "numbers",
                r#"{"minMember":9223372036854775807,"minResources":{"cpu":"1e400","memory":"9E","nvidia.com/gpu":-5}}"#,
            ),
        ),
        (
            "a foreign group with a huge status",
            GROUPS,
            format!(
                "{},\"status\":{{\"conditions\":[{}1]}}}}",
                group("status", "{\"minMember\":1}").trim_end_matches('}'),
                "{\"type\":\"x\"},".repeat(20_000)
            )
            .replacen("{\"minMember\":1,", "{\"minMember\":1},", 1),
        ),
        (
            "replicas of the wrong type",
            TORCH,
            torch("types", r#"{"Worker":{"replicas":"many","template":7},"Master":[]}"#),
        ),
        (
            "replicas 800 levels deep",
            TORCH,
            torch("deep", &format!("{{\"Worker\":{{\"replicas\":1,\"template\":{}}}}}", deep(800))),
        ),
        (
            "2^31 replicas",
            TORCH,
            torch(
                "many",
                r#"{"Worker":{"replicas":2147483648,"template":{"spec":{"containers":[]}}}}"#,
            ),
        ),
        (
            "a spec that is null",
            TORCH,
            foreign("kubeflow.org/v1", "PyTorchJob", "null", "\"spec\":null"),
        ),
        (
            "a ray cluster of texts",
            RAYS,
            foreign(
                "ray.io/v1",
                "RayCluster",
                "texts",
                r#""spec":{"headGroupSpec":"x","workerGroupSpecs":"y"}"#,
            ),
        ),
        ("owners in a circle", JOBS, job("left", "right", "")),
        ("owners in a circle, the other half", JOBS, job("right", "left", &"{".repeat(200_000))),
        (
            "a pod owned by the circle",
            PODS,
            pod(
                "circle",
                &json!({"ownerReferences": [
            {"apiVersion": "batch/v1", "kind": "Job", "name": "left", "uid": "0", "controller": true}]}),
                "1",
            ),
        ),
        (
            "marks that are deep JSON",
            PODS,
            pod(
                "marks",
                &marks(json!({
            "gang.scheduling.koordinator.sh/name": "x",
            "gang.scheduling.koordinator.sh/groups": deep_text,
            "gang.scheduling.koordinator.sh/network-topology-spec": deep_text})),
                "1",
            ),
        ),
        (
            "a pod of 200 KB of marks that are read",
            PODS,
            pod("wide", &marks(json!({"muster.sh/x": "y".repeat(200_000)})), "1"),
        ),
        ("more cores than there are", PODS, pod("cores", &json!({}), "9E")),
        (
            "a deep pod template",
            TEMPLATES,
            format!(
                r#"{{"apiVersion":"v1","kind":"PodTemplate","metadata":{{"name":"deep"}},"template":{{"spec":{{"containers":[{{"name":"a","image":"b","junk":{}}}]}}}}}}"#,
                deep(900)
            ),
        ),
        (
            "a claim of more bytes than there are",
            CLAIMS,
            json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": "vast"}, "spec": {"accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "9E"}}}})
            .to_string(),
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_objects_hide_no_other_and_stop_no_scheduling() {
    let Some(tenancy) = Tenancy::start(4).await else { return };
    for kind in FOREIGN.into_iter().chain([("''", "v1", "PodTemplate", "podtemplates")]) {
        if kind.2 != "PodTemplate" {
            tenancy.apply(&definition(kind)).await.expect("a definition");
        }
        let rights = format!(
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {{name: {plural}, namespace: {TENANT}}}\n\
             rules: [{{apiGroups: [{group}], resources: [{plural}], verbs: ['*']}}]\n---\n\
             apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {{name: {plural}, namespace: {TENANT}}}\n\
             roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: {plural}}}\n\
             subjects: [{{apiGroup: rbac.authorization.k8s.io, kind: User, name: tenant}}]\n",
            group = kind.0,
            plural = kind.3
        );
        tenancy.apply(&rights).await.expect("rights");
    }
    let log = [("MUSTER_LOG".to_owned(), "debug".to_owned())];
    let leader = Controller::start_with_env(&tenancy, &["--leader-elect=false"], &log);
    tenancy.victim_starts("before", 1, 8).await;
    let mut taken = 0;
    for (what, path, body) in attempts() {
        let answer = post(&tenancy, path, body).await;
        eprintln!("{what}: {}", answer.as_ref().err().map_or("taken", String::as_str));
        taken += usize::from(answer.is_ok());
    }
    assert!(taken >= 20, "the server took {taken} of them only");
    // The leader's watch skips all of it, and the lists of a new controller do as well.
    tenancy.victim_starts("during", 1, 8).await;
    tenancy.until_event(TENANT, "InvalidSpec", "nested deeper than 64 levels").await;
    tenancy.until_event(TENANT, "InvalidSpec", "is the most that is kept of one object").await;
    for gang in ["deep", "deeper", "huge"] {
        tenancy
            .until(&format!("{gang} reports why it is left out"), async || {
                (reason_of(&tenancy, gang).await == "InvalidSpec").then_some(())
            })
            .await;
    }
    let before = leader.log();
    leader.kill();
    let next = Controller::start_with_env(&tenancy, &["--leader-elect=false"], &log);
    tenancy.victim_starts("after", 1, 8).await;
    for log in [before, next.log()] {
        assert!(!log.contains(SECRET), "a variable of a tenant stands in the log");
        assert!(log.contains("left out"), "the log says what is left out");
    }
    clean(&tenancy).await;
}
