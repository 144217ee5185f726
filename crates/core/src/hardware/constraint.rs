//! Labels and taints of nodes, and what roles require, prefer and tolerate of them.
//!
//! The meaning is that of Kubernetes: node selectors and affinity terms are matched against labels, taints
//! with effect `NoSchedule` or `NoExecute` keep a role away unless it tolerates them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Labels of a node.
pub type Labels = BTreeMap<Arc<str>, Arc<str>>;

/// What a taint does to members that do not tolerate it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Effect {
    /// Nothing new is placed here.
    NoSchedule,
    /// Placed here only when nothing else is left; not a hard constraint.
    PreferNoSchedule,
    /// Nothing new is placed here and running members are evicted.
    NoExecute,
}

/// A taint: keeps members off a node.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Taint {
    /// Its key.
    pub key: Arc<str>,
    /// Its value; often empty.
    #[serde(default)]
    pub value: Arc<str>,
    /// What it does.
    pub effect: Effect,
}

/// A role's permission to ignore taints.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Toleration {
    /// The taint's key; `None` tolerates every key.
    pub key: Option<Arc<str>>,
    /// The taint's value; `None` tolerates every value (operator `Exists`).
    pub value: Option<Arc<str>>,
    /// The taint's effect; `None` tolerates every effect.
    pub effect: Option<Effect>,
}

impl Toleration {
    /// Whether it lets the role ignore `taint`.
    pub fn covers(&self, taint: &Taint) -> bool {
        self.key.as_ref().is_none_or(|key| *key == taint.key)
            && self.value.as_ref().is_none_or(|value| *value == taint.value)
            && self.effect.is_none_or(|effect| effect == taint.effect)
    }
}

/// How a label is compared.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Test {
    /// The label is there with one of these values.
    In(Vec<Arc<str>>),
    /// The label is not there, or has none of these values.
    NotIn(Vec<Arc<str>>),
    /// The label is there.
    Exists,
    /// The label is not there.
    DoesNotExist,
    /// The label is a whole number above this.
    Gt(i64),
    /// The label is a whole number below this.
    Lt(i64),
}

/// One requirement on one label.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Requirement {
    /// The label's key.
    pub key: Arc<str>,
    /// How it is compared.
    pub test: Test,
}

impl Requirement {
    /// Whether a label with this value (or its absence) satisfies the requirement.
    pub fn holds(&self, value: Option<&str>) -> bool {
        let number = || value.and_then(|v| v.parse::<i64>().ok());
        match &self.test {
            Test::In(values) => value.is_some_and(|v| values.iter().any(|want| **want == *v)),
            Test::NotIn(values) => value.is_none_or(|v| values.iter().all(|want| **want != *v)),
            Test::Exists => value.is_some(),
            Test::DoesNotExist => value.is_none(),
            Test::Gt(bound) => number().is_some_and(|n| n > *bound),
            Test::Lt(bound) => number().is_some_and(|n| n < *bound),
        }
    }
}

/// Requirements that must all hold.
pub type Term = Vec<Requirement>;

/// A preferred term with a weight.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Preference {
    /// How much it counts, 1 to 100.
    pub weight: u8,
    /// What should hold.
    pub term: Term,
}

/// What a role requires of the nodes its members run on.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Constraints {
    /// All of these must hold (a node selector).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub all: Term,
    /// At least one of these terms must hold, when there are any (required node affinity).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub any: Vec<Term>,
    /// The more of these hold the better (preferred node affinity).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prefer: Vec<Preference>,
    /// Taints the role may ignore.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Toleration>,
    /// GPU models that will do; any when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpu_models: Vec<Arc<str>>,
    /// Memory each GPU must have at least, in bytes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub gpu_memory: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Constraints {
    /// Whether every hard taint is tolerated.
    pub fn tolerates(&self, taints: &[Taint]) -> bool {
        taints
            .iter()
            .filter(|taint| taint.effect != Effect::PreferNoSchedule)
            .all(|taint| self.tolerations.iter().any(|toleration| toleration.covers(taint)))
    }
    /// Every requirement that mentions labels, hard or soft.
    pub fn requirements(&self) -> impl Iterator<Item = &Requirement> {
        self.required().chain(self.prefer.iter().flat_map(|preference| &preference.term))
    }
    /// Every requirement on labels that must hold.
    pub fn required(&self) -> impl Iterator<Item = &Requirement> {
        self.all.iter().chain(self.any.iter().flatten())
    }
    /// How many soft taints (`PreferNoSchedule`) are not tolerated.
    pub fn untolerated_soft_taints(&self, taints: &[Taint]) -> usize {
        taints
            .iter()
            .filter(|taint| taint.effect == Effect::PreferNoSchedule)
            .filter(|taint| !self.tolerations.iter().any(|toleration| toleration.covers(taint)))
            .count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requirement(test: Test) -> Requirement {
        Requirement { key: "k".into(), test }
    }

    #[test]
    fn requirements_match_labels_as_kubernetes_does() {
        let values = vec![Arc::from("a"), Arc::from("b")];
        for (test, with_a, with_c, absent) in [
            (Test::In(values.clone()), true, false, false),
            (Test::NotIn(values), false, true, true),
            (Test::Exists, true, true, false),
            (Test::DoesNotExist, false, false, true),
        ] {
            let requirement = requirement(test);
            assert_eq!(requirement.holds(Some("a")), with_a, "{requirement:?}");
            assert_eq!(requirement.holds(Some("c")), with_c, "{requirement:?}");
            assert_eq!(requirement.holds(None), absent, "{requirement:?}");
        }
        assert!(requirement(Test::Gt(3)).holds(Some("4")));
        assert!(!requirement(Test::Lt(3)).holds(Some("three")));
    }

    #[test]
    fn only_hard_taints_exclude_a_role() {
        let taint = |effect| Taint { key: "gpu".into(), value: "yes".into(), effect };
        let bare = Constraints::default();
        assert!(!bare.tolerates(&[taint(Effect::NoSchedule)]));
        assert!(bare.tolerates(&[taint(Effect::PreferNoSchedule)]));
        let everything = Toleration { key: None, value: None, effect: None };
        let tolerant = Constraints { tolerations: vec![everything], ..Constraints::default() };
        assert!(tolerant.tolerates(&[taint(Effect::NoExecute)]));
    }
}
