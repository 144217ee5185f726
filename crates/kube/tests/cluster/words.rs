//! Manifests, as short as tests want them.

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
