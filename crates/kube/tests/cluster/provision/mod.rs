//! Buys, keeps and releases nodes: Karpenter NodeClaims, requests to an autoscaler, ProvisioningRequests of users.

mod autoscaler_pools;
mod cancelled_orders;
mod node_claims;
mod proactive;
mod provisioning_requests;
mod whole_orders;
