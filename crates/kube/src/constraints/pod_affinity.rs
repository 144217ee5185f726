//! Required pod affinity: restricts a member to the topology domains of the pods it must be near.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::constraints::cluster_view::{ClusterView, Member, domain, labels, namespace};
use crate::constraints::pod_constraints::PodConstraints;
use crate::constraints::selector::PodSelector;

/// Restricts a member to domains that have pods which its required affinity terms match. When no such pod is placed
/// yet, and the terms match members of the gang itself, they may start in any domain that has the label: all of them in
/// one domain, because members of a gang start together.
pub(crate) fn require_affinity(
    member: &Member<'_>,
    gang: &[Member<'_>],
    cluster: &ClusterView<'_>,
    resolved: &mut PodConstraints,
) {
    let affinity = member.pod.spec.affinity.as_ref();
    let terms = affinity.and_then(|affinity| affinity.pod_affinity.as_ref());
    let terms = terms.map_or(&[][..], |affinity| &affinity.required[..]);
    if terms.is_empty() {
        return;
    }
    let (here, own) = (namespace(member.pod), labels(member.pod));
    let selectors: Option<Vec<PodSelector>> =
        terms.iter().map(|term| PodSelector::of_term(term, here, own)).collect();
    let Some(selectors) = selectors else {
        return resolved.wait_because("required pod affinity has no label selector".to_owned());
    };
    // A pod counts only if every term matches it, as in Kubernetes.
    let matches = |pod: &crate::objects::pod::Pod| {
        selectors.iter().all(|selector| {
            selector.matches(namespace(pod), labels(pod), &cluster.namespace_labels)
        })
    };
    let matching: Vec<_> = cluster.pods.iter().filter(|other| matches(other.pod)).collect();
    for (term, selector) in terms.iter().zip(&selectors) {
        let key = term.topology_key.as_str();
        let domains = matching.iter().filter_map(|other| domain(other.node, key));
        let domains: BTreeSet<Arc<str>> = domains.map(Arc::from).collect();
        if !domains.is_empty() {
            resolved.require_in(key, domains);
        } else if matching.is_empty() && gang.iter().any(|other| matches(other.pod)) {
            resolved.require_label(key);
            if gang.len() > 1 {
                resolved.required_closeness = Some(key.into());
            }
        } else {
            resolved
                .wait_because(format!("required pod affinity by {key}: no {selector} are placed"));
        }
    }
}

#[cfg(test)]
mod tests {
    use muster_core::constraint::Constraints;
    use serde_json::json;

    use crate::constraints::cluster_view::fixtures::{apps, cluster_view, node, pod, text};
    use crate::constraints::pod_affinity::*;

    #[test]
    fn required_affinity_restricts_members_to_domains_of_matching_pods() {
        let nodes = [node("a", "1"), node("b", "2"), node("c", "2"), node("d", "")];
        let zone =
            json!([{"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}]);
        let host = json!([{"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}]);
        // The terms, the app of the members, how many members, the placed pods, and the outcome.
        let cases = [
            (&zone, "db", 1, "web@b web@c db@a", "zone In([2])"),
            (&host, "db", 1, "web@b web@c db@a", "kubernetes.io/hostname In([b, c])"),
            (
                &zone,
                "db",
                1,
                "db@a",
                "waits: required pod affinity by zone: no pods with app=web in here are placed",
            ),
            // A pod on a node without the label is in no zone.
            (
                &zone,
                "db",
                1,
                "web@d",
                "waits: required pod affinity by zone: no pods with app=web in here are placed",
            ),
            (&zone, "web", 1, "", "zone Exists"),
            (&zone, "web", 3, "", "zone Exists; near by zone"),
            (&host, "web", 3, "", "near by kubernetes.io/hostname"),
            (&zone, "web", 3, "web@a", "zone In([1])"),
        ];
        for (terms, app, count, there, expected) in cases {
            let spec = json!({"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}});
            let pod = pod(app, &spec);
            let constraints = Constraints::default();
            let gang = vec![Member { pod: &pod, constraints: &constraints }; count];
            let pods = apps(there, &nodes, &json!({}));
            let mut resolved = PodConstraints::default();
            require_affinity(&gang[0], &gang, &cluster_view(&nodes, &pods), &mut resolved);
            assert_eq!(text(&resolved), expected, "{count} {app} beside {there}");
        }
    }
}
