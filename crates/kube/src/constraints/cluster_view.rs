//! A view of the cluster for constraints: nodes, pods on their nodes, and pods that have a seat but are not bound yet.

use std::collections::BTreeSet;
use std::sync::Arc;

use muster_core::constraint::Constraints;
use muster_core::topology::HOSTNAME;

use crate::cache::kinds::KindRole;
use crate::cache::store::{Key, Store};
use crate::constraints::pod_constraints::PodConstraints;
use crate::constraints::selector::{Labels, NamespaceLabels, PodSelector};
use crate::gang::record::GangRecord;
use crate::host::Host;
use crate::objects::node::Node;
use crate::objects::pod::Pod;

/// A pod that is on a node, or has a seat there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlacedPod<'a> {
    pub(crate) pod: &'a Pod,
    pub(crate) node: &'a Node,
    /// Its own resolved constraints, if it is a member of a gang.
    pub(crate) resolved: Option<&'a PodConstraints>,
}

/// A member of the gang whose constraints are resolved.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member<'a> {
    pub(crate) pod: &'a Pod,
    /// Its node selector, node affinity and tolerations.
    pub(crate) constraints: &'a Constraints,
}

/// The nodes, and the placed pods of all other gangs and of other schedulers.
#[derive(Debug, Default)]
pub(crate) struct ClusterView<'a> {
    pub(crate) nodes: Vec<&'a Node>,
    pub(crate) pods: Vec<PlacedPod<'a>>,
    pub(crate) namespace_labels: NamespaceLabels<'a>,
}

/// The topology domain of a node by a topology key: the label's value, or for the hostname key the node's name.
pub(crate) fn domain<'a>(node: &'a Node, key: &str) -> Option<&'a str> {
    if key == HOSTNAME {
        return node.metadata.name.as_deref();
    }
    node.metadata.labels.as_ref()?.get(key).map(String::as_str)
}

pub(crate) fn labels(pod: &Pod) -> &Labels {
    static NONE: Labels = Labels::new();
    pod.metadata.labels.as_ref().unwrap_or(&NONE)
}

pub(crate) fn namespace(pod: &Pod) -> &str {
    pod.metadata.namespace.as_deref().unwrap_or("default")
}

/// Whether a node matches a pod's node selector and required node affinity.
pub(crate) fn node_matches(constraints: &Constraints, node: &Node) -> bool {
    let holds = |term: &[muster_core::constraint::Requirement]| {
        term.iter().all(|one| one.holds(domain(node, &one.key)))
    };
    holds(&constraints.all)
        && (constraints.any.is_empty() || constraints.any.iter().any(|term| holds(term)))
}

impl Host {
    /// The cluster as other gangs and pods occupy it. With `only_anti_affinity` only placed pods with required
    /// anti-affinity, and no nodes: all that matters to a gang without constraints of its own.
    pub(crate) fn cluster_view(&self, gang: &str, only_anti_affinity: bool) -> ClusterView<'_> {
        let mut cluster =
            ClusterView { namespace_labels: self.namespace_labels(), ..ClusterView::default() };
        if !only_anti_affinity {
            cluster.nodes = self.cache.nodes.iter().map(|(_, node)| &**node).collect();
        }
        cluster.pods = match only_anti_affinity {
            true => self.placed_pods(gang, self.cache.with_anti_affinity()),
            false => self.placed_pods(gang, self.cache.pods.iter()),
        };
        cluster
    }

    /// The nodes, and the placed pods outside a gang that these selectors may match. Selectors by equal labels look
    /// only at pods with those labels: most Helm charts have preferred terms for every pod, so this must be cheap.
    pub(crate) fn cluster_view_of<'a>(
        &'a self,
        gang: &str,
        selectors: &[&PodSelector],
        namespace_labels: NamespaceLabels<'a>,
    ) -> ClusterView<'a> {
        let nodes = self.cache.nodes.iter().map(|(_, node)| &**node).collect();
        let narrow: Option<Vec<_>> =
            selectors.iter().map(|selector| selector.namespaces_and_labels()).collect();
        let pods = match narrow {
            None => self.placed_pods(gang, self.cache.pods.iter()),
            Some(narrow) => {
                let mut keys = BTreeSet::new();
                for (namespaces, match_labels) in narrow {
                    for namespace in namespaces {
                        let marked = |(key, value): (&String, &String)| {
                            self.cache.pods_with_label(namespace, key, value)
                        };
                        // Only the label with the fewest pods is looked up; no pod matches if one of the labels has
                        // none.
                        let fewest: Option<Vec<_>> = match_labels.iter().map(marked).collect();
                        let fewest = fewest.into_iter().flatten().min_by_key(|keys| keys.len());
                        keys.extend(fewest.into_iter().flatten());
                    }
                }
                let pods =
                    keys.into_iter().filter_map(|key| Some((key, self.cache.pods.get(key)?)));
                self.placed_pods(gang, pods)
            }
        };
        ClusterView { nodes, pods, namespace_labels }
    }

    /// Those of these pods that are placed, without a gang's own.
    fn placed_pods<'a>(
        &'a self,
        gang: &str,
        pods: impl Iterator<Item = (&'a Key, &'a Arc<Pod>)>,
    ) -> Vec<PlacedPod<'a>> {
        let mut placed_pods = Vec::new();
        for (key, pod) in pods {
            let group = self.gangs.gang_of(key);
            if pod.is_finished() || group.is_some_and(|(name, _)| **name == *gang) {
                continue;
            }
            let resolved = group.and_then(|(_, group)| group.pod_constraints.get(key));
            let nodes = match (pod.node(), group) {
                (Some(node), _) => vec![node],
                (None, Some((name, group))) => self.expected_nodes(name, group, key),
                (None, None) => Vec::new(),
            };
            let nodes = nodes.into_iter().filter_map(|name| self.cache.nodes.get(name));
            placed_pods.extend(nodes.map(|node| PlacedPod { pod, node, resolved }));
        }
        placed_pods
    }

    /// The nodes a pod may be bound to, if it is not bound yet. Which pod of a role gets which seat is not known before
    /// seats are assigned, so these are all nodes where its gang has a seat of its role.
    fn expected_nodes<'a>(&'a self, gang: &str, group: &'a GangRecord, key: &str) -> Vec<&'a str> {
        if let Some(node) = group.assigned_nodes.get(key) {
            return vec![node];
        }
        let Some(role) = group.pod_roles.get(key) else { return Vec::new() };
        let gang = self.world.gang_named(gang).and_then(|id| self.world.gang(id));
        let seats = gang.into_iter().flat_map(|gang| &gang.seats);
        let mine = seats.filter(|seat| seat.role == *role);
        let mut nodes: Vec<&str> =
            mine.filter_map(|seat| self.world.node_name(seat.node)).map(|name| &**name).collect();
        nodes.dedup();
        nodes
    }

    /// The labels of each namespace in the cache.
    pub(crate) fn namespace_labels(&self) -> NamespaceLabels<'_> {
        static NONE: Labels = Labels::new();
        let shelf = self.sources.of(KindRole::Namespace).and_then(|of| self.cache.others.get(&of));
        let all = shelf.into_iter().flat_map(Store::iter);
        all.map(|(name, namespace)| (&**name, namespace.metadata.labels.as_ref().unwrap_or(&NONE)))
            .collect()
    }
}

/// Nodes and pods for tests, in short notation.
#[cfg(test)]
pub(crate) mod fixtures {
    use serde_json::{Value, json};

    use crate::constraints::cluster_view::*;

    /// A node in a zone.
    pub(crate) fn node(name: &str, zone: &str) -> Node {
        let labels = match zone {
            "" => json!({}),
            zone => json!({"zone": zone}),
        };
        serde_json::from_value(json!({"metadata": {"name": name, "labels": labels}}))
            .expect("a node")
    }

    /// A pod of an app with these fields in its spec.
    pub(crate) fn pod(app: &str, spec: &Value) -> Pod {
        let pod = json!({"metadata": {"namespace": "here", "labels": {"app": app}}, "spec": spec});
        serde_json::from_value(pod).expect("a pod")
    }

    /// Apps on nodes: `web@a db@b`.
    pub(crate) fn apps(text: &str, nodes: &[Node], spec: &Value) -> Vec<(Pod, Node)> {
        let one = |word: &str| {
            let (app, at) = word.split_once('@').expect("app@node");
            let node = nodes.iter().find(|node| node.metadata.name.as_deref() == Some(at));
            (pod(app, spec), node.expect("a node").clone())
        };
        text.split_whitespace().map(one).collect()
    }

    pub(crate) fn cluster_view<'a>(nodes: &'a [Node], pods: &'a [(Pod, Node)]) -> ClusterView<'a> {
        ClusterView {
            nodes: nodes.iter().collect(),
            pods: pods.iter().map(|(pod, node)| PlacedPod { pod, node, resolved: None }).collect(),
            namespace_labels: NamespaceLabels::new(),
        }
    }

    /// Resolved constraints as text.
    pub(crate) fn text(resolved: &PodConstraints) -> String {
        let mut constraints = Constraints::default();
        let mut resolved = resolved.clone();
        let (waits, near) = (resolved.wait_reason.take(), resolved.required_closeness.clone());
        resolved.apply_to(&mut constraints);
        let both = constraints.any.iter().flatten().chain(&constraints.all);
        let mut all: Vec<String> =
            both.map(|one| format!("{} {:?}", one.key, one.test).replace('"', "")).collect();
        all.extend(resolved.tokens.iter().map(|(kind, amount)| format!("{amount} of {kind}")));
        all.extend(near.map(|key| format!("near by {key}")));
        all.extend(resolved.prefer.iter().map(|preference| {
            let one = &preference.term[0];
            format!("{} {} {:?}", preference.weight, one.key, one.test).replace('"', "")
        }));
        let spread = resolved.spread.iter();
        all.extend(spread.map(|one| format!("spread over {} with {}", one.over, one.among)));
        all.extend(resolved.preferred_closeness.iter().map(|key| format!("close by {key}")));
        all.extend(waits.map(|why| format!("waits: {why}")));
        all.join("; ")
    }
}
