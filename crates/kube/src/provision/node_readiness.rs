//! Nodes become nodes, without what pods of others take of them.

use std::sync::Arc;

use muster_core::Event;
use muster_core::constraint::Taint;
use muster_core::id::ClaimId;
use muster_core::node::NodeSpec;
use muster_core::order::Place;

use crate::cache::store::Moved;
use crate::host::Host;
use crate::objects::node::Node;
use crate::provision::karpenter::{CLAIM, claim_name};
use crate::provision::node_spec::node_spec;

impl Host {
    /// Looks at a node again: it has changed, or what others have on it has.
    pub(crate) fn reconcile_node(&mut self, name: &Arc<str>) {
        let Some(node) = self.cache.nodes.get(name).cloned() else {
            if self.world.node_named(name).is_some() {
                self.apply_event(&Event::NodeGone(name.clone()));
            }
            self.seen_nodes.remove(name);
            self.excess_usage.remove(name);
            self.taken_node_is_gone(name);
            return;
        };
        if self.is_being_taken(name, &node) {
            return;
        }
        let claim = self.claim_of(&node);
        let is_unsure = claim.is_none() && self.may_be_claimed(name, &node);
        let gpu = claim.and_then(|id| {
            let claim = self.world.claims().get(&id)?;
            self.world.offering(claim.offering).spec.gpu.clone()
        });
        let foreign = self.foreign_on(name);
        self.record_excess_usage(name, &foreign);
        let tokens = self.node_tokens(name, &node);
        let claimed = claim.map(|id| (id, gpu.as_ref()));
        let mut spec = node_spec(&node, tokens, &foreign, claimed, &self.config.gpus);
        spec.ready &= !is_unsure;
        spec.ready &= !claim.is_some_and(|id| self.is_being_set_up(id, &spec.taints));
        if self.seen_nodes.get(&spec.name) == Some(&spec) && self.world.node_named(name).is_some() {
            return;
        }
        let was = self.seen_nodes.insert(spec.name.clone(), spec.clone());
        let takes = |was: &NodeSpec| (was.ready, &was.taints) == (spec.ready, &spec.taints);
        let is_news = !was.as_ref().is_some_and(takes);
        self.apply_event(&Event::NodeSeen(spec));
        if is_news {
            self.look_at_gangs_on(name);
        }
    }

    /// A node was replaced by another of its name while nobody looked. If it was bought, or is, that is another machine: whoever
    /// was on the first has lost it, and it must not be taken for what the second was bought for.
    pub(crate) fn node_is_replaced(&mut self, moved: &Moved<Node>) {
        let (Some(was), Some(is)) = (&moved.was, self.cache.nodes.get(&moved.key).cloned()) else {
            return;
        };
        let known = self.world.node_named(&moved.key).and_then(|node| self.world.node(node));
        let had = known.and_then(|known| known.claim).or_else(|| self.claim_of(was));
        if had != self.claim_of(&is) && self.world.node_named(&moved.key).is_some() {
            tracing::info!(node = &*moved.key, "it is another machine");
            self.apply_event(&Event::NodeGone(moved.key.clone()));
            self.seen_nodes.remove(&moved.key);
            self.taken_node_is_gone(&moved.key);
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

    /// The claim that a node answers. Karpenter copies the labels of a NodeClaim to its node; since a kubelet may set such
    /// labels on itself, the NodeClaim has to name the node as well. Nodes of autoscalers are taken for a claim.
    fn claim_of(&self, node: &Node) -> Option<ClaimId> {
        let labelled = || {
            let id = self.labelled(node)?;
            let claim = self.cache.claims.get(&claim_name(id))?;
            let name = node.metadata.name.as_deref();
            (name.is_some() && claim.status.node_name.as_deref() == name).then_some(id)
        };
        self.taken_for(node).or_else(labelled)
    }

    /// The claim that a node says it answers, if there is such a claim.
    fn labelled(&self, node: &Node) -> Option<ClaimId> {
        let id = ClaimId(node.metadata.labels.as_ref()?.get(CLAIM)?.parse().ok()?);
        self.world.claims().contains_key(&id).then_some(id)
    }

    /// Whether a new node may be that of a claim whose NodeClaim names no node yet: it is used when that is settled, and
    /// not as one that is there for everybody. A node that was known without the claim stays what it was.
    fn may_be_claimed(&self, name: &str, node: &Node) -> bool {
        let Some(id) = self.labelled(node) else { return false };
        let is_open =
            self.cache.claims.get(&claim_name(id)).is_none_or(|claim| {
                claim.status.node_name.as_deref().unwrap_or_default().is_empty()
            });
        let known = self.seen_nodes.get(name);
        is_open && known.is_none_or(|known| !known.ready)
    }
}
