//! Where members may run and what keeps others off a node, written as in a pod and on a node.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crd::values::text::{Key, LabelValue, Text};

/// What members ask of nodes. Only affinity to nodes is read.
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
    /// Nodes that members rather run on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20), extend("x-kubernetes-list-type" = "atomic"))]
    pub preferred_during_scheduling_ignored_during_execution: Vec<Preference>,
}

/// Nodes that meet one of these terms.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeSelector {
    /// The terms, of which one must be met.
    #[schemars(length(min = 1, max = 20), extend("x-kubernetes-list-type" = "atomic"))]
    pub node_selector_terms: Vec<Term>,
}

/// A term, and how much it counts.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Preference {
    /// How much it counts.
    #[schemars(range(min = 1, max = 100))]
    pub weight: i32,
    /// What is preferred.
    pub preference: Term,
}

/// Expressions, all of which must be met.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Term {
    /// The expressions, all of which must be met.
    #[schemars(length(min = 1, max = 20), extend("x-kubernetes-list-type" = "atomic"))]
    pub match_expressions: Vec<Expression>,
}

/// A label, and what it must be.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "!(self.operator in ['In', 'NotIn']) || (has(self.values) && self.values.size() > 0)", "message": "`In` and `NotIn` need at least one value"},
    {"rule": "!(self.operator in ['Exists', 'DoesNotExist']) || !has(self.values) || self.values.size() == 0", "message": "values must be left out with `Exists` and `DoesNotExist`"},
    {"rule": "!(self.operator in ['Gt', 'Lt']) || (has(self.values) && self.values.size() == 1)", "message": "`Gt` and `Lt` need one whole number in quotes"},
]))]
pub struct Expression {
    /// The label.
    pub key: Key,
    /// What it must be.
    pub operator: Operator,
    /// What it is compared with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub values: Vec<Text>,
}

/// What a label must be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub enum Operator {
    /// One of the values.
    In,
    /// None of the values; it may be absent.
    NotIn,
    /// There.
    Exists,
    /// Absent.
    DoesNotExist,
    /// A number above the value.
    Gt,
    /// A number below the value.
    Lt,
}

/// Taints that do not keep members off a node.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "!has(self.value) || !has(self.operator) || self.operator != 'Exists'", "message": "value must be left out with the operator `Exists`"},
    {"rule": "has(self.key) || (has(self.operator) && self.operator == 'Exists')", "message": "needs a key, or the operator `Exists` to tolerate every taint"},
]))]
pub struct Toleration {
    /// The taint's key; every taint when it is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<Key>,
    /// How the taint's value is looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator: Option<TaintOperator>,
    /// The taint's value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<LabelValue>,
    /// The taint's effect; every effect when it is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<Effect>,
    /// For how long. Accepted, not acted on yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub toleration_seconds: Option<i64>,
}

/// How a toleration looks at a taint's value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub enum TaintOperator {
    /// It must be the same.
    Equal,
    /// It may be anything.
    Exists,
}

/// What keeps members off a node that do not tolerate it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Taint {
    /// Its key.
    pub key: Key,
    /// Its value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<LabelValue>,
    /// What it does.
    pub effect: Effect,
}

/// What a taint does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub enum Effect {
    /// Nobody new comes.
    NoSchedule,
    /// Nobody new comes if there is another node.
    PreferNoSchedule,
    /// Nobody new comes, and those who are there go.
    NoExecute,
}
