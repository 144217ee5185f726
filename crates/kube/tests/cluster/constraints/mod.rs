//! Pod-level rules that hold for gangs: taints, selectors, ports, inter-pod affinity, topology spread, volumes.

mod node_rules;
mod pod_rules;
mod preferred;
mod provisioned_volumes;
mod static_volumes;
mod zoned_cluster;
