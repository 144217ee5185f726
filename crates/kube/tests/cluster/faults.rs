//! A server that answers badly: nothing is lost, nothing is done twice, and nobody asks in a loop.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, PostParams};
use muster_testkit::cluster::{Cluster, Role};

use crate::asked::{busiest_second, summary};
use crate::chance::{Chance, seed};
use crate::controller::Controller;
use crate::fate::Faults;
use crate::leftovers::{done, remove_jobs, until_none_are_left};
use crate::observer::{GANG, Kind, LEAST};
use crate::proxy::Proxy;
use crate::stage::{self, bound_of};
use crate::words::{POOL, job, node, pod};

/// Each kind of fault by itself, often enough to strike every job, and then all of them.
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

/// Requests in any one second, at most, while the server answers nothing but errors. Fourteen kinds are watched here,
/// and each watch tries again after pauses of its own, of which the first two may fall into one second; what waits to
/// be written does the same.
const IN_A_SECOND: usize = 60;
/// And in ten seconds: pauses grow.
const IN_TEN: usize = 150;

/// Nobody may ask for nodes.
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

/// Has jobs of many sizes run, some on nodes that are there and some on nodes that must be bought.
async fn submit(cluster: &Cluster, from: u64, chance: &mut Chance) {
    for at in from..from + jobs() {
        let (pods, gpus) = (1 + chance.below(5) as u32, 1 << chance.below(4));
        let job = job(&format!("train-{at}"), pods, gpus);
        stage::submit(cluster, &job).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_job_ends_and_nothing_is_left_whatever_the_server_answers() {
    let Some(cluster) = stage::cluster().await else { return };
    for at in 0..2 {
        cluster.apply(&node(&format!("n{at}"))).await.expect("a node");
    }
    cluster.apply(POOL).await.expect("a pool");
    let seed = seed();
    let mut chance = Chance::new(seed);
    let proxy = Proxy::start(&cluster, seed).await;
    let mut controller = Controller::behind(&proxy, &cluster, &["--leader-elect=false"]);
    let (start, mut count) = (Instant::now(), 0);
    for (kind, faults) in KINDS {
        let began = Instant::now();
        proxy.set(faults);
        proxy.cut();
        submit(&cluster, count, &mut chance).await;
        count += jobs();
        // It begins anew in the middle of it, with what the lists say.
        if faults.stale > 0 {
            tokio::time::sleep(Duration::from_millis(chance.below(2_000))).await;
            controller.kill();
            controller = Controller::behind(&proxy, &cluster, &["--leader-elect=false"]);
        }
        cluster
            .until("every job is done", async || {
                assert!(!controller.has_ended(), "the controller gave up: {kind}");
                (done(&cluster).await as u64 == count).then_some(())
            })
            .await;
        let asked = proxy.asked(began);
        let (all, took) = (asked.len(), began.elapsed());
        eprintln!("{kind}: {took:?}, {all} requests, at most {} a second", busiest_second(&asked));
        cluster.is_as_promised().await;
    }
    proxy.open(false);
    tokio::time::sleep(Duration::from_secs(2)).await;
    submit(&cluster, count, &mut chance).await;
    proxy.open(true);
    count += jobs();
    cluster
        .until("every job is done", async || (done(&cluster).await as u64 == count).then_some(()))
        .await;
    // Faults end, and then everything must come to rest.
    remove_jobs(&cluster).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    proxy.set(Faults::NONE);
    until_none_are_left(&cluster).await;
    let asked = summary(&proxy.asked(start));
    eprintln!("{count} jobs; the longest window was {:?}; {asked}", cluster.observer().window());
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_asked_in_a_loop() {
    let Some(cluster) = stage::cluster().await else { return };
    cluster.apply(&node("n0")).await.expect("a node");
    let proxy = Proxy::start(&cluster, seed()).await;
    let mut controller = Controller::behind(&proxy, &cluster, &["--leader-elect=false"]);
    stage::submit(&cluster, &job("first", 2, 4)).await;
    cluster.until("it is done", async || (done(&cluster).await == 1).then_some(())).await;
    // Nothing to do: kinds that are not served are looked for now and then, and that is all.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let began = Instant::now();
    tokio::time::sleep(Duration::from_secs(10)).await;
    let idle = proxy.asked(began);
    eprintln!("idle for 10 s: {} requests: {}", idle.len(), summary(&idle));
    assert!(idle.len() <= 10, "{}", summary(&idle));
    // Nothing but errors, with work to do.
    stage::submit(&cluster, &job("second", 1, 8)).await;
    stage::submit(&cluster, &job("third", 2, 4)).await;
    proxy.set(Faults::DOWN);
    proxy.cut();
    let began = Instant::now();
    tokio::time::sleep(Duration::from_secs(10)).await;
    let down = proxy.asked(began);
    let busiest = busiest_second(&down);
    eprintln!("down for 10 s: {} requests, at most {busiest} a second", down.len());
    assert!(busiest < IN_A_SECOND && down.len() < IN_TEN, "{}", summary(&down));
    assert!(!controller.has_ended(), "the controller gave up");
    proxy.set(Faults::NONE);
    cluster.until("all are done", async || (done(&cluster).await == 3).then_some(())).await;
    // A pool that cannot be had: somebody does not allow its claims.
    cluster.apply(POLICY).await.expect("a policy");
    tokio::time::sleep(Duration::from_secs(2)).await;
    cluster.apply(POOL).await.expect("a pool");
    stage::submit(&cluster, &job("fourth", 2, 8)).await;
    let began = Instant::now();
    tokio::time::sleep(Duration::from_secs(10)).await;
    let in_vain = proxy.asked(began);
    eprintln!("refused for 10 s: {} requests: {}", in_vain.len(), summary(&in_vain));
    assert!(in_vain.len() < IN_TEN, "{}", summary(&in_vain));
    assert!(in_vain.iter().any(|one| one.resource == "nodeclaims"), "nothing was refused");
    // What was refused is left alone for a while; another pool helps at once.
    cluster.apply(&POLICY.replace("Deny", "Warn")).await.expect("a policy");
    until_claims_are_allowed(&cluster).await;
    cluster.apply(&POOL.replace("{name: gpu}", "{name: other}")).await.expect("a pool");
    cluster.until("all are done", async || (done(&cluster).await == 4).then_some(())).await;
    remove_jobs(&cluster).await;
    until_none_are_left(&cluster).await;
}

/// A policy that was lifted holds for a moment longer.
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
async fn a_binding_whose_answer_is_lost_is_not_repeated_elsewhere() {
    let Some(cluster) = stage::small_cluster(8).await else { return };
    let proxy = Proxy::start(&cluster, seed()).await;
    // Every second answer to a write is lost, and news of what came of it are late.
    proxy.set(Faults { lost: 500, slow: 300, cut: 500, ..Faults::NONE });
    let controller = Controller::behind(&proxy, &cluster, &["--leader-elect=false"]);
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
            (bound_of(&cluster, "g").await == gangs * members).then_some(())
        })
        .await;
    let asked = proxy.bindings();
    let mut nodes: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (pod, node) in &asked {
        let nodes = nodes.entry(pod).or_default();
        if !nodes.contains(&&**node) {
            nodes.push(node);
        }
    }
    let elsewhere: Vec<_> = nodes.iter().filter(|(_, nodes)| nodes.len() > 1).collect();
    assert!(elsewhere.is_empty(), "{elsewhere:?}");
    assert!(asked.len() > gangs * members, "no answer was lost");
    eprintln!("{} pods, {} bindings asked for", nodes.len(), asked.len());
    // They go while nobody looks, and nothing but Muster's own objects tells that they were there.
    controller.kill();
    let pods: Api<Pod> = Api::namespaced(cluster.client(Role::Admin).await, "default");
    let at_once = DeleteParams::default().grace_period(0);
    pods.delete_collection(&at_once, &ListParams::default()).await.expect("they may be removed");
    let _controller = Controller::behind(&proxy, &cluster, &["--leader-elect=false"]);
    until_none_are_left(&cluster).await;
}
