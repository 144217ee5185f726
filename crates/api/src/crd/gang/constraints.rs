//! Where members may run, and the taints of nodes, written as in a pod and on a node.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crd::values::text::{Key, LabelValue, Text};

/// Affinity of members. Only affinity to nodes is read.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Affinity {
    /// Nodes that members must or should run on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_affinity: Option<NodeAffinity>,
}

/// Nodes that members must or should run on.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeAffinity {
    /// Nodes that members must run on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub required_during_scheduling_ignored_during_execution: Option<NodeSelector>,
    /// Nodes that members prefer to run on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20), extend("x-kubernetes-list-type" = "atomic"))]
    pub preferred_during_scheduling_ignored_during_execution: Vec<Preference>,
}

/// Nodes that match at least one of these terms.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeSelector {
    /// The terms, of which at least one must match.
    #[schemars(length(min = 1, max = 20), extend("x-kubernetes-list-type" = "atomic"))]
    pub node_selector_terms: Vec<Term>,
}

/// A term and its weight.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Preference {
    /// The weight of the term.
    #[schemars(range(min = 1, max = 100))]
    pub weight: i32,
    /// The preferred term.
    pub preference: Term,
}

/// Expressions, all of which must match.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Term {
    /// The expressions, all of which must match.
    #[schemars(length(min = 1, max = 20), extend("x-kubernetes-list-type" = "atomic"))]
    pub match_expressions: Vec<Expression>,
}

/// A requirement for one label.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "!(self.operator in ['In', 'NotIn']) || (has(self.values) && self.values.size() > 0)", "message": "`In` and `NotIn` need at least one value"},
    {"rule": "!(self.operator in ['Exists', 'DoesNotExist']) || !has(self.values) || self.values.size() == 0", "message": "values must be left out with `Exists` and `DoesNotExist`"},
    {"rule": "!(self.operator in ['Gt', 'Lt']) || (has(self.values) && self.values.size() == 1)", "message": "`Gt` and `Lt` need one whole number in quotes"},
]))]
pub struct Expression {
    /// The key of the label.
    pub key: Key,
    /// How the label is compared with the values.
    pub operator: Operator,
    /// The values to compare with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub values: Vec<Text>,
}

/// How a label is compared with values.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub enum Operator {
    /// The label has one of the values.
    In,
    /// The label has none of the values, or is absent.
    NotIn,
    /// The label is present.
    Exists,
    /// The label is absent.
    DoesNotExist,
    /// The label is a number above the value.
    Gt,
    /// The label is a number below the value.
    Lt,
}

/// Taints that members tolerate.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "!has(self.value) || !has(self.operator) || self.operator != 'Exists'", "message": "value must be left out with the operator `Exists`"},
    {"rule": "has(self.key) || (has(self.operator) && self.operator == 'Exists')", "message": "needs a key, or the operator `Exists` to tolerate every taint"},
]))]
pub struct Toleration {
    /// The key of the taint; every taint when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<Key>,
    /// How the value of the taint is compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator: Option<TaintOperator>,
    /// The value of the taint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<LabelValue>,
    /// The effect of the taint; every effect when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<Effect>,
    /// How long the taint is tolerated. Accepted, not acted on yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub toleration_seconds: Option<i64>,
}

/// How a toleration compares the value of a taint.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub enum TaintOperator {
    /// The value must be the same.
    Equal,
    /// Any value matches.
    Exists,
}

/// A taint, which keeps members off a node unless they tolerate it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Taint {
    /// The key of the taint.
    pub key: Key,
    /// The value of the taint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<LabelValue>,
    /// The effect of the taint.
    pub effect: Effect,
}

/// The effect of a taint.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub enum Effect {
    /// New pods are not scheduled onto the node.
    NoSchedule,
    /// New pods are scheduled onto the node only if no other node fits.
    PreferNoSchedule,
    /// New pods are not scheduled onto the node, and running ones are evicted.
    NoExecute,
}
