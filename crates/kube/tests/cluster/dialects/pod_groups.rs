//! Every dialect, as its users write it: a gang that fits starts whole, and one that does not fit starts no pod.

use kube::ResourceExt;
use muster_testkit::cluster::{Cluster, Role, Version};
use serde_json::Value;

use crate::fixture::clusters::kwok_cluster;
use crate::fixture::controller::Controller;
use crate::fixture::manifests::{crd, pod};
use crate::fixture::objects::custom_objects;
use crate::fixture::pods::{bound_pods, bound_with_prefix, remove_pods, until_waiting_for_members};
use crate::observer::{GANG, LEAST};

/// How one dialect marks pods and describes a group of a given size.
struct DialectCase {
    name: &'static str,
    /// The scheduler name of its pods.
    scheduler: &'static str,
    /// The CRDs of its project.
    kinds: &'static [&'static str],
    /// A CRD written here, where no supported API server accepts the project's own.
    stand_in: String,
    group: fn(&str, u32) -> String,
    /// Where its object is, and the status that it has while the group runs.
    running_status: Option<RunningStatus>,
    /// Labels, annotations and spec fields of a member.
    marks: fn(&str, u32) -> (String, String, String),
}

/// The API group and version of an object, and whether its status reports that it runs.
type RunningStatus = (&'static str, &'static str, fn(&Value) -> bool);

fn none(_: &str, _: u32) -> String {
    String::new()
}

fn pod_group(api: &str, name: &str, spec: &str) -> String {
    format!(
        "\n---\napiVersion: {api}\nkind: PodGroup\nmetadata: {{name: {name}, namespace: default}}\nspec: {{{spec}}}\n"
    )
}

fn holds(status: &Value, condition: &str) -> bool {
    let is_true = |one: &Value| one["type"] == condition && one["status"] == "True";
    status["conditions"].as_array().is_some_and(|all| all.iter().any(is_true))
}

/// A native group that was placed once.
fn was_scheduled(status: &Value) -> bool {
    holds(status, "PodGroupInitiallyScheduled")
}

/// Queues as KAI has them: a department, and a team in it.
const KAI_QUEUES: &str = "
apiVersion: scheduling.run.ai/v2
kind: Queue
metadata: {name: team-a, annotations: {muster.sh/namespaces: default}}
spec:
  parentQueue: department
  resources: {gpu: {quota: 8, overQuotaWeight: 1, limit: -1}, cpu: {quota: -1, overQuotaWeight: 1, limit: -1}, memory: {quota: -1, overQuotaWeight: 1, limit: -1}}
---
apiVersion: scheduling.run.ai/v2
kind: Queue
metadata: {name: department}
spec:
  resources: {gpu: {quota: 16, overQuotaWeight: 1, limit: -1}, cpu: {quota: -1, overQuotaWeight: 1, limit: -1}, memory: {quota: -1, overQuotaWeight: 1, limit: -1}}
";

/// The native dialect, by the version of its API. Each Kubernetes release has dropped the versions before.
fn native(version: &str) -> DialectCase {
    let (name, group): (_, fn(&str, u32) -> String) = match version {
        "v1alpha1" => return workload(),
        "v1alpha2" => ("native-alpha-2", |name, count| native_group("v1alpha2", name, count)),
        "v1alpha3" => ("native-alpha-3", |name, count| native_group("v1alpha3", name, count)),
        "v1beta1" => ("native", |name, count| native_group("v1beta1", name, count)),
        other => panic!("{other} is not known here"),
    };
    let running_status: RunningStatus = match version {
        "v1alpha2" => {
            ("scheduling.k8s.io", "v1alpha2", |status| holds(status, "PodGroupScheduled"))
        }
        "v1alpha3" => ("scheduling.k8s.io", "v1alpha3", was_scheduled),
        _ => ("scheduling.k8s.io", "v1beta1", was_scheduled),
    };
    DialectCase {
        name,
        scheduler: "muster",
        kinds: &[],
        stand_in: String::new(),
        group,
        running_status: Some(running_status),
        marks: |name, _| {
            (String::new(), String::new(), format!("schedulingGroup: {{podGroupName: {name}}}"))
        },
    }
}

fn native_group(version: &str, name: &str, count: u32) -> String {
    let spec = format!("schedulingPolicy: {{gang: {{minCount: {count}}}}}");
    pod_group(&format!("scheduling.k8s.io/{version}"), name, &spec)
}

/// The native dialect of 1.35: groups are listed in one Workload, which has no status.
fn workload() -> DialectCase {
    DialectCase {
        name: "native-workload",
        scheduler: "muster",
        kinds: &[],
        stand_in: String::new(),
        group: |name, count| {
            format!(
                "\n---\napiVersion: scheduling.k8s.io/v1alpha1\nkind: Workload\nmetadata: {{name: {name}, namespace: default}}\nspec: {{podGroups: [{{name: workers, policy: {{gang: {{minCount: {count}}}}}}}]}}\n"
            )
        },
        running_status: None,
        marks: |name, _| {
            let spec = format!("workloadRef: {{name: {name}, podGroup: workers}}");
            (String::new(), String::new(), spec)
        },
    }
}

fn dialects(version: Version) -> Vec<DialectCase> {
    let native = version.gang_apis().iter().map(|version| native(version));
    native.chain(others()).collect()
}

fn others() -> Vec<DialectCase> {
    vec![
        DialectCase {
            name: "volcano",
            scheduler: "volcano",
            kinds: &["volcano/scheduling.volcano.sh_podgroups"],
            stand_in: String::new(),
            group: |name, count| {
                pod_group(
                    "scheduling.volcano.sh/v1beta1",
                    name,
                    &format!("minMember: {count}, queue: default"),
                )
            },
            running_status: Some(("scheduling.volcano.sh", "v1beta1", |status| {
                status["phase"] == "Running"
            })),
            marks: |name, _| {
                (String::new(), format!("scheduling.k8s.io/group-name: {name}"), String::new())
            },
        },
        DialectCase {
            name: "koordinator",
            scheduler: "koord-scheduler",
            kinds: &[],
            stand_in: String::new(),
            group: none,
            running_status: None,
            marks: |name, count| {
                let marks = format!(
                    "gang.scheduling.koordinator.sh/name: {name}, gang.scheduling.koordinator.sh/min-available: '{count}'"
                );
                (String::new(), marks, String::new())
            },
        },
        DialectCase {
            name: "koordinator-group",
            scheduler: "koord-scheduler",
            kinds: &["koordinator/scheduling.sigs.k8s.io_podgroups"],
            stand_in: String::new(),
            group: |name, count| {
                pod_group("scheduling.sigs.k8s.io/v1alpha1", name, &format!("minMember: {count}"))
            },
            running_status: Some(("scheduling.sigs.k8s.io", "v1alpha1", |status| {
                status["phase"] == "Running"
            })),
            marks: |name, _| {
                (format!("pod-group.scheduling.sigs.k8s.io: {name}"), String::new(), String::new())
            },
        },
        DialectCase {
            name: "scheduler-plugins",
            scheduler: "scheduler-plugins-scheduler",
            kinds: &["scheduler-plugins/scheduling.x-k8s.io_podgroups"],
            stand_in: String::new(),
            group: |name, count| {
                pod_group(
                    "scheduling.x-k8s.io/v1alpha1",
                    name,
                    &format!("minMember: {count}, scheduleTimeoutSeconds: 60"),
                )
            },
            running_status: Some(("scheduling.x-k8s.io", "v1alpha1", |status| {
                status["phase"] == "Running"
            })),
            marks: |name, _| {
                (format!("scheduling.x-k8s.io/pod-group: {name}"), String::new(), String::new())
            },
        },
        DialectCase {
            name: "kube-batch",
            scheduler: "kube-batch",
            kinds: &[],
            stand_in: crd("scheduling.sigs.dev", "v1alpha2", "PodGroup", "podgroups", true),
            group: |name, count| {
                pod_group("scheduling.sigs.dev/v1alpha2", name, &format!("minMember: {count}"))
            },
            running_status: Some(("scheduling.sigs.dev", "v1alpha2", |status| {
                status["phase"] == "Running"
            })),
            marks: |name, _| {
                (String::new(), format!("scheduling.k8s.io/group-name: {name}"), String::new())
            },
        },
        DialectCase {
            name: "kube-batch-old",
            scheduler: "kube-batch",
            kinds: &[],
            stand_in: crd(
                "scheduling.incubator.k8s.io",
                "v1alpha1",
                "PodGroup",
                "podgroups",
                false,
            ),
            group: |name, count| {
                let spec = format!("minMember: {count}");
                pod_group("scheduling.incubator.k8s.io/v1alpha1", name, &spec)
            },
            running_status: Some(("scheduling.incubator.k8s.io", "v1alpha1", |status| {
                status["phase"] == "Running" && status["running"] == 4
            })),
            marks: |name, _| {
                (String::new(), format!("scheduling.k8s.io/group-name: {name}"), String::new())
            },
        },
        DialectCase {
            name: "kai",
            scheduler: "kai-scheduler",
            kinds: &["kai/scheduling.run.ai_podgroups", "kai/scheduling.run.ai_queues"],
            stand_in: String::new(),
            // KAI's pod grouper writes these; a user names a queue, which must exist.
            group: |name, count| {
                let spec = format!("minMember: {count}, queue: team-a");
                format!("{KAI_QUEUES}{}", pod_group("scheduling.run.ai/v2alpha2", name, &spec))
            },
            running_status: Some(("scheduling.run.ai", "v2alpha2", |status| {
                status["schedulingConditions"].as_array().is_some_and(Vec::is_empty)
            })),
            marks: |name, _| {
                let annotation = format!("pod-group-name: {name}");
                ("kai.scheduler/queue: team-a".to_owned(), annotation, String::new())
            },
        },
        DialectCase {
            name: "muster",
            scheduler: "muster",
            kinds: &[],
            stand_in: String::new(),
            group: none,
            running_status: None,
            marks: |name, count| {
                (
                    String::new(),
                    format!("muster.sh/gang: {name}, muster.sh/gang-size: '{count}'"),
                    String::new(),
                )
            },
        },
        DialectCase {
            name: "gang",
            scheduler: "muster",
            kinds: &[],
            stand_in: String::new(),
            group: |name, count| {
                format!(
                    "\n---\napiVersion: muster.sh/v1alpha1\nkind: Gang\nmetadata: {{name: {name}, namespace: default}}\nspec: {{roles: [{{name: worker, min: {count}, resources: {{nvidia.com/gpu: 4, cpu: 1}}}}]}}\n"
                )
            },
            running_status: Some(("muster.sh", "v1alpha1", |status| status["phase"] == "Running")),
            marks: |name, _| {
                (
                    String::new(),
                    format!("muster.sh/gang: {name}, muster.sh/role: worker"),
                    String::new(),
                )
            },
        },
    ]
}

impl DialectCase {
    /// Creates a gang of `count` pods with four GPUs each, and its first pods.
    async fn make(&self, cluster: &Cluster, gang: &str, count: u32, first: u32) {
        let gang_name = format!("{}-{gang}", self.name);
        let group = (self.group)(&gang_name, count);
        if !group.is_empty() {
            cluster.apply(&group).await.unwrap_or_else(|error| panic!("{}: {error}", self.name));
        }
        self.add(cluster, gang, count, 0, first).await;
    }

    async fn add(&self, cluster: &Cluster, gang: &str, count: u32, from: u32, to: u32) {
        let gang_name = format!("{}-{gang}", self.name);
        let (labels, annotations, spec) = (self.marks)(&gang_name, count);
        let labels = [labels, format!("{GANG}: {gang_name}")];
        let annotations = [annotations, format!("{LEAST}: '{count}'")];
        let joined = |marks: &[String]| {
            marks.iter().filter(|mark| !mark.is_empty()).cloned().collect::<Vec<_>>().join(", ")
        };
        for at in from..to {
            let pod = pod(
                &format!("{gang_name}-{at}"),
                4,
                &joined(&labels),
                &joined(&annotations),
                &spec,
            )
            .replace("schedulerName: muster", &format!("schedulerName: {}", self.scheduler));
            cluster
                .apply_as(Role::Admin, &pod)
                .await
                .unwrap_or_else(|error| panic!("{}: {error}", self.name));
        }
    }
}

impl DialectCase {
    /// Waits until the object of the group reports that the gang runs.
    async fn until_reports_running(&self, cluster: &Cluster) {
        let Some((group, version, is_running)) = self.running_status else { return };
        let kind = if group == "muster.sh" { ("Gang", "gangs") } else { ("PodGroup", "podgroups") };
        let objects = custom_objects(cluster, (group, version), kind).await;
        let name = format!("{}-whole", self.name);
        let what = format!("{name} reports that it runs");
        cluster
            .until(&what, async || {
                let object = objects.get(&name).await.ok()?;
                is_running(object.data.get("status")?).then_some(())
            })
            .await;
    }
}

/// Every scheduler name of these pods, served by one controller.
const NAMES: [&str; 6] = [
    "muster",
    "volcano",
    "koord-scheduler",
    "scheduler-plugins-scheduler",
    "kube-batch",
    "kai-scheduler",
];

#[tokio::test(flavor = "multi_thread")]
async fn gang_of_every_dialect_starts_whole_or_not_at_all() {
    let Some(cluster) = kwok_cluster(2).await else { return };
    let mut dialects = dialects(cluster.version());
    if let Ok(only) = std::env::var("MUSTER_DIALECT") {
        dialects.retain(|dialect| dialect.name == only);
    }
    for dialect in &dialects {
        let Some(()) = cluster.define_or_skip(dialect.kinds).await else { return };
        if !dialect.stand_in.is_empty() {
            cluster.apply(&dialect.stand_in).await.expect("a definition");
        }
    }
    let names = NAMES.iter().flat_map(|name| ["--scheduler-name", name]);
    let args: Vec<&str> = ["--leader-elect=false"].into_iter().chain(names).collect();
    let _controller = Controller::start(&cluster, &args);
    // Sixteen GPUs: five pods of four never fit, three of four wait for the fourth, then all start.
    for dialect in &dialects {
        dialect.make(&cluster, "large", 5, 5).await;
        dialect.make(&cluster, "whole", 4, 3).await;
    }
    until_waiting_for_members(&cluster, |pod| pod.name_any().contains("-large-")).await;
    assert_eq!(bound_pods(&cluster).await, 0);
    for dialect in &dialects {
        dialect.add(&cluster, "whole", 4, 3, 4).await;
        let whole = format!("{}-whole-", dialect.name);
        let what = format!("the whole gang of {} starts", dialect.name);
        cluster
            .until(&what, async || (bound_with_prefix(&cluster, &whole).await == 4).then_some(()))
            .await;
        assert_eq!(bound_with_prefix(&cluster, &format!("{}-large-", dialect.name)).await, 0);
        dialect.until_reports_running(&cluster).await;
        remove_pods(&cluster, &whole).await;
    }
}
