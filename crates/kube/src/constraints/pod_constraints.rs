//! What the ties of one pod come to.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use muster_core::constraint::{Constraints, Preference, Requirement, Term, Test};
use muster_core::gang::{RoleSpec, Spread};
use muster_core::topology::HOSTNAME;

use crate::constraints::tokens::TokenKind;
use crate::constraints::volumes::volume::ClaimRequirements;

/// Alternatives that one pod's volumes and its own affinity may multiply to; more is nobody's intention.
const ALTERNATIVES_MAX: usize = 256;
/// A label that must have one of no values: nowhere.
const NO_NODE_LABEL: &str = "muster.sh/nowhere";

/// Volumes of one pod that one driver attaches, by their claims.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AttachedVolumes {
    /// Nobody else uses them.
    pub(crate) own: BTreeSet<String>,
    /// Others use them too: on one node they count once.
    pub(crate) shared: BTreeSet<String>,
}

/// What the ties of one pod come to, in words the planner knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PodConstraints {
    /// What it takes of tokens.
    pub(crate) tokens: BTreeMap<TokenKind, u64>,
    /// What must hold of its node.
    all: Term,
    /// Of each of these, one must hold.
    any: Vec<Vec<Term>>,
    /// The whole gang must be where this label has one value.
    pub(crate) required_closeness: Option<Arc<str>>,
    /// Whether its place was chosen among several that would do, so that not every member is like it.
    pub(crate) distributed_over: Option<Arc<str>>,
    /// Its claims that are given a volume of its node when it has one, and what they ask for.
    pub(crate) static_claims: BTreeMap<String, ClaimRequirements>,
    /// Its claims that were dealt a volume, and which.
    pub(crate) assigned_volumes: BTreeMap<String, Arc<str>>,
    /// Its volumes that are attached to its node, by driver.
    pub(crate) attached_volumes: BTreeMap<Arc<str>, AttachedVolumes>,
    /// By this label it is only right where all members start.
    pub(crate) needs_all_members: Option<Arc<str>>,
    /// Why it cannot go anywhere now.
    pub(crate) wait_reason: Option<String>,
    /// What should hold of its node.
    pub(crate) prefer: Vec<Preference>,
    /// What it should be spread over.
    pub(crate) spread: Vec<Spread>,
    /// The whole gang should be where this label has one value.
    pub(crate) preferred_closeness: Option<Arc<str>>,
}

impl PodConstraints {
    pub(crate) fn take_token(&mut self, kind: TokenKind, amount: u64) {
        let taken = self.tokens.entry(kind).or_default();
        *taken = amount.max(*taken);
    }

    /// Only where the label has one of these values.
    pub(crate) fn require_in(&mut self, key: &str, values: BTreeSet<Arc<str>>) {
        self.all
            .push(Requirement { key: key.into(), test: Test::In(values.into_iter().collect()) });
    }

    /// Not where the label has one of these values.
    pub(crate) fn require_not_in(&mut self, key: &str, values: BTreeSet<Arc<str>>) {
        if !values.is_empty() {
            let test = Test::NotIn(values.into_iter().collect());
            self.all.push(Requirement { key: key.into(), test });
        }
    }

    /// Only where the label is. Every node has a name, also those that are still to come.
    pub(crate) fn require_label(&mut self, key: &str) {
        if key != HOSTNAME {
            self.all.push(Requirement { key: key.into(), test: Test::Exists });
        }
    }

    /// Only where one of these holds.
    pub(crate) fn require_any(&mut self, terms: Vec<Term>) {
        self.any.push(terms);
    }

    /// It cannot go anywhere now. The first reason is the one that is told.
    pub(crate) fn wait_because(&mut self, why: String) {
        self.wait_reason.get_or_insert(why);
    }

    /// Whether what must hold comes to the same whoever else is where.
    pub(crate) fn is_fixed(&self) -> bool {
        self.all.is_empty()
            && self.any.is_empty()
            && self.required_closeness.is_none()
            && self.wait_reason.is_none()
            && self.distributed_over.is_none()
            && self.static_claims.is_empty()
            && self.assigned_volumes.is_empty()
    }

    /// Whether it has volumes that are looked for, or counted.
    pub(crate) fn uses_volumes(&self) -> bool {
        !self.static_claims.is_empty()
            || !self.assigned_volumes.is_empty()
            || !self.attached_volumes.is_empty()
    }

    /// Adds what must hold to what the pod itself says.
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

    /// Takes over what another has come to wish.
    pub(crate) fn set_preferences(&mut self, other: &PodConstraints) {
        self.prefer.clone_from(&other.prefer);
        self.spread.clone_from(&other.spread);
        self.preferred_closeness.clone_from(&other.preferred_closeness);
    }

    /// Adds what should hold to a role of members like it. Members that differ in nothing but this play one role.
    pub(crate) fn apply_preferences_to(&self, role: &mut RoleSpec) {
        role.constraints.prefer.extend(self.prefer.iter().cloned());
        role.spread.clone_from(&self.spread);
    }

    /// Why it cannot go anywhere now.
    pub(crate) fn wait_reason(&self) -> Option<&str> {
        self.wait_reason.as_deref()
    }
}

/// Asks for what no node has: who waits stays in line, and gets nothing.
pub(crate) fn match_no_node(constraints: &mut Constraints) {
    constraints.all.push(Requirement { key: NO_NODE_LABEL.into(), test: Test::In(Vec::new()) });
}

/// Every pair of one of these and one of those.
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
    fn alternatives_are_paired_and_who_waits_goes_nowhere() {
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
