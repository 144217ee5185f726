//! A fresh Kubernetes on loopback: etcd, kube-apiserver, and on request those who make it move.
//!
//! Everything is the real program. RBAC is on, and every [`Role`] has a token of its own, so that a missing right
//! shows in a test and not at a user's. Nodes are pretended (kwok), since nothing here can run a container.
//!
//! A cluster is gone when it is dropped, when its test panics, and when the test's process is killed.

mod apply;
mod client;
mod component;
mod credentials;
mod definitions;
mod helm;
mod parts;
mod plane;
mod ports;
mod reaper;
mod role;
mod running;
mod setup;
mod skip;
mod start;
mod until;
mod version;

pub use apply::{ApplyError, UID_OF_OWNER, objects};
pub use helm::{HelmError, Release};
pub use parts::Part;
pub use plane::AUDIT;
pub use role::Role;
pub use setup::Setup;
pub use start::{Cluster, StartError};
pub use version::Version;
