//! A fresh Kubernetes on loopback: etcd, kube-apiserver, and on request controllers, scheduler, kwok and Karpenter.
//!
//! Everything is the real program. RBAC is on, and every [`Role`] has a token of its own, so that a missing permission
//! shows in a test and not at a user's. Nodes are fake (kwok), since nothing here can run a container.
//!
//! A cluster is removed when it is dropped, when its test panics, and when the test's process is killed.

mod setup;
mod start;

mod control_plane;
mod parts;
mod process;

mod install;

mod skip;
mod until;

pub use control_plane::{AUDIT, Role, Version};
pub use install::{ApplyError, HelmError, Release, UID_OF_OWNER, objects};
pub use parts::Part;
pub use setup::Setup;
pub use start::{Cluster, StartError};
