//! Requests nodes from an autoscaler: ProvisioningRequests that Muster itself writes, for pools whose provider is
//! `provisioningRequest`.
//!
//! One request is for all nodes of one offering that are requested together, and is provisioned as a whole or not at all. It
//! never spans two offerings: an autoscaler tries one node group after another, and a request that needs two groups is
//! satisfied by neither. Orders that mix offerings issue several requests, and are rolled back as a whole all the same.
//!
//! The only pod set of a request has one pod per node, which is never created. Such a pod fills its node and has
//! anti-affinity to every existing node: an autoscaler that finds free capacity for all pods of a request reports it as
//! provisioned, and makes no node.
//!
//! An autoscaler never says which nodes it made for a request. A node that appears while a request is open and matches its
//! offering is assigned to one of its claims, by annotations written before the node is used. These are annotations, not
//! labels: autoscalers copy the labels of one node of a group to the nodes that they simulate.
//!
//! Reading order: [`registry`] has the state, [`request_object`] and [`create`] the request, [`progress`] and [`reconcile`]
//! its conditions, [`node_annotations`] and [`assign_nodes`] its nodes, [`cleanup`] its deletion, [`recover`] a restart.
//!
//! Not here: deleting nodes. They are the autoscaler's; Muster protects them from scale-down and releases them.

pub(crate) mod registry;

pub(crate) mod create;
pub(crate) mod request_object;

pub(crate) mod progress;
pub(crate) mod reconcile;

pub(crate) mod assign_nodes;
pub(crate) mod node_annotations;

pub(crate) mod cleanup;
pub(crate) mod recover;

#[cfg(test)]
pub(crate) mod tests;
