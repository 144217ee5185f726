//! The fields that are read of each watched kind; all others are dropped when an object is decoded.
//!
//! Muster's own kinds are kept whole, since their schemas bound them, except for the pod templates of Gangs: those are kept
//! as text, and parsed when pods are created from them.

use kube::api::DynamicObject;
use muster_api::workloads::WorkloadKind;

use crate::api::watch::watches::Bounds;
use crate::cache::kinds::{KindRole, watched_kinds};
use crate::objects::field_mask::Mask;
use crate::objects::projection::project;

/// The fields of a kind that are read.
pub(crate) fn mask_of(kind_role: KindRole) -> Mask {
    Mask::of(paths(kind_role))
}

/// The kept part of an object of a watched kind, and its estimated memory: for measurements, and for tests of objects that
/// cannot be decoded.
///
/// # Errors
/// With why the object would be omitted.
pub fn kept_of(
    api_version: &str,
    kind: &str,
    json: &str,
    bounds: &Bounds,
) -> Result<(DynamicObject, usize), String> {
    let mut all =
        watched_kinds().into_iter().map(|(kind_role, wanted)| (kind_role, wanted.resource()));
    let is_it = |(_, of): &(KindRole, kube::api::ApiResource)| {
        of.api_version == api_version && of.kind == kind
    };
    let (kind_role, _) = all.find(is_it).ok_or_else(|| "not a kind that is watched".to_owned())?;
    let taken = project(json, &mask_of(kind_role), bounds.object)?;
    Ok((taken.object, taken.cost))
}

/// Kinds that only administrators and Muster itself write.
const OWN: &[&str] = &["spec.@uncounted", "status.@uncounted"];
const GANG: &[&str] = &["spec", "spec.roles", "spec.roles.template.@text", "status.@uncounted"];

/// Groups of all dialects: their field names differ, and none has two meanings. The status is kept whole, since it is
/// written as a whole, with the fields that other controllers wrote.
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

fn paths(kind_role: KindRole) -> &'static [&'static str] {
    match kind_role {
        KindRole::Topology | KindRole::Queue | KindRole::Pool | KindRole::Order => OWN,
        KindRole::Gang => GANG,
        KindRole::PriorityClass => &["value", "globalDefault", "preemptionPolicy"],
        KindRole::ForeignQueue(_) => &["spec", "status.state"],
        KindRole::Namespace => &[],
        KindRole::VolumeClaim => VOLUME_CLAIM,
        KindRole::Volume => VOLUME,
        KindRole::StorageClass => &["provisioner", "volumeBindingMode", "allowedTopologies"],
        KindRole::CsiNode => &["spec.drivers.name", "spec.drivers.allocatable"],
        KindRole::Request => REQUEST,
        KindRole::PodTemplate => &["template.@pod"],
        KindRole::Group(..) => GROUP,
        KindRole::Workload(kind) => match kind {
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

#[cfg(test)]
mod tests {
    use muster_api::dialects::{self, Dialect};
    use muster_api::pod::GpuNames;
    use muster_api::workloads::{self, comes_in_stages, is_over, is_suspended};
    use serde_json::{Value, json};

    use crate::objects::fields::*;

    fn template() -> Value {
        let container = json!({"name": "a", "image": "x", "command": ["y"], "env": [{"name": "T", "value": "secret"}],
            "resources": {"limits": {"nvidia.com/gpu": 8}, "requests": {"cpu": "500m"}, "claims": [{"name": "c"}]},
            "ports": [{"containerPort": 80, "hostPort": 80, "hostIP": "1.2.3.4", "protocol": "UDP", "name": "p"}],
            "restartPolicy": "Always", "livenessProbe": {"exec": {"command": ["z"]}}});
        json!({
            "metadata": {"labels": {"app": "a"}, "annotations": {"muster.sh/queue": "q", "gpu-fraction": "0.5", "note": "junk"},
                "managedFields": [{"fieldsV1": {"f:spec": {}}}]},
            "spec": {
                "containers": [container], "initContainers": [container], "junk": {"deep": {"er": []}},
                "resources": {"requests": {"cpu": 3}}, "overhead": {"cpu": "1m"}, "nodeName": "n", "nodeSelector": {"a": "b"},
                "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]}}},
                "tolerations": [{"key": "a", "operator": "Exists", "tolerationSeconds": 3}],
                "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}],
                "priorityClassName": "p", "priority": 3, "preemptionPolicy": "Never", "schedulerName": "muster",
                "schedulingGates": [{"name": "g"}], "schedulingGroup": {"podGroupName": "pg"},
                "workloadRef": {"name": "w", "podGroup": "g", "podGroupReplicaKey": "k"},
                "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}, "x": 1}, {"name": "e", "ephemeral": {"volumeClaimTemplate": {}}},
                    {"name": "s", "configMap": {"name": "junk"}}],
                "resourceClaims": [{"name": "r", "resourceClaimName": "x", "resourceClaimTemplateName": "y"}],
                "terminationGracePeriodSeconds": 5, "restartPolicy": "Never", "serviceAccountName": "junk",
            },
        })
    }

    /// Workloads of every kind, with all fields that are read and some that are not.
    fn workloads() -> Vec<(WorkloadKind, &'static str, &'static str, Value)> {
        let replicas = json!({"Master": {"replicas": 1, "template": template(), "restartPolicy": "OnFailure"},
            "Worker": {"replicas": 3, "template": template()}});
        let kubeflow = |field: &str| {
            json!({field: replicas, "runPolicy": {"suspend": true, "cleanPodPolicy": "None"},
                "elasticPolicy": {"minReplicas": 2, "maxReplicas": 5, "rdzvBackend": "c10d"}})
        };
        let job = json!({"parallelism": 4, "completions": 4, "completionMode": "Indexed", "suspend": true, "backoffLimit": 3,
            "scheduling": {"schedulingPolicy": {"gang": {"minCount": 2}}}, "template": template()});
        let group = json!({"groupName": "g", "numOfHosts": 2, "replicas": 2, "minReplicas": 1, "maxReplicas": 4,
            "template": template(), "rayStartParams": {"junk": "x"}});
        let mut mpi = kubeflow("mpiReplicaSpecs");
        mpi["launcherCreationPolicy"] = json!("WaitForWorkersReady");
        vec![
            (WorkloadKind::Job, "batch/v1", "Job", job.clone()),
            (
                WorkloadKind::JobSet,
                "jobset.x-k8s.io/v1alpha2",
                "JobSet",
                json!({"suspend": true,
                "startupPolicy": {"startupPolicyOrder": "InOrder"},
                "replicatedJobs": [{"name": "a", "replicas": 2, "dependsOn": [{"name": "b"}], "template": {"spec": job, "junk": 1}}]}),
            ),
            (
                WorkloadKind::PyTorchJob,
                "kubeflow.org/v1",
                "PyTorchJob",
                kubeflow("pytorchReplicaSpecs"),
            ),
            (WorkloadKind::TfJob, "kubeflow.org/v1", "TFJob", kubeflow("tfReplicaSpecs")),
            (
                WorkloadKind::XgBoostJob,
                "kubeflow.org/v1",
                "XGBoostJob",
                kubeflow("xgbReplicaSpecs"),
            ),
            (
                WorkloadKind::PaddleJob,
                "kubeflow.org/v1",
                "PaddleJob",
                kubeflow("paddleReplicaSpecs"),
            ),
            (WorkloadKind::JaxJob, "kubeflow.org/v1", "JAXJob", kubeflow("jaxReplicaSpecs")),
            (WorkloadKind::MpiJobV1, "kubeflow.org/v1", "MPIJob", kubeflow("mpiReplicaSpecs")),
            (WorkloadKind::MpiJob, "kubeflow.org/v2beta1", "MPIJob", mpi),
            (
                WorkloadKind::TrainJob,
                "trainer.kubeflow.org/v1alpha1",
                "TrainJob",
                json!({"suspend": true,
                "initializer": {"dataset": {"storageUri": "junk"}, "model": {}},
                "trainer": {"numNodes": 3, "resourcesPerNode": {"limits": {"nvidia.com/gpu": 4}}, "env": [{"value": "secret"}]}}),
            ),
            (
                WorkloadKind::RayCluster,
                "ray.io/v1",
                "RayCluster",
                json!({"enableInTreeAutoscaling": true,
                "headGroupSpec": {"template": template(), "rayStartParams": {}}, "workerGroupSpecs": [group]}),
            ),
            (
                WorkloadKind::LeaderWorkerSet,
                "leaderworkerset.x-k8s.io/v1",
                "LeaderWorkerSet",
                json!({"startupPolicy": "LeaderReady",
                "leaderWorkerTemplate": {"size": 4, "leaderTemplate": template(), "workerTemplate": template()}}),
            ),
        ]
    }

    /// The kept part of an object, as JSON.
    fn kept(kind_role: KindRole, object: &Value) -> Value {
        let taken = project(&object.to_string(), &mask_of(kind_role), 128 << 10);
        let taken = taken.expect("it can be read").object;
        serde_json::to_value(taken).expect("JSON")
    }

    #[test]
    fn workloads_of_all_kinds_lose_no_meaning_when_projected() {
        for (kind, version, name, spec) in workloads() {
            let status =
                json!({"conditions": [{"type": "Complete", "status": "True", "message": "junk"}]});
            let object = json!({"apiVersion": version, "kind": name, "metadata": {"name": "a", "namespace": "n"},
                "spec": spec, "status": status});
            let kept = kept(KindRole::Workload(kind), &object);
            let roles = |object: &Value| {
                let mut roles = workloads::roles(object).expect("roles");
                roles.iter_mut().for_each(|role| role.run = None);
                roles.iter_mut().for_each(|role| drop(role.annotations.remove("note")));
                roles
            };
            assert!(!roles(&object).is_empty(), "{name}");
            assert_eq!(roles(&kept), roles(&object), "{name}");
            assert_eq!(is_suspended(kind, &kept), is_suspended(kind, &object), "{name}");
            assert_eq!(comes_in_stages(kind, &kept), comes_in_stages(kind, &object), "{name}");
            assert!(is_over(&kept), "{name}");
            let text = kept.to_string();
            assert!(!text.contains("secret") && !text.contains("junk"), "{name}: {text}");
        }
    }

    #[test]
    fn groups_of_all_dialects_lose_no_meaning_when_projected() {
        let groups = [
            (
                Dialect::Volcano,
                json!({"minMember": 4, "minTaskMember": {"a": 2}, "minResources": {"cpu": "3"}, "queue": "q",
                "priorityClassName": "p", "subGroupPolicy": [{"name": "x"}], "networkTopology": {"mode": "soft", "highestTierAllowed": 2}}),
            ),
            (
                Dialect::SchedulerPlugins,
                json!({"minMember": 4, "minResources": {"cpu": "3"}, "scheduleTimeoutSeconds": 9}),
            ),
            (Dialect::Koordinator, json!({"minMember": 4, "scheduleTimeoutSeconds": 9})),
            (Dialect::KubeBatch, json!({"minMember": 4, "queue": "q", "priorityClassName": "p"})),
            (
                Dialect::Kai,
                json!({"minMember": 4, "queue": "q", "subGroups": [{"name": "a", "minMember": 2}],
                "topologyConstraint": {"requiredTopologyLevel": "rack"}, "preemptibility": "non-preemptible"}),
            ),
            (
                Dialect::Native,
                json!({"schedulingPolicy": {"gang": {"minCount": 3}}, "priority": 7, "preemptionPolicy": "Never",
                "schedulingConstraints": {"topology": [{"key": "rack"}]}, "disruptionMode": "PodGroup",
                "parentCompositePodGroupName": "c"}),
            ),
            (
                Dialect::Workload,
                json!({"podGroups": [{"name": "a", "policy": {"gang": {"minCount": 3}}}]}),
            ),
        ];
        for (dialect, mut spec) in groups {
            spec["junk"] = json!({"a": 1});
            let object = json!({"metadata": {"name": "a", "namespace": "n", "annotations": {
                "gang.scheduling.koordinator.sh/total-number": "5", "junk": "x"}}, "spec": spec});
            let terms = |object: &Value| dialects::terms(dialect, object, &GpuNames::default());
            let kept = kept(KindRole::Group(dialect, 0), &object);
            assert!(terms(&object).is_ok(), "{dialect:?}");
            assert_eq!(terms(&kept), terms(&object), "{dialect:?}");
            assert!(!kept.to_string().contains("junk"), "{dialect:?}: {kept}");
        }
    }

    #[test]
    fn gang_is_kept_whole_and_its_template_as_text() {
        let object = json!({"metadata": {"name": "a", "managedFields": [{}]}, "spec": {"queue": "q", "any": {"thing": 1},
            "roles": [{"name": "w", "min": 2, "template": template()}]}, "status": {"phase": "Waiting"}});
        let kept = kept(KindRole::Gang, &object);
        assert_eq!(kept.pointer("/spec/any/thing"), Some(&json!(1)));
        assert_eq!(kept.pointer("/status/phase"), Some(&json!("Waiting")));
        let text = kept.pointer("/spec/roles/0/template").and_then(Value::as_str).expect("text");
        assert_eq!(serde_json::from_str::<Value>(text).expect("JSON"), template());
    }
}
