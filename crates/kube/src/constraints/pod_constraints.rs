//! The resolved constraints of one pod: tokens, node requirements, preferences, and the reason to wait.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use muster_core::constraint::{Constraints, Preference, Requirement, Term, Test};
use muster_core::gang::{RoleSpec, Spread};
use muster_core::topology::HOSTNAME;

use crate::constraints::tokens::TokenKind;
use crate::constraints::volumes::volume::ClaimRequirements;

/// Alternative node terms that one pod's volumes and its own node affinity may multiply to; more is surely unintended.
const ALTERNATIVES_MAX: usize = 256;
/// A label that must have one of no values, which no node satisfies.
const NO_NODE_LABEL: &str = "muster.sh/nowhere";

/// Volumes of one pod that one CSI driver attaches, by their claims.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AttachedVolumes {
    /// No other pod uses them.
    pub(crate) own: BTreeSet<String>,
    /// Other pods use them too: on one node they count once.
    pub(crate) shared: BTreeSet<String>,
}

/// The resolved constraints of one pod, in the terms of the planner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PodConstraints {
    /// The tokens it takes.
    pub(crate) tokens: BTreeMap<TokenKind, u64>,
    /// Requirements on its node.
    all: Term,
    /// Lists of alternatives, of each of which one must hold.
    any: Vec<Vec<Term>>,
    /// The whole gang must be in one domain of this topology key.
    pub(crate) required_closeness: Option<Arc<str>>,
    /// The topology key over whose domains members were distributed, if so: other members then have other domains.
    pub(crate) distributed_over: Option<Arc<str>>,
    /// Its claims that get a static volume of its node once that is known, and what they request.
    pub(crate) static_claims: BTreeMap<String, ClaimRequirements>,
    /// Its claims that were assigned a static volume before placement, and which.
    pub(crate) assigned_volumes: BTreeMap<String, Arc<str>>,
    /// Its volumes that are attached to its node, by CSI driver.
    pub(crate) attached_volumes: BTreeMap<Arc<str>, AttachedVolumes>,
    /// A topology key by which the constraints are right only if all members start.
    pub(crate) needs_all_members: Option<Arc<str>>,
    /// Why no node will do now.
    pub(crate) wait_reason: Option<String>,
    /// Preferences about its node.
    pub(crate) prefer: Vec<Preference>,
    /// What the planner should spread it over.
    pub(crate) spread: Vec<Spread>,
    /// The whole gang should be in one domain of this topology key.
    pub(crate) preferred_closeness: Option<Arc<str>>,
}

impl PodConstraints {
    /// Takes an amount of a token, unless it takes more of it already.
    pub(crate) fn take_token(&mut self, kind: TokenKind, amount: u64) {
        let taken = self.tokens.entry(kind).or_default();
        *taken = amount.max(*taken);
    }

    /// Requires that the label has one of these values.
    pub(crate) fn require_in(&mut self, key: &str, values: BTreeSet<Arc<str>>) {
        self.all
            .push(Requirement { key: key.into(), test: Test::In(values.into_iter().collect()) });
    }

    /// Requires that the label has none of these values.
    pub(crate) fn require_not_in(&mut self, key: &str, values: BTreeSet<Arc<str>>) {
        if !values.is_empty() {
            let test = Test::NotIn(values.into_iter().collect());
            self.all.push(Requirement { key: key.into(), test });
        }
    }

    /// Requires the label. Every node has a hostname, also nodes that do not exist yet.
    pub(crate) fn require_label(&mut self, key: &str) {
        if key != HOSTNAME {
            self.all.push(Requirement { key: key.into(), test: Test::Exists });
        }
    }

    /// Requires one of these terms.
    pub(crate) fn require_any(&mut self, terms: Vec<Term>) {
        self.any.push(terms);
    }

    /// No node will do now. The first reason is the one reported.
    pub(crate) fn wait_because(&mut self, why: String) {
        self.wait_reason.get_or_insert(why);
    }

    /// Whether its requirements do not depend on where other pods are.
    pub(crate) fn is_fixed(&self) -> bool {
        self.all.is_empty()
            && self.any.is_empty()
            && self.required_closeness.is_none()
            && self.wait_reason.is_none()
            && self.distributed_over.is_none()
            && self.static_claims.is_empty()
            && self.assigned_volumes.is_empty()
    }

    /// Whether it has volumes that are to be found or counted.
    pub(crate) fn uses_volumes(&self) -> bool {
        !self.static_claims.is_empty()
            || !self.assigned_volumes.is_empty()
            || !self.attached_volumes.is_empty()
    }

    /// Adds its requirements to the pod's own node constraints.
    pub(crate) fn apply_to(&mut self, constraints: &mut Constraints) {
        constraints.all.extend(self.all.iter().cloned());
        for terms in &self.any {
            let both = match constraints.any.is_empty() {
                true => terms.clone(),
                false => both(&constraints.any, terms),
            };
            if both.len() > ALTERNATIVES_MAX {
                self.wait_reason.get_or_insert("has volumes with too many alternatives".to_owned());
                break;
            }
            constraints.any = both;
        }
        if self.wait_reason.is_some() {
            match_no_node(constraints);
        }
    }

    /// Copies the preferences of another.
    pub(crate) fn set_preferences(&mut self, other: &PodConstraints) {
        self.prefer.clone_from(&other.prefer);
        self.spread.clone_from(&other.spread);
        self.preferred_closeness.clone_from(&other.preferred_closeness);
    }

    /// Adds its preferences to the role of its members. Members that differ in preferences only have one role.
    pub(crate) fn apply_preferences_to(&self, role: &mut RoleSpec) {
        role.constraints.prefer.extend(self.prefer.iter().cloned());
        role.spread.clone_from(&self.spread);
    }

    /// Why no node will do now.
    pub(crate) fn wait_reason(&self) -> Option<&str> {
        self.wait_reason.as_deref()
    }
}

/// Requires what no node has: the gang stays queued and is placed nowhere.
pub(crate) fn match_no_node(constraints: &mut Constraints) {
    constraints.all.push(Requirement { key: NO_NODE_LABEL.into(), test: Test::In(Vec::new()) });
}

/// Every pair of a term of one list and a term of the other.
fn both(these: &[Term], those: &[Term]) -> Vec<Term> {
    let pairs = these.iter().flat_map(|this| those.iter().map(move |that| (this, that)));
    pairs.map(|(this, that)| this.iter().chain(that).cloned().collect()).collect()
}

#[cfg(test)]
mod tests {
    use crate::constraints::pod_constraints::*;

    fn is(key: &str, value: &str) -> Requirement {
        Requirement { key: key.into(), test: Test::In(vec![value.into()]) }
    }

    #[test]
    fn alternatives_multiply_and_a_wait_reason_matches_no_node() {
        let own = vec![vec![is("gpu", "a")], vec![is("gpu", "b")]];
        let mut constraints = Constraints { any: own, ..Constraints::default() };
        let mut resolved = PodConstraints::default();
        resolved.require_any(vec![vec![is("zone", "1")], vec![is("zone", "2")]]);
        resolved.apply_to(&mut constraints);
        assert_eq!(constraints.any.len(), 4);
        assert!(constraints.any.contains(&vec![is("gpu", "b"), is("zone", "1")]));
        assert!(constraints.all.is_empty());
        resolved.wait_because("for good weather".to_owned());
        resolved.apply_to(&mut constraints);
        assert!(constraints.all.iter().any(|one| !one.holds(Some("anything"))));
    }
}
