//! `kind: Order`: a decision of the planner, stored before it is executed.
//!
//! After a restart Muster continues from stored Orders: they refer to everything by stable names, and to claims by the
//! numbers their names are made from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crd::definition::{Column, Resource};
use crate::crd::order::status::OrderStatus;
use crate::crd::values::stamp::Stamp;
use crate::crd::values::text::{Label, Name, OfferingName, Text};

/// The nodes that are bought for one gang, all or none of them. Created by Muster.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "!has(oldSelf.status) || !has(oldSelf.status.phase) || oldSelf.status.phase == 'Assembling' || self.spec == oldSelf.spec", "message": "an order that is over does not change"},
]))]
pub struct Order {
    /// The decision of the planner.
    pub spec: OrderSpec,
    /// The state of the order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<OrderStatus>,
}

impl Resource for Order {
    const KIND: &'static str = "Order";
    const PLURAL: &'static str = "orders";
    const SHORT: &'static str = "mo";
    const COLUMNS: &'static [Column] = &[
        Column::text("Namespace", ".spec.gang.namespace").when_wide(),
        Column::text("Gang", ".spec.gang.name"),
        Column::text("Phase", ".status.phase"),
        Column::text("Ready", ".status.progress"),
        Column::text("Deadline", ".spec.deadline"),
        Column::AGE,
    ];
}

/// What an order requests, as decided by the planner. A claim may be replaced by another while the order assembles; its
/// gang and its deadline never change.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "self.number == oldSelf.number && self.gang == oldSelf.gang && self.deadline == oldSelf.deadline", "message": "an order's number, gang and deadline do not change"},
    {"rule": "has(self.preempts) == has(oldSelf.preempts) && (!has(self.preempts) || self.preempts == oldSelf.preempts)", "message": "the gangs that an order preempts do not change"},
    {"rule": "self.replacedClaims >= oldSelf.replacedClaims", "message": "replaced claims are never taken back"},
]))]
pub struct OrderSpec {
    /// The number of the order, never reused.
    pub number: u32,
    /// The gang that the order is for.
    pub gang: GangRef,
    /// The claims of the order, one per node. Some of the nodes may be booting already, or be stopped.
    #[serde(default)]
    #[schemars(length(max = 5000), extend("x-kubernetes-list-type" = "atomic"))]
    pub claims: Vec<OrderClaim>,
    /// The placement of every member.
    #[schemars(length(min = 1, max = 20_000), extend("x-kubernetes-list-type" = "atomic"))]
    pub placements: Vec<OrderPlacement>,
    /// When the order is rolled back if it is not complete.
    pub deadline: Stamp,
    /// Gangs that are preempted for the order, and the seats they give up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000), extend("x-kubernetes-list-type" = "atomic"))]
    pub preempts: Vec<Preemption>,
    /// The number of failed claims that have been replaced.
    #[serde(default)]
    pub replaced_claims: u32,
}

/// A reference to a gang.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GangRef {
    /// The namespace of the gang.
    pub namespace: Label,
    /// The name of the gang.
    pub name: Name,
    /// The UID of the gang, which tells it from others that had the same name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<Text>,
}

/// A request for one node.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct OrderClaim {
    /// The number of the claim, never reused.
    pub id: u32,
    /// The name of the claim, the same on every retry.
    pub name: Name,
    /// The pool that provides the node.
    pub pool: Name,
    /// The offering: `instanceType/zone/capacityType`.
    pub offering: OfferingName,
}

/// A seat for one member, or for several identical ones, on an existing node or on the node of a claim.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "has(self.node) != has(self.claim)", "message": "a seat is on a node or on a claim"},
]))]
pub struct OrderPlacement {
    /// The role of the members.
    pub role: Label,
    /// The number of members; 1 where devices are given.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 65535))]
    pub members: u16,
    /// The existing node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<Name>,
    /// The claim whose node will hold the members.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim: Option<u32>,
    /// The indexes of the node's GPUs that are used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(range(min = 0, max = 63)), extend("x-kubernetes-list-type" = "atomic"))]
    pub devices: Vec<u8>,
}

/// Seats that a preempted gang gives up.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Preemption {
    /// The gang that is preempted.
    pub gang: GangRef,
    /// The seats it gives up; all of its seats if it is stopped.
    #[schemars(length(max = 1000), extend("x-kubernetes-list-type" = "atomic"))]
    pub placements: Vec<PreemptedPlacement>,
    /// Why the gang is stopped. When absent, it keeps running with its remaining members.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<StopFor>,
}

/// A seat that is given up.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PreemptedPlacement {
    /// The role of the members.
    pub role: Label,
    /// The number of members; 1 where devices are given.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 65535))]
    pub members: u16,
    /// The node of the seat.
    pub node: Name,
    /// The indexes of the node's GPUs that are given up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(range(min = 0, max = 63)), extend("x-kubernetes-list-type" = "atomic"))]
    pub devices: Vec<u8>,
}

/// Why a gang is stopped for another.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub enum StopFor {
    /// The order's gang has a higher priority.
    Preempted,
    /// The gang runs on capacity that the queue of the order's gang had lent.
    Reclaimed,
    /// The gang's time slice is over, and the order's gang is next.
    Rotated,
    /// The gang can be moved, and fits on other nodes.
    Moved,
}

fn one() -> u16 {
    1
}
