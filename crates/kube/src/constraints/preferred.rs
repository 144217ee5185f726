//! What pods wish of their neighbours and need not have: preferred affinity and anti-affinity, and spreading that is
//! scheduled anyway.
//!
//! Wishes go three ways. Being near, or away from, pods that are somewhere becomes weighted preferences over node labels.
//! Keeping off pods of the same kind, in this gang or another, becomes a word that the planner counts itself, so that many
//! that come at once are spread although none of them is anywhere yet. And being near members of the own gang becomes its
//! closeness.
//!
//! Deliberately not here: what pods that are somewhere wish of those to come. And nothing here is looked at whenever
//! somebody moves: wishes are resolved when a gang is gathered, and once more before it is admitted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use muster_api::pod::{PodAffinity, SpreadConstraint};
use muster_core::constraint::{Constraints, Preference, Requirement, Test};
use muster_core::gang::{GangSpec, Spread};
use muster_core::topology::Levels;

use crate::constraints::cluster_view::{ClusterView, Member, domain, labels, namespace, suits};
use crate::constraints::pod_constraints::PodConstraints;
use crate::constraints::selector::{PodSelector, Spaces};
use crate::objects::pod::Pod;

/// How finely it counts that there are more pods in one domain than in another.
const STEPS: u32 = 4;
/// What spreading counts where a pod has no wishes about nodes to weigh it against.
const SPREADING: u8 = 100;

/// What a wish is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SoftRule {
    Near,
    Away,
    Even,
}

/// One wish of a pod.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct PreferredTerms {
    wish: SoftRule,
    key: Arc<str>,
    weight: u8,
    /// Whom it is about.
    pub(crate) scope: PodSelector,
    /// Whether that is itself as well.
    is_own: bool,
}

impl PreferredTerms {
    /// How the planner is told to spread pods, if it can.
    fn spread(&self, levels: &Levels) -> Option<Spread> {
        let spreads = self.is_own && self.wish != SoftRule::Near && levels.is_place(&self.key);
        spreads.then(|| Spread { over: self.key.clone(), among: self.scope.to_string().into() })
    }
}

/// What should be kept and need not.
fn rules(pod: &Pod) -> impl Iterator<Item = &SpreadConstraint> {
    let rules = pod.spec.topology_spread_constraints.iter();
    rules.filter(|rule| rule.when_unsatisfiable == "ScheduleAnyway")
}

/// Whether a pod has wishes about its neighbours.
pub(crate) fn has_wishes(pod: &Pod) -> bool {
    let affinity = pod.spec.affinity.as_ref();
    let sides = |of: fn(&muster_api::pod::Affinity) -> Option<&PodAffinity>| {
        affinity.and_then(of).is_some_and(|side| !side.preferred.is_empty())
    };
    sides(|all| all.pod_affinity.as_ref())
        || sides(|all| all.pod_anti_affinity.as_ref())
        || rules(pod).next().is_some()
}

/// The wishes of a pod, whoever else is where.
pub(crate) fn wishes(member: &Member<'_>, spaces: &Spaces<'_>) -> Vec<PreferredTerms> {
    let (pod, mut all) = (member.pod, Vec::new());
    let (here, own) = (namespace(pod), labels(pod));
    let affinity = pod.spec.affinity.as_ref();
    let sides = [
        (SoftRule::Near, affinity.and_then(|affinity| affinity.pod_affinity.as_ref())),
        (SoftRule::Away, affinity.and_then(|affinity| affinity.pod_anti_affinity.as_ref())),
    ];
    let mut add = |wish, key: &str, weight, scope: Option<PodSelector>| {
        if let Some(scope) = scope.filter(|_| weight > 0 && !key.is_empty()) {
            let is_own = scope.has(here, own, spaces);
            all.push(PreferredTerms { wish, key: key.into(), weight, scope, is_own });
        }
    };
    for (wish, side) in sides {
        for one in side.map_or(&[][..], |side| &side.preferred) {
            let weight = u8::try_from(one.weight.clamp(0, 100)).unwrap_or(0);
            let term = &one.pod_affinity_term;
            add(wish, &term.topology_key, weight, PodSelector::of(term, here, own));
        }
    }
    // As much as all that it wishes of nodes: so it is in Kubernetes.
    let nodes = &member.constraints.prefer;
    let of_nodes = nodes.iter().fold(0u8, |sum, one| sum.saturating_add(one.weight)).min(100);
    let weight = if of_nodes == 0 { SPREADING } else { of_nodes };
    for rule in rules(pod) {
        add(SoftRule::Even, &rule.topology_key, weight, PodSelector::of_rule(rule, here, own));
    }
    all
}

/// The words in which members should be spread, whoever else is where.
pub(crate) fn spread(wished: &[PreferredTerms], levels: &Levels, tied: &mut PodConstraints) {
    for spread in wished.iter().filter_map(|one| one.spread(levels)) {
        if !tied.spread.contains(&spread) {
            tied.spread.push(spread);
        }
    }
}

/// What a member's wishes come to now.
pub(crate) fn hear(
    wished: &[PreferredTerms],
    member: &Member<'_>,
    gang: &[Member<'_>],
    around: &ClusterView<'_>,
    levels: &Levels,
    tied: &mut PodConstraints,
) {
    for one in wished {
        let means = |pod: &Pod| one.scope.has(namespace(pod), labels(pod), &around.spaces);
        let word = one.spread(levels);
        // Whom the planner counts is not counted here.
        let counted = |other: Option<&PodConstraints>| {
            let says_so = |word| other.is_some_and(|other| other.spread.contains(word));
            word.as_ref().is_some_and(says_so)
        };
        let theirs = around.pods.iter().filter(|other| means(other.pod) && !counted(other.tied));
        let theirs = theirs.filter(|other| one.wish != SoftRule::Even || !other.pod.is_leaving());
        let mut there: BTreeMap<Arc<str>, u32> = BTreeMap::new();
        for name in theirs.filter_map(|other| domain(other.node, &one.key)) {
            *there.entry(name.into()).or_default() += 1;
        }
        if one.wish != SoftRule::Near {
            only_more_than_least(&mut there, &one.key, member.constraints, around);
        }
        tied.prefer.extend(preferences(&there, one));
        if one.wish == SoftRule::Near && gang.len() > 1 && gang.iter().any(|other| means(other.pod))
        {
            tied.close.get_or_insert_with(|| one.key.clone());
        }
    }
}

/// Takes from each domain what even the emptiest has that the member could use: it tells none from another.
fn only_more_than_least(
    there: &mut BTreeMap<Arc<str>, u32>,
    key: &str,
    constraints: &Constraints,
    around: &ClusterView<'_>,
) {
    if there.is_empty() {
        return;
    }
    let open = around.nodes.iter().filter(|node| suits(constraints, node));
    let open: BTreeSet<&str> = open.filter_map(|node| domain(node, key)).collect();
    let least = open.iter().map(|name| there.get(*name).copied().unwrap_or(0)).min().unwrap_or(0);
    there.retain(|_, count| {
        *count -= least.min(*count);
        *count > 0
    });
}

/// A wish about domains with so many pods in each: the fullest counts all of its weight, others their part of it.
fn preferences(there: &BTreeMap<Arc<str>, u32>, wished: &PreferredTerms) -> Vec<Preference> {
    let Some(most) = there.values().copied().max() else { return Vec::new() };
    let steps = STEPS.min(wished.weight.into());
    let mut all: Vec<(u8, Vec<Arc<str>>)> = Vec::new();
    for step in 1..=steps {
        let is_so_full = |count: &u32| (steps * count).div_ceil(most) >= step;
        let full = there.iter().filter(|(_, count)| is_so_full(count));
        let full: Vec<Arc<str>> = full.map(|(name, _)| name.clone()).collect();
        let part = |step: u32| u32::from(wished.weight) * step / steps;
        let weight = (part(step) - part(step - 1)) as u8;
        match all.last_mut() {
            Some((sum, same)) if *same == full => *sum += weight,
            _ => all.push((weight, full)),
        }
    }
    let term = |values| {
        let test =
            if wished.wish == SoftRule::Near { Test::In(values) } else { Test::NotIn(values) };
        vec![Requirement { key: wished.key.clone(), test }]
    };
    all.into_iter().map(|(weight, full)| Preference { weight, term: term(full) }).collect()
}

/// Whether two gangs differ in nothing but what they wish.
pub(crate) fn is_same_but_for_wishes(one: &GangSpec, other: &GangSpec) -> bool {
    let without = |spec: &GangSpec| {
        let mut spec = spec.clone();
        for role in &mut spec.roles {
            role.constraints.prefer.clear();
            role.spread.clear();
        }
        spec.closeness.take_if(|said| matches!(said, muster_core::gang::Closeness::Preferred(_)));
        spec
    };
    one.roles.len() == other.roles.len() && without(one) == without(other)
}

#[cfg(test)]
mod tests {
    use muster_core::topology::HOSTNAME;
    use serde_json::{Value, json};

    use crate::constraints::cluster_view::play::{apps, around, node, pod, text};
    use crate::constraints::preferred::*;

    const ZONE: &str = "zone";

    /// Zones by the label that nodes of tests have.
    fn levels() -> Levels {
        Levels(vec![muster_core::topology::LevelSpec { name: ZONE.into(), label: ZONE.into() }])
    }

    fn term(weight: u32, app: &str, key: &str) -> Value {
        json!([{"weight": weight, "podAffinityTerm": {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}}])
    }

    fn near(weight: u32, app: &str, key: &str) -> Value {
        json!({"affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": term(weight, app, key)}}})
    }

    fn away(weight: u32, app: &str, key: &str) -> Value {
        json!({"affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": term(weight, app, key)}}})
    }

    fn even(app: &str, key: &str) -> Value {
        json!({"topologySpreadConstraints": [{"topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": {"app": app}}}]})
    }

    fn heard(app: &str, spec: &Value, members: usize, there: &str) -> PodConstraints {
        let nodes = [node("a", "1"), node("b", "2"), node("c", "2"), node("d", "")];
        let pod = pod(app, spec);
        let constraints = Constraints::default();
        let gang = vec![Member { pod: &pod, constraints: &constraints }; members];
        let others = apps(there, &nodes, &json!({}));
        let around = around(&nodes, &others);
        let mut tied = PodConstraints::default();
        let wished = wishes(&gang[0], &around.spaces);
        spread(&wished, &levels(), &mut tied);
        hear(&wished, &gang[0], &gang, &around, &levels(), &mut tied);
        assert_eq!(has_wishes(&pod), !wished.is_empty());
        tied
    }

    #[test]
    fn wishes_become_preferences_words_and_closeness() {
        let host = HOSTNAME;
        // Whose wishes, how many members, who is where, and what comes of it.
        let cases: [(&str, Value, usize, &str, &str); 17] = [
            ("db", json!({}), 2, "web@a", ""),
            ("db", near(50, "web", ZONE), 1, "web@b web@d", "50 zone In([2])"),
            ("db", near(50, "web", host), 1, "web@b web@d", "50 kubernetes.io/hostname In([b, d])"),
            ("db", near(50, "web", ZONE), 1, "cache@b", ""),
            // More pods count for more, in quarters.
            (
                "db",
                near(80, "web", ZONE),
                1,
                "web@a web@b web@b web@c",
                "40 zone In([1, 2]); 40 zone In([2])",
            ),
            // What weighs little has few steps.
            ("db", near(1, "web", ZONE), 1, "web@a web@b web@b", "1 zone In([1, 2])"),
            ("db", away(50, "web", ZONE), 1, "web@b", "50 zone NotIn([2])"),
            (
                "db",
                away(50, "web", host),
                1,
                "web@a web@b web@b",
                "25 kubernetes.io/hostname NotIn([a, b]); 25 kubernetes.io/hostname NotIn([b])",
            ),
            // What all of them have tells none from another.
            ("db", away(50, "web", ZONE), 1, "web@a web@b web@c", "50 zone NotIn([2])"),
            ("db", away(50, "web", ZONE), 1, "web@a web@b", ""),
            // Of themselves.
            ("db", near(50, "db", ZONE), 3, "", "close by zone"),
            ("db", near(50, "db", host), 1, "", ""),
            ("db", near(50, "db", ZONE), 3, "db@a", "50 zone In([1]); close by zone"),
            (
                "db",
                away(50, "db", host),
                3,
                "db@a",
                "50 kubernetes.io/hostname NotIn([a]); spread over kubernetes.io/hostname with pods with app=db in here",
            ),
            (
                "db",
                even("db", ZONE),
                2,
                "db@b",
                "100 zone NotIn([2]); spread over zone with pods with app=db in here",
            ),
            ("db", even("web", host), 1, "web@b", "100 kubernetes.io/hostname NotIn([b])"),
            // The planner cannot tell these apart.
            ("db", even("db", "rack"), 2, "", ""),
        ];
        for (app, spec, members, there, expected) in cases {
            let tied = heard(app, &spec, members, there);
            assert_eq!(text(&tied), expected, "{spec} of {app} beside {there}");
            assert!(tied.is_fixed(), "a wish is nothing to be looked at whenever somebody moves");
        }
    }

    #[test]
    fn spreading_counts_as_much_as_all_wishes_about_nodes() {
        let pod = pod("db", &even("web", ZONE));
        let fast = |weight| Preference { weight, term: Vec::new() };
        for (prefer, expected) in
            [(vec![], 100), (vec![fast(3), fast(4)], 7), (vec![fast(90); 3], 100)]
        {
            let constraints = Constraints { prefer, ..Constraints::default() };
            let member = Member { pod: &pod, constraints: &constraints };
            assert_eq!(wishes(&member, &Spaces::new())[0].weight, expected);
        }
    }

    #[test]
    fn whom_the_planner_counts_is_not_counted_twice() {
        let nodes = [node("a", "1"), node("b", "2")];
        let one = pod("db", &even("db", HOSTNAME));
        let constraints = Constraints::default();
        let gang = [Member { pod: &one, constraints: &constraints }];
        let others = apps("db@a db@b db@b", &nodes, &json!({}));
        let mut around = around(&nodes, &others);
        let mut tied = PodConstraints::default();
        let wished = wishes(&gang[0], &around.spaces);
        spread(&wished, &levels(), &mut tied);
        let said = tied.clone();
        around.pods[1].tied = Some(&said);
        around.pods[2].tied = Some(&said);
        hear(&wished, &gang[0], &gang, &around, &levels(), &mut tied);
        let rest = "spread over kubernetes.io/hostname with pods with app=db in here";
        assert_eq!(text(&tied), format!("100 kubernetes.io/hostname NotIn([a]); {rest}"));
    }
}
