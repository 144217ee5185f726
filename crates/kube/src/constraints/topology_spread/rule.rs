//! Topology spread that must be kept: no domain much fuller than the emptiest.
//!
//! One member goes where it may go now. Several are kept even over nodes by a token, which bounds how many may share one,
//! and over anything wider by dealing them out. `ScheduleAnyway` is a wish, and not for here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use muster_api::pod::{LabelSelector, SpreadConstraint};
use muster_core::topology::HOSTNAME;

use crate::constraints::cluster_view::{ClusterView, Member, labels, namespace};
use crate::constraints::pod_constraints::PodConstraints;
use crate::constraints::selector::{add_label_keys, describe};
use crate::constraints::tokens::{TokenKind, WHOLE};
use crate::constraints::topology_spread::distribute::{Domain, distribute};
use crate::constraints::topology_spread::domains::DomainCounts;
use crate::objects::pod::Pod;

/// The rules of a pod that must be kept.
pub(crate) fn required_rules(pod: &Pod) -> impl Iterator<Item = &SpreadConstraint> {
    let rules = pod.spec.topology_spread_constraints.iter();
    rules.filter(|rule| rule.when_unsatisfiable != "ScheduleAnyway")
}

/// Spreads members that have the same rules.
pub(crate) fn require_topology_spread(
    name: &Arc<str>,
    gang: &[Member<'_>],
    cluster: &ClusterView<'_>,
    resolved: &mut [PodConstraints],
) {
    let mut done: Vec<&SpreadConstraint> = Vec::new();
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
    rule: &'a SpreadConstraint,
    key: &'a str,
    skew: u32,
    /// The pods it counts, as one would say it.
    words: String,
    /// How many members it is about.
    members: usize,
}

/// Members that a rule binds and counts, and that may go to the same nodes.
struct MemberGroup {
    members: Vec<usize>,
    at: DomainCounts,
}

/// Keeps one rule for all members that have it, or has them wait. Members that have the rule are seated first, as it were:
/// those it counts and does not bind may go anywhere, whoever is there by then.
fn apply_rule(
    name: &Arc<str>,
    rule: &SpreadConstraint,
    gang: &[Member<'_>],
    cluster: &ClusterView<'_>,
    resolved: &mut [PodConstraints],
) {
    // Whom it counts may depend on the member's own labels.
    let mut bound: Vec<(LabelSelector, Vec<usize>)> = Vec::new();
    for (at, member) in gang.iter().enumerate() {
        let Some(mut selector) = rule.label_selector.clone() else { return };
        if required_rules(member.pod).all(|own| own != rule) {
            continue;
        }
        add_label_keys(&mut selector, &rule.match_label_keys, "In", labels(member.pod));
        match bound.iter_mut().find(|(same, _)| *same == selector) {
            Some((_, members)) => members.push(at),
            None => bound.push((selector, vec![at])),
        }
    }
    for (selector, bound) in bound {
        let here = namespace(gang[bound[0]].pod);
        let counts = |pod: &Pod| namespace(pod) == here && selector.matches(labels(pod));
        let count = |member: &Member<'_>| DomainCounts::new(rule, member, cluster, counts);
        let (own, others): (Vec<usize>, Vec<usize>) =
            bound.iter().partition(|at| counts(gang[**at].pod));
        let rule = SpreadRule {
            rule,
            key: &rule.topology_key,
            skew: u32::try_from(rule.max_skew).unwrap_or(0).max(1),
            words: format!("pods with {}", describe(&selector)),
            members: own.len(),
        };
        for at in others {
            rule.restrict_single_member(&count(&gang[at]), 0, &mut resolved[at]);
        }
        if let [alone] = own[..] {
            rule.restrict_single_member(&count(&gang[alone]), 1, &mut resolved[alone]);
            continue;
        }
        let mut alike: Vec<MemberGroup> = Vec::new();
        for at in own {
            let same = |other: &&mut MemberGroup| {
                gang[other.members[0]].constraints == gang[at].constraints
                    && required_rules(gang[other.members[0]].pod).eq(required_rules(gang[at].pod))
            };
            match alike.iter_mut().find(same) {
                Some(other) => other.members.push(at),
                None => alike.push(MemberGroup { members: vec![at], at: count(&gang[at]) }),
            }
        }
        let kept = match rule.key {
            HOSTNAME => rule.bound_by_token(name, &alike, resolved),
            _ => rule.distribute_members(&mut alike, resolved),
        };
        if let Err(why) = kept {
            let all = alike.iter().flat_map(|alike| &alike.members);
            all.for_each(|at| resolved[*at].wait_because(why.clone()));
        }
    }
}

impl SpreadRule<'_> {
    /// One member goes where it may go now, whether it is counted or not.
    fn restrict_single_member(&self, at: &DomainCounts, own: u32, resolved: &mut PodConstraints) {
        let top = global_minimum(self.rule, &at.domains) + self.skew;
        let full = at.domains.iter().filter(|(_, here)| here.pods + own > top);
        resolved.require_not_in(self.key, full.map(|(name, _)| name.clone()).collect());
        resolved.require_label(self.key);
    }

    /// A token bounds how many members share a node.
    fn bound_by_token(
        &self,
        gang: &Arc<str>,
        alike: &[MemberGroup],
        resolved: &mut [PodConstraints],
    ) -> Result<(), String> {
        let bounds: Option<Vec<NodeBound>> = alike
            .iter()
            .map(|one| {
                let mut even = node_bound(self.rule, self.skew, one.members.len() as u32, &one.at)?;
                // Where others may be besides, only what holds whoever is where can be promised.
                if alike.len() > 1 && even.each > self.skew {
                    even = bound_with(self.rule, self.skew, self.skew, &one.at);
                }
                Some(even)
            })
            .collect();
        let bounds = bounds.ok_or_else(|| self.too_many("nodes", alike))?;
        let each = bounds.iter().map(|even| even.each).min().unwrap_or(1);
        for (one, even) in alike.iter().zip(bounds) {
            for at in &one.members {
                resolved[*at].require_not_in(self.key, even.full.clone());
                let kind =
                    TokenKind::TopologySpread { gang: gang.clone(), rule: self.words.clone() };
                resolved[*at].take_token(kind, WHOLE / u64::from(each));
                if each > self.skew {
                    resolved[*at].needs_all_members = Some(self.key.into());
                }
            }
        }
        Ok(())
    }

    /// Each member is told its domain; those first that have least choice.
    fn distribute_members(
        &self,
        alike: &mut [MemberGroup],
        resolved: &mut [PodConstraints],
    ) -> Result<(), String> {
        alike.sort_by_key(|one| one.at.eligible().len());
        let mut all = Vec::new();
        for turn in 0..alike.len() {
            let MemberGroup { members, at } = &alike[turn];
            let open = at.eligible();
            if open.is_empty() {
                return Err(format!(
                    "must be spread over {}, and no node has that label",
                    self.key
                ));
            }
            // Dealt to the emptiest, nobody is ever more than one ahead; unless there are too few domains to count at
            // all, or some where nobody can go.
            let is_below_min_domains = is_below_min_domains(self.rule, &at.domains);
            let behind = if is_below_min_domains { Some(0) } else { at.fewest_in_ineligible() };
            let max_per_domain = behind.map_or(u32::MAX, |least| least + self.skew);
            let assigned = distribute(&open, members.len(), max_per_domain);
            let assigned =
                assigned.ok_or_else(|| self.too_many(&format!("of {}", self.key), alike))?;
            all.push((members.clone(), assigned.clone()));
            for name in assigned {
                let later = alike[turn + 1..].iter_mut();
                later.filter_map(|one| one.at.domains.get_mut(&name)).for_each(|one| one.pods += 1);
            }
        }
        all.into_iter()
            .for_each(|(members, assigned)| assign_domains(self.key, &members, assigned, resolved));
        Ok(())
    }

    fn too_many(&self, domains: &str, alike: &[MemberGroup]) -> String {
        let there = alike.iter().map(|one| one.at.eligible().len()).max().unwrap_or(0);
        let (members, words, skew) = (self.members, &self.words, self.skew);
        format!("{members} {words} cannot be spread over {there} {domains} with a skew of {skew}")
    }
}

/// Tells members their domains. Two rules that deal the same members out would have to know of each other.
pub(crate) fn assign_domains(
    key: &str,
    members: &[usize],
    assigned: Vec<Arc<str>>,
    resolved: &mut [PodConstraints],
) {
    for (at, domain) in members.iter().zip(assigned) {
        if let Some(other) = resolved[*at].distributed_over.clone() {
            let why = format!("topology spread over both {other} and {key} is not understood");
            resolved[*at].wait_because(why);
        }
        resolved[*at].require_in(key, BTreeSet::from([domain]));
        resolved[*at].distributed_over = Some(key.into());
        resolved[*at].needs_all_members = Some(key.into());
    }
}

/// Whether there are fewer domains than there must be: then the emptiest counts as empty.
fn is_below_min_domains(rule: &SpreadConstraint, domains: &BTreeMap<Arc<str>, Domain>) -> bool {
    rule.min_domains.is_some_and(|min| (domains.len() as i64) < min)
}

fn global_minimum(rule: &SpreadConstraint, domains: &BTreeMap<Arc<str>, Domain>) -> u32 {
    let least = domains.values().map(|here| here.pods).min();
    least.filter(|_| !is_below_min_domains(rule, domains)).unwrap_or(0)
}

/// How many members may share a node, and which nodes take none.
#[derive(PartialEq, Eq, Debug)]
struct NodeBound {
    each: u32,
    full: BTreeSet<Arc<str>>,
}

/// A bound, and the nodes that have too many for it. Nobody is above the emptiest by more than the skew then, and it is
/// never further away, whoever gets how many.
fn bound_with(rule: &SpreadConstraint, skew: u32, each: u32, at: &DomainCounts) -> NodeBound {
    let top = global_minimum(rule, &at.domains) + skew;
    let is_full =
        |name: &Arc<str>, here: &Domain| here.pods + each > top || at.ineligible.contains(name);
    let full = at.domains.iter().filter(|(name, here)| is_full(name, here));
    NodeBound { each, full: full.map(|(name, _)| name.clone()).collect() }
}

/// A bound under which however members are placed, no node is fuller than allowed. `None` when there is no such bound
/// under which all of them fit, and more nodes would not help either.
fn node_bound(
    rule: &SpreadConstraint,
    skew: u32,
    members: u32,
    at: &DomainCounts,
) -> Option<NodeBound> {
    let domains = &at.domains;
    let least = global_minimum(rule, domains);
    let bounded = |each: u32| bound_with(rule, skew, each, at);
    let room = |even: &NodeBound| u64::from(even.each) * (domains.len() - even.full.len()) as u64;
    let max_per_domain = (1..=skew.min(members)).map(bounded).max_by_key(room)?;
    let nodes = domains.len() as u32;
    if room(&max_per_domain) >= u64::from(members) || nodes == 0 {
        return Some(max_per_domain);
    }
    // Full nodes raise the emptiest: with all alike, a bound that leaves too little for others to fall behind.
    let alike = domains.values().all(|here| here.pods == least)
        && !is_below_min_domains(rule, domains)
        && at.ineligible.is_empty();
    let each = members.div_ceil(nodes);
    let lowest = members.saturating_sub((nodes - 1) * each);
    if alike && each - lowest.min(each) <= skew {
        return Some(NodeBound { each, full: BTreeSet::new() });
    }
    // On more nodes they would fit.
    (least == 0).then_some(max_per_domain)
}

#[cfg(test)]
mod tests {
    use muster_core::constraint::{Constraints, Requirement, Test};
    use serde_json::json;

    use crate::constraints::cluster_view::fixtures::{apps, cluster_view, node, pod, text};
    use crate::constraints::topology_spread::rule::*;

    #[test]
    fn no_node_is_fuller_than_allowed_however_members_are_placed() {
        let rule = SpreadConstraint::default();
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
            // Three and three and one would be wrong, and nothing but two each is right: on four nodes.
            (&[0, 0, 0], 7, 1, Some((1, 0))),
            (&[1, 1, 2], 9, 1, None),
            (&[3, 3], 2, 1, Some((1, 0))),
        ];
        for (pods, members, skew, expected) in cases {
            let domains = pods.iter().enumerate();
            let domains: BTreeMap<Arc<str>, Domain> = domains
                .map(|(at, pods)| (at.to_string().into(), Domain { pods: *pods, nodes: 1 }))
                .collect();
            let at = DomainCounts { domains, ..DomainCounts::default() };
            let got = node_bound(&rule, skew, members, &at);
            let got = got.map(|even| (even.each, even.full.len()));
            assert_eq!(got, expected, "{members} over {pods:?} with a skew of {skew}");
        }
    }

    #[test]
    fn members_are_spread_by_what_must_be() {
        let nodes = [node("a", "1"), node("b", "2"), node("c", "2"), node("d", "")];
        let rule = |key: &str, how: &str, more: &serde_json::Value| {
            let mut rule = json!({"topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": how, "labelSelector": {"matchLabels": {"app": "db"}}});
            rule.as_object_mut().expect("a rule").extend(more.as_object().expect("fields").clone());
            json!({"topologySpreadConstraints": [rule]})
        };
        let (must, none) = ("DoNotSchedule", json!({}));
        let cases = [
            // A wish.
            (rule("zone", "ScheduleAnyway", &none), 2, "db@a", " | "),
            (rule("zone", must, &none), 1, "db@a", "zone NotIn([1]); zone Exists"),
            (rule("zone", must, &none), 1, "db@a db@b", "zone Exists"),
            (rule("zone", must, &none), 2, "", "zone In([1]) | zone In([2])"),
            (rule("zone", must, &none), 2, "db@a db@a", "zone In([2]) | zone In([2])"),
            (
                rule("rack", must, &none),
                2,
                "",
                "waits: must be spread over rack, and no node has that label | waits: must be spread over rack, and no node has that label",
            ),
            (
                rule("zone", must, &json!({"minDomains": 3})),
                3,
                "",
                "waits: 3 pods with app=db cannot be spread over 2 of zone with a skew of 1",
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
    fn members_need_not_be_alike_to_be_spread() {
        let nodes = [node("a", "1"), node("b", "2"), node("c", "3")];
        let rule = |key: &str| {
            json!({"topologySpreadConstraints": [{"topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": "db"}}}]})
        };
        let (zone, host, none) = (rule("zone"), rule(HOSTNAME), json!({}));
        let few = "500000 of a node with few pods with app=db";
        let one = "1000000 of a node with few pods with app=db";
        // The members: what they are, their rule, and the zones they keep off. Who is where, and what comes of it.
        type Case<'a> = (&'a [(&'a str, &'a serde_json::Value, &'a [&'a str])], &'a str, String);
        let cases: [Case<'_>; 7] = [
            // Who has no rule goes anywhere.
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
            // Who is not counted itself goes where it is even enough.
            (&[("web", &zone, &[])], "db@a", "zone Exists".to_owned()),
            (
                &[("web", &zone, &[]), ("db", &zone, &[])],
                "db@a db@a",
                "zone NotIn([1]); zone Exists | zone NotIn([1]); zone Exists".to_owned(),
            ),
            // Who has least choice is dealt first.
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
