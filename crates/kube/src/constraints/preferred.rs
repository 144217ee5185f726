//! Preferred pod affinity, preferred anti-affinity, and topology spread with `ScheduleAnyway`, as preferences of the
//! planner.
//!
//! There are three translations. Affinity and anti-affinity to placed pods become weighted preferences over node
//! labels. Anti-affinity to, or spread among, pods that the selector matches like the pod itself, in this gang or
//! another, becomes a spread that the planner counts, so that many pods that come at once are spread although none of
//! them is placed yet. And affinity to members of the same gang becomes the gang's closeness.
//!
//! Deliberately not here: preferred terms of placed pods towards pods to come. And preferences are not resolved again
//! at every change of other pods: only when a gang is built, and once more before it is admitted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use muster_api::pod::{PodAffinity, TopologySpreadConstraint};
use muster_core::constraint::{Constraints, Preference, Requirement, Test};
use muster_core::gang::{GangSpec, Spread};
use muster_core::topology::Levels;

use crate::constraints::cluster_view::{
    ClusterView, Member, domain, labels, namespace, node_matches,
};
use crate::constraints::pod_constraints::PodConstraints;
use crate::constraints::selector::{NamespaceLabels, PodSelector};
use crate::objects::pod::Pod;

/// Into how many steps a weight is divided by the number of pods in a domain.
const WEIGHT_STEPS: u32 = 4;
/// The weight of a spread rule where a pod has no preferred node affinity to weigh it against.
const DEFAULT_SPREAD_WEIGHT: u8 = 100;

/// What a preferred term asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum PreferredRule {
    Affinity,
    AntiAffinity,
    TopologySpread,
}

/// One preferred term, or soft spread rule, of a pod.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct PreferredTerm {
    rule: PreferredRule,
    key: Arc<str>,
    weight: u8,
    /// The pods it is about.
    pub(crate) selector: PodSelector,
    /// Whether the selector matches the pod itself.
    matches_itself: bool,
}

impl PreferredTerm {
    /// The spread that the planner counts, if it can.
    fn spread(&self, levels: &Levels) -> Option<Spread> {
        let spreads = self.matches_itself
            && self.rule != PreferredRule::Affinity
            && levels.is_place(&self.key);
        spreads.then(|| Spread { over: self.key.clone(), among: self.selector.to_string().into() })
    }
}

/// The spread rules of a pod with `ScheduleAnyway`.
fn soft_spread_rules(pod: &Pod) -> impl Iterator<Item = &TopologySpreadConstraint> {
    let rules = pod.spec.topology_spread_constraints.iter();
    rules.filter(|rule| rule.when_unsatisfiable == "ScheduleAnyway")
}

/// Whether a pod has preferred inter-pod terms or soft spread rules.
pub(crate) fn has_preferred_terms(pod: &Pod) -> bool {
    let affinity = pod.spec.affinity.as_ref();
    let sides = |of: fn(&muster_api::pod::Affinity) -> Option<&PodAffinity>| {
        affinity.and_then(of).is_some_and(|side| !side.preferred.is_empty())
    };
    sides(|all| all.pod_affinity.as_ref())
        || sides(|all| all.pod_anti_affinity.as_ref())
        || soft_spread_rules(pod).next().is_some()
}

/// The preferred terms of a pod, wherever other pods are.
pub(crate) fn preferred_terms(
    member: &Member<'_>,
    namespace_labels: &NamespaceLabels<'_>,
) -> Vec<PreferredTerm> {
    let (pod, mut all) = (member.pod, Vec::new());
    let (here, own) = (namespace(pod), labels(pod));
    let affinity = pod.spec.affinity.as_ref();
    let sides = [
        (PreferredRule::Affinity, affinity.and_then(|affinity| affinity.pod_affinity.as_ref())),
        (
            PreferredRule::AntiAffinity,
            affinity.and_then(|affinity| affinity.pod_anti_affinity.as_ref()),
        ),
    ];
    let mut add = |rule, key: &str, weight, selector: Option<PodSelector>| {
        if let Some(selector) = selector.filter(|_| weight > 0 && !key.is_empty()) {
            let matches_itself = selector.matches(here, own, namespace_labels);
            all.push(PreferredTerm { rule, key: key.into(), weight, selector, matches_itself });
        }
    };
    for (rule, side) in sides {
        for one in side.map_or(&[][..], |side| &side.preferred) {
            let weight = u8::try_from(one.weight.clamp(0, 100)).unwrap_or(0);
            let term = &one.pod_affinity_term;
            add(rule, &term.topology_key, weight, PodSelector::of_term(term, here, own));
        }
    }
    // Spread weighs as much as all preferred node affinity together, as in Kubernetes.
    let nodes = &member.constraints.prefer;
    let of_nodes = nodes.iter().fold(0u8, |sum, one| sum.saturating_add(one.weight)).min(100);
    let weight = if of_nodes == 0 { DEFAULT_SPREAD_WEIGHT } else { of_nodes };
    for rule in soft_spread_rules(pod) {
        add(
            PreferredRule::TopologySpread,
            &rule.topology_key,
            weight,
            PodSelector::of_spread_rule(rule, here, own),
        );
    }
    all
}

/// Adds the spreads that the planner counts, wherever other pods are.
pub(crate) fn add_spread(terms: &[PreferredTerm], levels: &Levels, resolved: &mut PodConstraints) {
    for spread in terms.iter().filter_map(|one| one.spread(levels)) {
        if !resolved.spread.contains(&spread) {
            resolved.spread.push(spread);
        }
    }
}

/// Adds a member's preferences as they resolve now.
pub(crate) fn add_preferences(
    terms: &[PreferredTerm],
    member: &Member<'_>,
    gang: &[Member<'_>],
    cluster: &ClusterView<'_>,
    levels: &Levels,
    resolved: &mut PodConstraints,
) {
    for one in terms {
        let matches = |pod: &Pod| {
            one.selector.matches(namespace(pod), labels(pod), &cluster.namespace_labels)
        };
        let spread = one.spread(levels);
        // Pods that the planner counts are not counted here.
        let counted = |other: Option<&PodConstraints>| {
            let says_so = |spread| other.is_some_and(|other| other.spread.contains(spread));
            spread.as_ref().is_some_and(says_so)
        };
        let theirs =
            cluster.pods.iter().filter(|other| matches(other.pod) && !counted(other.resolved));
        let theirs = theirs.filter(|other| {
            one.rule != PreferredRule::TopologySpread || !other.pod.is_terminating()
        });
        let mut pods_by_domain: BTreeMap<Arc<str>, u32> = BTreeMap::new();
        for name in theirs.filter_map(|other| domain(other.node, &one.key)) {
            *pods_by_domain.entry(name.into()).or_default() += 1;
        }
        if one.rule != PreferredRule::Affinity {
            subtract_emptiest(&mut pods_by_domain, &one.key, member.constraints, cluster);
        }
        resolved.prefer.extend(preferences(&pods_by_domain, one));
        if one.rule == PreferredRule::Affinity
            && gang.len() > 1
            && gang.iter().any(|other| matches(other.pod))
        {
            resolved.preferred_closeness.get_or_insert_with(|| one.key.clone());
        }
    }
}

/// Subtracts from each domain the count of the emptiest domain that the member could use: it makes no difference
/// between them.
fn subtract_emptiest(
    pods_by_domain: &mut BTreeMap<Arc<str>, u32>,
    key: &str,
    constraints: &Constraints,
    cluster: &ClusterView<'_>,
) {
    if pods_by_domain.is_empty() {
        return;
    }
    let eligible = cluster.nodes.iter().filter(|node| node_matches(constraints, node));
    let eligible: BTreeSet<&str> = eligible.filter_map(|node| domain(node, key)).collect();
    let least = eligible
        .iter()
        .map(|name| pods_by_domain.get(*name).copied().unwrap_or(0))
        .min()
        .unwrap_or(0);
    pods_by_domain.retain(|_, count| {
        *count -= least.min(*count);
        *count > 0
    });
}

/// Preferences of a term about domains with these numbers of pods: the fullest counts the whole weight, others their
/// part of it.
fn preferences(
    pods_by_domain: &BTreeMap<Arc<str>, u32>,
    preferred: &PreferredTerm,
) -> Vec<Preference> {
    let Some(most) = pods_by_domain.values().copied().max() else { return Vec::new() };
    let steps = WEIGHT_STEPS.min(preferred.weight.into());
    let mut all: Vec<(u8, Vec<Arc<str>>)> = Vec::new();
    for step in 1..=steps {
        let is_so_full = |count: &u32| (steps * count).div_ceil(most) >= step;
        let full = pods_by_domain.iter().filter(|(_, count)| is_so_full(count));
        let full: Vec<Arc<str>> = full.map(|(name, _)| name.clone()).collect();
        let part = |step: u32| u32::from(preferred.weight) * step / steps;
        let weight = (part(step) - part(step - 1)) as u8;
        match all.last_mut() {
            Some((sum, same)) if *same == full => *sum += weight,
            _ => all.push((weight, full)),
        }
    }
    let term = |values| {
        let test = if preferred.rule == PreferredRule::Affinity {
            Test::In(values)
        } else {
            Test::NotIn(values)
        };
        vec![Requirement { key: preferred.key.clone(), test }]
    };
    all.into_iter().map(|(weight, full)| Preference { weight, term: term(full) }).collect()
}

/// Whether two gangs differ in nothing but preferences.
pub(crate) fn differ_only_in_preferences(one: &GangSpec, other: &GangSpec) -> bool {
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

    use crate::constraints::cluster_view::fixtures::{apps, cluster_view, node, pod, text};
    use crate::constraints::preferred::*;

    const ZONE: &str = "zone";

    /// Zones by the label of the tests' nodes.
    fn levels() -> Levels {
        Levels(vec![muster_core::topology::LevelSpec { name: ZONE.into(), label: ZONE.into() }])
    }

    fn term(weight: u32, app: &str, key: &str) -> Value {
        json!([{"weight": weight, "podAffinityTerm": {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}}])
    }

    fn affinity(weight: u32, app: &str, key: &str) -> Value {
        json!({"affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": term(weight, app, key)}}})
    }

    fn anti_affinity(weight: u32, app: &str, key: &str) -> Value {
        json!({"affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": term(weight, app, key)}}})
    }

    fn soft_spread(app: &str, key: &str) -> Value {
        json!({"topologySpreadConstraints": [{"topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": {"app": app}}}]})
    }

    fn resolve(app: &str, spec: &Value, members: usize, pods_by_domain: &str) -> PodConstraints {
        let nodes = [node("a", "1"), node("b", "2"), node("c", "2"), node("d", "")];
        let pod = pod(app, spec);
        let constraints = Constraints::default();
        let gang = vec![Member { pod: &pod, constraints: &constraints }; members];
        let others = apps(pods_by_domain, &nodes, &json!({}));
        let cluster = cluster_view(&nodes, &others);
        let mut resolved = PodConstraints::default();
        let terms = preferred_terms(&gang[0], &cluster.namespace_labels);
        add_spread(&terms, &levels(), &mut resolved);
        add_preferences(&terms, &gang[0], &gang, &cluster, &levels(), &mut resolved);
        assert_eq!(has_preferred_terms(&pod), !terms.is_empty());
        resolved
    }

    #[test]
    fn preferred_terms_become_preferences_spreads_and_closeness() {
        let host = HOSTNAME;
        // The app, its terms, how many members, the placed pods, and the outcome.
        let cases: [(&str, Value, usize, &str, &str); 17] = [
            ("db", json!({}), 2, "web@a", ""),
            ("db", affinity(50, "web", ZONE), 1, "web@b web@d", "50 zone In([2])"),
            (
                "db",
                affinity(50, "web", host),
                1,
                "web@b web@d",
                "50 kubernetes.io/hostname In([b, d])",
            ),
            ("db", affinity(50, "web", ZONE), 1, "cache@b", ""),
            // More pods count for more, in quarters.
            (
                "db",
                affinity(80, "web", ZONE),
                1,
                "web@a web@b web@b web@c",
                "40 zone In([1, 2]); 40 zone In([2])",
            ),
            // A small weight has few steps.
            ("db", affinity(1, "web", ZONE), 1, "web@a web@b web@b", "1 zone In([1, 2])"),
            ("db", anti_affinity(50, "web", ZONE), 1, "web@b", "50 zone NotIn([2])"),
            (
                "db",
                anti_affinity(50, "web", host),
                1,
                "web@a web@b web@b",
                "25 kubernetes.io/hostname NotIn([a, b]); 25 kubernetes.io/hostname NotIn([b])",
            ),
            // Pods that every domain has make no difference.
            ("db", anti_affinity(50, "web", ZONE), 1, "web@a web@b web@c", "50 zone NotIn([2])"),
            ("db", anti_affinity(50, "web", ZONE), 1, "web@a web@b", ""),
            // Terms that match the members themselves.
            ("db", affinity(50, "db", ZONE), 3, "", "close by zone"),
            ("db", affinity(50, "db", host), 1, "", ""),
            ("db", affinity(50, "db", ZONE), 3, "db@a", "50 zone In([1]); close by zone"),
            (
                "db",
                anti_affinity(50, "db", host),
                3,
                "db@a",
                "50 kubernetes.io/hostname NotIn([a]); spread over kubernetes.io/hostname with pods with app=db in here",
            ),
            (
                "db",
                soft_spread("db", ZONE),
                2,
                "db@b",
                "100 zone NotIn([2]); spread over zone with pods with app=db in here",
            ),
            ("db", soft_spread("web", host), 1, "web@b", "100 kubernetes.io/hostname NotIn([b])"),
            // `rack` is no level of the topology, so the planner cannot count by it.
            ("db", soft_spread("db", "rack"), 2, "", ""),
        ];
        for (app, spec, members, pods_by_domain, expected) in cases {
            let resolved = resolve(app, &spec, members, pods_by_domain);
            assert_eq!(text(&resolved), expected, "{spec} of {app} beside {pods_by_domain}");
            assert!(
                resolved.is_fixed(),
                "a preference is not resolved again when other pods change"
            );
        }
    }

    #[test]
    fn soft_spread_weighs_as_much_as_all_preferred_node_affinity() {
        let pod = pod("db", &soft_spread("web", ZONE));
        let fast = |weight| Preference { weight, term: Vec::new() };
        for (prefer, expected) in
            [(vec![], 100), (vec![fast(3), fast(4)], 7), (vec![fast(90); 3], 100)]
        {
            let constraints = Constraints { prefer, ..Constraints::default() };
            let member = Member { pod: &pod, constraints: &constraints };
            assert_eq!(preferred_terms(&member, &NamespaceLabels::new())[0].weight, expected);
        }
    }

    #[test]
    fn pods_that_the_planner_counts_are_not_counted_twice() {
        let nodes = [node("a", "1"), node("b", "2")];
        let one = pod("db", &soft_spread("db", HOSTNAME));
        let constraints = Constraints::default();
        let gang = [Member { pod: &one, constraints: &constraints }];
        let others = apps("db@a db@b db@b", &nodes, &json!({}));
        let mut cluster = cluster_view(&nodes, &others);
        let mut resolved = PodConstraints::default();
        let terms = preferred_terms(&gang[0], &cluster.namespace_labels);
        add_spread(&terms, &levels(), &mut resolved);
        let said = resolved.clone();
        cluster.pods[1].resolved = Some(&said);
        cluster.pods[2].resolved = Some(&said);
        add_preferences(&terms, &gang[0], &gang, &cluster, &levels(), &mut resolved);
        let rest = "spread over kubernetes.io/hostname with pods with app=db in here";
        assert_eq!(text(&resolved), format!("100 kubernetes.io/hostname NotIn([a]); {rest}"));
    }
}
