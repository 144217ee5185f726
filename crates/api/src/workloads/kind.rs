//! The kinds of workloads, and what is read from each: roles, suspension, stages, completion.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::dialects::GroupKind;
use crate::foreign::json::{Findings, Json};
use crate::pod::spec::PodSpec;

/// A kind of workload.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
pub enum WorkloadKind {
    /// `batch/v1` Job.
    Job,
    /// JobSet.
    JobSet,
    /// Kubeflow's PyTorchJob.
    PyTorchJob,
    /// Kubeflow's TFJob.
    TfJob,
    /// MPIJob of Kubeflow's Training Operator.
    MpiJobV1,
    /// Kubeflow's XGBoostJob.
    XgBoostJob,
    /// Kubeflow's PaddleJob.
    PaddleJob,
    /// Kubeflow's JAXJob.
    JaxJob,
    /// MPIJob of the MPI Operator.
    MpiJob,
    /// Kubeflow's TrainJob.
    TrainJob,
    /// RayCluster.
    RayCluster,
    /// LeaderWorkerSet; each of its groups is a gang.
    LeaderWorkerSet,
    /// A single pod.
    Pod,
}

/// Pods of one template.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct WorkloadRole {
    /// The operator's name of the role.
    pub name: String,
    /// The number of pods.
    pub count: u32,
    /// The minimum, where the workload can run with fewer.
    pub min: Option<u32>,
    /// The maximum, where the workload can run with more.
    pub max: Option<u32>,
    /// The spec of each pod.
    pub template: PodSpec,
    /// Labels of the template.
    pub labels: BTreeMap<String, String>,
    /// Annotations of the template.
    pub annotations: BTreeMap<String, String>,
    /// The process of its first container, if it has a command.
    #[serde(skip)]
    pub run: Option<crate::RunSpec>,
}

const fn kind(
    group: &'static str,
    versions: &'static [&'static str],
    kind: &'static str,
    plural: &'static str,
) -> GroupKind {
    GroupKind { group, versions, kind, plural, namespaced: true }
}

const KUBEFLOW: &str = "kubeflow.org";
const KINDS: &[(WorkloadKind, GroupKind)] = &[
    (WorkloadKind::Job, kind("batch", &["v1"], "Job", "jobs")),
    (WorkloadKind::JobSet, kind("jobset.x-k8s.io", &["v1alpha2"], "JobSet", "jobsets")),
    (WorkloadKind::PyTorchJob, kind(KUBEFLOW, &["v1"], "PyTorchJob", "pytorchjobs")),
    (WorkloadKind::TfJob, kind(KUBEFLOW, &["v1"], "TFJob", "tfjobs")),
    (WorkloadKind::MpiJobV1, kind(KUBEFLOW, &["v1"], "MPIJob", "mpijobs")),
    (WorkloadKind::XgBoostJob, kind(KUBEFLOW, &["v1"], "XGBoostJob", "xgboostjobs")),
    (WorkloadKind::PaddleJob, kind(KUBEFLOW, &["v1"], "PaddleJob", "paddlejobs")),
    (WorkloadKind::JaxJob, kind(KUBEFLOW, &["v1"], "JAXJob", "jaxjobs")),
    (WorkloadKind::MpiJob, kind(KUBEFLOW, &["v2beta1"], "MPIJob", "mpijobs")),
    (WorkloadKind::TrainJob, kind("trainer.kubeflow.org", &["v1alpha1"], "TrainJob", "trainjobs")),
    (WorkloadKind::RayCluster, kind("ray.io", &["v1", "v1alpha1"], "RayCluster", "rayclusters")),
    (
        WorkloadKind::LeaderWorkerSet,
        kind("leaderworkerset.x-k8s.io", &["v1"], "LeaderWorkerSet", "leaderworkersets"),
    ),
    (WorkloadKind::Pod, kind("", &["v1"], "Pod", "pods")),
];

/// The kinds of workloads, and where they are served. MPIJob is listed twice: its two operators share one API group,
/// and only one of them can be installed.
pub fn kinds() -> &'static [(WorkloadKind, GroupKind)] {
    KINDS
}

/// The kind of workload with this API version and kind.
pub fn kind_of(api_version: &str, kind: &str) -> Option<WorkloadKind> {
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    let is_it = |known: &GroupKind| {
        known.kind == kind && known.group == group && known.versions.contains(&version)
    };
    kinds().iter().find(|(_, known)| is_it(known)).map(|(kind, _)| *kind)
}

/// The roles of a workload, by its `apiVersion` and `kind`. For a LeaderWorkerSet they are those of one group.
pub fn roles(object: &Value) -> Result<Vec<WorkloadRole>, Vec<String>> {
    let findings = Findings::default();
    let json = Json::root(object, &findings);
    let (version, name) = (json.text("apiVersion").unwrap_or_default(), json.text("kind"));
    let Some(kind) = kind_of(version, name.unwrap_or_default()) else {
        json.error(format!("no workload is known as `{version}` `{}`", name.unwrap_or_default()));
        return findings.settle(Vec::new());
    };
    let Some(spec) = json.need("spec") else { return findings.settle(Vec::new()) };
    let roles = match kind {
        WorkloadKind::Job => crate::workloads::job::roles(&spec),
        WorkloadKind::JobSet => crate::workloads::jobset::roles(&spec),
        WorkloadKind::PyTorchJob
        | WorkloadKind::TfJob
        | WorkloadKind::MpiJobV1
        | WorkloadKind::XgBoostJob
        | WorkloadKind::PaddleJob
        | WorkloadKind::JaxJob => crate::workloads::kubeflow::roles(kind, &spec),
        WorkloadKind::MpiJob => crate::workloads::mpi::roles(&spec),
        WorkloadKind::TrainJob => crate::workloads::trainjob::roles(&spec),
        WorkloadKind::RayCluster => crate::workloads::ray::roles(&spec),
        WorkloadKind::LeaderWorkerSet => crate::workloads::lws::roles(&spec),
        WorkloadKind::Pod => crate::workloads::pods::roles(&json, &spec),
    };
    findings.settle(roles)
}

/// Whether the workload is suspended, so that it has no pods and must have none.
pub fn is_suspended(kind: WorkloadKind, object: &Value) -> bool {
    let path: &[&str] = match kind {
        WorkloadKind::PyTorchJob
        | WorkloadKind::TfJob
        | WorkloadKind::MpiJobV1
        | WorkloadKind::XgBoostJob
        | WorkloadKind::PaddleJob
        | WorkloadKind::JaxJob
        | WorkloadKind::MpiJob => &["spec", "runPolicy", "suspend"],
        WorkloadKind::Pod | WorkloadKind::LeaderWorkerSet => return false,
        _ => &["spec", "suspend"],
    };
    path.iter().try_fold(object, |here, name| here.get(name)) == Some(&Value::Bool(true))
}

/// Whether some of its pods are created only after others run: a gang that waited for all of them would wait forever.
pub fn comes_in_stages(kind: WorkloadKind, object: &Value) -> bool {
    let says = |path: &str, what: &str| {
        object.pointer(path).and_then(Value::as_str).is_some_and(|text| text == what)
    };
    match kind {
        WorkloadKind::MpiJob => says("/spec/launcherCreationPolicy", "WaitForWorkersReady"),
        WorkloadKind::LeaderWorkerSet => says("/spec/startupPolicy", "LeaderReady"),
        WorkloadKind::JobSet => {
            let jobs = object.pointer("/spec/replicatedJobs").and_then(Value::as_array);
            let depends = |job: &Value| {
                job.get("dependsOn").and_then(Value::as_array).is_some_and(|on| !on.is_empty())
            };
            says("/spec/startupPolicy/startupPolicyOrder", "InOrder")
                || jobs.is_some_and(|jobs| jobs.iter().any(depends))
        }
        _ => false,
    }
}

/// Whether the workload has ended, successfully or not, and will have no more pods.
pub fn is_over(object: &Value) -> bool {
    let listed = object.pointer("/status/conditions").and_then(Value::as_array);
    let says = |one: &Value, field: &str| one.get(field).and_then(Value::as_str).map(str::to_owned);
    listed.into_iter().flatten().any(|one| {
        let kind = says(one, "type").unwrap_or_default();
        let is_end = matches!(&*kind, "Complete" | "Completed" | "Succeeded" | "Failed");
        is_end && says(one, "status").as_deref() == Some("True")
    })
}

/// The role of a pod in its workload, by its operator's labels.
pub fn role_of_pod(kind: WorkloadKind, labels: &BTreeMap<String, String>) -> Option<&str> {
    let label = |name: &str| labels.get(name).map(String::as_str).filter(|text| !text.is_empty());
    match kind {
        WorkloadKind::Job => Some(crate::workloads::job::ROLE),
        WorkloadKind::JobSet | WorkloadKind::TrainJob => label(crate::workloads::jobset::ROLE),
        WorkloadKind::PyTorchJob
        | WorkloadKind::TfJob
        | WorkloadKind::MpiJobV1
        | WorkloadKind::XgBoostJob
        | WorkloadKind::PaddleJob
        | WorkloadKind::JaxJob => label(crate::workloads::kubeflow::ROLE),
        WorkloadKind::MpiJob => {
            label(crate::workloads::mpi::ROLE).or_else(|| label(crate::workloads::kubeflow::ROLE))
        }
        WorkloadKind::RayCluster => label(crate::workloads::ray::GROUP),
        WorkloadKind::LeaderWorkerSet => {
            label(crate::workloads::lws::WORKER_INDEX).map(crate::workloads::lws::role_of_index)
        }
        WorkloadKind::Pod => Some(crate::workloads::pods::ROLE),
    }
}

/// The index of a pod within its role, by its operator's labels.
pub fn index_of_pod(kind: WorkloadKind, labels: &BTreeMap<String, String>) -> Option<u32> {
    let name = match kind {
        WorkloadKind::Job => crate::workloads::job::INDEX,
        // Across all jobs of the set; the index within one job is not unique.
        WorkloadKind::JobSet | WorkloadKind::TrainJob => {
            let of = |name: &str| labels.get(name)?.parse::<u32>().ok();
            return crate::workloads::jobset::rank(
                of(crate::workloads::jobset::JOB_INDEX),
                of(crate::workloads::job::INDEX),
            );
        }
        WorkloadKind::LeaderWorkerSet => crate::workloads::lws::WORKER_INDEX,
        WorkloadKind::RayCluster => crate::workloads::ray::HOST_INDEX,
        WorkloadKind::Pod => return Some(0),
        _ => crate::workloads::kubeflow::INDEX,
    };
    labels.get(name)?.parse().ok()
}
