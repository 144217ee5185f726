//! API faults: no update is lost, no write is repeated elsewhere, and no request loops.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, PostParams};
use muster_testkit::cluster::{Cluster, Role};

use crate::fixture::api_request::{busiest_second, summary};
use crate::fixture::clusters::{karpenter_cluster, kwok_cluster};
use crate::fixture::controller::Controller;
use crate::fixture::fault_injection::Faults;
use crate::fixture::leftovers::{completed_jobs, remove_jobs, until_no_leftovers};
use crate::fixture::manifests::{POOL, job, node, pod};
use crate::fixture::objects::submit;
use crate::fixture::pods::bound_with_prefix;
use crate::fixture::proxy::Proxy;
use crate::fixture::seeded_random::{SeededRandom, seed};
use crate::observer::{GANG, Kind, LEAST};

/// Each kind of fault by itself, often enough to hit every job, and then all of them.
const KINDS: [(&str, Faults); 9] = [
    ("busy", Faults { busy: 200, ..Faults::NONE }),
    ("broken", Faults { broken: 200, ..Faults::NONE }),
    ("conflicts", Faults { conflict: 300, ..Faults::NONE }),
    ("lost answers", Faults { lost: 300, ..Faults::NONE }),
    ("stale lists", Faults { stale: 500, gone: 300, cut: 500, ..Faults::NONE }),
    ("watches that may not go on", Faults { gone: 500, cut: 500, ..Faults::NONE }),
    ("watches cut", Faults { cut: 1_000, ..Faults::NONE }),
    ("slow", Faults { slow: 300, ..Faults::NONE }),
    (
        "all",
        Faults {
            busy: 40,
            broken: 40,
            conflict: 60,
            pod_status_conflict: 0,
            lost: 60,
            stale: 200,
            gone: 150,
            cut: 500,
            slow: 60,
        },
    ),
];

/// The most requests in any one second while every request fails. Fourteen kinds are watched here, and each watch
/// retries with its own backoff, whose first two retries may fall into one second; pending writes do the same.
const IN_A_SECOND: usize = 60;
/// The most in ten seconds: the backoff grows.
const IN_TEN: usize = 150;

/// Denies new NodeClaims.
const POLICY: &str = "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-nodes}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [karpenter.sh], apiVersions: ['*'], operations: [CREATE], resources: [nodeclaims]}]
  validations: [{expression: 'false', message: no nodes today}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: no-nodes}
spec: {policyName: no-nodes, validationActions: [Deny]}
";

/// Jobs per kind of fault; `MUSTER_JOBS=30` for a long run.
fn jobs() -> u64 {
    std::env::var("MUSTER_JOBS").ok().and_then(|text| text.parse().ok()).unwrap_or(4)
}

/// Submits jobs of many sizes, some for existing nodes and some for nodes that must be bought.
async fn submit_jobs(cluster: &Cluster, from: u64, random: &mut SeededRandom) {
    for at in from..from + jobs() {
        let (pods, gpus) = (1 + random.below(5) as u32, 1 << random.below(4));
        let job = job(&format!("train-{at}"), pods, gpus);
        submit(cluster, &job).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_job_completes_under_every_kind_of_api_fault() {
    let Some(cluster) = karpenter_cluster().await else { return };
    for at in 0..2 {
        cluster.apply(&node(&format!("n{at}"))).await.expect("a node");
    }
    cluster.apply(POOL).await.expect("a pool");
    let seed = seed();
    let mut random = SeededRandom::new(seed);
    let proxy = Proxy::start(&cluster, seed).await;
    let mut controller = Controller::start_through(&proxy, &cluster, &["--leader-elect=false"]);
    let (start, mut count) = (Instant::now(), 0);
    for (kind, faults) in KINDS {
        let began = Instant::now();
        proxy.set(faults);
        proxy.cut_watches();
        submit_jobs(&cluster, count, &mut random).await;
        count += jobs();
        // The controller restarts in the middle, from stale lists.
        if faults.stale > 0 {
            tokio::time::sleep(Duration::from_millis(random.below(2_000))).await;
            controller.kill();
            controller = Controller::start_through(&proxy, &cluster, &["--leader-elect=false"]);
        }
        cluster
            .until("every job is done", async || {
                assert!(!controller.has_ended(), "the controller gave up: {kind}");
                (completed_jobs(&cluster).await as u64 == count).then_some(())
            })
            .await;
        let requests = proxy.requests_since(began);
        let (all, took) = (requests.len(), began.elapsed());
        eprintln!(
            "{kind}: {took:?}, {all} requests, at most {} a second",
            busiest_second(&requests)
        );
        cluster.assert_promises_kept().await;
    }
    proxy.accept_connections(false);
    tokio::time::sleep(Duration::from_secs(2)).await;
    submit_jobs(&cluster, count, &mut random).await;
    proxy.accept_connections(true);
    count += jobs();
    cluster
        .until("every job is done", async || {
            (completed_jobs(&cluster).await as u64 == count).then_some(())
        })
        .await;
    // Faults end, and then everything must settle.
    remove_jobs(&cluster).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    proxy.set(Faults::NONE);
    until_no_leftovers(&cluster).await;
    let requests = summary(&proxy.requests_since(start));
    eprintln!("{count} jobs; the longest window was {:?}; {requests}", cluster.observer().window());
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_failing_or_refusing_api_server_is_not_polled_in_a_loop() {
    let Some(cluster) = karpenter_cluster().await else { return };
    cluster.apply(&node("n0")).await.expect("a node");
    let proxy = Proxy::start(&cluster, seed()).await;
    let mut controller = Controller::start_through(&proxy, &cluster, &["--leader-elect=false"]);
    submit(&cluster, &job("first", 2, 4)).await;
    cluster.until("it is done", async || (completed_jobs(&cluster).await == 1).then_some(())).await;
    // Idle: only discovery of unserved kinds remains.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let began = Instant::now();
    tokio::time::sleep(Duration::from_secs(10)).await;
    let idle = proxy.requests_since(began);
    eprintln!("idle for 10 s: {} requests: {}", idle.len(), summary(&idle));
    assert!(idle.len() <= 10, "{}", summary(&idle));
    // Every request fails, with work to do.
    submit(&cluster, &job("second", 1, 8)).await;
    submit(&cluster, &job("third", 2, 4)).await;
    proxy.set(Faults::DOWN);
    proxy.cut_watches();
    let began = Instant::now();
    tokio::time::sleep(Duration::from_secs(10)).await;
    let down = proxy.requests_since(began);
    let busiest = busiest_second(&down);
    eprintln!("down for 10 s: {} requests, at most {busiest} a second", down.len());
    assert!(busiest < IN_A_SECOND && down.len() < IN_TEN, "{}", summary(&down));
    assert!(!controller.has_ended(), "the controller gave up");
    proxy.set(Faults::NONE);
    cluster
        .until("all are done", async || (completed_jobs(&cluster).await == 3).then_some(()))
        .await;
    // A pool whose claims a policy denies.
    cluster.apply(POLICY).await.expect("a policy");
    tokio::time::sleep(Duration::from_secs(2)).await;
    cluster.apply(POOL).await.expect("a pool");
    submit(&cluster, &job("fourth", 2, 8)).await;
    let began = Instant::now();
    tokio::time::sleep(Duration::from_secs(10)).await;
    let in_vain = proxy.requests_since(began);
    eprintln!("refused for 10 s: {} requests: {}", in_vain.len(), summary(&in_vain));
    assert!(in_vain.len() < IN_TEN, "{}", summary(&in_vain));
    assert!(in_vain.iter().any(|one| one.resource == "nodeclaims"), "nothing was refused");
    // The refused offerings are in backoff; another pool helps at once.
    cluster.apply(&POLICY.replace("Deny", "Warn")).await.expect("a policy");
    until_claims_are_allowed(&cluster).await;
    cluster.apply(&POOL.replace("{name: gpu}", "{name: other}")).await.expect("a pool");
    cluster
        .until("all are done", async || (completed_jobs(&cluster).await == 4).then_some(()))
        .await;
    remove_jobs(&cluster).await;
    until_no_leftovers(&cluster).await;
}

/// A removed policy stays in force for a moment.
async fn until_claims_are_allowed(cluster: &Cluster) {
    let kind = Kind::NodeClaim.resource();
    let claims: Api<DynamicObject> = Api::all_with(cluster.client(Role::Admin).await, &kind);
    let claim = serde_json::from_value(serde_json::json!({
        "apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "tried"},
        "spec": {
            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
            "requirements": [],
        },
    }));
    let (claim, tried): (DynamicObject, _) =
        (claim.expect("a claim"), PostParams { dry_run: true, ..PostParams::default() });
    cluster
        .until("claims are allowed", async || claims.create(&tried, &claim).await.ok().map(drop))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn binding_with_a_lost_answer_is_not_sent_to_another_node() {
    let Some(cluster) = kwok_cluster(8).await else { return };
    let proxy = Proxy::start(&cluster, seed()).await;
    // Every second answer to a write is lost, and the watch event of its effect is late.
    proxy.set(Faults { lost: 500, slow: 300, cut: 500, ..Faults::NONE });
    let controller = Controller::start_through(&proxy, &cluster, &["--leader-elect=false"]);
    let (gangs, members) = (4, 8);
    for gang in 0..gangs {
        let labels = format!("{GANG}: g{gang}");
        let annotations = format!(
            "muster.sh/gang: g{gang}, muster.sh/gang-size: '{members}', {LEAST}: '{members}'"
        );
        let pods = (0..members)
            .map(|at| pod(&format!("g{gang}-{at}"), 2, &labels, &annotations, ""))
            .collect::<String>();
        cluster.apply(&pods).await.expect("pods");
    }
    cluster
        .until("all are bound", async || {
            (bound_with_prefix(&cluster, "g").await == gangs * members).then_some(())
        })
        .await;
    let bindings = proxy.bindings();
    let mut nodes: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (pod, node) in &bindings {
        let nodes = nodes.entry(pod).or_default();
        if !nodes.contains(&&**node) {
            nodes.push(node);
        }
    }
    let elsewhere: Vec<_> = nodes.iter().filter(|(_, nodes)| nodes.len() > 1).collect();
    assert!(elsewhere.is_empty(), "{elsewhere:?}");
    assert!(bindings.len() > gangs * members, "no answer was lost");
    eprintln!("{} pods, {} bindings requested", nodes.len(), bindings.len());
    // The pods disappear while no controller runs, and only Muster's own objects remain of them.
    controller.kill();
    let pods: Api<Pod> = Api::namespaced(cluster.client(Role::Admin).await, "default");
    let at_once = DeleteParams::default().grace_period(0);
    pods.delete_collection(&at_once, &ListParams::default()).await.expect("they may be removed");
    let _controller = Controller::start_through(&proxy, &cluster, &["--leader-elect=false"]);
    until_no_leftovers(&cluster).await;
}
