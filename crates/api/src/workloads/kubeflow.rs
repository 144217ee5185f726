//! Jobs of Kubeflow's Training Operator. They differ in the name of the field that lists their replicas.

use crate::foreign::json::Json;
use crate::workloads::kind::{WorkloadKind, WorkloadRole};
use crate::workloads::template::role;

pub(crate) const ROLE: &str = "training.kubeflow.org/replica-type";
pub(crate) const INDEX: &str = "training.kubeflow.org/replica-index";

pub(crate) fn roles(kind: WorkloadKind, spec: &Json<'_>) -> Vec<WorkloadRole> {
    let field = match kind {
        WorkloadKind::PyTorchJob => "pytorchReplicaSpecs",
        WorkloadKind::TfJob => "tfReplicaSpecs",
        WorkloadKind::XgBoostJob => "xgbReplicaSpecs",
        WorkloadKind::PaddleJob => "paddleReplicaSpecs",
        WorkloadKind::JaxJob => "jaxReplicaSpecs",
        _ => "mpiReplicaSpecs",
    };
    let mut roles = replicas(spec, field);
    if let Some(elastic) = spec.get("elasticPolicy") {
        bounds(&elastic, &mut roles);
    }
    roles
}

/// One role per replica type, named as in the operator's labels: in lower case.
pub(crate) fn replicas(spec: &Json<'_>, field: &str) -> Vec<WorkloadRole> {
    if spec.need(field).is_none() {
        return Vec::new();
    }
    let read = |(name, replica): &(&str, Json<'_>)| {
        let count = replica.count("replicas").unwrap_or(1);
        if count == 0 {
            return None;
        }
        role(&name.to_lowercase(), count, replica, "template")
    };
    spec.pairs(field).iter().filter_map(read).collect()
}

/// An elastic job has bounds on its number of workers; its master, if it has one, stays.
fn bounds(elastic: &Json<'_>, roles: &mut [WorkloadRole]) {
    let (least, most) = (elastic.count("minReplicas"), elastic.count("maxReplicas"));
    if let (Some(low), Some(high)) = (least, most)
        && low > high
    {
        elastic.error(format!("minReplicas {low} is above maxReplicas {high}"));
        return;
    }
    if let Some(workers) = roles.iter_mut().find(|role| role.name == "worker") {
        workers.min = least.filter(|least| *least < workers.count);
        workers.max = most.filter(|most| *most > workers.count);
    }
}
