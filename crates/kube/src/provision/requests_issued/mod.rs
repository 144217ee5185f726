//! ProvisioningRequests of other classes: how nodes are asked of an autoscaler.
//!
//! A request is for all nodes of one offering that are asked for together, and is met with all of them or with none.
//! It is never for two offerings: an autoscaler tries one group of nodes after another, and a request that needs two
//! groups is met by neither. Orders that mix them make several requests, and are given up whole all the same.
//!
//! Its only pod set has a pod for each node, which nobody ever makes. Such a pod fills its node, and keeps off every node
//! there is: an autoscaler that finds idle room for all of a request's pods says that it is done, and makes nothing.
//!
//! `requisition` is what is asked for, `marks` whose a node is that came of it. That stands in the node's annotations, not in
//! its labels: autoscalers copy the labels of one node of a group to those that they imagine.

pub(crate) mod assign_nodes;
pub(crate) mod cleanup;
pub(crate) mod create;
pub(crate) mod node_marks;
pub(crate) mod progress;
pub(crate) mod reconcile;
pub(crate) mod recover;
pub(crate) mod registry;
pub(crate) mod request_object;
#[cfg(test)]
pub(crate) mod tests;
