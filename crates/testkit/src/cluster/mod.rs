//! A fresh Kubernetes on loopback: etcd, kube-apiserver, and on request those who make it move.
//!
//! Everything is the real program. RBAC is on, and every [`Role`] has a token of its own, so that a missing right
//! shows in a test and not at a user's. Nodes are pretended (kwok), since nothing here can run a container.
//!
//! A cluster is gone when it is dropped, when its test panics, and when the test's process is killed.

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
