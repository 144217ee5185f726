//! Gangs without a declaration: derives the roles of a gang from the spec of the workload that owns its pods.
//!
//! One file per operator, each translating an object into roles with their pod templates. A host that sees a pod
//! follows its owners, takes the topmost known one ([`gang_owner`]), and reads the whole gang from it before half of
//! its pods exist.

pub(crate) mod kind;
mod owner;
pub(crate) mod template;

mod pods;

mod job;
mod jobset;
mod kubeflow;
mod mpi;
mod trainjob;

mod ray;

mod lws;

pub use kind::{
    WorkloadKind, WorkloadRole, comes_in_stages, index_of_pod, is_over, is_suspended, kind_of,
    kinds, role_of_pod, roles,
};
pub use owner::{GangOwner, OwnerRef, gang_owner, named_owner};
pub use template::run_of;
