//! Applies required topology spread rules (`DoNotSchedule`) to a gang: no domain has more than `maxSkew` pods above the
//! emptiest.
//!
//! A single member is restricted to the domains that have room now. Several members are spread over nodes by a token
//! that bounds how many may share a node, and over wider domains by assigning each a domain.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use muster_api::pod::{LabelSelector, TopologySpreadConstraint};
use muster_core::topology::HOSTNAME;

use crate::constraints::cluster_view::{ClusterView, Member, labels, namespace};
use crate::constraints::pod_constraints::PodConstraints;
use crate::constraints::selector::{add_label_keys, describe};
use crate::constraints::tokens::{TOKENS_PER_NODE, TokenKind};
use crate::constraints::topology_spread::distribute::{Domain, distribute};
use crate::constraints::topology_spread::domains::DomainCounts;
use crate::objects::pod::Pod;

/// The spread rules of a pod with `DoNotSchedule`.
pub(crate) fn required_rules(pod: &Pod) -> impl Iterator<Item = &TopologySpreadConstraint> {
    let rules = pod.spec.topology_spread_constraints.iter();
    rules.filter(|rule| rule.when_unsatisfiable != "ScheduleAnyway")
}

/// Applies every spread rule of a gang's members, once for all members that have it.
pub(crate) fn require_topology_spread(
    name: &Arc<str>,
    gang: &[Member<'_>],
    cluster: &ClusterView<'_>,
    resolved: &mut [PodConstraints],
) {
    let mut done: Vec<&TopologySpreadConstraint> = Vec::new();
    for member in gang {
        for rule in required_rules(member.pod) {
            if !done.contains(&rule) {
                done.push(rule);
                apply_rule(name, rule, gang, cluster, resolved);
            }
        }
    }
}

/// A rule, and the pods it counts.
struct SpreadRule<'a> {
    rule: &'a TopologySpreadConstraint,
    key: &'a str,
    max_skew: u32,
    /// The pods it counts, for people.
    counted_pods: String,
    /// How many members it binds and counts.
    members: usize,
}

/// Members that a rule binds and counts, and that may go to the same nodes, with the counts they see.
struct MemberGroup {
    members: Vec<usize>,
    counts: DomainCounts,
}

/// Applies one rule to all members that have it, or has them wait. The rule holds as if these members were placed
/// first: members that it counts but does not bind may go anywhere afterwards.
fn apply_rule(
    name: &Arc<str>,
    rule: &TopologySpreadConstraint,
    gang: &[Member<'_>],
    cluster: &ClusterView<'_>,
    resolved: &mut [PodConstraints],
) {
    // The pods it counts may depend on the member's own labels (`matchLabelKeys`).
    let mut with_rule: Vec<(LabelSelector, Vec<usize>)> = Vec::new();
    for (at, member) in gang.iter().enumerate() {
        let Some(mut selector) = rule.label_selector.clone() else { return };
        if required_rules(member.pod).all(|own| own != rule) {
            continue;
        }
        add_label_keys(&mut selector, &rule.match_label_keys, "In", labels(member.pod));
        match with_rule.iter_mut().find(|(same, _)| *same == selector) {
            Some((_, members)) => members.push(at),
            None => with_rule.push((selector, vec![at])),
        }
    }
    for (selector, with_rule) in with_rule {
        let here = namespace(gang[with_rule[0]].pod);
        let counts = |pod: &Pod| namespace(pod) == here && selector.matches(labels(pod));
        let count = |member: &Member<'_>| DomainCounts::new(rule, member, cluster, counts);
        let (own, others): (Vec<usize>, Vec<usize>) =
            with_rule.iter().partition(|at| counts(gang[**at].pod));
        let rule = SpreadRule {
            rule,
            key: &rule.topology_key,
            max_skew: u32::try_from(rule.max_skew).unwrap_or(0).max(1),
            counted_pods: format!("pods with {}", describe(&selector)),
            members: own.len(),
        };
        for at in others {
            rule.restrict_single_member(&count(&gang[at]), 0, &mut resolved[at]);
        }
        if let [alone] = own[..] {
            rule.restrict_single_member(&count(&gang[alone]), 1, &mut resolved[alone]);
            continue;
        }
        let mut groups: Vec<MemberGroup> = Vec::new();
        for at in own {
            let same = |other: &&mut MemberGroup| {
                gang[other.members[0]].constraints == gang[at].constraints
                    && required_rules(gang[other.members[0]].pod).eq(required_rules(gang[at].pod))
            };
            match groups.iter_mut().find(same) {
                Some(other) => other.members.push(at),
                None => groups.push(MemberGroup { members: vec![at], counts: count(&gang[at]) }),
            }
        }
        let outcome = match rule.key {
            HOSTNAME => rule.bound_by_token(name, &groups, resolved),
            _ => rule.distribute_members(&mut groups, resolved),
        };
        if let Err(why) = outcome {
            let all = groups.iter().flat_map(|group| &group.members);
            all.for_each(|at| resolved[*at].wait_because(why.clone()));
        }
    }
}

impl SpreadRule<'_> {
    /// Excludes the domains that are full for a single member, whether it is counted (`own` = 1) or not.
    fn restrict_single_member(
        &self,
        counts: &DomainCounts,
        own: u32,
        resolved: &mut PodConstraints,
    ) {
        let top = global_minimum(self.rule, &counts.domains) + self.max_skew;
        let full = counts.domains.iter().filter(|(_, here)| here.pods + own > top);
        resolved.require_not_in(self.key, full.map(|(name, _)| name.clone()).collect());
        resolved.require_label(self.key);
    }

    /// Bounds by a token how many members share a node.
    fn bound_by_token(
        &self,
        gang: &Arc<str>,
        groups: &[MemberGroup],
        resolved: &mut [PodConstraints],
    ) -> Result<(), String> {
        let bounds: Option<Vec<NodeBound>> = groups
            .iter()
            .map(|one| {
                let mut bound =
                    node_bound(self.rule, self.max_skew, one.members.len() as u32, &one.counts)?;
                // Where members of other groups may share the node, only a bound that holds for any placement is safe.
                if groups.len() > 1 && bound.each > self.max_skew {
                    bound = bound_with(self.rule, self.max_skew, self.max_skew, &one.counts);
                }
                Some(bound)
            })
            .collect();
        let bounds = bounds.ok_or_else(|| self.too_many("nodes", groups))?;
        let each = bounds.iter().map(|bound| bound.each).min().unwrap_or(1);
        for (one, bound) in groups.iter().zip(bounds) {
            for at in &one.members {
                resolved[*at].require_not_in(self.key, bound.full.clone());
                let kind = TokenKind::TopologySpread {
                    gang: gang.clone(),
                    rule: self.counted_pods.clone(),
                };
                resolved[*at].take_token(kind, TOKENS_PER_NODE / u64::from(each));
                if each > self.max_skew {
                    resolved[*at].needs_all_members = Some(self.key.into());
                }
            }
        }
        Ok(())
    }

    /// Assigns each member its domain; members with the fewest eligible domains first.
    fn distribute_members(
        &self,
        groups: &mut [MemberGroup],
        resolved: &mut [PodConstraints],
    ) -> Result<(), String> {
        groups.sort_by_key(|one| one.counts.eligible().len());
        let mut all = Vec::new();
        for index in 0..groups.len() {
            let MemberGroup { members, counts } = &groups[index];
            let eligible = counts.eligible();
            if eligible.is_empty() {
                return Err(format!(
                    "topology spread over {}: no eligible node has that label",
                    self.key
                ));
            }
            // Filled from the emptiest, no domain is ever more than one ahead, unless there are fewer domains than
            // `minDomains`, or ineligible ones.
            let is_below_min_domains = is_below_min_domains(self.rule, &counts.domains);
            let behind = if is_below_min_domains { Some(0) } else { counts.fewest_in_ineligible() };
            let max_per_domain = behind.map_or(u32::MAX, |least| least + self.max_skew);
            let assigned = distribute(&eligible, members.len(), max_per_domain);
            let assigned =
                assigned.ok_or_else(|| self.too_many(&format!("of {}", self.key), groups))?;
            all.push((members.clone(), assigned.clone()));
            for name in assigned {
                let later = groups[index + 1..].iter_mut();
                later
                    .filter_map(|one| one.counts.domains.get_mut(&name))
                    .for_each(|one| one.pods += 1);
            }
        }
        all.into_iter()
            .for_each(|(members, assigned)| assign_domains(self.key, &members, assigned, resolved));
        Ok(())
    }

    fn too_many(&self, domains: &str, groups: &[MemberGroup]) -> String {
        let there = groups.iter().map(|one| one.counts.eligible().len()).max().unwrap_or(0);
        let (members, counted_pods, max_skew) = (self.members, &self.counted_pods, self.max_skew);
        format!(
            "{members} {counted_pods} cannot be spread over {there} {domains} with maxSkew {max_skew}"
        )
    }
}

/// Assigns members their domains. Two rules that assign the same members would have to know of each other.
pub(crate) fn assign_domains(
    key: &str,
    members: &[usize],
    assigned: Vec<Arc<str>>,
    resolved: &mut [PodConstraints],
) {
    for (at, domain) in members.iter().zip(assigned) {
        if let Some(other) = resolved[*at].distributed_over.clone() {
            let why = format!("topology spread over both {other} and {key} is not supported");
            resolved[*at].wait_because(why);
        }
        resolved[*at].require_in(key, BTreeSet::from([domain]));
        resolved[*at].distributed_over = Some(key.into());
        resolved[*at].needs_all_members = Some(key.into());
    }
}

/// Whether there are fewer domains than `minDomains`: then the global minimum is 0.
fn is_below_min_domains(
    rule: &TopologySpreadConstraint,
    domains: &BTreeMap<Arc<str>, Domain>,
) -> bool {
    rule.min_domains.is_some_and(|min| (domains.len() as i64) < min)
}

/// The pods of the emptiest domain, or 0 where there are fewer domains than `minDomains`.
fn global_minimum(rule: &TopologySpreadConstraint, domains: &BTreeMap<Arc<str>, Domain>) -> u32 {
    let least = domains.values().map(|here| here.pods).min();
    least.filter(|_| !is_below_min_domains(rule, domains)).unwrap_or(0)
}

/// How many members may share a node, and which nodes take none.
#[derive(PartialEq, Eq, Debug)]
struct NodeBound {
    each: u32,
    full: BTreeSet<Arc<str>>,
}

/// A bound, and the nodes that have too many pods for it. No node is then above the emptiest by more than the skew,
/// however many members each node gets.
fn bound_with(
    rule: &TopologySpreadConstraint,
    max_skew: u32,
    each: u32,
    counts: &DomainCounts,
) -> NodeBound {
    let top = global_minimum(rule, &counts.domains) + max_skew;
    let is_full =
        |name: &Arc<str>, here: &Domain| here.pods + each > top || counts.ineligible.contains(name);
    let full = counts.domains.iter().filter(|(name, here)| is_full(name, here));
    NodeBound { each, full: full.map(|(name, _)| name.clone()).collect() }
}

/// A bound under which no node is fuller than allowed, however members are placed. `None` when there is no such bound
/// under which all of them fit, and more nodes would not help either.
fn node_bound(
    rule: &TopologySpreadConstraint,
    max_skew: u32,
    members: u32,
    counts: &DomainCounts,
) -> Option<NodeBound> {
    let domains = &counts.domains;
    let least = global_minimum(rule, domains);
    let bounded = |each: u32| bound_with(rule, max_skew, each, counts);
    let room =
        |bound: &NodeBound| u64::from(bound.each) * (domains.len() - bound.full.len()) as u64;
    let best = (1..=max_skew.min(members)).map(bounded).max_by_key(room)?;
    let nodes = domains.len() as u32;
    if room(&best) >= u64::from(members) || nodes == 0 {
        return Some(best);
    }
    // Full nodes raise the minimum: if all nodes are alike, a bound that leaves the emptiest node within the skew.
    let is_uniform = domains.values().all(|here| here.pods == least)
        && !is_below_min_domains(rule, domains)
        && counts.ineligible.is_empty();
    let each = members.div_ceil(nodes);
    let lowest = members.saturating_sub((nodes - 1) * each);
    if is_uniform && each - lowest.min(each) <= max_skew {
        return Some(NodeBound { each, full: BTreeSet::new() });
    }
    // On more nodes they would fit.
    (least == 0).then_some(best)
}

#[cfg(test)]
mod tests {
    use muster_core::constraint::{Constraints, Requirement, Test};
    use serde_json::json;

    use crate::constraints::cluster_view::fixtures::{apps, cluster_view, node, pod, text};
    use crate::constraints::topology_spread::rule::*;

    #[test]
    fn no_node_is_fuller_than_allowed_however_members_are_placed() {
        let rule = TopologySpreadConstraint::default();
        // Pods on each node, members, skew; how many may share a node, and how many nodes are full.
        type Case<'a> = (&'a [u32], u32, u32, Option<(u32, usize)>);
        let cases: [Case<'_>; 10] = [
            (&[0, 0], 2, 1, Some((1, 0))),
            (&[0, 0], 4, 1, Some((2, 0))),
            (&[0, 0], 5, 1, Some((3, 0))),
            (&[0, 0, 0, 0], 2, 2, Some((2, 0))),
            (&[0, 0, 1], 2, 1, Some((1, 1))),
            (&[0, 1, 0], 3, 2, Some((2, 1))),
            (&[], 4, 1, Some((1, 0))),
            // 3 + 3 + 1 would violate the skew, and only two each would not: on four nodes.
            (&[0, 0, 0], 7, 1, Some((1, 0))),
            (&[1, 1, 2], 9, 1, None),
            (&[3, 3], 2, 1, Some((1, 0))),
        ];
        for (pods, members, max_skew, expected) in cases {
            let domains = pods.iter().enumerate();
            let domains: BTreeMap<Arc<str>, Domain> = domains
                .map(|(at, pods)| (at.to_string().into(), Domain { pods: *pods, nodes: 1 }))
                .collect();
            let at = DomainCounts { domains, ..DomainCounts::default() };
            let got = node_bound(&rule, max_skew, members, &at);
            let got = got.map(|bound| (bound.each, bound.full.len()));
            assert_eq!(got, expected, "{members} over {pods:?} with a skew of {max_skew}");
        }
    }

    #[test]
    fn required_spread_rules_restrict_members_or_have_them_wait() {
        let nodes = [node("a", "1"), node("b", "2"), node("c", "2"), node("d", "")];
        let rule = |key: &str, how: &str, more: &serde_json::Value| {
            let mut rule = json!({"topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": how, "labelSelector": {"matchLabels": {"app": "db"}}});
            rule.as_object_mut().expect("a rule").extend(more.as_object().expect("fields").clone());
            json!({"topologySpreadConstraints": [rule]})
        };
        let (must, none) = ("DoNotSchedule", json!({}));
        let cases = [
            // Soft rules are not for here.
            (rule("zone", "ScheduleAnyway", &none), 2, "db@a", " | "),
            (rule("zone", must, &none), 1, "db@a", "zone NotIn([1]); zone Exists"),
            (rule("zone", must, &none), 1, "db@a db@b", "zone Exists"),
            (rule("zone", must, &none), 2, "", "zone In([1]) | zone In([2])"),
            (rule("zone", must, &none), 2, "db@a db@a", "zone In([2]) | zone In([2])"),
            (
                rule("rack", must, &none),
                2,
                "",
                "waits: topology spread over rack: no eligible node has that label | waits: topology spread over rack: no eligible node has that label",
            ),
            (
                rule("zone", must, &json!({"minDomains": 3})),
                3,
                "",
                "waits: 3 pods with app=db cannot be spread over 2 of zone with maxSkew 1",
            ),
            (
                rule(HOSTNAME, must, &none),
                2,
                "db@a",
                "kubernetes.io/hostname NotIn([a]); 1000000 of a node with few pods with app=db",
            ),
        ];
        for (spec, count, there, expected) in cases {
            let pod = pod("db", &spec);
            let constraints = Constraints::default();
            let gang = vec![Member { pod: &pod, constraints: &constraints }; count];
            let pods = apps(there, &nodes, &json!({}));
            let mut resolved = vec![PodConstraints::default(); count];
            require_topology_spread(
                &"gang".into(),
                &gang,
                &cluster_view(&nodes, &pods),
                &mut resolved,
            );
            let all: Vec<String> = resolved.iter().map(text).collect();
            let all = all.join(" | ");
            assert!(
                all == expected || all.split(" | ").all(|one| one == expected),
                "{spec} beside {there}: {all}"
            );
        }
    }

    #[test]
    fn members_with_different_rules_and_constraints_are_spread() {
        let nodes = [node("a", "1"), node("b", "2"), node("c", "3")];
        let rule = |key: &str| {
            json!({"topologySpreadConstraints": [{"topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": "db"}}}]})
        };
        let (zone, host, none) = (rule("zone"), rule(HOSTNAME), json!({}));
        let few = "500000 of a node with few pods with app=db";
        let one = "1000000 of a node with few pods with app=db";
        // The members (app, rule, zones they exclude), the placed pods, and the outcome.
        type Case<'a> = (&'a [(&'a str, &'a serde_json::Value, &'a [&'a str])], &'a str, String);
        let cases: [Case<'_>; 7] = [
            // A member without the rule goes anywhere.
            (
                &[("db", &zone, &[]), ("db", &none, &[])],
                "db@a",
                "zone NotIn([1]); zone Exists | ".to_owned(),
            ),
            (
                &[("db", &host, &[]), ("db", &host, &[]), ("db", &none, &[])],
                "",
                format!("{one} | {one} | "),
            ),
            // A member that the rule does not count goes where the skew allows it.
            (&[("web", &zone, &[])], "db@a", "zone Exists".to_owned()),
            (
                &[("web", &zone, &[]), ("db", &zone, &[])],
                "db@a db@a",
                "zone NotIn([1]); zone Exists | zone NotIn([1]); zone Exists".to_owned(),
            ),
            // The member with the fewest eligible domains is assigned first.
            (
                &[("db", &zone, &[]), ("db", &zone, &["1", "2"])],
                "db@a",
                "zone In([2]) | zone In([3])".to_owned(),
            ),
            (&[("db", &host, &[]), ("db", &host, &["1"])], "", format!("{one} | {one}")),
            (
                &[
                    ("db", &host, &["3"]),
                    ("db", &host, &["3"]),
                    ("db", &host, &["3"]),
                    ("db", &host, &["3"]),
                ],
                "",
                format!("{few} | {few} | {few} | {few}"),
            ),
        ];
        for (members, there, expected) in cases {
            let pods: Vec<Pod> = members.iter().map(|(app, spec, _)| pod(app, spec)).collect();
            let off = |zones: &[&str]| {
                let test = Test::NotIn(zones.iter().map(|zone| Arc::from(*zone)).collect());
                Constraints {
                    all: vec![Requirement { key: "zone".into(), test }],
                    ..Constraints::default()
                }
            };
            let constraints: Vec<Constraints> =
                members.iter().map(|(_, _, zones)| off(zones)).collect();
            let gang = pods.iter().zip(&constraints);
            let gang: Vec<_> = gang.map(|(pod, constraints)| Member { pod, constraints }).collect();
            let others = apps(there, &nodes, &json!({}));
            let mut resolved = vec![PodConstraints::default(); gang.len()];
            require_topology_spread(
                &"gang".into(),
                &gang,
                &cluster_view(&nodes, &others),
                &mut resolved,
            );
            let all: Vec<String> = resolved.iter().map(text).collect();
            assert_eq!(all.join(" | "), expected, "{members:?} beside {there}");
        }
    }
}
