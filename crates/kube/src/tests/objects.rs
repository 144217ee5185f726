//! Builders of short Kubernetes objects.

use serde_json::{Value, json};

/// A ready node with 8 GPUs.
pub(crate) fn node(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {
            "allocatable": {"cpu": "190", "memory": "1900Gi", "nvidia.com/gpu": "8", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    })
}

/// The node of a claim of [`pool`].
pub(crate) fn bought_node(claim: u32) -> Value {
    let mut node = node(&format!("node-{claim}"));
    let labels = json!({
        "kubernetes.io/hostname": format!("node-{claim}"),
        "muster.sh/claim": claim.to_string(), "muster.sh/pool": "gpu",
        "topology.kubernetes.io/zone": "zone-a", "node.kubernetes.io/instance-type": "gpu8",
        "karpenter.sh/capacity-type": "on-demand",
    });
    node["metadata"]["labels"] = labels;
    node
}

/// A Karpenter pool of nodes with 8 GPUs.
pub(crate) fn pool() -> Value {
    json!({
        "apiVersion": "muster.sh/v1alpha1", "kind": "Pool",
        "metadata": {"name": "gpu", "uid": "pool"},
        "spec": {
            "tier": "on-demand",
            "provider": {"karpenter": {"nodeClassRef": {"group": "g", "kind": "k", "name": "n"}}},
            "offerings": [{
                "instanceType": "gpu8", "zone": "zone-a", "capacityType": "on-demand", "price": 98,
                "gpu": {"model": "H100", "memory": "80Gi", "count": 8},
                "allocatable": {"cpu": 190, "memory": "1900Gi"}, "bootTime": "10s",
            }],
            "idleAfter": "1s",
        },
    })
}

/// A NodeClaim of that pool.
pub(crate) fn claim(id: u32) -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": {
            "name": format!("muster-{id}"),
            "labels": {"muster.sh/claim": id.to_string(), "muster.sh/pool": "gpu"},
            "annotations": {"muster.sh/offering": "gpu8/zone-a/on-demand"},
        },
        "status": {
            "nodeName": format!("node-{id}"),
            "conditions": [{"type": "Launched", "status": "True"}],
        },
    })
}

/// A Job of this many pods that run together.
pub(crate) fn job(name: &str, pods: u32) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": name, "namespace": "team", "uid": name},
        "spec": {
            "parallelism": pods, "completions": pods, "completionMode": "Indexed",
            "template": {"spec": spec()},
        },
    })
}

/// A pod with 8 GPUs, owned by an object of this version, kind and name.
pub(crate) fn pod(name: &str, (version, kind, owner): (&str, &str, &str)) -> Value {
    let mut pod = single_pod(name);
    pod["metadata"]["ownerReferences"] = json!([{
        "apiVersion": version, "kind": kind, "name": owner, "uid": owner, "controller": true,
    }]);
    pod
}

/// A pod with 8 GPUs and no owner.
pub(crate) fn single_pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "team", "uid": name},
        "spec": spec(),
        "status": {"phase": "Pending"},
    })
}

/// The spec of a pod with 8 GPUs.
pub(crate) fn spec() -> Value {
    json!({
        "schedulerName": "muster",
        "containers": [{"name": "worker", "resources": {
            "limits": {"nvidia.com/gpu": "8"}, "requests": {"cpu": "1", "nvidia.com/gpu": "8"},
        }}],
    })
}

/// The owner reference of a Job's pods.
pub(crate) fn of_job(job: &str) -> (&str, &str, &str) {
    ("batch/v1", "Job", job)
}
