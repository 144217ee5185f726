//! PersistentVolumeClaims of pods: which nodes can reach or provision their volumes, which static PersistentVolumes
//! they get (`WaitForFirstConsumer`), how many volumes a node can attach, and binding the claims before the pods.
//!
//! `claims` turns the state of each PersistentVolumeClaim (PVC) into node requirements. `static_volumes` has members go
//! where free PersistentVolumes are, and `attach_limits` counts what members attach; both take tokens, of which
//! `node_capacity` says how much each node has. Once a gang has its seats, `binding` binds its claims: it writes the
//! claim ref of a static volume (`claim_ref`) or the selected node for the provisioner. `index` and `lister` give
//! access to the volumes seen so far.
//!
//! Deliberately not here: volumes that a pod describes in place, and the attaching and mounting itself.

pub(crate) mod claims;
pub(crate) mod static_volumes;
pub(crate) mod volume;

pub(crate) mod attach_limits;
pub(crate) mod node_capacity;

pub(crate) mod binding;
pub(crate) mod claim_ref;

pub(crate) mod index;
pub(crate) mod lister;
