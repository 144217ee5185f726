//! Required anti-affinity, both ways: whom a member must not meet, and who must not meet it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use muster_api::pod::PodTerm;
use muster_core::topology::HOSTNAME;

use crate::constraints::cluster_view::{ClusterView, Member, domain, labels, namespace};
use crate::constraints::pod_constraints::PodConstraints;
use crate::constraints::selector::{PodSelector, Spaces};
use crate::constraints::tokens::{Meaning, WHOLE};
use crate::objects::pod::Pod;

/// What a pod must not meet.
pub(crate) fn terms(pod: &Pod) -> &[PodTerm] {
    let away = pod.spec.affinity.as_ref().and_then(|affinity| affinity.pod_anti_affinity.as_ref());
    away.map_or(&[], |away| &away.required)
}

fn scopes(pod: &Pod) -> impl Iterator<Item = (&str, PodSelector)> {
    let with_key = |term: &'_ PodTerm| PodSelector::of(term, namespace(pod), labels(pod));
    terms(pod).iter().filter_map(move |term| Some((term.topology_key.as_str(), with_key(term)?)))
}

fn has(scope: &PodSelector, pod: &Pod, spaces: &Spaces<'_>) -> bool {
    scope.has(namespace(pod), labels(pod), spaces)
}

/// Tokens that keep pods off one node: of those who would not meet their like, or others of their gang. They hold among
/// all gangs, whenever these start. A member that minds takes all of the token, one that is minded a little of it.
pub(crate) fn tokens(
    member: &Member<'_>,
    gang: &[Member<'_>],
    spaces: &Spaces<'_>,
    tied: &mut PodConstraints,
) {
    for (_, scope) in scopes(member.pod).filter(|(key, _)| *key == HOSTNAME) {
        if gang.iter().any(|other| has(&scope, other.pod, spaces)) {
            tied.take(Meaning::Apart(scope.to_string()), WHOLE);
        }
    }
    for other in gang.iter().filter(|other| !std::ptr::eq(other.pod, member.pod)) {
        for (_, scope) in scopes(other.pod).filter(|(key, _)| *key == HOSTNAME) {
            if has(&scope, member.pod, spaces) {
                tied.take(Meaning::Apart(scope.to_string()), 1);
            }
        }
    }
}

/// Keeps a member away from those it must not meet and those who must not meet it, where tokens do not. Says which label
/// the members of the gang must be dealt out over, one each.
pub(crate) fn away(
    member: &Member<'_>,
    gang: &[Member<'_>],
    around: &ClusterView<'_>,
    tied: &mut PodConstraints,
) -> BTreeSet<Arc<str>> {
    let mut closed: BTreeMap<&str, BTreeSet<Arc<str>>> = BTreeMap::new();
    let mut one_each = BTreeSet::new();
    // Who holds the same token is kept away by it.
    let same =
        |key: &str, scope: &PodSelector, other: Option<&PodConstraints>, tied: &PodConstraints| {
            let token = Meaning::Apart(scope.to_string());
            key == HOSTNAME
                && tied.takes.contains_key(&token)
                && other.is_some_and(|other| other.takes.contains_key(&token))
        };
    for (key, scope) in scopes(member.pod) {
        for other in around.pods.iter().filter(|other| has(&scope, other.pod, &around.spaces)) {
            if !same(key, &scope, other.tied, tied) {
                closed.entry(key).or_default().extend(domain(other.node, key).map(Arc::from));
            }
        }
        let met = gang.iter().filter(|other| !std::ptr::eq(other.pod, member.pod));
        let met: Vec<_> = met.filter(|other| has(&scope, other.pod, &around.spaces)).collect();
        if key == HOSTNAME || met.is_empty() {
            continue;
        }
        let alike = has(&scope, member.pod, &around.spaces)
            && gang.iter().all(|other| terms(other.pod) == terms(member.pod));
        if alike {
            one_each.insert(Arc::from(key));
        } else {
            tied.wait(format!(
                "members must not meet {scope} of the same gang by {key}, which is not understood"
            ));
        }
    }
    for other in &around.pods {
        for (key, scope) in scopes(other.pod) {
            if has(&scope, member.pod, &around.spaces) && !same(key, &scope, other.tied, tied) {
                closed.entry(key).or_default().extend(domain(other.node, key).map(Arc::from));
            }
        }
    }
    for (key, values) in closed {
        tied.not(key, values);
    }
    one_each
}

#[cfg(test)]
mod tests {
    use muster_core::constraint::Constraints;
    use serde_json::{Value, json};

    use crate::constraints::cluster_view::play::{apps, around, node, pod, text};
    use crate::constraints::pod_anti_affinity::*;

    fn minds(app: &str, key: &str) -> Value {
        let term = json!([{"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}]);
        json!({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term}}})
    }

    #[test]
    fn nobody_meets_whom_it_must_not() {
        let nodes = [node("a", "1"), node("b", "2"), node("c", "2"), node("d", "")];
        let (host, none) = (HOSTNAME, json!({}));
        let apart = "a node without pods with app=db in here";
        // The members (app and what they mind), who is where and what they mind, and what comes of the first member.
        type Case<'a> = (&'a [(&'a str, Value)], (&'a str, Value), String);
        let cases: [Case<'_>; 8] = [
            (&[("db", minds("web", host))], ("web@b web@d", none.clone()), format!("{host} NotIn([b, d])")),
            (&[("db", minds("web", "zone"))], ("web@b web@d", none.clone()), "zone NotIn([2])".to_owned()),
            (&[("db", minds("web", "zone"))], ("cache@b", none.clone()), String::new()),
            // The other way round.
            (&[("db", none.clone())], ("web@b", minds("db", "zone")), "zone NotIn([2])".to_owned()),
            (&[("db", none.clone())], ("web@b", minds("other", "zone")), String::new()),
            // Its like, which others may be that have no token.
            (
                &[("db", minds("db", host))],
                ("db@b", none.clone()),
                format!("{host} NotIn([b]); 1000000 of {apart}"),
            ),
            // One that minds others of its gang, and one that is minded.
            (
                &[("web", none.clone()), ("db", minds("web", host))],
                ("", none.clone()),
                "1 of a node without pods with app=web in here".to_owned(),
            ),
            (
                &[("db", minds("web", "zone")), ("web", none.clone())],
                ("", none.clone()),
                "waits: members must not meet pods with app=web in here of the same gang by zone, which is not understood"
                    .to_owned(),
            ),
        ];
        for (members, (there, theirs), expected) in cases {
            let pods: Vec<Pod> = members.iter().map(|(app, spec)| pod(app, spec)).collect();
            let constraints = Constraints::default();
            let gang: Vec<_> =
                pods.iter().map(|pod| Member { pod, constraints: &constraints }).collect();
            let others = apps(there, &nodes, &theirs);
            let around = around(&nodes, &others);
            let mut tied = PodConstraints::default();
            tokens(&gang[0], &gang, &around.spaces, &mut tied);
            away(&gang[0], &gang, &around, &mut tied);
            assert_eq!(text(&tied), expected, "{members:?} beside {there}");
        }
    }

    #[test]
    fn who_holds_the_same_token_is_kept_away_by_it_alone() {
        let nodes = [node("a", "1"), node("b", "2")];
        let one = pod("db", &minds("db", HOSTNAME));
        let constraints = Constraints::default();
        let gang = [Member { pod: &one, constraints: &constraints }];
        let others = apps("db@b", &nodes, &minds("db", HOSTNAME));
        let mut around = around(&nodes, &others);
        let mut tied = PodConstraints::default();
        tokens(&gang[0], &gang, &around.spaces, &mut tied);
        let holder = tied.clone();
        around.pods[0].tied = Some(&holder);
        away(&gang[0], &gang, &around, &mut tied);
        assert_eq!(tied, holder);
    }
}
