//! Counts the pods of each topology domain that a spread rule looks at, by its node affinity and taints policies.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use muster_api::pod::TopologySpreadConstraint;
use muster_core::constraint::Constraints;

use crate::constraints::cluster_view::{ClusterView, Member, domain, node_matches};
use crate::constraints::topology_spread::distribute::Domain;
use crate::constraints::topology_spread::rule::required_rules;
use crate::objects::node::Node;
use crate::objects::pod::Pod;
use crate::provision::node_spec::taints;

/// The domains that a rule counts, and their pods.
#[derive(Debug, Default)]
pub(crate) struct DomainCounts {
    pub(crate) domains: BTreeMap<Arc<str>, Domain>,
    /// Domains where the member itself cannot go, and whose counts stay as they are.
    pub(crate) ineligible: BTreeSet<Arc<str>>,
}

impl DomainCounts {
    /// Counts pods over nodes that the rule counts and that are in a domain of each of the member's rules.
    pub(crate) fn new(
        rule: &TopologySpreadConstraint,
        member: &Member<'_>,
        cluster: &ClusterView<'_>,
        counts: impl Fn(&Pod) -> bool,
    ) -> Self {
        let mut counted = Self::default();
        let eligible = |node: &Node| {
            counts_node(rule, member.constraints, node)
                && required_rules(member.pod).all(|rule| domain(node, &rule.topology_key).is_some())
        };
        let mut eligible_names = BTreeSet::new();
        for node in cluster.nodes.iter().filter(|node| eligible(node)) {
            let Some(name) = domain(node, &rule.topology_key) else { continue };
            let here = counted.domains.entry(name.into()).or_default();
            if node_matches(member.constraints, node) {
                here.nodes += u32::from(node.is_ready());
                eligible_names.insert(name);
            }
        }
        let ineligible = counted.domains.keys().filter(|name| !eligible_names.contains(&***name));
        counted.ineligible = ineligible.cloned().collect();
        // Terminating pods are not counted, as in Kubernetes.
        for other in cluster.pods.iter().filter(|one| !one.pod.is_terminating() && counts(one.pod))
        {
            let name = domain(other.node, &rule.topology_key).filter(|_| eligible(other.node));
            if let Some(here) = name.and_then(|name| counted.domains.get_mut(name)) {
                here.pods += 1;
            }
        }
        counted
    }

    /// Domains where the member can go.
    pub(crate) fn eligible(&self) -> BTreeMap<Arc<str>, Domain> {
        let eligible_names =
            self.domains.iter().filter(|(name, _)| !self.ineligible.contains(*name));
        eligible_names.map(|(name, here)| (name.clone(), *here)).collect()
    }

    /// The pods of the emptiest ineligible domain.
    pub(crate) fn fewest_in_ineligible(&self) -> Option<u32> {
        self.ineligible.iter().map(|name| self.domains[name].pods).min()
    }
}

/// Whether a rule counts a node, by `nodeAffinityPolicy` and `nodeTaintsPolicy`.
fn counts_node(rule: &TopologySpreadConstraint, constraints: &Constraints, node: &Node) -> bool {
    let is = |policy: &Option<String>, what: &str| policy.as_deref() == Some(what);
    let tolerates = || constraints.tolerates(&taints(node));
    (is(&rule.node_affinity_policy, "Ignore") || node_matches(constraints, node))
        && (!is(&rule.node_taints_policy, "Honor") || tolerates())
}

#[cfg(test)]
mod tests {
    use muster_core::constraint::{Requirement, Test};
    use serde_json::json;

    use crate::constraints::cluster_view::fixtures::{apps, cluster_view, node, pod};
    use crate::constraints::topology_spread::domains::*;

    #[test]
    fn policies_decide_which_nodes_count() {
        let mut tainted = node("c", "3");
        tainted.spec.taints =
            serde_json::from_value(json!([{"key": "gpu", "effect": "NoSchedule"}]))
                .expect("taints");
        let nodes = [node("a", "1"), node("b", "2"), tainted];
        let not_a = Requirement { key: "zone".into(), test: Test::NotIn(vec!["1".into()]) };
        let constraints = Constraints { all: vec![not_a], ..Constraints::default() };
        // The policies, the domains with their pods, and the ineligible domains.
        let cases = [
            (json!({}), "2:1 3:0", ""),
            (json!({"nodeAffinityPolicy": "Ignore"}), "1:2 2:1 3:0", "1"),
            (json!({"nodeTaintsPolicy": "Honor"}), "2:1", ""),
            (json!({"nodeAffinityPolicy": "Ignore", "nodeTaintsPolicy": "Honor"}), "1:2 2:1", "1"),
            (json!({"nodeAffinityPolicy": "Honor", "nodeTaintsPolicy": "Ignore"}), "2:1 3:0", ""),
        ];
        for (policies, expected, expected_ineligible) in cases {
            let mut rule = json!({"topologyKey": "zone", "maxSkew": 1, "labelSelector": {}});
            rule.as_object_mut()
                .expect("a rule")
                .extend(policies.as_object().expect("two").clone());
            let pod = pod("db", &json!({"topologySpreadConstraints": [rule]}));
            let rule = &pod.spec.topology_spread_constraints[0];
            let pods = apps("db@a db@a db@b", &nodes, &json!({}));
            let member = Member { pod: &pod, constraints: &constraints };
            let counts = DomainCounts::new(rule, &member, &cluster_view(&nodes, &pods), |_| true);
            let domains = counts.domains.iter().map(|(name, here)| format!("{name}:{}", here.pods));
            assert_eq!(domains.collect::<Vec<_>>().join(" "), expected, "{policies}");
            let ineligible: Vec<&str> = counts.ineligible.iter().map(|name| &**name).collect();
            assert_eq!(ineligible.join(" "), expected_ineligible, "{policies}");
        }
    }
}
