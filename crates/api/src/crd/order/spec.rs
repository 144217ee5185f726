//! `kind: Order`: an intent, written before it is acted on.
//!
//! Whoever finds one after a restart can go on from it: everything is said by names that last, and claims by the
//! numbers their names are made from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crd::definition::{Column, Resource};
use crate::crd::order::status::OrderStatus;
use crate::crd::values::stamp::Stamp;
use crate::crd::values::text::{Label, Name, OfferingName, Text};

/// The nodes that are bought for one gang, all or none of them. Made by Muster.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "!has(oldSelf.status) || !has(oldSelf.status.phase) || oldSelf.status.phase == 'Assembling' || self.spec == oldSelf.spec", "message": "an order that is over does not change"},
]))]
pub struct Order {
    /// What was decided.
    pub spec: OrderSpec,
    /// What became of it.
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

/// What an order asks for, as decided by the planner. While it assembles a claim may give way to another; whom it is
/// for, and until when, never changes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "self.number == oldSelf.number && self.gang == oldSelf.gang && self.deadline == oldSelf.deadline", "message": "an order's number, gang and deadline do not change"},
    {"rule": "has(self.preempts) == has(oldSelf.preempts) && (!has(self.preempts) || self.preempts == oldSelf.preempts)", "message": "the gangs that an order preempts do not change"},
    {"rule": "self.replacedClaims >= oldSelf.replacedClaims", "message": "replaced claims are never taken back"},
]))]
pub struct OrderSpec {
    /// Its number, never used again.
    pub number: u32,
    /// The gang it is for.
    pub gang: GangRef,
    /// The nodes that are asked for. Some may be under way already, or stopped.
    #[serde(default)]
    #[schemars(length(max = 5000), extend("x-kubernetes-list-type" = "atomic"))]
    pub claims: Vec<OrderClaim>,
    /// Where every member goes.
    #[schemars(length(min = 1, max = 20_000), extend("x-kubernetes-list-type" = "atomic"))]
    pub placements: Vec<OrderPlacement>,
    /// When it is given up.
    pub deadline: Stamp,
    /// Gangs that are preempted for it, and the seats they give up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000), extend("x-kubernetes-list-type" = "atomic"))]
    pub preempts: Vec<Preemption>,
    /// Failed claims that were replaced so far.
    #[serde(default)]
    pub replaced_claims: u32,
}

/// A gang.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GangRef {
    /// Its namespace.
    pub namespace: Label,
    /// Its name.
    pub name: Name,
    /// Which of all that ever had this name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<Text>,
}

/// The request for one node.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct OrderClaim {
    /// Its number, never used again.
    pub id: u32,
    /// Its name, the same on every try.
    pub name: Name,
    /// The pool it is asked of.
    pub pool: Name,
    /// What is asked for: `instanceType/zone/capacityType`.
    pub offering: OfferingName,
}

/// A seat for one member, or for several that differ in nothing: on a node that is here, or on one that is coming.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "has(self.node) != has(self.claim)", "message": "a seat is on a node or on a claim"},
]))]
pub struct OrderPlacement {
    /// The role.
    pub role: Label,
    /// How many members; one where there are devices.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 65535))]
    pub members: u16,
    /// The node that is here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<Name>,
    /// The claim whose node is coming.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim: Option<u32>,
    /// Which of the node's GPUs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(range(min = 0, max = 63)), extend("x-kubernetes-list-type" = "atomic"))]
    pub devices: Vec<u8>,
}

/// Seats that a gang gives up for another.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Preemption {
    /// Who gives them up.
    pub gang: GangRef,
    /// Which. All it has if it is stopped.
    #[schemars(length(max = 1000), extend("x-kubernetes-list-type" = "atomic"))]
    pub placements: Vec<PreemptedPlacement>,
    /// Why it is stopped; it goes on with the members it has left when nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<StopFor>,
}

/// A seat that is given up.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PreemptedPlacement {
    /// The role.
    pub role: Label,
    /// How many members; one where there are devices.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 65535))]
    pub members: u16,
    /// The node.
    pub node: Name,
    /// Which of the node's GPUs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(range(min = 0, max = 63)), extend("x-kubernetes-list-type" = "atomic"))]
    pub devices: Vec<u8>,
}

/// Why a gang is stopped for another's sake.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub enum StopFor {
    /// The order's gang has a higher priority.
    Preempted,
    /// It runs on what was lent, and the order's gang belongs to those who lent it.
    Reclaimed,
    /// Its slice of time is over, and it is the turn of the order's gang.
    Rotated,
    /// It fits elsewhere, and may be moved.
    Moved,
}

fn one() -> u16 {
    1
}
