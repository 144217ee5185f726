//! Required pod anti-affinity, in both directions: pods that a member's terms match, and pods whose terms match the
//! member.
//!
//! By hostname, anti-affinity within and among gangs is a token; any other is a requirement to avoid the domains of the
//! placed pods concerned.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use muster_api::pod::PodAffinityTerm;
use muster_core::topology::HOSTNAME;

use crate::constraints::cluster_view::{ClusterView, Member, domain, labels, namespace};
use crate::constraints::pod_constraints::PodConstraints;
use crate::constraints::selector::{NamespaceLabels, PodSelector};
use crate::constraints::tokens::{TOKENS_PER_NODE, TokenKind};
use crate::objects::pod::Pod;

/// The required anti-affinity terms of a pod.
pub(crate) fn required_terms(pod: &Pod) -> &[PodAffinityTerm] {
    let anti_affinity =
        pod.spec.affinity.as_ref().and_then(|affinity| affinity.pod_anti_affinity.as_ref());
    anti_affinity.map_or(&[], |anti_affinity| &anti_affinity.required)
}

fn term_selectors(pod: &Pod) -> impl Iterator<Item = (&str, PodSelector)> {
    let with_key =
        |term: &'_ PodAffinityTerm| PodSelector::of_term(term, namespace(pod), labels(pod));
    required_terms(pod)
        .iter()
        .filter_map(move |term| Some((term.topology_key.as_str(), with_key(term)?)))
}

fn matches(selector: &PodSelector, pod: &Pod, namespace_labels: &NamespaceLabels<'_>) -> bool {
    selector.matches(namespace(pod), labels(pod), namespace_labels)
}

/// Takes the tokens that keep pods off one node: for terms by hostname that match the pod itself or members of its
/// gang. They hold among all gangs, whenever these start. A member with such a term takes all of the token, a member
/// that the term matches one unit of it.
pub(crate) fn take_tokens(
    member: &Member<'_>,
    gang: &[Member<'_>],
    namespace_labels: &NamespaceLabels<'_>,
    resolved: &mut PodConstraints,
) {
    for (_, selector) in term_selectors(member.pod).filter(|(key, _)| *key == HOSTNAME) {
        if gang.iter().any(|other| matches(&selector, other.pod, namespace_labels)) {
            resolved.take_token(TokenKind::AntiAffinity(selector.to_string()), TOKENS_PER_NODE);
        }
    }
    for other in gang.iter().filter(|other| !std::ptr::eq(other.pod, member.pod)) {
        for (_, selector) in term_selectors(other.pod).filter(|(key, _)| *key == HOSTNAME) {
            if matches(&selector, member.pod, namespace_labels) {
                resolved.take_token(TokenKind::AntiAffinity(selector.to_string()), 1);
            }
        }
    }
}

/// Excludes the domains of placed pods that a member's terms match, or whose terms match the member, where tokens do
/// not already keep them apart. Returns the topology keys over whose domains the members must be distributed, one per
/// domain.
pub(crate) fn require_anti_affinity(
    member: &Member<'_>,
    gang: &[Member<'_>],
    cluster: &ClusterView<'_>,
    resolved: &mut PodConstraints,
) -> BTreeSet<Arc<str>> {
    let mut closed: BTreeMap<&str, BTreeSet<Arc<str>>> = BTreeMap::new();
    let mut one_per_domain = BTreeSet::new();
    // Pods that hold the same token are kept apart by it.
    let same = |key: &str,
                selector: &PodSelector,
                other: Option<&PodConstraints>,
                resolved: &PodConstraints| {
        let token = TokenKind::AntiAffinity(selector.to_string());
        key == HOSTNAME
            && resolved.tokens.contains_key(&token)
            && other.is_some_and(|other| other.tokens.contains_key(&token))
    };
    for (key, selector) in term_selectors(member.pod) {
        for other in cluster
            .pods
            .iter()
            .filter(|other| matches(&selector, other.pod, &cluster.namespace_labels))
        {
            if !same(key, &selector, other.resolved, resolved) {
                closed.entry(key).or_default().extend(domain(other.node, key).map(Arc::from));
            }
        }
        let matching = gang.iter().filter(|other| !std::ptr::eq(other.pod, member.pod));
        let matching: Vec<_> = matching
            .filter(|other| matches(&selector, other.pod, &cluster.namespace_labels))
            .collect();
        if key == HOSTNAME || matching.is_empty() {
            continue;
        }
        let is_uniform = matches(&selector, member.pod, &cluster.namespace_labels)
            && gang.iter().all(|other| required_terms(other.pod) == required_terms(member.pod));
        if is_uniform {
            one_per_domain.insert(Arc::from(key));
        } else {
            resolved.wait_because(format!(
                "anti-affinity by {key} to {selector} of the same gang is not supported"
            ));
        }
    }
    for other in &cluster.pods {
        for (key, selector) in term_selectors(other.pod) {
            if matches(&selector, member.pod, &cluster.namespace_labels)
                && !same(key, &selector, other.resolved, resolved)
            {
                closed.entry(key).or_default().extend(domain(other.node, key).map(Arc::from));
            }
        }
    }
    for (key, values) in closed {
        resolved.require_not_in(key, values);
    }
    one_per_domain
}

#[cfg(test)]
mod tests {
    use muster_core::constraint::Constraints;
    use serde_json::{Value, json};

    use crate::constraints::cluster_view::fixtures::{apps, cluster_view, node, pod, text};
    use crate::constraints::pod_anti_affinity::*;

    fn anti_affinity_to(app: &str, key: &str) -> Value {
        let term = json!([{"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}]);
        json!({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term}}})
    }

    #[test]
    fn required_anti_affinity_excludes_domains_in_both_directions() {
        let nodes = [node("a", "1"), node("b", "2"), node("c", "2"), node("d", "")];
        let (host, none) = (HOSTNAME, json!({}));
        let apart = "a node without pods with app=db in here";
        // The members (app and spec), the placed pods and their spec, and the outcome for the first member.
        type Case<'a> = (&'a [(&'a str, Value)], (&'a str, Value), String);
        let cases: [Case<'_>; 8] = [
            (&[("db", anti_affinity_to("web", host))], ("web@b web@d", none.clone()), format!("{host} NotIn([b, d])")),
            (&[("db", anti_affinity_to("web", "zone"))], ("web@b web@d", none.clone()), "zone NotIn([2])".to_owned()),
            (&[("db", anti_affinity_to("web", "zone"))], ("cache@b", none.clone()), String::new()),
            // The other direction: the terms of placed pods match the member.
            (&[("db", none.clone())], ("web@b", anti_affinity_to("db", "zone")), "zone NotIn([2])".to_owned()),
            (&[("db", none.clone())], ("web@b", anti_affinity_to("other", "zone")), String::new()),
            // Pods of its own app, some of which hold no token.
            (
                &[("db", anti_affinity_to("db", host))],
                ("db@b", none.clone()),
                format!("{host} NotIn([b]); 1000000 of {apart}"),
            ),
            // Anti-affinity to another member of the gang: by hostname a token, by a wider key unsupported.
            (
                &[("web", none.clone()), ("db", anti_affinity_to("web", host))],
                ("", none.clone()),
                "1 of a node without pods with app=web in here".to_owned(),
            ),
            (
                &[("db", anti_affinity_to("web", "zone")), ("web", none.clone())],
                ("", none.clone()),
                "waits: anti-affinity by zone to pods with app=web in here of the same gang is not supported"
                    .to_owned(),
            ),
        ];
        for (members, (there, theirs), expected) in cases {
            let pods: Vec<Pod> = members.iter().map(|(app, spec)| pod(app, spec)).collect();
            let constraints = Constraints::default();
            let gang: Vec<_> =
                pods.iter().map(|pod| Member { pod, constraints: &constraints }).collect();
            let others = apps(there, &nodes, &theirs);
            let cluster = cluster_view(&nodes, &others);
            let mut resolved = PodConstraints::default();
            take_tokens(&gang[0], &gang, &cluster.namespace_labels, &mut resolved);
            require_anti_affinity(&gang[0], &gang, &cluster, &mut resolved);
            assert_eq!(text(&resolved), expected, "{members:?} beside {there}");
        }
    }

    #[test]
    fn pods_with_the_same_token_are_kept_apart_by_the_token_alone() {
        let nodes = [node("a", "1"), node("b", "2")];
        let one = pod("db", &anti_affinity_to("db", HOSTNAME));
        let constraints = Constraints::default();
        let gang = [Member { pod: &one, constraints: &constraints }];
        let others = apps("db@b", &nodes, &anti_affinity_to("db", HOSTNAME));
        let mut cluster = cluster_view(&nodes, &others);
        let mut resolved = PodConstraints::default();
        take_tokens(&gang[0], &gang, &cluster.namespace_labels, &mut resolved);
        let holder = resolved.clone();
        cluster.pods[0].resolved = Some(&holder);
        require_anti_affinity(&gang[0], &gang, &cluster, &mut resolved);
        assert_eq!(resolved, holder);
    }
}
