//! Translates pod-level rules (ports, inter-pod affinity, topology spread, volumes) into what the planner supports:
//! node requirements, per-node tokens, or a reason to wait.
//!
//! - A limit on how many pods may have something of one node (a host port, anti-affinity by hostname, a free volume, an
//!   attachment) becomes a *token*: a resource of which every node has the same amount (`tokens`), or as much as there
//!   is of it (`volumes::node_capacity`).
//! - A rule that depends on where other pods are becomes a requirement on node labels (`pod_affinity`,
//!   `pod_anti_affinity`, `topology_spread`, `volumes`). It holds for an instant only, so a gang with such rules is
//!   built again before it is admitted, and whenever a change may affect it (`invalidate`).
//! - A rule that can be expressed neither way becomes a reason to wait, which is reported in the gang's status.
//!
//! Preferred rules (`preferred`) become preferences; no gang waits for them.
//!
//! Deliberately not here: devices by ResourceClaims, and node selectors, node affinity and tolerations, which the
//! planner supports as they are.

pub(crate) mod resolve;

pub(crate) mod cluster_view;
pub(crate) mod pod_constraints;
pub(crate) mod selector;
pub(crate) mod tokens;

pub(crate) mod host_ports;
pub(crate) mod pod_affinity;
pub(crate) mod pod_anti_affinity;
pub(crate) mod preferred;
pub(crate) mod topology_spread;
pub(crate) mod volumes;

pub(crate) mod index;
pub(crate) mod invalidate;
