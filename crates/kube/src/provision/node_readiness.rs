//! Applies nodes to the World, and decides when the node of a claim is registered and when it is ready.
//!
//! Rule for the node of a claim:
//! - Its claim: the node has the label `muster.sh/claim` and that NodeClaim's `status.nodeName` names the node (a kubelet can
//!   set such a label on itself, so the label alone is not enough); or its annotations assign it to the claim of an issued
//!   request. A new node whose NodeClaim names no node yet is held back as not ready until that is settled.
//! - Registered: the node exists.
//! - Ready: the node's condition `Ready` is `True`, it is schedulable, it has no taint of a node that is not ready, and it
//!   shows every GPU and every extended resource of its offering, including those that pods of other schedulers use. The World
//!   compares the amounts.
//! - Not ready while it has a taint that the offering does not list and that a member reserved for it does not tolerate: an
//!   agent that sets up new nodes (a CNI, a device plugin) has not finished, and removes the taint when it has.
//! - Failed as `TooSmall`, by the World: ready, and the members reserved for it do not fit. Timeouts: see
//!   [`node_claims`](super::node_claims).
//!
//! What pods outside the seats of gangs use of a node is subtracted from it: see [`node_spec`](super::node_spec).

use std::sync::Arc;

use muster_core::Event;
use muster_core::constraint::Taint;
use muster_core::id::ClaimId;
use muster_core::node::NodeSpec;
use muster_core::order::Place;

use crate::cache::store::ObjectChange;
use crate::host::Host;
use crate::objects::node::Node;
use crate::provision::karpenter::{CLAIM, node_claim_name};
use crate::provision::node_spec::node_spec;

impl Host {
    /// Reconciles a node that has changed, or on which the usage outside of seats has changed.
    pub(crate) fn reconcile_node(&mut self, name: &Arc<str>) {
        let Some(node) = self.cache.nodes.get(name).cloned() else {
            if self.world.node_named(name).is_some() {
                self.apply_event(&Event::NodeGone(name.clone()));
            }
            self.seen_nodes.remove(name);
            self.excess_usage.remove(name);
            self.assigned_node_deleted(name);
            return;
        };
        if self.assign_to_claim(name, &node) {
            return;
        }
        let claim = self.claim_of_node(&node);
        let is_unsettled = claim.is_none() && self.awaits_claim_identity(name, &node);
        let gpu = claim.and_then(|id| {
            let claim = self.world.claims().get(&id)?;
            self.world.offering(claim.offering).spec.gpu.clone()
        });
        let foreign = self.foreign_usage(name);
        self.record_excess_usage(name, &foreign);
        let tokens = self.node_tokens(name, &node);
        let claimed = claim.map(|id| (id, gpu.as_ref()));
        let mut spec = node_spec(&node, tokens, &foreign, claimed, &self.config.gpus);
        spec.ready &= !is_unsettled;
        spec.ready &= !claim.is_some_and(|id| self.has_startup_taint(id, &spec.taints));
        if self.seen_nodes.get(&spec.name) == Some(&spec) && self.world.node_named(name).is_some() {
            return;
        }
        let was = self.seen_nodes.insert(spec.name.clone(), spec.clone());
        let is_same = |was: &NodeSpec| (was.ready, &was.taints) == (spec.ready, &spec.taints);
        let schedulability_changed = !was.as_ref().is_some_and(is_same);
        self.apply_event(&Event::NodeSeen(spec));
        if schedulability_changed {
            self.requeue_gangs_on(name);
        }
    }

    /// Handles a node that was replaced by another of the same name between two observations. If either belongs to a claim, that
    /// is another machine: pods on the first are lost, and the first must not count as what the second was bought for.
    pub(crate) fn observe_replaced_node(&mut self, moved: &ObjectChange<Node>) {
        let (Some(was), Some(is)) = (&moved.was, self.cache.nodes.get(&moved.key).cloned()) else {
            return;
        };
        let known = self.world.node_named(&moved.key).and_then(|node| self.world.node(node));
        let had = known.and_then(|known| known.claim).or_else(|| self.claim_of_node(was));
        if had != self.claim_of_node(&is) && self.world.node_named(&moved.key).is_some() {
            tracing::info!(node = &*moved.key, "replaced by another machine of the same name");
            self.apply_event(&Event::NodeGone(moved.key.clone()));
            self.seen_nodes.remove(&moved.key);
            self.assigned_node_deleted(&moved.key);
        }
    }

    /// Requeues gangs with seats on a node: their unbound members may be bound there now, or may not any more.
    fn requeue_gangs_on(&mut self, name: &str) {
        let Some(node) = self.world.node_named(name) else { return };
        let gangs = self.world.gangs_on(node).iter().filter_map(|(id, _)| self.world.gang(*id));
        self.dirty.gangs.extend(gangs.map(|gang| gang.spec.name.clone()));
    }

    /// Whether the node of an assembling order has a taint that its offering does not list, and that a member reserved for it
    /// does not tolerate.
    fn has_startup_taint(&self, id: ClaimId, taints: &[Taint]) -> bool {
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

    /// The claim that a node belongs to. Karpenter copies the labels of a NodeClaim to its node; since a kubelet may set such
    /// labels on itself, the NodeClaim has to name the node as well. Nodes of autoscalers are assigned to a claim.
    fn claim_of_node(&self, node: &Node) -> Option<ClaimId> {
        let labelled_claim = || {
            let id = self.labelled_claim(node)?;
            let claim = self.cache.claims.get(&node_claim_name(id))?;
            let name = node.metadata.name.as_deref();
            (name.is_some() && claim.status.node_name.as_deref() == name).then_some(id)
        };
        self.assigned_claim(node).or_else(labelled_claim)
    }

    /// The claim that a node's label names, if it exists.
    fn labelled_claim(&self, node: &Node) -> Option<ClaimId> {
        let id = ClaimId(node.metadata.labels.as_ref()?.get(CLAIM)?.parse().ok()?);
        self.world.claims().contains_key(&id).then_some(id)
    }

    /// Whether a new node may belong to a claim whose NodeClaim names no node yet: it is used only when that is settled, and
    /// not as a node that any gang may use. A node that was ready without the claim stays as it was.
    fn awaits_claim_identity(&self, name: &str, node: &Node) -> bool {
        let Some(id) = self.labelled_claim(node) else { return false };
        let is_open =
            self.cache.claims.get(&node_claim_name(id)).is_none_or(|claim| {
                claim.status.node_name.as_deref().unwrap_or_default().is_empty()
            });
        let known = self.seen_nodes.get(name);
        is_open && known.is_none_or(|known| !known.ready)
    }
}
