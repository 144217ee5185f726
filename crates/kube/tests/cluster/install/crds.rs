//! Muster's CRDs on a real API server: validation messages, short names and printed columns.

use k8s_openapi::api::core::v1::Event;
use kube::api::{
    Api, ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams,
};
use muster_testkit::cluster::{Cluster, Role};
use serde_json::{Value, json};

use crate::fixture::clusters::kwok_cluster;
use crate::fixture::controller::Controller;
use crate::fixture::manifests::POOL;

async fn get_json(cluster: &Cluster, path: &str, accept: &str) -> Value {
    let request = http::Request::get(path).header("accept", accept).body(Vec::new());
    let client = cluster.client(Role::Admin).await;
    client.request(request.expect("a request")).await.expect("an answer")
}

/// The message with which the API server refuses an object.
async fn refused(cluster: &Cluster, yaml: &str) -> String {
    let error = cluster.apply(yaml).await.expect_err("it is wrong");
    let kube::Error::Api(status) = (match error {
        muster_testkit::cluster::ApplyError::Refused(_, error) => error,
        other => panic!("{other}"),
    }) else {
        panic!("no answer of the API server")
    };
    status.message
}

fn pool(more: &str) -> String {
    POOL.replace("idleAfter: 10s", &format!("idleAfter: 10s\n  {more}"))
}

fn of(kind: &str, spec: &str) -> String {
    let namespace = if kind == "Gang" { ", namespace: default" } else { "" };
    format!(
        "apiVersion: muster.sh/v1alpha1\nkind: {kind}\nmetadata: {{name: bad{namespace}}}\nspec: {spec}\n"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_spec_is_rejected_with_the_name_of_its_field() {
    let Some(cluster) = kwok_cluster(0).await else { return };
    let cron = "schedules: [{cron: 'at noon', duration: 1h, nodes: 2}]";
    let cases = [
        (pool(cron), "spec.schedules[0].cron", "five fields"),
        (
            of(
                "Pool",
                "{tier: spot, provider: {karpenter: {nodeClassRef: {group: g, kind: k, name: none}}}}",
            ),
            "spec",
            "can do without offerings",
        ),
        (
            of("Pool", "{tier: spot, provider: {local: {}}, buffer: {nodes: 1, percent: 5}}"),
            "spec.buffer",
            "at most 1",
        ),
        (of("Queue", "{weight: 0}"), "spec.weight", "greater than or equal to 1"),
        (of("Queue", "{timeSlice: 0s}"), "spec.timeSlice", ""),
        (of("Queue", "{limit: {cpu: lots}}"), "spec.limit", ""),
        (
            of("Topology", "{levels: [{name: node, label: a/b}]}"),
            "spec.levels[0]",
            "last level of every tree",
        ),
        (
            of("Topology", "{levels: [{name: a, label: x}, {name: b, label: x}]}"),
            "spec.levels",
            "its own label",
        ),
        (of("Gang", "{roles: []}"), "spec.roles", "at least 1"),
        (of("Gang", "{roles: [{name: Worker_A, min: 1}]}"), "spec.roles[0].name", ""),
        (
            of(
                "Order",
                "{number: 1, gang: {namespace: a, name: b}, placements: [{role: w}], deadline: '2026-01-01T00:00:00Z'}",
            ),
            "spec.placements[0]",
            "on a node or on a claim",
        ),
    ];
    let mut unclear = Vec::new();
    for (yaml, field, words) in cases {
        let reported = refused(&cluster, &yaml).await;
        if !reported.contains(field) || !reported.contains(words) {
            unclear.push(format!("{field}, {words}: {reported}"));
        }
    }
    assert!(unclear.is_empty(), "{}", unclear.join("\n"));
    // An immutable field cannot be changed.
    cluster.apply(POOL).await.expect("it is good");
    let reported = refused(&cluster, &POOL.replace("tier: on-demand", "tier: spot")).await;
    assert!(reported.contains("spec.tier") && reported.contains("does not change"), "{reported}");
}

#[tokio::test(flavor = "multi_thread")]
async fn short_names_and_printed_columns_are_as_documented() {
    let Some(cluster) = kwok_cluster(0).await else { return };
    let names = get_json(&cluster, "/apis/muster.sh/v1alpha1", "application/json").await;
    let all = names["resources"].as_array().expect("kinds");
    let kinds = all.iter().filter(|kind| !kind["name"].as_str().is_some_and(|n| n.contains('/')));
    let mut short: Vec<String> =
        kinds.map(|kind| format!("{} {}", kind["name"], kind["shortNames"])).collect();
    short.sort();
    let short: Vec<String> = short.iter().map(|kind| kind.replace('"', "")).collect();
    let known = ["gangs [gg]", "orders [mo]", "pools [mpool]", "queues [mq]", "topologies [mtopo]"];
    assert_eq!(short, known);
    cluster.apply(POOL).await.expect("a pool");
    cluster.apply(&of("Queue", "{weight: 3, parent: org}")).await.expect("a queue");
    cluster
        .apply(&of("Gang", "{queue: bad, roles: [{name: worker, min: 8}]}"))
        .await
        .expect("a gang");
    let order = "{number: 7, gang: {namespace: default, name: bad}, placements: [{role: w, node: n0}], deadline: '2026-01-01T00:00:00Z'}";
    cluster.apply(&of("Order", order)).await.expect("an order");
    let statuses = [
        ("Pool", "gpu", json!({"nodes": 2, "ready": 1, "gpus": 16, "hourlySpend": 196.5})),
        ("Queue", "bad", json!({"heldGpus": 64, "waiting": 3, "running": 1})),
        (
            "Gang",
            "bad",
            json!({"phase": "Waiting", "reason": "InsufficientCapacity", "message": "no room", "progress": "0/8", "position": 2}),
        ),
        ("Order", "bad", json!({"phase": "Assembling", "ready": 1, "total": 2, "progress": "1/2"})),
    ];
    for (kind, name, status) in statuses {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("muster.sh", "v1alpha1", kind));
        let client = cluster.client(Role::Admin).await;
        let objects: Api<DynamicObject> = match kind {
            "Gang" => Api::namespaced_with(client, "default", &resource),
            _ => Api::all_with(client, &resource),
        };
        let patch = Patch::Merge(json!({ "status": status }));
        objects.patch_status(name, &PatchParams::default(), &patch).await.expect("a status");
    }
    let mut tables = Vec::new();
    for kind in ["gangs", "orders", "pools", "queues"] {
        tables.push(table(&cluster, kind).await);
    }
    let known = [
        "Name | Queue | Phase | Ready | Nodes | Why\n  bad | bad | Waiting | 0/8 | null | InsufficientCapacity",
        "Name | Gang | Phase | Ready | Deadline\n  bad | bad | Assembling | 1/2 | 2026-01-01T00:00:00Z",
        "Name | Tier | Nodes | GPUs | Spend\n  gpu | on-demand | 2 | 16 | 196.5",
        "Name | Parent | Weight | Held | Waiting\n  bad | org | 3 | 64 | 3",
    ];
    assert_eq!(tables, known);
}

/// A list as `kubectl get` prints it, without the age.
async fn table(cluster: &Cluster, kind: &str) -> String {
    let path = format!("/apis/muster.sh/v1alpha1/{kind}");
    let table = get_json(cluster, &path, "application/json;as=Table;v=v1;g=meta.k8s.io").await;
    let columns = table["columnDefinitions"].as_array().expect("columns");
    let shown: Vec<usize> = (0..columns.len())
        .filter(|at| columns[*at]["priority"] == 0 && columns[*at]["name"] != "Age")
        .collect();
    let text = |cell: &Value| cell.as_str().map_or_else(|| cell.to_string(), str::to_owned);
    let heads: Vec<String> = shown.iter().map(|at| text(&columns[*at]["name"])).collect();
    let row: Vec<String> = shown.iter().map(|at| text(&table["rows"][0]["cells"][*at])).collect();
    format!("{}\n  {}", heads.join(" | "), row.join(" | "))
}

#[tokio::test(flavor = "multi_thread")]
async fn controller_newer_than_its_crds_reports_it() {
    let Some(cluster) = kwok_cluster(0).await else { return };
    let kind = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let client = cluster.client(Role::Admin).await;
    let definitions: Api<DynamicObject> =
        Api::all_with(client.clone(), &ApiResource::from_gvk(&kind));
    let mut older = definitions.get("gangs.muster.sh").await.expect("a definition");
    let fields = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/placement/items/properties";
    let fields = older.data.pointer_mut(fields).and_then(Value::as_object_mut);
    fields.expect("fields of a placement").remove("nodes").expect("a field that is new");
    let replaced = definitions.replace("gangs.muster.sh", &PostParams::default(), &older).await;
    replaced.expect("an older definition");
    cluster
        .until("the server describes the older definition", async || {
            let path = "/openapi/v3/apis/muster.sh/v1alpha1";
            let request = http::Request::get(path).body(Vec::new()).expect("a request");
            let text = client.request_text(request).await.ok()?;
            (text.contains("placement") && !text.contains("gpu-[008-127]")).then_some(())
        })
        .await;
    let controller = Controller::start(&cluster, &["--leader-elect=false"]);
    let events: Api<Event> = Api::namespaced(cluster.client(Role::Observer).await, "default");
    cluster
        .until("an event reports it", async || {
            let all = events.list(&ListParams::default()).await.ok()?.items;
            let is_it = |event: &Event| event.reason.as_deref() == Some("DefinitionTooOld");
            all.iter().any(is_it).then_some(())
        })
        .await;
    let log = controller.log();
    assert!(log.contains("drops status.placement.nodes"), "{log}");
}
