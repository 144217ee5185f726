//! Audits a test from outside: an own watch, own records, and a finding for each promise that was broken.
//!
//! [`watch`] reads the API server, [`snapshot`] keeps what was read, [`audit`] runs the checks, and `promises` has a file for
//! each promise. It reads only what any client can read, asks the product nothing, and uses none of its code but the parser of
//! quantities.
//!
//! Not checked, since it is not visible from outside: the queues of other dialects, limits of single users, and the order of
//! the queue.

mod audit;
mod free_capacity;
mod gang_membership;
mod observed_cluster;
mod pod_fields;
mod promises;
mod snapshot;
mod suspected;
mod watch;

pub(crate) use gang_membership::{GANG, LEAST};
pub(crate) use observed_cluster::ObservedCluster;
pub(crate) use promises::ready_since;
pub(crate) use watch::{Kind, Observer};
