//! Topology spread that must be kept: no domain much fuller than the emptiest.
//!
//! One member goes where it may go now. Several are kept even over nodes by a token, which bounds how many may share one,
//! and over anything wider by dealing them out. `ScheduleAnyway` is a wish and is not looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use muster_api::pod::SpreadConstraint;
use muster_core::topology::HOSTNAME;

use super::around::{Around, Member, domain, labels, namespace, suits};
use super::deal::{Domain, deal};
use super::scope::{add_keys, in_words};
use super::tied::Tied;
use super::tokens::{Meaning, WHOLE};
use crate::objects::Pod;

/// The rules of a pod that must be kept.
pub(super) fn rules(pod: &Pod) -> impl Iterator<Item = &SpreadConstraint> {
    let rules = pod.spec.topology_spread_constraints.iter();
    rules.filter(|rule| rule.when_unsatisfiable != "ScheduleAnyway")
}

/// Spreads members that have the same rules.
pub(super) fn spread(name: &Arc<str>, gang: &[Member<'_>], around: &Around<'_>, tied: &mut [Tied]) {
    let mut done: Vec<&SpreadConstraint> = Vec::new();
    for member in gang {
        for rule in rules(member.pod) {
            if !done.contains(&rule) {
                done.push(rule);
                spread_by(name, rule, gang, around, tied);
            }
        }
    }
}

/// A rule, whom it binds and whom it counts.
struct Rule<'a> {
    rule: &'a SpreadConstraint,
    key: &'a str,
    skew: u32,
    /// Members that have it.
    bound: Vec<usize>,
    /// Members that it counts.
    counted: Vec<usize>,
    /// The pods it counts, as one would say it.
    words: String,
    domains: BTreeMap<Arc<str>, Domain>,
}

/// Keeps one rule for all members that have it, or has them wait.
fn spread_by(
    name: &Arc<str>,
    rule: &SpreadConstraint,
    gang: &[Member<'_>],
    around: &Around<'_>,
    tied: &mut [Tied],
) {
    let bound: Vec<usize> =
        (0..gang.len()).filter(|at| rules(gang[*at].pod).any(|own| own == rule)).collect();
    let first = &gang[bound[0]];
    let Some(mut selector) = rule.label_selector.clone() else { return };
    add_keys(&mut selector, &rule.match_label_keys, "In", labels(first.pod));
    let here = namespace(first.pod);
    let counts = |pod: &Pod| namespace(pod) == here && selector.matches(labels(pod));
    let alike = bound.iter().all(|at| gang[*at].constraints == first.constraints);
    let rule = Rule {
        rule,
        key: &rule.topology_key,
        skew: u32::try_from(rule.max_skew).unwrap_or(0).max(1),
        counted: (0..gang.len()).filter(|at| counts(gang[*at].pod)).collect(),
        words: format!("pods with {}", in_words(&selector)),
        domains: domains(rule, first, around, counts),
        bound,
    };
    let kept = match &rule.bound[..] {
        [alone] if rule.counted.iter().all(|at| at == alone) => {
            rule.keep_alone(&mut tied[*alone]);
            Ok(())
        }
        _ if !alike || rule.bound != rule.counted => Err(format!(
            "topology spread of {} over {} is not understood: it is not about all members alike",
            rule.words, rule.key
        )),
        _ if rule.key == HOSTNAME => rule.keep_by_token(name, tied),
        _ => rule.deal_out(tied),
    };
    if let Err(why) = kept {
        rule.bound.iter().for_each(|at| tied[*at].wait(why.clone()));
    }
}

impl Rule<'_> {
    /// One member goes where it may go now.
    fn keep_alone(&self, tied: &mut Tied) {
        let own = self.counted.len() as u32;
        let top = least(self.rule, &self.domains) + self.skew;
        let full = self.domains.iter().filter(|(_, here)| here.pods + own > top);
        tied.not(self.key, full.map(|(name, _)| name.clone()).collect());
        tied.has(self.key);
    }

    /// A token bounds how many members share a node.
    fn keep_by_token(&self, gang: &Arc<str>, tied: &mut [Tied]) -> Result<(), String> {
        let members = self.bound.len() as u32;
        let even = even(self.rule, self.skew, members, &self.domains);
        let even = even.ok_or_else(|| self.too_many("nodes"))?;
        for at in &self.bound {
            tied[*at].not(self.key, even.full.clone());
            let meaning = Meaning::Even { gang: gang.clone(), rule: self.words.clone() };
            tied[*at].take(meaning, WHOLE / u64::from(even.each));
            if even.each > self.skew {
                tied[*at].whole = Some(self.key.into());
            }
        }
        Ok(())
    }

    /// Each member is told its domain.
    fn deal_out(&self, tied: &mut [Tied]) -> Result<(), String> {
        if self.domains.is_empty() {
            return Err(format!("must be spread over {}, and no node has that label", self.key));
        }
        // Dealt to the emptiest, nobody is ever more than one ahead; unless there are too few domains to count at all.
        let most = if is_short(self.rule, &self.domains) { self.skew } else { u32::MAX };
        let dealt = deal(&self.domains, self.bound.len(), most);
        let dealt = dealt.ok_or_else(|| self.too_many(&format!("of {}", self.key)))?;
        give(self.key, &self.bound, dealt, tied);
        Ok(())
    }

    fn too_many(&self, domains: &str) -> String {
        let (members, there) = (self.bound.len(), self.domains.len());
        let (words, skew) = (&self.words, self.skew);
        format!("{members} {words} cannot be spread over {there} {domains} with a skew of {skew}")
    }
}

/// Tells members their domains. Two rules that deal the same members out would have to know of each other.
pub(super) fn give(key: &str, members: &[usize], dealt: Vec<Arc<str>>, tied: &mut [Tied]) {
    for (at, domain) in members.iter().zip(dealt) {
        if let Some(other) = tied[*at].dealt.clone() {
            let why = format!("topology spread over both {other} and {key} is not understood");
            tied[*at].wait(why);
        }
        tied[*at].only(key, BTreeSet::from([domain]));
        tied[*at].dealt = Some(key.into());
        tied[*at].whole = Some(key.into());
    }
}

/// Who is counted where, over nodes that the member could use and that are in a domain of each of its rules.
fn domains(
    rule: &SpreadConstraint,
    member: &Member<'_>,
    around: &Around<'_>,
    counts: impl Fn(&Pod) -> bool,
) -> BTreeMap<Arc<str>, Domain> {
    let mut domains: BTreeMap<Arc<str>, Domain> = BTreeMap::new();
    let eligible = |node: &crate::objects::Node| {
        suits(member.constraints, node)
            && rules(member.pod).all(|rule| domain(node, &rule.topology_key).is_some())
    };
    for node in around.nodes.iter().filter(|node| eligible(node)) {
        let Some(name) = domain(node, &rule.topology_key) else { continue };
        domains.entry(name.into()).or_default().nodes += u32::from(node.is_ready());
    }
    // Those that leave are not counted, here as in Kubernetes.
    for other in around.pods.iter().filter(|other| !other.pod.is_leaving() && counts(other.pod)) {
        let name = domain(other.node, &rule.topology_key).filter(|_| eligible(other.node));
        if let Some(here) = name.and_then(|name| domains.get_mut(name)) {
            here.pods += 1;
        }
    }
    domains
}

/// Whether there are fewer domains than there must be: then the emptiest counts as empty.
fn is_short(rule: &SpreadConstraint, domains: &BTreeMap<Arc<str>, Domain>) -> bool {
    rule.min_domains.is_some_and(|min| (domains.len() as i64) < min)
}

fn least(rule: &SpreadConstraint, domains: &BTreeMap<Arc<str>, Domain>) -> u32 {
    let least = domains.values().map(|here| here.pods).min();
    least.filter(|_| !is_short(rule, domains)).unwrap_or(0)
}

/// How many members may share a node, and which nodes take none.
#[derive(PartialEq, Eq, Debug)]
struct Even {
    each: u32,
    full: BTreeSet<Arc<str>>,
}

/// A bound under which however members are placed, no node is fuller than allowed. `None` when there is no such bound
/// under which all of them fit, and more nodes would not help either.
fn even(
    rule: &SpreadConstraint,
    skew: u32,
    members: u32,
    domains: &BTreeMap<Arc<str>, Domain>,
) -> Option<Even> {
    let least = least(rule, domains);
    // Nobody above this, and the emptiest is never further away than the skew, whoever gets how many.
    let top = least + skew;
    let bounded = |each: u32| -> Even {
        let full = domains.iter().filter(|(_, here)| here.pods + each > top);
        Even { each, full: full.map(|(name, _)| name.clone()).collect() }
    };
    let room = |even: &Even| u64::from(even.each) * (domains.len() - even.full.len()) as u64;
    let most = (1..=skew.min(members)).map(bounded).max_by_key(room)?;
    let nodes = domains.len() as u32;
    if room(&most) >= u64::from(members) || nodes == 0 {
        return Some(most);
    }
    // Full nodes raise the emptiest: with all alike, a bound that leaves too little for others to fall behind.
    let alike = domains.values().all(|here| here.pods == least) && !is_short(rule, domains);
    let each = members.div_ceil(nodes);
    let lowest = members.saturating_sub((nodes - 1) * each);
    if alike && each - lowest.min(each) <= skew {
        return Some(Even { each, full: BTreeSet::new() });
    }
    // On more nodes they would fit.
    (least == 0).then_some(most)
}

#[cfg(test)]
mod tests {
    use muster_core::constraint::Constraints;
    use serde_json::json;

    use super::super::around::play::{apps, around, node, pod, text};
    use super::*;

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
            let got = even(&rule, skew, members, &domains);
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
            let mut tied = vec![Tied::default(); count];
            spread(&"gang".into(), &gang, &around(&nodes, &pods), &mut tied);
            let all: Vec<String> = tied.iter().map(text).collect();
            let all = all.join(" | ");
            assert!(
                all == expected || all.split(" | ").all(|one| one == expected),
                "{spec} beside {there}: {all}"
            );
        }
    }
}
