//! Which fields are read of each kind that is watched; everything else is dropped when an object is taken in.
//!
//! Muster's own kinds are kept whole, since their schemas bound them, but for the pod templates of Gangs: those are kept as
//! text, and parsed when pods are made of them.

use muster_api::workloads::WorkloadKind;

use super::Interest;
use crate::objects::Mask;

/// The fields of a kind that are read.
pub(crate) fn mask_of(interest: Interest) -> Mask {
    Mask::of(paths(interest))
}

/// Kinds that only administrators and Muster itself write.
const OWN: &[&str] = &["spec.@uncounted", "status.@uncounted"];
const GANG: &[&str] = &["spec", "spec.roles", "spec.roles.template.@text", "status.@uncounted"];

/// Groups of all dialects: their words differ, and none means two things. A status is written as a whole, with what
/// others have said in it.
const GROUP: &[&str] = &[
    "spec.minMember",
    "spec.minTaskMember",
    "spec.minResources",
    "spec.queue",
    "spec.priorityClassName",
    "spec.priority",
    "spec.preemptionPolicy",
    "spec.preemptibility",
    "spec.subGroupPolicy",
    "spec.subGroups",
    "spec.networkTopology",
    "spec.topologyConstraint",
    "spec.scheduleTimeoutSeconds",
    "spec.schedulingPolicy",
    "spec.schedulingConstraints",
    "spec.disruptionMode",
    "spec.parentCompositePodGroupName",
    "spec.podGroups",
    "status",
];

const JOB: &[&str] = &[
    "spec.parallelism",
    "spec.completions",
    "spec.completionMode",
    "spec.suspend",
    "spec.scheduling",
    "spec.template.@pod",
    "status.conditions.type",
    "status.conditions.status",
    "status.failedIndexes",
];

const JOB_SET: &[&str] = &[
    "spec.suspend",
    "spec.startupPolicy",
    "spec.replicatedJobs.name",
    "spec.replicatedJobs.replicas",
    "spec.replicatedJobs.dependsOn",
    "spec.replicatedJobs.template.spec.parallelism",
    "spec.replicatedJobs.template.spec.completions",
    "spec.replicatedJobs.template.spec.completionMode",
    "spec.replicatedJobs.template.spec.scheduling",
    "spec.replicatedJobs.template.spec.template.@pod",
    "status.conditions.type",
    "status.conditions.status",
];

macro_rules! kubeflow {
    ($($replicas:literal),*) => {
        &[
            $(concat!("spec.", $replicas, ".*.replicas"),
              concat!("spec.", $replicas, ".*.template.@pod"),)*
            "spec.runPolicy.suspend",
            "spec.elasticPolicy.minReplicas",
            "spec.elasticPolicy.maxReplicas",
            "spec.launcherCreationPolicy",
            "status.conditions.type",
            "status.conditions.status",
        ]
    };
}

const KUBEFLOW: &[&str] = kubeflow!(
    "pytorchReplicaSpecs",
    "tfReplicaSpecs",
    "xgbReplicaSpecs",
    "paddleReplicaSpecs",
    "jaxReplicaSpecs",
    "mpiReplicaSpecs"
);

const TRAIN_JOB: &[&str] = &[
    "spec.suspend",
    "spec.initializer.dataset.@none",
    "spec.initializer.model.@none",
    "spec.trainer.numNodes",
    "spec.trainer.resourcesPerNode",
    "status.conditions.type",
    "status.conditions.status",
];

const RAY_CLUSTER: &[&str] = &[
    "spec.suspend",
    "spec.enableInTreeAutoscaling",
    "spec.headGroupSpec.template.@pod",
    "spec.workerGroupSpecs.groupName",
    "spec.workerGroupSpecs.suspend",
    "spec.workerGroupSpecs.numOfHosts",
    "spec.workerGroupSpecs.replicas",
    "spec.workerGroupSpecs.minReplicas",
    "spec.workerGroupSpecs.maxReplicas",
    "spec.workerGroupSpecs.template.@pod",
    "status.conditions.type",
    "status.conditions.status",
];

const LEADER_WORKER_SET: &[&str] = &[
    "spec.replicas",
    "spec.startupPolicy",
    "spec.leaderWorkerTemplate.size",
    "spec.leaderWorkerTemplate.leaderTemplate.@pod",
    "spec.leaderWorkerTemplate.workerTemplate.@pod",
    "status.conditions.type",
    "status.conditions.status",
];

const VOLUME_CLAIM: &[&str] = &[
    "spec.storageClassName",
    "spec.volumeName",
    "spec.accessModes",
    "spec.selector",
    "spec.resources.requests",
    "spec.volumeMode",
    "spec.volumeAttributesClassName",
    "status.phase",
];

const VOLUME: &[&str] = &[
    "spec.storageClassName",
    "spec.capacity",
    "spec.accessModes",
    "spec.volumeMode",
    "spec.volumeAttributesClassName",
    "spec.nodeAffinity",
    "spec.claimRef",
    "spec.csi.driver",
    "status.phase",
];

const REQUEST: &[&str] =
    &["spec.provisioningClassName", "spec.podSets", "spec.parameters", "status"];

fn paths(interest: Interest) -> &'static [&'static str] {
    match interest {
        Interest::Topology | Interest::Queue | Interest::Pool | Interest::Order => OWN,
        Interest::Gang => GANG,
        Interest::PriorityClass => &["value", "globalDefault", "preemptionPolicy"],
        Interest::ForeignQueue(_) => &["spec", "status.state"],
        Interest::Namespace => &[],
        Interest::VolumeClaim => VOLUME_CLAIM,
        Interest::Volume => VOLUME,
        Interest::StorageClass => &["provisioner", "volumeBindingMode", "allowedTopologies"],
        Interest::CsiNode => &["spec.drivers.name", "spec.drivers.allocatable"],
        Interest::Request => REQUEST,
        Interest::PodTemplate => &["template.@pod"],
        Interest::Group(..) => GROUP,
        Interest::Workload(kind) => match kind {
            WorkloadKind::Job => JOB,
            WorkloadKind::JobSet => JOB_SET,
            WorkloadKind::PyTorchJob
            | WorkloadKind::TfJob
            | WorkloadKind::MpiJobV1
            | WorkloadKind::XgBoostJob
            | WorkloadKind::PaddleJob
            | WorkloadKind::JaxJob
            | WorkloadKind::MpiJob => KUBEFLOW,
            WorkloadKind::TrainJob => TRAIN_JOB,
            WorkloadKind::RayCluster => RAY_CLUSTER,
            WorkloadKind::LeaderWorkerSet => LEADER_WORKER_SET,
            WorkloadKind::Pod => &["spec"],
        },
    }
}
