//! An autoscaler that the test plays: it sees requests, says what became of them, and makes nodes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, PodTemplate};
use kube::api::{Api, ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use muster_testkit::cluster::{Cluster, Role};
use serde_json::{Value, json};
use tokio::task::JoinSet;

/// What it serves.
pub(crate) const CLASS: &str = "made-by.the.test";
/// How long it takes to look.
const EVERY: Duration = Duration::from_millis(100);

/// A request as it was first seen, with its template.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) request: Value,
    pub(crate) pod: Value,
}

impl Seen {
    pub(crate) fn count(&self) -> u64 {
        self.request["spec"]["podSets"][0]["count"].as_u64().unwrap_or(0)
    }
    /// The labels that its nodes must have.
    pub(crate) fn labels(&self) -> BTreeMap<String, String> {
        serde_json::from_value(self.pod["nodeSelector"].clone()).expect("labels")
    }
    pub(crate) fn zone(&self) -> String {
        self.labels()["topology.kubernetes.io/zone"].clone()
    }
}

/// What it does about a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Does {
    /// Accepts it, and makes all of its nodes.
    Provisions,
    /// Accepts it, and says then that it cannot be had.
    Fails,
    /// Accepts it, and that is all.
    Accepts,
}

/// One that runs until it is dropped.
pub(crate) struct Autoscaler {
    client: Client,
    seen: Arc<Mutex<Vec<Seen>>>,
    _tasks: JoinSet<()>,
}

impl Autoscaler {
    pub(crate) async fn start(
        cluster: &Cluster,
        does: impl Fn(&Seen) -> Does + Send + Sync + 'static,
    ) -> Self {
        let client = cluster.client(Role::Admin).await;
        let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let (mut tasks, its, hers) = (JoinSet::new(), seen.clone(), client.clone());
        tasks.spawn(async move {
            loop {
                for new in look(&hers, &its).await {
                    its.lock().expect("nobody panics with it").push(new.clone());
                    say(&hers, &new.name, "Accepted", "Accepted").await;
                    match does(&new) {
                        Does::Provisions => {
                            for at in 0..new.count() {
                                make_node(&hers, &new, at, 8).await;
                            }
                            say(&hers, &new.name, "Provisioned", "CapacityIsProvisioned").await;
                        }
                        Does::Fails => say(&hers, &new.name, "Failed", "CapacityIsNotFound").await,
                        Does::Accepts => {}
                    }
                }
                tokio::time::sleep(EVERY).await;
            }
        });
        Self { client, seen, _tasks: tasks }
    }

    /// Every request there ever was.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().expect("nobody panics with it").clone()
    }

    /// Waits until there were so many requests, and gives the last.
    pub(crate) async fn until_seen(&self, cluster: &Cluster, count: usize) -> Seen {
        cluster
            .until(&format!("there were {count} requests"), async || {
                self.seen().get(count - 1).cloned()
            })
            .await
    }

    /// Makes one more node of a request, with so many GPUs.
    pub(crate) async fn make_node(&self, of: &Seen, at: u64, gpus: u32) -> String {
        make_node(&self.client, of, at, gpus).await
    }

    /// Says that something is so of a request.
    pub(crate) async fn say(&self, of: &Seen, kind: &str, reason: &str) {
        say(&self.client, &of.name, kind, reason).await;
    }

    /// Gives a node that has none its GPUs.
    pub(crate) async fn give_gpus(&self, node: &str, gpus: u32) {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let gpus = json!({"nvidia.com/gpu": gpus.to_string()});
        let patch = Patch::Merge(json!({"status": {"allocatable": gpus, "capacity": gpus}}));
        nodes.patch_status(node, &PatchParams::default(), &patch).await.expect("GPUs");
    }
}

/// Requests of the class that were not seen before.
async fn look(client: &Client, seen: &Mutex<Vec<Seen>>) -> Vec<Seen> {
    let mut new = Vec::new();
    for request in requests(client).await {
        let uid = request.uid().unwrap_or_default();
        let known = |one: &Seen| one.uid == uid;
        let is_known = seen.lock().expect("nobody panics with it").iter().any(known);
        let (name, request) = (request.name_any(), request.data);
        if is_known || request["spec"]["provisioningClassName"] != CLASS {
            continue;
        }
        let templates: Api<PodTemplate> = Api::namespaced(client.clone(), "muster-system");
        let template = request["spec"]["podSets"][0]["podTemplateRef"]["name"].as_str();
        let template = templates.get(template.expect("a template")).await.expect("it is there");
        let pod = template.template.and_then(|template| template.spec);
        let pod = serde_json::to_value(pod).expect("a pod");
        new.push(Seen { name, uid, request, pod });
    }
    new
}

fn kind() -> ApiResource {
    ApiResource {
        group: "autoscaling.x-k8s.io".to_owned(),
        version: "v1".to_owned(),
        api_version: "autoscaling.x-k8s.io/v1".to_owned(),
        kind: "ProvisioningRequest".to_owned(),
        plural: "provisioningrequests".to_owned(),
    }
}

/// All requests there are.
pub(crate) async fn requests(client: &Client) -> Vec<DynamicObject> {
    let requests: Api<DynamicObject> = Api::all_with(client.clone(), &kind());
    requests.list(&ListParams::default()).await.map(|list| list.items).unwrap_or_default()
}

async fn say(client: &Client, name: &str, kind_of: &str, reason: &str) {
    let requests: Api<DynamicObject> =
        Api::namespaced_with(client.clone(), "muster-system", &kind());
    let Ok(now) = requests.get(name).await else { return };
    let mut conditions = now.data.pointer("/status/conditions").cloned().unwrap_or(json!([]));
    if let Some(all) = conditions.as_array_mut() {
        all.push(json!({
            "type": kind_of,
            "status": "True",
            "reason": reason,
            "message": "said by the test",
            "lastTransitionTime": jiff::Timestamp::now(),
        }));
    }
    let patch = Patch::Merge(json!({"status": {"conditions": conditions}}));
    // It may be removed meanwhile.
    let _ = requests.patch_status(name, &PatchParams::default(), &patch).await;
}

async fn make_node(client: &Client, of: &Seen, at: u64, gpus: u32) -> String {
    let name = format!("{}-{at}", of.name);
    let mut labels = of.labels();
    labels.insert("kubernetes.io/hostname".to_owned(), name.clone());
    let has =
        json!({"cpu": "64", "memory": "512Gi", "nvidia.com/gpu": gpus.to_string(), "pods": "110"});
    let node = json!({
        "metadata": {"name": name, "labels": labels, "annotations": {"kwok.x-k8s.io/node": "fake"}},
        "status": {"allocatable": has, "capacity": has},
    });
    let nodes: Api<Node> = Api::all(client.clone());
    let node: Node = serde_json::from_value(node).expect("a node");
    nodes.create(&PostParams::default(), &node).await.expect("it is made");
    name
}
