//! The roles of workloads, read from their own specs.

use muster_api::pod::GpuNames;
use muster_api::workloads::{WorkloadKind, is_suspended, kind_of, kinds, roles};
use serde_json::Value;

use crate::{or_findings, request_line, table, yaml};

fn described(object: &Value) -> String {
    or_findings(roles(object).map(|roles| {
        let line = |role: &muster_api::workloads::WorkloadRole| {
            let bound = |bound: Option<u32>| bound.map_or(String::new(), |bound| bound.to_string());
            let range = match (role.min, role.max) {
                (None, None) => String::new(),
                (min, max) => format!(" ({}..{})", bound(min), bound(max)),
            };
            let request = role.template.request(&role.annotations, &GpuNames::default());
            format!(
                "{} x{}{range}: {}",
                role.name,
                role.count,
                or_findings(request.map(|r| request_line(&r)))
            )
        };
        let lines: Vec<String> = roles.iter().map(line).collect();
        if lines.is_empty() { "no roles".into() } else { lines.join("\n") }
    }))
}

const POD: &str = "template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, resources: {limits: {nvidia.com/gpu: 8}}}]}}";
const SMALL: &str = "template: {spec: {containers: [{name: c, resources: {limits: {cpu: 1}}}]}}";

fn check(cases: &[(&str, String)]) -> String {
    let cases: Vec<(&str, &str)> =
        cases.iter().map(|(name, text)| (*name, text.as_str())).collect();
    table(&cases, described)
}

#[test]
fn jobs() {
    let job =
        |fields: &str| format!("{{apiVersion: batch/v1, kind: Job, spec: {{{fields}{POD}}}}}");
    insta::assert_snapshot!(check(&[
        ("one pod", job("")),
        ("indexed, all at once", job("parallelism: 4, completions: 4, completionMode: Indexed, ")),
        ("indexed, a few at a time", job("parallelism: 4, completions: 100, completionMode: Indexed, ")),
        ("parallelism only: a work queue", job("parallelism: 6, ")),
        ("fewer completions than parallelism", job("parallelism: 6, completions: 2, ")),
        ("stopped by parallelism 0", job("parallelism: 0, ")),
        ("a gang by Kubernetes 1.37", job("parallelism: 6, scheduling: {schedulingPolicy: {gang: {}}}, ")),
        ("a gang of some", job("parallelism: 6, scheduling: {schedulingPolicy: {gang: {minCount: 4}}}, ")),
        ("a bad number", job("parallelism: many, ")),
        ("below zero", job("parallelism: -1, ")),
        ("no template", "{apiVersion: batch/v1, kind: Job, spec: {}}".into()),
        ("a template without a spec", "{apiVersion: batch/v1, kind: Job, spec: {template: {}}}".into()),
        ("a template that cannot be read", "{apiVersion: batch/v1, kind: Job, spec: {template: {spec: {containers: 3}}}}".into()),
        ("no spec", "{apiVersion: batch/v1, kind: Job}".into()),
        ("an unknown version", "{apiVersion: batch/v9, kind: Job, spec: {}}".into()),
        ("no kind", "{spec: {}}".into()),
    ]), @r#"
    one pod
        worker x1: nvidia.com/gpux8@1000
    indexed, all at once
        worker x4: nvidia.com/gpux8@1000
    indexed, a few at a time
        worker x4 (1..): nvidia.com/gpux8@1000
    parallelism only: a work queue
        worker x6 (1..): nvidia.com/gpux8@1000
    fewer completions than parallelism
        worker x2 (1..): nvidia.com/gpux8@1000
    stopped by parallelism 0
        no roles
    a gang by Kubernetes 1.37
        worker x6: nvidia.com/gpux8@1000
    a gang of some
        worker x6 (4..): nvidia.com/gpux8@1000
    a bad number
        ! spec.parallelism: must be a whole number from 0 to 1000000, not "many"
    below zero
        ! spec.parallelism: must be a whole number from 0 to 1000000, not -1
    no template
        ! spec.template: is missing
    a template without a spec
        ! spec.template.spec: is missing
    a template that cannot be read
        ! spec.template.spec.containers: invalid type: integer `3`, expected a sequence
    no spec
        ! spec: is missing
    an unknown version
        ! (object): no workload is known as `batch/v9` `Job`
    no kind
        ! (object): no workload is known as `` ``
    "#);
}

#[test]
fn jobsets_and_trainjobs() {
    let jobset = |jobs: &str| {
        format!(
            "{{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, spec: {{replicatedJobs: {jobs}}}}}"
        )
    };
    let train = |spec: &str| {
        format!(
            "{{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, spec: {{runtimeRef: {{name: torch}}, {spec}}}}}"
        )
    };
    insta::assert_snapshot!(check(&[
        ("a driver and workers", jobset(&format!("[{{name: driver, template: {{spec: {{{SMALL}}}}}}}, {{name: workers, replicas: 2, template: {{spec: {{parallelism: 4, completions: 4, completionMode: Indexed, {POD}}}}}}}]"))),
        ("replicas 0", jobset(&format!("[{{name: a, replicas: 0, template: {{spec: {{{SMALL}}}}}}}]"))),
        ("a job without a name", jobset(&format!("[{{template: {{spec: {{{SMALL}}}}}}}]"))),
        ("too many pods", jobset(&format!("[{{name: a, replicas: 1000000, template: {{spec: {{parallelism: 1000000, {SMALL}}}}}}}]"))),
        ("no list", jobset("3")),
        ("four nodes", train("trainer: {numNodes: 4, resourcesPerNode: {limits: {nvidia.com/gpu: 8}}}")),
        ("with initializers", train("initializer: {dataset: {}, model: {storageUri: 'hf://x'}}, trainer: {numNodes: 2}")),
        ("no fields", train("suspend: false")),
        ("resources of the wrong type", train("trainer: {resourcesPerNode: 8}")),
    ]), @"
    a driver and workers
        driver x1: cpu=1000
        workers x8: nvidia.com/gpux8@1000
    replicas 0
        no roles
    a job without a name
        ! spec.replicatedJobs[0].name: is missing
    too many pods
        ! spec.replicatedJobs[0]: 1000000 replicas of 1000000 pods are more than 1000000
    no list
        ! spec.replicatedJobs: must be a list, not 3
    four nodes
        node x4: nvidia.com/gpux8@1000
    with initializers
        dataset-initializer x1: nothing
        model-initializer x1: nothing
        node x2: nothing
    no fields
        node x1: nothing
    resources of the wrong type
        ! spec.trainer.resourcesPerNode: invalid type: integer `8`, expected a mapping
    ");
}

#[test]
fn kubeflow_and_mpi() {
    let job = |kind: &str, version: &str, spec: &str| {
        format!("{{apiVersion: kubeflow.org/{version}, kind: {kind}, spec: {{{spec}}}}}")
    };
    let two = |field: &str, one: &str| {
        format!("{field}: {{{one}: {{replicas: 1, {SMALL}}}, Worker: {{replicas: 3, {POD}}}}}")
    };
    insta::assert_snapshot!(check(&[
        ("pytorch", job("PyTorchJob", "v1", &two("pytorchReplicaSpecs", "Master"))),
        ("elastic pytorch", job("PyTorchJob", "v1", &format!("elasticPolicy: {{minReplicas: 2, maxReplicas: 8}}, pytorchReplicaSpecs: {{Worker: {{replicas: 4, {POD}}}}}"))),
        ("elastic the wrong way round", job("PyTorchJob", "v1", &format!("elasticPolicy: {{minReplicas: 9, maxReplicas: 8}}, pytorchReplicaSpecs: {{Worker: {{replicas: 4, {POD}}}}}"))),
        ("tensorflow", job("TFJob", "v1", &two("tfReplicaSpecs", "PS"))),
        ("mpi of the training operator", job("MPIJob", "v1", &two("mpiReplicaSpecs", "Launcher"))),
        ("mpi of its own operator", job("MPIJob", "v2beta1", &two("mpiReplicaSpecs", "Launcher"))),
        ("xgboost", job("XGBoostJob", "v1", &two("xgbReplicaSpecs", "Master"))),
        ("paddle", job("PaddleJob", "v1", &two("paddleReplicaSpecs", "Master"))),
        ("jax: workers alone", job("JAXJob", "v1", &format!("jaxReplicaSpecs: {{Worker: {{replicas: 3, {POD}}}}}"))),
        ("replicas left out", job("TFJob", "v1", &format!("tfReplicaSpecs: {{Worker: {{{POD}}}}}"))),
        ("replicas 0", job("TFJob", "v1", &format!("tfReplicaSpecs: {{Worker: {{replicas: 0, {POD}}}, Chief: {{{SMALL}}}}}"))),
        ("no replica specs", job("TFJob", "v1", "runPolicy: {}")),
        ("a bad quantity", job("TFJob", "v1", "tfReplicaSpecs: {Worker: {template: {spec: {containers: [{resources: {limits: {cpu: much}}}]}}}}")),
    ]), @"
    pytorch
        master x1: cpu=1000
        worker x3: nvidia.com/gpux8@1000
    elastic pytorch
        worker x4 (2..8): nvidia.com/gpux8@1000
    elastic the wrong way round
        ! spec.elasticPolicy: minReplicas 9 is above maxReplicas 8
    tensorflow
        ps x1: cpu=1000
        worker x3: nvidia.com/gpux8@1000
    mpi of the training operator
        launcher x1: cpu=1000
        worker x3: nvidia.com/gpux8@1000
    mpi of its own operator
        launcher x1: cpu=1000
        worker x3: nvidia.com/gpux8@1000
    xgboost
        master x1: cpu=1000
        worker x3: nvidia.com/gpux8@1000
    paddle
        master x1: cpu=1000
        worker x3: nvidia.com/gpux8@1000
    jax: workers alone
        worker x3: nvidia.com/gpux8@1000
    replicas left out
        worker x1: nvidia.com/gpux8@1000
    replicas 0
        chief x1: cpu=1000
    no replica specs
        ! spec.tfReplicaSpecs: is missing
    a bad quantity
        worker x1: ! containers[0].resources.limits.cpu: `much` is not a quantity: write a number with an optional suffix m, k, M, G, T, Ki, Mi, Gi or Ti, such as 8, 500m or 80Gi
    ");
}

#[test]
fn ray_leader_worker_sets_and_pods() {
    let ray = |spec: &str| {
        format!(
            "{{apiVersion: ray.io/v1, kind: RayCluster, spec: {{headGroupSpec: {{{SMALL}}}, {spec}}}}}"
        )
    };
    let group = |fields: &str| format!("workerGroupSpecs: [{{groupName: gpus, {fields}, {POD}}}]");
    let lws = |fields: &str| {
        format!(
            "{{apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, spec: {{replicas: 3, leaderWorkerTemplate: {{{fields}}}}}}}"
        )
    };
    let worker = POD.replace("template:", "workerTemplate:");
    let leader = SMALL.replace("template:", "leaderTemplate:");
    insta::assert_snapshot!(check(&[
        ("a head alone", ray("workerGroupSpecs: null")),
        ("a fixed group", ray(&group("replicas: 4, minReplicas: 1, maxReplicas: 2147483647"))),
        ("a group that scales", ray(&format!("enableInTreeAutoscaling: true, {}", group("replicas: 4, minReplicas: 2, maxReplicas: 10")))),
        ("scales without an end", ray(&format!("enableInTreeAutoscaling: true, {}", group("replicas: 4, minReplicas: 2, maxReplicas: 2147483647")))),
        ("slices of two hosts", ray(&group("replicas: 3, numOfHosts: 2"))),
        ("replicas below the least", ray(&group("replicas: 1, minReplicas: 3"))),
        ("replicas above the most", ray(&group("replicas: 9, maxReplicas: 3"))),
        ("a group held back", ray(&group("replicas: 4, suspend: true"))),
        ("a group of none", ray(&group("replicas: 0"))),
        ("too many", ray(&group("replicas: 900000, numOfHosts: 4"))),
        ("a group without a name", ray(&format!("workerGroupSpecs: [{{replicas: 1, {POD}}}]"))),
        ("no head", "{apiVersion: ray.io/v1, kind: RayCluster, spec: {}}".into()),
        ("a leader like its workers", lws(&format!("size: 4, {worker}"))),
        ("a leader of its own", lws(&format!("size: 3, {worker}, {leader}"))),
        ("groups of one", lws(&worker)),
        ("no worker template", lws("size: 2")),
        ("a pod", "{apiVersion: v1, kind: Pod, metadata: {annotations: {gpu-fraction: '0.5'}}, spec: {containers: [{name: c}]}}".into()),
        ("a bad pod", "{apiVersion: v1, kind: Pod, spec: {tolerations: 1}}".into()),
    ]), @"
    a head alone
        headgroup x1: cpu=1000
    a fixed group
        headgroup x1: cpu=1000
        gpus x4: nvidia.com/gpux8@1000
    a group that scales
        headgroup x1: cpu=1000
        gpus x4 (2..10): nvidia.com/gpux8@1000
    scales without an end
        headgroup x1: cpu=1000
        gpus x4 (2..): nvidia.com/gpux8@1000
    slices of two hosts
        headgroup x1: cpu=1000
        gpus x6: nvidia.com/gpux8@1000
    replicas below the least
        headgroup x1: cpu=1000
        gpus x3: nvidia.com/gpux8@1000
    replicas above the most
        headgroup x1: cpu=1000
        gpus x3: nvidia.com/gpux8@1000
    a group held back
        headgroup x1: cpu=1000
    a group of none
        headgroup x1: cpu=1000
    too many
        ! spec.workerGroupSpecs[0]: asks for more than 1000000 pods
    a group without a name
        ! spec.workerGroupSpecs[0].groupName: is missing
    no head
        ! spec.headGroupSpec: is missing
    a leader like its workers
        leader x1: nvidia.com/gpux8@1000
        worker x3: nvidia.com/gpux8@1000
    a leader of its own
        leader x1: cpu=1000
        worker x2: nvidia.com/gpux8@1000
    groups of one
        leader x1: nvidia.com/gpux8@1000
    no worker template
        ! spec.leaderWorkerTemplate.workerTemplate: is missing
    a pod
        pod x1: nvidia.com/gpux1@500
    a bad pod
        ! spec.tolerations: invalid type: integer `1`, expected a sequence
    ");
}

#[test]
fn every_kind_is_found_by_its_name() {
    for (kind, served) in kinds() {
        for version in served.versions {
            let api = if served.group.is_empty() {
                (*version).to_owned()
            } else {
                format!("{}/{version}", served.group)
            };
            assert_eq!(kind_of(&api, served.kind), Some(*kind), "{api} {}", served.kind);
        }
    }
    assert_eq!(kind_of("apps/v1", "Deployment"), None);
    assert_eq!(kind_of("batch/v1", "CronJob"), None);
}

#[test]
fn suspended_workloads() {
    let suspended = |kind, text: &str| is_suspended(kind, &yaml(text));
    assert!(suspended(WorkloadKind::Job, "{spec: {suspend: true}}"));
    assert!(suspended(WorkloadKind::MpiJob, "{spec: {runPolicy: {suspend: true}}}"));
    assert!(!suspended(WorkloadKind::JobSet, "{spec: {suspend: false}}"));
    assert!(!suspended(WorkloadKind::PyTorchJob, "{spec: {suspend: true}}"));
    assert!(!suspended(WorkloadKind::LeaderWorkerSet, "{}"));
}
