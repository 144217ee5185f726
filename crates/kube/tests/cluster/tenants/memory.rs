//! What a tenant writes costs the controller a bounded amount of memory.

use std::ops::Range;

use futures::{StreamExt, stream};
use kube::api::{Api, DynamicObject, PostParams};
use muster_testkit::cluster::Role;
use serde_json::json;

use super::tenancy::gang;
use super::{TENANT, Tenancy, VICTIM};
use crate::fixture::controller::Controller;
use crate::fixture::manifests::node_without_kubelet;
use crate::observer::Kind;

/// The memory limit of the controller, in MiB.
const MOST: u64 = 256;

/// Creates Gangs of the tenant, several at a time, with retries.
async fn write(tenancy: &Tenancy, which: Range<usize>, junk: &serde_json::Value) {
    let gangs: Api<DynamicObject> =
        Api::namespaced_with(tenancy.client(Role::Tenant).await, TENANT, &Kind::Gang.resource());
    let count = which.len();
    let written = stream::iter(which).map(|at| {
        let object = json!({
            "apiVersion": "muster.sh/v1alpha1", "kind": "Gang",
            "metadata": {"name": format!("junk-{at}"), "namespace": TENANT},
            "spec": {"roles": [{"name": "worker", "min": 1, "resources": {"cpu": "9k"}, "template": {
                "spec": {"junk": junk, "containers": [{"name": "a", "image": "none"}]}}}]},
        });
        let object: DynamicObject = serde_json::from_value(object).expect("a gang");
        let gangs = gangs.clone();
        async move {
            // A busy API server accepts it at the next try.
            for _ in 0..5 {
                match gangs.create(&PostParams::default(), &object).await {
                    Ok(_) => return true,
                    Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => return true,
                    Err(error) => eprintln!("{error}"),
                }
            }
            false
        }
    });
    let taken =
        written.buffer_unordered(4).filter(|taken| std::future::ready(*taken)).count().await;
    assert_eq!(taken, count, "the server takes all of them");
}

#[tokio::test(flavor = "multi_thread")]
async fn gangs_of_540_kb_cost_less_than_64_mib() {
    let Some(tenancy) = Tenancy::start(2).await else { return };
    let controller = Controller::start(&tenancy, &["--leader-elect=false"]);
    tenancy.victim_starts("before", 1, 8).await;
    let (before, _) = controller.memory_mib();
    // Small mappings take the most memory, and the API server the most time.
    let maps: Vec<_> = (0..10_000).map(|_| json!({"a": {}})).collect();
    write(&tenancy, 0..45, &json!({"maps": maps, "text": "x".repeat(450_000)})).await;
    tenancy.victim_starts("during", 1, 8).await;
    tenancy.until_event(TENANT, "InvalidSpec", "is the most that is kept of one object").await;
    tenancy.tenant_applies(&gang(TENANT, "small", 1, 0, "")).await;
    tenancy.until_status(VICTIM, "during", |status| status["nodes"] == 1).await;
    let (now, most) = controller.memory_mib();
    eprintln!(
        "memory: {before} MiB before, {now} MiB after 45 Gangs of 540 KB, {most} MiB at most"
    );
    assert!(most < before + 64, "it was {before} MiB, and came to {most}");
    // A new controller lists all of it.
    controller.kill();
    let next = Controller::start(&tenancy, &["--leader-elect=false"]);
    tenancy.until("it lists all of it", async || next.log().contains("junk-9").then_some(())).await;
    let (_, most) = next.memory_mib();
    eprintln!("memory: {most} MiB at most in one that begins");
    assert!(most < before + 64, "one that begins came to {most} MiB");
}

#[tokio::test(flavor = "multi_thread")]
async fn tenant_at_every_bound_beside_1000_nodes_stays_below_256_mib() {
    let Some(tenancy) = Tenancy::start(1).await else { return };
    let nodes: Vec<String> =
        (0..1_000).map(|at| node_without_kubelet(&format!("still-{at}"))).collect();
    let made = stream::iter(nodes.chunks(50)).map(|some| {
        let (tenancy, yaml) = (&tenancy, some.join("\n---\n"));
        async move { tenancy.apply(&yaml).await.expect("nodes") }
    });
    made.buffer_unordered(4).collect::<Vec<()>>().await;
    let controller = Controller::start(&tenancy, &["--leader-elect=false"]);
    tenancy.victim_starts("before", 1, 8).await;
    let (before, _) = controller.memory_mib();
    // Gangs of the largest allowed size, and more of them than the bound.
    write(&tenancy, 0..560, &json!("x".repeat(125_000))).await;
    tenancy.until_event(TENANT, "NamespaceLimitReached", "the newest are left out").await;
    tenancy.victim_starts("during", 1, 8).await;
    let (now, most) = controller.memory_mib();
    eprintln!(
        "memory: {before} MiB with 1,000 nodes, {now} MiB at every bound, {most} MiB at most"
    );
    assert!(most < MOST, "it came to {most} MiB");
}
