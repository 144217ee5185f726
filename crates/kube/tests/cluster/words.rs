//! Manifests, as short as tests want them.

use muster_testkit::cluster::UID_OF_OWNER;

use crate::observer::{GANG, LEAST};

/// A pool of 8-GPU nodes in two zones.
pub(crate) const POOL: &str = "
apiVersion: muster.sh/v1alpha1
kind: Pool
metadata: {name: gpu}
spec:
  tier: on-demand
  provider: {karpenter: {nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}}}
  offerings:
  - {instanceType: gpu8, zone: zone-a, capacityType: on-demand, price: 98, gpu: {model: H100, memory: 80Gi, count: 8}, allocatable: {cpu: 190, memory: 1900Gi}, bootTime: 10s}
  - {instanceType: gpu8, zone: zone-b, capacityType: on-demand, price: 98, gpu: {model: H100, memory: 80Gi, count: 8}, allocatable: {cpu: 190, memory: 1900Gi}, bootTime: 10s}
  limits: {nodes: 16}
  idleAfter: 10s
";

/// The queue of everybody takes the word of Gangs for their priority.
pub(crate) const PRIORITIES: &str = "
apiVersion: muster.sh/v1alpha1
kind: Queue
metadata: {name: default}
spec: {maxPriority: 1000}
";

/// Pods that may stop others.
pub(crate) const HIGH: &str = "
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 1000
";

/// A Job of so many pods with so many GPUs each, that the observer knows as one gang.
pub(crate) fn job(name: &str, pods: u32, gpus: u32) -> String {
    format!(
        "
apiVersion: batch/v1
kind: Job
metadata: {{name: {name}, namespace: default}}
spec:
  parallelism: {pods}
  completions: {pods}
  completionMode: Indexed
  template:
    metadata: {{labels: {{{GANG}: {name}}}, annotations: {{{LEAST}: '{pods}'}}}}
    spec:
      schedulerName: muster
      restartPolicy: Never
      containers:
      - name: worker
        image: none
        resources: {{limits: {{nvidia.com/gpu: {gpus}}}, requests: {{cpu: 1}}}}
"
    )
}

/// A Gang that has its workers made, with so many GPUs each; it may run with no fewer than `least`. The size of its role
/// and more of its spec as they are written in YAML.
pub(crate) fn gang(name: &str, size: &str, least: u32, gpus: u32, more: &str) -> String {
    format!(
        "
---
apiVersion: muster.sh/v1alpha1
kind: Gang
metadata: {{name: {name}, namespace: default}}
spec:
  {more}
  roles:
  - {{name: worker, {size}, resources: {{nvidia.com/gpu: {gpus}, cpu: 1}}, template: {{
      metadata: {{labels: {{{GANG}: {name}}}, annotations: {{{LEAST}: '{least}'}}}},
      spec: {{containers: [{{name: worker, image: none}}]}}}}}}
"
    )
}

/// A node with 8 GPUs that kwok plays.
pub(crate) fn node(name: &str) -> String {
    format!(
        "
apiVersion: v1
kind: Node
metadata: {{name: {name}, labels: {{kubernetes.io/hostname: {name}}}, annotations: {{kwok.x-k8s.io/node: fake}}}}
status:
  allocatable: {{cpu: 64, memory: 512Gi, nvidia.com/gpu: 8, pods: 110}}
  capacity: {{cpu: 64, memory: 512Gi, nvidia.com/gpu: 8, pods: 110}}
"
    )
}

/// A node with 8 GPUs that is ready and that nobody plays: pods on it neither end nor begin. It is taken for dead after
/// about a minute.
pub(crate) fn still_node(name: &str) -> String {
    let ready = "conditions: [{type: Ready, status: 'True', reason: Said, message: said, lastTransitionTime: '2026-01-01T00:00:00Z'}]";
    let status = format!("status:\n  {ready}");
    node(name).replace(", annotations: {kwok.x-k8s.io/node: fake}", "").replace("status:", &status)
}

/// A pod with so many GPUs and these marks: labels, annotations, and fields of its spec.
pub(crate) fn pod(name: &str, gpus: u32, labels: &str, annotations: &str, spec: &str) -> String {
    format!(
        "
---
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: default, labels: {{{labels}}}, annotations: {{{annotations}}}}}
spec:
  schedulerName: muster
  {spec}
  containers:
  - name: worker
    image: none
    resources: {{limits: {{nvidia.com/gpu: {gpus}}}, requests: {{cpu: 1}}}}
"
    )
}

/// The same, made by another object: its version, kind and name.
pub(crate) fn owned(yaml: &str, (version, kind, name): (&str, &str, &str)) -> String {
    let owner = format!(
        "ownerReferences: [{{apiVersion: {version}, kind: {kind}, name: {name}, uid: {UID_OF_OWNER}, controller: true}}],"
    );
    yaml.replacen("metadata: {", &format!("metadata: {{{owner} "), 1)
}

/// A definition that takes anything, for kinds whose own operators are not here.
pub(crate) fn crd(group: &str, version: &str, kind: &str, plural: &str, status: bool) -> String {
    let subresources = if status { "subresources: {status: {}}" } else { "" };
    let singular = kind.to_lowercase();
    format!(
        "
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: {plural}.{group}, annotations: {{api-approved.kubernetes.io: 'unapproved, for tests'}}}}
spec:
  group: {group}
  names: {{kind: {kind}, plural: {plural}, singular: {singular}, listKind: {kind}List}}
  scope: Namespaced
  versions:
  - name: {version}
    served: true
    storage: true
    {subresources}
    schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}
"
    )
}
