//! Required affinity: where those pods are that it must be near.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::constraints::cluster_view::{ClusterView, Member, domain, labels, namespace};
use crate::constraints::pod_constraints::PodConstraints;
use crate::constraints::selector::PodSelector;

/// Puts a member near those it must be near. Where there are none yet, the first of a kind may begin anywhere, as long as
/// they are those it waits for: members of a gang begin together, and so in one place.
pub(crate) fn near(
    member: &Member<'_>,
    gang: &[Member<'_>],
    around: &ClusterView<'_>,
    tied: &mut PodConstraints,
) {
    let affinity = member.pod.spec.affinity.as_ref();
    let terms = affinity.and_then(|affinity| affinity.pod_affinity.as_ref());
    let terms = terms.map_or(&[][..], |near| &near.required[..]);
    if terms.is_empty() {
        return;
    }
    let (here, own) = (namespace(member.pod), labels(member.pod));
    let scopes: Option<Vec<PodSelector>> =
        terms.iter().map(|term| PodSelector::of(term, here, own)).collect();
    let Some(scopes) = scopes else {
        return tied.wait("must be near pods that it does not name".to_owned());
    };
    // Who counts is meant by every term, not by one each: so it is in Kubernetes.
    let meant = |pod: &crate::objects::pod::Pod| {
        scopes.iter().all(|scope| scope.has(namespace(pod), labels(pod), &around.spaces))
    };
    let theirs: Vec<_> = around.pods.iter().filter(|other| meant(other.pod)).collect();
    for (term, scope) in terms.iter().zip(&scopes) {
        let key = term.topology_key.as_str();
        let domains = theirs.iter().filter_map(|other| domain(other.node, key));
        let domains: BTreeSet<Arc<str>> = domains.map(Arc::from).collect();
        if !domains.is_empty() {
            tied.only(key, domains);
        } else if theirs.is_empty() && gang.iter().any(|other| meant(other.pod)) {
            tied.has(key);
            if gang.len() > 1 {
                tied.near = Some(key.into());
            }
        } else {
            tied.wait(format!("must be near {scope} by {key}, and none is anywhere"));
        }
    }
}

#[cfg(test)]
mod tests {
    use muster_core::constraint::Constraints;
    use serde_json::json;

    use crate::constraints::cluster_view::play::{apps, around, node, pod, text};
    use crate::constraints::pod_affinity::*;

    #[test]
    fn members_go_where_those_are_that_they_must_be_near() {
        let nodes = [node("a", "1"), node("b", "2"), node("c", "2"), node("d", "")];
        let zone =
            json!([{"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}]);
        let host = json!([{"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}]);
        // The terms, whose they are, how many of them there are, who is where, and what comes of it.
        let cases = [
            (&zone, "db", 1, "web@b web@c db@a", "zone In([2])"),
            (&host, "db", 1, "web@b web@c db@a", "kubernetes.io/hostname In([b, c])"),
            (
                &zone,
                "db",
                1,
                "db@a",
                "waits: must be near pods with app=web in here by zone, and none is anywhere",
            ),
            // On a node without the label, they are in no zone.
            (
                &zone,
                "db",
                1,
                "web@d",
                "waits: must be near pods with app=web in here by zone, and none is anywhere",
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
            let mut tied = PodConstraints::default();
            near(&gang[0], &gang, &around(&nodes, &pods), &mut tied);
            assert_eq!(text(&tied), expected, "{count} {app} beside {there}");
        }
    }
}
