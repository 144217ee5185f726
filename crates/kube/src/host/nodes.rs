//! Nodes become nodes, without what pods of others take of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use muster_core::Event;
use muster_core::constraint::Taint;
use muster_core::id::ClaimId;
use muster_core::node::NodeSpec;
use muster_core::order::Place;

use super::Host;
use super::groups::Group;
use crate::intake::node::{Foreign, node_spec};
use crate::karpenter::CLAIM;
use crate::objects::{Node, Pod};
use crate::shelf::Key;

impl Host {
    /// Looks at a node again: it has changed, or what others have on it has.
    pub(super) fn look_at_node(&mut self, name: &Arc<str>) {
        let Some(node) = self.mirror.nodes.get(name).cloned() else {
            if self.world.node_named(name).is_some() {
                self.happened(&Event::NodeGone(name.clone()));
            }
            self.seen_nodes.remove(name);
            self.taken_node_is_gone(name);
            return;
        };
        if self.is_being_taken(name, &node) {
            return;
        }
        let claim = self.claim_of(&node);
        let gpu = claim.and_then(|id| {
            let claim = self.world.claims().get(&id)?;
            self.world.offering(claim.offering).spec.gpu.clone()
        });
        let foreign = self.foreign_on(name);
        let tokens = self.tokens_on(name, &node);
        let claimed = claim.map(|id| (id, gpu.as_ref()));
        match node_spec(&node, tokens, &foreign, claimed, &self.config.gpus) {
            Ok(mut spec) => {
                spec.ready &= !claim.is_some_and(|id| self.is_being_set_up(id, &spec.taints));
                if self.seen_nodes.get(&spec.name) != Some(&spec)
                    || self.world.node_named(name).is_none()
                {
                    let was = self.seen_nodes.insert(spec.name.clone(), spec.clone());
                    let takes =
                        |was: &NodeSpec| (was.ready, &was.taints) == (spec.ready, &spec.taints);
                    let is_news = !was.as_ref().is_some_and(takes);
                    self.happened(&Event::NodeSeen(spec));
                    if is_news {
                        self.look_at_gangs_on(name);
                    }
                }
            }
            Err(why) => {
                // A node that cannot be understood takes nobody; those on it are not its fault.
                tracing::warn!(node = &**name, why, "a node cannot be understood");
            }
        }
    }

    /// Gangs with seats on a node are looked at again: members that wait may go there now, or may not any more.
    fn look_at_gangs_on(&mut self, name: &str) {
        let Some(node) = self.world.node_named(name) else { return };
        let gangs = self.world.gangs_on(node).iter().filter_map(|(id, _)| self.world.gang(*id));
        self.dirty.gangs.extend(gangs.map(|gang| gang.spec.name.clone()));
    }

    /// Whether a node that an order waits for has a taint that was not asked for, and that keeps off those who are to have
    /// it: something that is set up on each new node is not done there, and takes the taint away when it is.
    fn is_being_set_up(&self, id: ClaimId, taints: &[Taint]) -> bool {
        let Some(claim) = self.world.claims().get(&id) else { return false };
        let Some(order) = claim.order.and_then(|order| self.world.orders().get(&order)) else {
            return false;
        };
        let Some(gang) = self.world.gang(order.spec.gang) else { return false };
        let listed = &self.world.offering(claim.offering).spec.taints;
        let unlisted: Vec<Taint> =
            taints.iter().filter(|taint| !listed.contains(taint)).cloned().collect();
        let mut mine = order.spec.reservations.iter().filter(|one| one.place == Place::Claim(id));
        mine.any(|one| {
            let role = gang.spec.roles.get(usize::from(one.role));
            role.is_some_and(|role| !role.constraints.tolerates(&unlisted))
        })
    }

    /// The claim that a node answers: Karpenter copies its labels, and says on the claim which node it became. Nodes of
    /// autoscalers are taken for a claim.
    fn claim_of(&self, node: &Node) -> Option<ClaimId> {
        let labelled = || {
            let label = node.metadata.labels.as_ref()?.get(CLAIM)?;
            let id = ClaimId(label.parse().ok()?);
            self.world.claims().contains_key(&id).then_some(id)
        };
        self.taken_for(node).or_else(labelled)
    }

    /// Pods on a node that are of no gang.
    pub(super) fn foreign_pods(&self, name: &str) -> impl Iterator<Item = (&Key, &Arc<Pod>)> {
        self.mirror.pods_on(name).filter(|(key, pod)| {
            let is_counted = |(gang, group): (&Arc<str>, &Group)| {
                group.pods.contains(*key) && self.world.gang_named(gang).is_some()
            };
            !pod.is_over() && !self.groups.of(key).is_some_and(is_counted)
        })
    }

    /// What pods of others take of a node.
    pub(super) fn foreign_on(&self, name: &str) -> Foreign {
        let mut foreign = Foreign::default();
        for (key, pod) in self.foreign_pods(name) {
            foreign.stay(pod);
            foreign.add_tokens(self.foreign_tokens(pod));
            let none = BTreeMap::new();
            let annotations = pod.metadata.annotations.as_ref().unwrap_or(&none);
            match pod.spec.request(annotations, &self.config.gpus) {
                Ok(request) => foreign.add(&request),
                Err(why) => {
                    tracing::warn!(pod = &**key, ?why, "a pod's requests cannot be understood");
                }
            }
        }
        foreign
    }
}
