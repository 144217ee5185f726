//! Reads manifests into what the embedded host runs: gangs with the processes of their members, queues, pools, nodes.
//!
//! Muster's own kinds are read as everywhere. Other systems' workloads (Job, PyTorchJob, MPIJob, JobSet, TrainJob, ...)
//! become gangs by the same code as on Kubernetes; the commands of their containers become local processes. Images are not
//! pulled; a warning says so to the owner.

pub(crate) mod manifests;

pub(crate) mod readers;

pub(crate) mod record;

pub(crate) mod object_text;

pub(crate) mod workload;

pub(crate) mod containers;

#[cfg(test)]
mod tests;
