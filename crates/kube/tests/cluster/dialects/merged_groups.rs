//! Koordinator's groups that name each other, in two namespaces: all of them start, or none.

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams};
use muster_kube::why::why;
use muster_testkit::cluster::{Cluster, Part, Role, Setup};
use serde_json::Value;

use crate::fixture::clusters::{cluster_with_nodes, kwok_cluster};
use crate::fixture::controller::Controller;
use crate::fixture::fault_injection::Faults;
use crate::fixture::manifests::{node, pod};
use crate::fixture::objects::custom_objects;
use crate::fixture::proxy::Proxy;
use crate::fixture::seeded_random::seed;
use crate::observer::{GANG, LEAST};

const OTHER: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: other}
";
const ARGS: [&str; 3] = ["--leader-elect=false", "--scheduler-name", "koord-scheduler"];
/// Members of each group, and of all.
const EACH: u32 = 2;
const ALL: usize = 4;

/// Two groups that start together: `NAME-left` in one namespace, `NAME-right` in another.
#[derive(Clone, Copy)]
struct Pair<'a> {
    name: &'a str,
    /// GPUs of each member.
    gpus: u32,
    /// Whether the groups are PodGroup objects; otherwise annotations of their pods describe them.
    objects: bool,
}

const LEFT: (&str, &str) = ("default", "left");
const RIGHT: (&str, &str) = ("other", "right");

impl Pair<'_> {
    fn list(self) -> String {
        let name = self.name;
        format!(
            r#"gang.scheduling.koordinator.sh/groups: '["default/{name}-left", "other/{name}-right"]'"#
        )
    }

    /// Creates the object of a group, if it has one.
    async fn make(self, cluster: &Cluster, (namespace, side): (&str, &str)) {
        if self.objects {
            let (name, list) = (self.name, self.list());
            let group = format!(
                "
apiVersion: scheduling.sigs.k8s.io/v1alpha1
kind: PodGroup
metadata: {{name: {name}-{side}, namespace: {namespace}, annotations: {{{list}}}}}
spec: {{minMember: {EACH}}}
"
            );
            cluster.apply(&group).await.expect("a group");
        }
    }

    /// Creates a member of a group, as users write it.
    async fn add(self, cluster: &Cluster, (namespace, side): (&str, &str), at: u32) {
        let name = format!("{}-{side}", self.name);
        let (labels, annotations) = if self.objects {
            (format!("pod-group.scheduling.sigs.k8s.io: {name}, "), String::new())
        } else {
            let marks = format!(
                "gang.scheduling.koordinator.sh/name: {name}, \
                 gang.scheduling.koordinator.sh/min-available: '{EACH}', {}, ",
                self.list()
            );
            (String::new(), marks)
        };
        let labels = format!("{labels}{GANG}: {}", self.name);
        let annotations = format!("{annotations}{LEAST}: '{ALL}'");
        let member = pod(&format!("{name}-{at}"), self.gpus, &labels, &annotations, "")
            .replace("schedulerName: muster", "schedulerName: koord-scheduler")
            .replace("namespace: default", &format!("namespace: {namespace}"));
        cluster.apply_as(Role::Admin, &member).await.expect("a pod");
    }

    async fn make_all(self, cluster: &Cluster) {
        for side in [LEFT, RIGHT] {
            self.make(cluster, side).await;
            for at in 0..EACH {
                self.add(cluster, side, at).await;
            }
        }
    }

    async fn pods(self, cluster: &Cluster) -> Vec<Pod> {
        let pods: Api<Pod> = Api::all(cluster.client(Role::Observer).await);
        let mine = ListParams::default().labels(&format!("{GANG}={}", self.name));
        pods.list(&mine).await.map(|list| list.items).unwrap_or_default()
    }

    async fn bound(self, cluster: &Cluster) -> usize {
        let is_bound = |pod: &&Pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
        self.pods(cluster).await.iter().filter(is_bound).count()
    }

    async fn until_bound(self, cluster: &Cluster) {
        let whole = async || (self.bound(cluster).await == ALL).then_some(());
        cluster.until(&format!("all of {} are bound", self.name), whole).await;
    }

    /// Waits until every pod has a condition with this text in its reason or message, and asserts that none is bound.
    async fn until_waiting(self, cluster: &Cluster, words: &str) {
        let has_text = |pod: &Pod| {
            let conditions =
                pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
            let mut reported = conditions.flat_map(|one| [&one.message, &one.reason]).flatten();
            reported.any(|reported| reported.contains(words))
        };
        cluster
            .until(&format!("{} reports: {words}", self.name), async || {
                let pods = self.pods(cluster).await;
                (!pods.is_empty() && pods.iter().all(has_text)).then_some(())
            })
            .await;
        assert_eq!(self.bound(cluster).await, 0, "{}: {words}", self.name);
    }

    /// Waits until both groups report in Koordinator's words that their own members run, and `why` finds the gang by
    /// each name.
    async fn until_reported_running(self, cluster: &Cluster) {
        for (namespace, side) in [LEFT, RIGHT] {
            let groups = groups(cluster, namespace).await;
            let name = format!("{}-{side}", self.name);
            let mut last = Value::Null;
            cluster
                .until(&format!("{name} reports that it runs"), async || {
                    let status = groups.get(&name).await.ok()?.data["status"].take();
                    if status != last {
                        eprintln!("{name}: {status}");
                        last = status;
                    }
                    let runs = last["phase"] == "Running" && last["running"] == EACH;
                    (runs && last["scheduleStartTime"].is_string()).then_some(())
                })
                .await;
            let client = cluster.client(Role::Observer).await;
            cluster
                .until(&format!("{name} is found to run"), async || {
                    let known = why(client.clone(), namespace, &name).await.ok()?;
                    let is_theirs =
                        known[0].name.starts_with(&format!("default/{}-left.", self.name));
                    (is_theirs && known[0].status["phase"] == "Running").then_some(())
                })
                .await;
        }
    }

    /// Deletes the pods without a grace period, and then the groups.
    async fn remove(self, cluster: &Cluster) {
        let client = cluster.client(Role::Admin).await;
        let now = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
        for pod in self.pods(cluster).await {
            let pods: Api<Pod> =
                Api::namespaced(client.clone(), &pod.namespace().unwrap_or_default());
            pods.delete(&pod.name_any(), &now).await.expect("it ends");
        }
        for (namespace, side) in [LEFT, RIGHT] {
            if self.objects {
                let groups: Api<DynamicObject> =
                    Api::namespaced_with(client.clone(), namespace, &kind());
                groups.delete(&format!("{}-{side}", self.name), &now).await.expect("it goes");
            }
        }
        cluster
            .until("the gang's object is gone", async || {
                merged_gangs(cluster).await.is_empty().then_some(())
            })
            .await;
    }
}

fn kind() -> ApiResource {
    ApiResource {
        group: "scheduling.sigs.k8s.io".to_owned(),
        version: "v1alpha1".to_owned(),
        api_version: "scheduling.sigs.k8s.io/v1alpha1".to_owned(),
        kind: "PodGroup".to_owned(),
        plural: "podgroups".to_owned(),
    }
}

async fn groups(cluster: &Cluster, namespace: &str) -> Api<DynamicObject> {
    Api::namespaced_with(cluster.client(Role::Observer).await, namespace, &kind())
}

/// Gangs of several groups.
async fn merged_gangs(cluster: &Cluster) -> Vec<DynamicObject> {
    let gangs = custom_objects(cluster, ("muster.sh", "v1alpha1"), ("Gang", "gangs")).await;
    let all = gangs.list(&ListParams::default()).await.expect("gangs").items;
    all.into_iter().filter(|gang| gang.name_any().ends_with(".joined")).collect()
}

async fn with_koordinator(cluster: &Cluster) -> Option<()> {
    cluster.apply(OTHER).await.expect("a namespace");
    cluster.define_or_skip(&["koordinator/scheduling.sigs.k8s.io_podgroups"]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_that_name_each_other_start_together_or_not_at_all() {
    let Some(cluster) = kwok_cluster(1).await else { return };
    let Some(()) = with_koordinator(&cluster).await else { return };
    let _controller = Controller::start(&cluster, &ARGS);
    let mut nodes = 1;
    // First half of the nodes that all members need exist, then all of them.
    for pair in [
        Pair { name: "groups", gpus: 4, objects: true },
        Pair { name: "marks", gpus: 8, objects: false },
    ] {
        let right = format!("other/{}-right", pair.name);
        pair.make(&cluster, LEFT).await;
        for at in 0..EACH {
            pair.add(&cluster, LEFT, at).await;
        }
        pair.until_waiting(&cluster, &format!("{right}, which does not exist")).await;
        pair.make(&cluster, RIGHT).await;
        pair.add(&cluster, RIGHT, 0).await;
        pair.until_waiting(&cluster, &format!("{right}: 1 of 2 members exist")).await;
        pair.add(&cluster, RIGHT, 1).await;
        // Either group alone would fit.
        pair.until_waiting(&cluster, "Unschedulable").await;
        let gang = merged_gangs(&cluster).await.pop().expect("it is taken in");
        assert_eq!(gang.data["spec"]["roles"].as_array().map(Vec::len), Some(2));
        for at in nodes..2 * nodes {
            cluster.apply(&node(&format!("n{at}"))).await.expect("a node");
        }
        nodes *= 2;
        pair.until_bound(&cluster).await;
        if pair.objects {
            pair.until_reported_running(&cluster).await;
        }
        pair.remove(&cluster).await;
    }
}

/// How often a controller is killed while it binds.
const WHILE_BINDING: usize = 4;

/// Whether the status of a gang has a placement.
fn is_written(gang: &DynamicObject) -> bool {
    let placement = &gang.data["status"]["placement"];
    placement.as_array().is_some_and(|seats: &Vec<Value>| !seats.is_empty())
}

#[tokio::test(flavor = "multi_thread")]
async fn merged_groups_are_bound_whole_across_controller_kills() {
    let Some(cluster) = cluster_with_nodes(2, Setup::bare().with(Part::Kwok)).await else { return };
    let Some(()) = with_koordinator(&cluster).await else { return };
    let proxy = Proxy::start(&cluster, seed()).await;
    proxy.set(Faults { slow: 700, ..Faults::NONE });
    let mut in_part = 0;
    for at in 0..WHILE_BINDING {
        let name = format!("train-{at}");
        let pair = Pair { name: &name, gpus: 4, objects: at % 2 == 0 };
        pair.make_all(&cluster).await;
        let controller = Controller::start_through(&proxy, &cluster, &ARGS);
        let bound = cluster
            .until("the first is bound", async || {
                Some(pair.bound(&cluster).await).filter(|bound| *bound > 0)
            })
            .await;
        controller.kill();
        in_part += usize::from(bound < ALL);
        let gang = merged_gangs(&cluster).await.pop().expect("it has an object");
        assert!(is_written(&gang), "{name} is bound without a placement");
        let _next = Controller::start(&cluster, &ARGS);
        pair.until_bound(&cluster).await;
        if pair.objects {
            pair.until_reported_running(&cluster).await;
        }
        pair.remove(&cluster).await;
    }
    eprintln!("{in_part} of {WHILE_BINDING} were bound in part");
    assert!(in_part > 0, "no controller was killed while it bound");
}
