//! The resource request of one pod.

use muster_api::pod::{GpuNames, PodSpec};
use serde_json::Value;

use crate::{or_findings, request_line, table, texts};

fn request(pod: &Value) -> String {
    let gpus = GpuNames { others: ["nvidia.com/h100".to_owned()].into() };
    let spec = PodSpec::read(&pod["spec"], "spec");
    or_findings(
        spec.and_then(|spec| spec.request(&texts(pod, "annotations"), &gpus))
            .map(|r| request_line(&r)),
    )
}

#[test]
fn containers_init_containers_and_sidecars() {
    let cases = [
        ("nothing is asked for", "{spec: {containers: [{name: a}]}}"),
        ("no containers at all", "{spec: {}}"),
        ("null is absent", "{spec: {containers: null, tolerations: null, overhead: null}}"),
        (
            "containers add up",
            "spec:
  containers:
  - {name: a, resources: {requests: {cpu: 500m, memory: 1Gi, nvidia.com/gpu: 1}}}
  - {name: b, resources: {requests: {cpu: 1500m, memory: 1Gi, nvidia.com/gpu: 3}}}",
        ),
        (
            "limits stand in for requests, resource by resource",
            "{spec: {containers: [{resources: {requests: {cpu: 1}, limits: {cpu: 4, nvidia.com/gpu: 8}}}]}}",
        ),
        (
            "a large init container is the peak",
            "spec:
  initContainers: [{resources: {requests: {memory: 10Gi}}}, {resources: {requests: {cpu: 3}}}]
  containers: [{resources: {requests: {cpu: 1, memory: 2Gi}}}]",
        ),
        (
            "a sidecar runs beside the containers",
            "spec:
  initContainers: [{restartPolicy: Always, resources: {requests: {cpu: 1}}}]
  containers: [{resources: {requests: {cpu: 2}}}]",
        ),
        (
            "an init container runs beside the sidecars that started before it, not after",
            "spec:
  initContainers:
  - {restartPolicy: Always, resources: {requests: {cpu: 1}}}
  - {resources: {requests: {cpu: 5}}}
  - {restartPolicy: Always, resources: {requests: {cpu: 2}}}
  containers: [{resources: {requests: {cpu: 2}}}]",
        ),
        (
            "init containers do not add up with each other",
            "spec:
  initContainers: [{resources: {requests: {nvidia.com/gpu: 8}}}, {resources: {requests: {nvidia.com/gpu: 8}}}]
  containers: [{resources: {requests: {nvidia.com/gpu: 8}}}]",
        ),
        (
            "overhead comes on top of the peak",
            "spec:
  overhead: {cpu: 250m, memory: 120Mi}
  initContainers: [{resources: {requests: {cpu: 4}}}]
  containers: [{resources: {requests: {cpu: 1}}}]",
        ),
        (
            "what the pod asks for as a whole wins",
            "spec:
  resources: {requests: {cpu: 2}}
  overhead: {cpu: 100m}
  containers: [{resources: {requests: {cpu: 8, memory: 1Gi}}}]",
        ),
        (
            "a limit of the pod counts only where no container asks",
            "spec:
  resources: {limits: {cpu: 16, memory: 8Gi}}
  containers: [{resources: {requests: {cpu: 8}}}]",
        ),
        ("bare numbers as in custom resources", "{spec: {containers: [{resources: {requests: {cpu: 1.5, memory: 1024}}}]}}"),
        ("zero is nothing", "{spec: {containers: [{resources: {requests: {cpu: 0, nvidia.com/gpu: 0}}}]}}"),
        ("fractions are rounded up", "{spec: {containers: [{resources: {requests: {cpu: 0.1m, memory: 0.5}}}]}}"),
        ("other resources are kept", "{spec: {containers: [{resources: {limits: {rdma/hca: 2, ephemeral-storage: 1Ki}}}]}}"),
    ];
    insta::assert_snapshot!(table(&cases, request), @"
    nothing is asked for
        nothing
    no containers at all
        nothing
    null is absent
        nothing
    containers add up
        cpu=2000 memory=2147483648 nvidia.com/gpux4@1000
    limits stand in for requests, resource by resource
        cpu=1000 nvidia.com/gpux8@1000
    a large init container is the peak
        cpu=3000 memory=10737418240
    a sidecar runs beside the containers
        cpu=3000
    an init container runs beside the sidecars that started before it, not after
        cpu=6000
    init containers do not add up with each other
        nvidia.com/gpux8@1000
    overhead comes on top of the peak
        cpu=4250 memory=125829120
    what the pod asks for as a whole wins
        cpu=2100 memory=1073741824
    a limit of the pod counts only where no container asks
        cpu=8000 memory=8589934592
    bare numbers as in custom resources
        cpu=1500 memory=1024
    zero is nothing
        nothing
    fractions are rounded up
        cpu=1 memory=1
    other resources are kept
        ephemeral-storage=1024 rdma/hca=2
    ");
}

#[test]
fn gpus_whole_and_in_fractions() {
    let cases = [
        ("amd", "{spec: {containers: [{resources: {limits: {amd.com/gpu: 4}}}]}}"),
        (
            "a GPU under a name of its own",
            "{spec: {containers: [{resources: {limits: {nvidia.com/h100: 8}}}]}}",
        ),
        (
            "HAMi's memory and cores stay amounts",
            "{spec: {containers: [{resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 3000}}}]}}",
        ),
        (
            "a fraction by annotation",
            "{metadata: {annotations: {gpu-fraction: '0.5'}}, spec: {containers: [{resources: {requests: {cpu: 1}}}]}}",
        ),
        (
            "of several devices",
            "{metadata: {annotations: {gpu-fraction: '0.25', gpu-fraction-num-devices: '2'}}, spec: {}}",
        ),
        (
            "half a device as a quantity",
            "{spec: {containers: [{resources: {requests: {nvidia.com/gpu: 500m}}}]}}",
        ),
        (
            "one and a half devices",
            "{spec: {containers: [{resources: {requests: {nvidia.com/gpu: 1500m}}}]}}",
        ),
        (
            "two kinds",
            "{spec: {containers: [{resources: {requests: {nvidia.com/gpu: 1}}}, {resources: {requests: {amd.com/gpu: 1}}}]}}",
        ),
        ("a fraction of nothing", "{metadata: {annotations: {gpu-fraction: '0'}}, spec: {}}"),
        ("a fraction above one", "{metadata: {annotations: {gpu-fraction: '1.5'}}, spec: {}}"),
        ("a fraction in words", "{metadata: {annotations: {gpu-fraction: half}}, spec: {}}"),
        (
            "a fraction and whole ones",
            "{metadata: {annotations: {gpu-fraction: '0.5'}}, spec: {containers: [{resources: {limits: {nvidia.com/gpu: 1}}}]}}",
        ),
    ];
    insta::assert_snapshot!(table(&cases, request), @"
    amd
        amd.com/gpux4@1000
    a GPU under a name of its own
        nvidia.com/h100x8@1000
    HAMi's memory and cores stay amounts
        nvidia.com/gpumem=3000 nvidia.com/gpux1@1000
    a fraction by annotation
        cpu=1000 nvidia.com/gpux1@500
    of several devices
        nvidia.com/gpux2@250
    half a device as a quantity
        nvidia.com/gpux1@500
    one and a half devices
        ! resources[nvidia.com/gpu]: must be a whole number of GPUs up to 65535, or a part of one
    two kinds
        ! resources[amd.com/gpu]: a pod asks for one kind of GPU only, not for `nvidia.com/gpu` too
    a fraction of nothing
        ! metadata.annotations[gpu-fraction]: must be above 0 and at most 1, such as 0.5, not `0`
    a fraction above one
        ! metadata.annotations[gpu-fraction]: must be above 0 and at most 1, such as 0.5, not `1.5`
    a fraction in words
        ! metadata.annotations[gpu-fraction]: must be above 0 and at most 1, such as 0.5, not `half`
    a fraction and whole ones
        ! metadata.annotations[gpu-fraction]: the pod asks for whole GPUs as well: drop one
    ");
}

#[test]
fn invalid_requests_are_findings_with_their_field() {
    let cases = [
        ("no quantity", "{spec: {containers: [{name: a}, {resources: {requests: {cpu: lots}}}]}}"),
        ("an unknown unit", "{spec: {initContainers: [{resources: {limits: {memory: 8GB}}}]}}"),
        ("below zero", "{spec: {overhead: {cpu: -1}}}"),
        ("too large", "{spec: {containers: [{resources: {requests: {memory: 8Ei}}}]}}"),
        (
            "too large together",
            "{spec: {containers: [{resources: {requests: {memory: 1Pi}}}, {resources: {requests: {memory: 1Pi}}}]}}",
        ),
        (
            "several at once",
            "{spec: {containers: [{resources: {requests: {cpu: a, memory: b}}}], resources: {requests: {cpu: c}}}}",
        ),
        ("containers are no list", "{spec: {containers: {name: a}}}"),
        ("a flag for a quantity", "{spec: {containers: [{resources: {requests: {cpu: true}}}]}}"),
        ("two fields of the wrong type", "{spec: {tolerations: x, priority: high, nodeName: n}}"),
        ("no mapping", "{spec: [1, 2]}"),
    ];
    insta::assert_snapshot!(table(&cases, request), @r#"
    no quantity
        ! containers[1].resources.requests.cpu: `lots` is not a quantity: write a number with an optional suffix m, k, M, G, T, Ki, Mi, Gi or Ti, such as 8, 500m or 80Gi
    an unknown unit
        ! initContainers[0].resources.limits.memory: `8GB` is not a quantity: write a number with an optional suffix m, k, M, G, T, Ki, Mi, Gi or Ti, such as 8, 500m or 80Gi
    below zero
        ! overhead.cpu: must not be negative, and is -1
    too large
        ! containers[0].resources.requests.memory: `8Ei` is too large a quantity
    too large together
        ! resources.memory: the containers together ask for too much
    several at once
        ! containers[0].resources.requests.cpu: `a` is not a quantity: write a number with an optional suffix m, k, M, G, T, Ki, Mi, Gi or Ti, such as 8, 500m or 80Gi
        ! containers[0].resources.requests.memory: `b` is not a quantity: write a number with an optional suffix m, k, M, G, T, Ki, Mi, Gi or Ti, such as 8, 500m or 80Gi
        ! resources.requests.cpu: `c` is not a quantity: write a number with an optional suffix m, k, M, G, T, Ki, Mi, Gi or Ti, such as 8, 500m or 80Gi
    containers are no list
        ! spec.containers: invalid type: map, expected a sequence
    a flag for a quantity
        ! spec.containers: invalid type: boolean `true`, expected a quantity such as 8, 500m or 80Gi
    two fields of the wrong type
        ! spec.priority: invalid type: string "high", expected i32
        ! spec.tolerations: invalid type: string "x", expected a sequence
    no mapping
        ! spec: must be a mapping
    "#);
}

#[test]
fn every_pod_takes_one_pod_slot() {
    let request = PodSpec::default().request(&Default::default(), &GpuNames::default()).unwrap();
    assert_eq!(request.amounts["pods"], 1);
}

#[test]
fn stored_spec_is_written_back_under_the_same_names() {
    let written = crate::yaml(
        "containers: [{name: a, resources: {limits: {cpu: '1'}}, image: dropped}]
schedulerName: muster
schedulingGroup: {podGroupName: g}
workloadRef: {name: w, podGroup: p}
terminationGracePeriodSeconds: 30",
    );
    let spec = PodSpec::read(&written, "spec").unwrap();
    let again = serde_json::to_value(&spec).unwrap();
    assert_eq!(PodSpec::read(&again, "spec").unwrap(), spec);
    insta::assert_snapshot!(again.to_string(), @r#"{"containers":[{"name":"a","resources":{"limits":{"cpu":"1"}}}],"schedulerName":"muster","schedulingGroup":{"podGroupName":"g"},"terminationGracePeriodSeconds":30,"workloadRef":{"name":"w","podGroup":"p"}}"#);
}
