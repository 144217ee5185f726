//! Requests nodes that gangs were promised, follows each one until it is ready, and releases it when it is idle.
//!
//! Reading order:
//! - `pools`: which nodes may be requested, and from which provider.
//! - `orders` and `order_object`: an order is stored before any of its claims is requested.
//! - One node of a Karpenter pool: `karpenter` is the NodeClaim as it is written, `node_claim_create` creates and deletes
//!   it, `node_claims` is the rule for launched, failed and gone, `node_readiness` the rule for registered and ready.
//! - `node_spec`: a node as the planner sees it. `idle_nodes`: since when it is unused.
//! - `requests_issued`: the same for pools whose nodes an autoscaler makes on a ProvisioningRequest.
//! - `requests_served`: ProvisioningRequests of other systems that Muster serves.
//!
//! Not here: which nodes to buy and when to give them up, which the planner decides; and the timeouts of a claim (launch, join,
//! initialization), which the World keeps by its clock.

pub(crate) mod pools;

pub(crate) mod order_object;
pub(crate) mod orders;

pub mod karpenter;
pub(crate) mod node_claim_create;
pub(crate) mod node_claims;
pub(crate) mod node_readiness;
pub(crate) mod node_spec;

pub(crate) mod idle_nodes;

pub(crate) mod requests_issued;
pub(crate) mod requests_served;
