//! MPIJob of the MPI Operator (`v2beta1`): a launcher that runs as a Job, and workers.
//!
//! The launcher may be created last (`launcherCreationPolicy: WaitForWorkersReady`), so a scheduler that waits for all
//! pods to exist waits forever (kubedl#180). Its seat is planned from the start, as for any other role.

use crate::foreign::json::Json;
use crate::workloads::kind::WorkloadRole;
use crate::workloads::kubeflow::replicas;

pub(crate) const ROLE: &str = "training.kubeflow.org/job-role";

pub(crate) fn roles(spec: &Json<'_>) -> Vec<WorkloadRole> {
    replicas(spec, "mpiReplicaSpecs")
}
