//! Measures pods bound per second on a real API server: by Muster, by kube-scheduler with and without gangs, and by a
//! bare loop of creates and binds, which is the limit of the API server. Run by `cargo xtask bench kube`.
//!
//! Each kind gets a fresh cluster, one after the other, in one run: only the comparison counts.

mod usage;

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::stream;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, ApiResource, DynamicObject, PostParams};
use kube::runtime::watcher::{Config, Event};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, ResourceExt};
use muster_testkit::cluster::{Cluster, Part, Role, Setup};
use serde_json::{Value, json};
use usage::Usage;

/// Requests under way at one time, for creating and for the bare loop.
const AT_ONCE: usize = 64;

struct Args {
    nodes: u32,
    gangs: u32,
    members: u32,
    controller: PathBuf,
    kinds: Vec<String>,
}

fn args() -> Args {
    let mut args = std::env::args().skip(1);
    let mut number = |or: u32| args.next().and_then(|text| text.parse().ok()).unwrap_or(or);
    let (nodes, gangs, members) = (number(1_000), number(250), number(16));
    let controller =
        args.next().map_or_else(|| "target/release/muster-controller".into(), PathBuf::from);
    let kinds = args.next().unwrap_or_else(|| "limit,kube_plain,kube_gang,muster".to_owned());
    Args { nodes, gangs, members, controller, kinds: kinds.split(',').map(str::to_owned).collect() }
}

#[tokio::main]
async fn main() {
    let args = args();
    let mut line = json!({"nodes": args.nodes, "gangs": args.gangs, "members": args.members});
    for kind in &args.kinds {
        eprintln!("{kind}: starting a cluster");
        let setup = match &**kind {
            "kube_plain" | "kube_gang" => Setup::bare().with(Part::Scheduler),
            _ => Setup::bare(),
        };
        let Some(cluster) = Cluster::start_or_skip(setup).await else { return };
        let (seconds, memory, used) = measure(&cluster, kind, &args).await;
        let pods = f64::from(args.gangs * args.members);
        eprintln!("{kind}: {:.0} pods per second, {seconds:.2} s", pods / seconds);
        line[kind] = json!((pods / seconds * 10.0).round() / 10.0);
        line[format!("{kind}_s")] = json!((seconds * 1_000.0).round() / 1_000.0);
        eprintln!("{kind}: {used:#}");
        line[format!("{kind}_cpu_s")] = used["cpu_s"].clone();
        if let Some(memory) = memory {
            line[format!("{kind}_rss_mib")] = json!(memory);
        }
    }
    println!("{line}");
}

async fn measure(cluster: &Cluster, kind: &str, args: &Args) -> (f64, Option<u64>, Value) {
    let client = cluster.client(Role::Admin).await;
    make_nodes(&client, args.nodes).await;
    let controller = (kind == "muster").then(|| prepare_muster(cluster, args));
    let controller = match controller {
        Some(started) => Some(started.await),
        None => None,
    };
    if kind.starts_with("kube") || kind == "muster" {
        // The scheduler has seen all nodes before the measurement starts.
        tokio::time::sleep(Duration::from_secs(10)).await;
    }
    let processes = processes(cluster, controller.as_ref());
    let before = Usage::so_far(&client, &processes).await;
    let began = Instant::now();
    let done = tokio::spawn(all_bound(client.clone(), args.gangs * args.members));
    let has_groups = kind == "kube_gang" || kind == "muster";
    let scheduler = if kind == "muster" { "muster" } else { "default-scheduler" };
    if has_groups {
        make_groups(&client, args).await;
    }
    let limit = kind == "limit";
    let pods: Api<DynamicObject> =
        Api::namespaced_with(client.clone(), "default", &ApiResource::erase::<Pod>(&()));
    let all = (0..args.gangs).flat_map(|gang| (0..args.members).map(move |at| (gang, at)));
    stream::iter(all)
        .for_each_concurrent(AT_ONCE, |(gang, at)| {
            let (pods, client) = (pods.clone(), client.clone());
            let object = pod(gang, at, scheduler, has_groups);
            async move {
                let object: DynamicObject = serde_json::from_value(object).expect("a pod");
                pods.create(&PostParams::default(), &object).await.expect("created");
                if limit {
                    let node = (gang * args.members + at) % args.nodes;
                    bind(&client, &object.name_any(), &format!("n{node}")).await;
                }
            }
        })
        .await;
    eprintln!("{kind}: all created after {:.2} s", began.elapsed().as_secs_f64());
    let ended = done.await.expect("the watch ends");
    let used = Usage::so_far(&client, &processes).await.since(&before);
    let memory = controller.map(|mut controller| {
        let memory = memory_of(&controller);
        let _ = controller.kill();
        let _ = controller.wait();
        memory
    });
    (ended.duration_since(began).as_secs_f64(), memory, used)
}

/// All processes of the measurement, by name.
fn processes(cluster: &Cluster, controller: Option<&Child>) -> Vec<(String, u32)> {
    let mut all: Vec<(String, u32)> =
        cluster.processes().into_iter().map(|(tool, id)| (tool.to_string(), id)).collect();
    all.push(("clients".to_owned(), std::process::id()));
    all.extend(controller.map(|controller| ("muster-controller".to_owned(), controller.id())));
    all
}

/// Nodes that are ready and stay so, since no controller checks them.
async fn make_nodes(client: &Client, count: u32) {
    let nodes: Api<Node> = Api::all(client.clone());
    stream::iter(0..count)
        .for_each_concurrent(AT_ONCE, |at| {
            let nodes = nodes.clone();
            async move {
                let node = json!({
                    "apiVersion": "v1", "kind": "Node",
                    "metadata": {"name": format!("n{at}"), "labels": {"kubernetes.io/hostname": format!("n{at}")}},
                    "status": {
                        "allocatable": {"cpu": "64", "memory": "512Gi", "nvidia.com/gpu": "8", "pods": "110"},
                        "capacity": {"cpu": "64", "memory": "512Gi", "nvidia.com/gpu": "8", "pods": "110"},
                        "conditions": [{"type": "Ready", "status": "True", "reason": "Ready", "message": "",
                            "lastHeartbeatTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
                    },
                });
                let node: Node = serde_json::from_value(node).expect("a node");
                nodes.create(&PostParams::default(), &node).await.expect("created");
            }
        })
        .await;
}

async fn make_groups(client: &Client, args: &Args) {
    let kind = ApiResource {
        group: "scheduling.k8s.io".into(),
        version: "v1beta1".into(),
        api_version: "scheduling.k8s.io/v1beta1".into(),
        kind: "PodGroup".into(),
        plural: "podgroups".into(),
    };
    let groups: Api<DynamicObject> = Api::namespaced_with(client.clone(), "default", &kind);
    stream::iter(0..args.gangs)
        .for_each_concurrent(AT_ONCE, |gang| {
            let groups = groups.clone();
            let object = json!({
                "apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup",
                "metadata": {"name": format!("g{gang}"), "namespace": "default"},
                "spec": {"schedulingPolicy": {"gang": {"minCount": args.members}}},
            });
            async move {
                let object: DynamicObject = serde_json::from_value(object).expect("a group");
                groups.create(&PostParams::default(), &object).await.expect("created");
            }
        })
        .await;
}

fn pod(gang: u32, at: u32, scheduler: &str, grouped: bool) -> Value {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": format!("g{gang}-{at}"), "namespace": "default"},
        "spec": {
            "schedulerName": scheduler,
            "containers": [{"name": "worker", "image": "none",
                "resources": {"limits": {"nvidia.com/gpu": "1"}, "requests": {"cpu": "1", "memory": "1Gi"}}}],
        },
    });
    if grouped {
        pod["spec"]["schedulingGroup"] = json!({"podGroupName": format!("g{gang}")});
    }
    pod
}

async fn bind(client: &Client, pod: &str, node: &str) {
    let body = json!({
        "apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod, "namespace": "default"},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    });
    let path = format!("/api/v1/namespaces/default/pods/{pod}/binding");
    let request = http::Request::post(path)
        .body(serde_json::to_vec(&body).expect("JSON"))
        .expect("a request");
    client.request::<Value>(request).await.expect("bound");
}

/// The instant at which this many pods are bound.
async fn all_bound(client: Client, count: u32) -> Instant {
    let pods: Api<Pod> = Api::namespaced(client, "default");
    let seen = watcher(pods, Config::default()).default_backoff();
    futures::pin_mut!(seen);
    let mut bound = std::collections::BTreeSet::new();
    while let Some(event) = seen.next().await {
        if let Ok(Event::Apply(pod) | Event::InitApply(pod)) = event
            && pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some())
        {
            bound.insert(pod.name_any());
            if bound.len() == count as usize {
                break;
            }
        }
    }
    Instant::now()
}

async fn prepare_muster(cluster: &Cluster, args: &Args) -> Child {
    let crds = muster_api::crd::definitions();
    let crds: String = crds.iter().map(|crd| format!("---\n{}\n", crd.object)).collect();
    cluster.apply(&crds).await.expect("the CRDs are good");
    let log = std::fs::File::create(cluster.folder().join("controller.log")).expect("a log");
    Command::new(&args.controller)
        .arg("--leader-elect=false")
        .env("KUBECONFIG", cluster.kubeconfig(Role::Admin))
        .stdin(Stdio::null())
        .stdout(log.try_clone().expect("a log"))
        .stderr(log)
        .spawn()
        .expect("the controller starts")
}

/// The peak resident memory of a process, in MiB.
fn memory_of(child: &Child) -> u64 {
    let status =
        std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) / 1_024
}
