pub(crate) mod job;
pub(crate) mod jobset;
pub(crate) mod kind;
pub(crate) mod kubeflow;
pub(crate) mod lws;
pub(crate) mod mpi;
pub(crate) mod owner;
pub(crate) mod pods;
pub(crate) mod ray;
pub(crate) mod template;
pub(crate) mod trainjob;

pub use kind::{
    WorkloadKind, WorkloadRole, comes_in_stages, index_of_pod, is_over, is_suspended, kind_of,
    kinds, role_of_pod, roles,
};
pub use owner::{GangOwner, OwnerRef, gang_owner, named_owner};
pub use template::run_of;
