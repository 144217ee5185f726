//! Node affinity, pod affinity and anti-affinity, label selectors and topology spread constraints of a pod's spec.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::pod::lenient::or_default;

/// A pod's node affinity, pod affinity and pod anti-affinity.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", expecting = "a mapping")]
pub struct Affinity {
    /// Nodes it must or should run on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_affinity: Option<NodeAffinity>,
    /// Pods it must or should be near.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_affinity: Option<PodAffinity>,
    /// Pods whose domains it must or should avoid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_anti_affinity: Option<PodAffinity>,
}

/// Nodes a pod must or should run on.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", expecting = "a mapping")]
pub struct NodeAffinity {
    /// What must hold.
    #[serde(
        default,
        rename = "requiredDuringSchedulingIgnoredDuringExecution",
        skip_serializing_if = "Option::is_none"
    )]
    pub required: Option<NodeSelector>,
    /// What should hold.
    #[serde(
        default,
        rename = "preferredDuringSchedulingIgnoredDuringExecution",
        deserialize_with = "or_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub preferred: Vec<PreferredSchedulingTerm>,
}

/// Terms of which one must hold.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", expecting = "a mapping")]
pub struct NodeSelector {
    /// The terms; none of them is a selector that matches nothing.
    #[serde(default, deserialize_with = "or_default")]
    pub node_selector_terms: Vec<NodeSelectorTerm>,
}

/// A preferred node term, with a weight.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", expecting = "a mapping")]
pub struct PreferredSchedulingTerm {
    /// How much it counts, 1 to 100.
    #[serde(default, deserialize_with = "or_default")]
    pub weight: i64,
    /// What should hold.
    #[serde(default, deserialize_with = "or_default")]
    pub preference: NodeSelectorTerm,
}

/// Expressions that must all hold; without any, it matches nothing.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", expecting = "a mapping")]
pub struct NodeSelectorTerm {
    /// About the node's labels.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub match_expressions: Vec<NodeSelectorRequirement>,
    /// About the node's name.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub match_fields: Vec<NodeSelectorRequirement>,
}

/// One comparison of one label, or of the node's name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", expecting = "a mapping")]
pub struct NodeSelectorRequirement {
    /// The label, or `metadata.name`.
    #[serde(default, deserialize_with = "or_default")]
    pub key: String,
    /// How it is compared.
    #[serde(default, deserialize_with = "or_default")]
    pub operator: String,
    /// What it is compared with.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

/// Terms of pod affinity, or of pod anti-affinity.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", expecting = "a mapping")]
pub struct PodAffinity {
    /// What must hold.
    #[serde(
        default,
        rename = "requiredDuringSchedulingIgnoredDuringExecution",
        deserialize_with = "or_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub required: Vec<PodAffinityTerm>,
    /// What should hold.
    #[serde(
        default,
        rename = "preferredDuringSchedulingIgnoredDuringExecution",
        deserialize_with = "or_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub preferred: Vec<WeightedPodAffinityTerm>,
}

/// A preferred term of pod affinity or anti-affinity, with a weight.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", expecting = "a mapping")]
pub struct WeightedPodAffinityTerm {
    /// How much it counts, 1 to 100.
    #[serde(default, deserialize_with = "or_default")]
    pub weight: i64,
    /// The pods, and the topology key.
    #[serde(default, deserialize_with = "or_default")]
    pub pod_affinity_term: PodAffinityTerm,
}

/// Selects pods, and the topology key whose domains count as near.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", expecting = "a mapping")]
pub struct PodAffinityTerm {
    /// The pods by their labels; absent matches none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<LabelSelector>,
    /// Their namespaces; the pod's own when empty and there is no selector of namespaces.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
    /// Their namespaces by labels; an empty selector is every namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<LabelSelector>,
    /// Nodes with one value of this label are one domain.
    #[serde(default, deserialize_with = "or_default")]
    pub topology_key: String,
    /// Labels whose values are taken from the pod itself and must be equal.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub match_label_keys: Vec<String>,
    /// Labels whose values are taken from the pod itself and must differ.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub mismatch_label_keys: Vec<String>,
}

/// A selector of labelled objects.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", expecting = "a mapping")]
pub struct LabelSelector {
    /// Labels that must have these values.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
    /// Comparisons that must hold as well.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub match_expressions: Vec<LabelSelectorRequirement>,
}

/// One comparison of one label: `In`, `NotIn`, `Exists` or `DoesNotExist`.
pub type LabelSelectorRequirement = NodeSelectorRequirement;

impl LabelSelector {
    /// Whether these labels match; an empty selector matches everything.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        let equal = |(key, value): (&String, &String)| labels.get(key) == Some(value);
        self.match_labels.iter().all(equal)
            && self.match_expressions.iter().all(|expression| holds(expression, labels))
    }
}

fn holds(expression: &LabelSelectorRequirement, labels: &BTreeMap<String, String>) -> bool {
    let value = labels.get(&expression.key);
    match expression.operator.as_str() {
        "In" => value.is_some_and(|value| expression.values.contains(value)),
        "NotIn" => value.is_none_or(|value| !expression.values.contains(value)),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        // An unknown operator matches nothing.
        _ => false,
    }
}

/// A topology spread constraint: how evenly pods are spread over domains.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", expecting = "a mapping")]
pub struct TopologySpreadConstraint {
    /// How many pods more than the emptiest domain any domain may have.
    #[serde(default, deserialize_with = "or_default")]
    pub max_skew: i64,
    /// The label that tells domains apart.
    #[serde(default, deserialize_with = "or_default")]
    pub topology_key: String,
    /// `DoNotSchedule` or `ScheduleAnyway`.
    #[serde(default, deserialize_with = "or_default")]
    pub when_unsatisfiable: String,
    /// Which pods are counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<LabelSelector>,
    /// How many domains there must be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_domains: Option<i64>,
    /// Whether only nodes count that match the pod's node affinity and selector: `Honor`, the default, or `Ignore`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_affinity_policy: Option<String>,
    /// Whether only nodes count whose taints the pod tolerates: `Honor`, or `Ignore`, the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_taints_policy: Option<String>,
    /// Labels whose values are taken from the pod itself and must be equal.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub match_label_keys: Vec<String>,
}
