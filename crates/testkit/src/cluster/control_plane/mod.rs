//! The control plane: etcd, kube-apiserver, their credentials, and the identities that may use them.

pub(super) mod commands;
pub(super) mod credentials;

mod role;
mod version;

pub(super) mod client;

pub use commands::AUDIT;
pub use role::Role;
pub use version::Version;
