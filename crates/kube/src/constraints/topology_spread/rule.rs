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
use crate::constraints::selector::{add_keys, in_words};
use crate::constraints::tokens::{Meaning, WHOLE};
use crate::constraints::topology_spread::distribute::{Domain, deal};
use crate::constraints::topology_spread::domains::Counted;
use crate::objects::pod::Pod;

/// The rules of a pod that must be kept.
pub(crate) fn rules(pod: &Pod) -> impl Iterator<Item = &SpreadConstraint> {
    let rules = pod.spec.topology_spread_constraints.iter();
    rules.filter(|rule| rule.when_unsatisfiable != "ScheduleAnyway")
}

/// Spreads members that have the same rules.
pub(crate) fn spread(
    name: &Arc<str>,
    gang: &[Member<'_>],
    around: &ClusterView<'_>,
    tied: &mut [PodConstraints],
) {
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

/// A rule, and the pods it counts.
struct Rule<'a> {
    rule: &'a SpreadConstraint,
    key: &'a str,
    skew: u32,
    /// The pods it counts, as one would say it.
    words: String,
    /// How many members it is about.
    members: usize,
}

/// Members that a rule binds and counts, and that may go to the same nodes.
struct Alike {
    members: Vec<usize>,
    at: Counted,
}

/// Keeps one rule for all members that have it, or has them wait. Members that have the rule are seated first, as it were:
/// those it counts and does not bind may go anywhere, whoever is there by then.
fn spread_by(
    name: &Arc<str>,
    rule: &SpreadConstraint,
    gang: &[Member<'_>],
    around: &ClusterView<'_>,
    tied: &mut [PodConstraints],
) {
    // Whom it counts may depend on the member's own labels.
    let mut bound: Vec<(LabelSelector, Vec<usize>)> = Vec::new();
    for (at, member) in gang.iter().enumerate() {
        let Some(mut selector) = rule.label_selector.clone() else { return };
        if rules(member.pod).all(|own| own != rule) {
            continue;
        }
        add_keys(&mut selector, &rule.match_label_keys, "In", labels(member.pod));
        match bound.iter_mut().find(|(same, _)| *same == selector) {
            Some((_, members)) => members.push(at),
            None => bound.push((selector, vec![at])),
        }
    }
    for (selector, bound) in bound {
        let here = namespace(gang[bound[0]].pod);
        let counts = |pod: &Pod| namespace(pod) == here && selector.matches(labels(pod));
        let count = |member: &Member<'_>| Counted::new(rule, member, around, counts);
        let (own, others): (Vec<usize>, Vec<usize>) =
            bound.iter().partition(|at| counts(gang[**at].pod));
        let rule = Rule {
            rule,
            key: &rule.topology_key,
            skew: u32::try_from(rule.max_skew).unwrap_or(0).max(1),
            words: format!("pods with {}", in_words(&selector)),
            members: own.len(),
        };
        for at in others {
            rule.keep_alone(&count(&gang[at]), 0, &mut tied[at]);
        }
        if let [alone] = own[..] {
            rule.keep_alone(&count(&gang[alone]), 1, &mut tied[alone]);
            continue;
        }
        let mut alike: Vec<Alike> = Vec::new();
        for at in own {
            let same = |other: &&mut Alike| {
                gang[other.members[0]].constraints == gang[at].constraints
                    && rules(gang[other.members[0]].pod).eq(rules(gang[at].pod))
            };
            match alike.iter_mut().find(same) {
                Some(other) => other.members.push(at),
                None => alike.push(Alike { members: vec![at], at: count(&gang[at]) }),
            }
        }
        let kept = match rule.key {
            HOSTNAME => rule.keep_by_token(name, &alike, tied),
            _ => rule.deal_out(&mut alike, tied),
        };
        if let Err(why) = kept {
            let all = alike.iter().flat_map(|alike| &alike.members);
            all.for_each(|at| tied[*at].wait(why.clone()));
        }
    }
}

impl Rule<'_> {
    /// One member goes where it may go now, whether it is counted or not.
    fn keep_alone(&self, at: &Counted, own: u32, tied: &mut PodConstraints) {
        let top = least(self.rule, &at.domains) + self.skew;
        let full = at.domains.iter().filter(|(_, here)| here.pods + own > top);
        tied.not(self.key, full.map(|(name, _)| name.clone()).collect());
        tied.has(self.key);
    }

    /// A token bounds how many members share a node.
    fn keep_by_token(
        &self,
        gang: &Arc<str>,
        alike: &[Alike],
        tied: &mut [PodConstraints],
    ) -> Result<(), String> {
        let bounds: Option<Vec<Even>> = alike
            .iter()
            .map(|one| {
                let mut even = even(self.rule, self.skew, one.members.len() as u32, &one.at)?;
                // Where others may be besides, only what holds whoever is where can be promised.
                if alike.len() > 1 && even.each > self.skew {
                    even = bounded(self.rule, self.skew, self.skew, &one.at);
                }
                Some(even)
            })
            .collect();
        let bounds = bounds.ok_or_else(|| self.too_many("nodes", alike))?;
        let each = bounds.iter().map(|even| even.each).min().unwrap_or(1);
        for (one, even) in alike.iter().zip(bounds) {
            for at in &one.members {
                tied[*at].not(self.key, even.full.clone());
                let meaning = Meaning::Even { gang: gang.clone(), rule: self.words.clone() };
                tied[*at].take(meaning, WHOLE / u64::from(each));
                if each > self.skew {
                    tied[*at].whole = Some(self.key.into());
                }
            }
        }
        Ok(())
    }

    /// Each member is told its domain; those first that have least choice.
    fn deal_out(&self, alike: &mut [Alike], tied: &mut [PodConstraints]) -> Result<(), String> {
        alike.sort_by_key(|one| one.at.open().len());
        let mut all = Vec::new();
        for turn in 0..alike.len() {
            let Alike { members, at } = &alike[turn];
            let open = at.open();
            if open.is_empty() {
                return Err(format!(
                    "must be spread over {}, and no node has that label",
                    self.key
                ));
            }
            // Dealt to the emptiest, nobody is ever more than one ahead; unless there are too few domains to count at
            // all, or some where nobody can go.
            let is_short = is_short(self.rule, &at.domains);
            let behind = if is_short { Some(0) } else { at.least_closed() };
            let most = behind.map_or(u32::MAX, |least| least + self.skew);
            let dealt = deal(&open, members.len(), most);
            let dealt = dealt.ok_or_else(|| self.too_many(&format!("of {}", self.key), alike))?;
            all.push((members.clone(), dealt.clone()));
            for name in dealt {
                let later = alike[turn + 1..].iter_mut();
                later.filter_map(|one| one.at.domains.get_mut(&name)).for_each(|one| one.pods += 1);
            }
        }
        all.into_iter().for_each(|(members, dealt)| give(self.key, &members, dealt, tied));
        Ok(())
    }

    fn too_many(&self, domains: &str, alike: &[Alike]) -> String {
        let there = alike.iter().map(|one| one.at.open().len()).max().unwrap_or(0);
        let (members, words, skew) = (self.members, &self.words, self.skew);
        format!("{members} {words} cannot be spread over {there} {domains} with a skew of {skew}")
    }
}

/// Tells members their domains. Two rules that deal the same members out would have to know of each other.
pub(crate) fn give(
    key: &str,
    members: &[usize],
    dealt: Vec<Arc<str>>,
    tied: &mut [PodConstraints],
) {
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

/// A bound, and the nodes that have too many for it. Nobody is above the emptiest by more than the skew then, and it is
/// never further away, whoever gets how many.
fn bounded(rule: &SpreadConstraint, skew: u32, each: u32, at: &Counted) -> Even {
    let top = least(rule, &at.domains) + skew;
    let is_full =
        |name: &Arc<str>, here: &Domain| here.pods + each > top || at.closed.contains(name);
    let full = at.domains.iter().filter(|(name, here)| is_full(name, here));
    Even { each, full: full.map(|(name, _)| name.clone()).collect() }
}

/// A bound under which however members are placed, no node is fuller than allowed. `None` when there is no such bound
/// under which all of them fit, and more nodes would not help either.
fn even(rule: &SpreadConstraint, skew: u32, members: u32, at: &Counted) -> Option<Even> {
    let domains = &at.domains;
    let least = least(rule, domains);
    let bounded = |each: u32| bounded(rule, skew, each, at);
    let room = |even: &Even| u64::from(even.each) * (domains.len() - even.full.len()) as u64;
    let most = (1..=skew.min(members)).map(bounded).max_by_key(room)?;
    let nodes = domains.len() as u32;
    if room(&most) >= u64::from(members) || nodes == 0 {
        return Some(most);
    }
    // Full nodes raise the emptiest: with all alike, a bound that leaves too little for others to fall behind.
    let alike = domains.values().all(|here| here.pods == least)
        && !is_short(rule, domains)
        && at.closed.is_empty();
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
    use muster_core::constraint::{Constraints, Requirement, Test};
    use serde_json::json;

    use crate::constraints::cluster_view::play::{apps, around, node, pod, text};
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
            let at = Counted { domains, ..Counted::default() };
            let got = even(&rule, skew, members, &at);
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
            let mut tied = vec![PodConstraints::default(); count];
            spread(&"gang".into(), &gang, &around(&nodes, &pods), &mut tied);
            let all: Vec<String> = tied.iter().map(text).collect();
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
            let mut tied = vec![PodConstraints::default(); gang.len()];
            spread(&"gang".into(), &gang, &around(&nodes, &others), &mut tied);
            let all: Vec<String> = tied.iter().map(text).collect();
            assert_eq!(all.join(" | "), expected, "{members:?} beside {there}");
        }
    }
}
