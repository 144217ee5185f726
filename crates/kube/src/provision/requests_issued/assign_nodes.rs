//! Assigns nodes that an autoscaler made to claims, and releases them.
//!
//! Rule: a node is assigned to the first claim, by number, of an accepted or provisioned request whose offering it matches, if
//! it was created after the request, was never assigned, and is unused. The annotation is written before the node is
//! applied to the World. A released node loses its annotations and is the autoscaler's to scale down.

use std::collections::BTreeSet;
use std::sync::Arc;

use kube::api::Api;
use muster_core::Event;
use muster_core::id::ClaimId;
use serde_json::Value;

use crate::api::retry::ApiError;
use crate::effects::outcome::{Outcome, RETRY_PAUSE};
use crate::host::Host;
use crate::objects::node::Node;
use crate::provision::order_object::offering_named;
use crate::provision::requests_issued::node_annotations::{
    assign_patch, assigned_claim_identity, matches_offering, release_patch, was_never_assigned,
};
use crate::provision::requests_issued::reconcile::created_since;
use crate::provision::requests_issued::registry::awaits_node;

impl Host {
    /// Assigns a node that an autoscaler may have made. Returns whether the assignment is still being written, in which case the
    /// node is not applied to the World yet.
    pub(crate) fn assign_to_claim(&mut self, name: &Arc<str>, node: &Node) -> bool {
        if let Some(identity) = assigned_claim_identity(node) {
            self.issued_requests.assigning.remove(name);
            if !self.is_node_of_claim(identity.id, name)
                && !self.issued_requests.releasing.contains_key(name)
            {
                // Its claim has ended, or has another node.
                self.annotate_node(name, release_patch());
            }
            return false;
        }
        if let Some(claim) = self.issued_requests.releasing.remove(name) {
            self.node_released(name, claim);
        }
        if let Some(claim) = self.issued_requests.assigning.get(name).copied() {
            if self.world.claims().get(&claim).is_some_and(awaits_node) {
                return true;
            }
            self.issued_requests.assigning.remove(name);
        }
        let Some(claim) = self.waiting_claim(name, node) else { return false };
        self.assign_node(name, claim)
    }

    /// The claim that a node is assigned to, if it is that claim's node.
    pub(crate) fn assigned_claim(&self, node: &Node) -> Option<ClaimId> {
        let id = assigned_claim_identity(node)?.id;
        let name = node.metadata.name.as_deref()?;
        self.is_node_of_claim(id, name).then_some(id)
    }

    /// Whether an annotated node is the claim's node, or the first for it. Only nodes of autoscalers are annotated: they stay
    /// assigned when their Pool is changed, invalid or deleted.
    fn is_node_of_claim(&self, id: ClaimId, name: &str) -> bool {
        let claim = self.world.claims().get(&id);
        claim.is_some_and(|claim| {
            claim.joined.is_none_or(|node| self.world.node_named(name) == Some(node))
        })
    }

    /// The claim that a node can be assigned to: the one that was requested first. A node that the World has for a claim stays
    /// that claim's, even if its annotations were removed. A node that is in use, or was released before, does not satisfy a
    /// claim for a whole new node.
    fn waiting_claim(&self, name: &str, node: &Node) -> Option<ClaimId> {
        let here = self.world.node_named(name).and_then(|node| self.world.node(node));
        if let Some(claim) = here.and_then(|here| here.claim) {
            let is_its = self.is_autoscaler_claim(claim) && self.is_node_of_claim(claim, name);
            return is_its.then_some(claim);
        }
        let is_used =
            here.is_some_and(|here| here.seats > 0) || self.foreign_usage(name).uses_gpus();
        if is_used || !was_never_assigned(node) {
            return None;
        }
        let open = self.issued_requests.requests.values().filter(|one| {
            let offering = offering_named(&self.world, &one.scope.pool, &one.scope.offering);
            one.progress.expects_nodes()
                && one.created_at.is_some_and(|made| created_since(node, made))
                && offering.is_some_and(|at| matches_offering(node, &self.world.offering(at).spec))
        });
        let taken: BTreeSet<ClaimId> = self.issued_requests.assigning.values().copied().collect();
        let free = |id: &&ClaimId| {
            self.world.claims().get(*id).is_some_and(awaits_node) && !taken.contains(*id)
        };
        open.flat_map(|one| &one.scope.claims).filter(free).min().copied()
    }

    /// Writes the assignment on a node. Returns whether the World has to wait for that.
    fn assign_node(&mut self, name: &Arc<str>, id: ClaimId) -> bool {
        let Some(claim) = self.world.claims().get(&id) else { return false };
        let waits = claim.joined.is_none();
        let pool = &self.world.pools()[claim.offering.pool].spec.name;
        let patch = assign_patch(id, pool, &self.world.offering(claim.offering).spec);
        if waits {
            tracing::info!(node = &**name, claim = id.0, "assigned to a claim");
            self.issued_requests.assigning.insert(name.clone(), id);
        }
        self.annotate_node(name, patch);
        waits
    }

    /// Releases a claim. Its node is then the autoscaler's to scale down.
    pub(crate) fn release_autoscaler_node(&mut self, id: ClaimId) {
        let node = self.world.claims().get(&id).and_then(|claim| claim.joined);
        match node.and_then(|node| self.world.node_name(node)).cloned() {
            Some(name) => {
                self.issued_requests.releasing.insert(name.clone(), id);
                self.annotate_node(&name, release_patch());
            }
            None => {
                self.apply_event(&Event::ClaimGone(id));
            }
        }
    }

    /// Handles a node whose release is observed. The World drops it and gets it again as a node that any gang may use, except a
    /// node that has notice of its end, which no gang may use.
    fn node_released(&mut self, name: &Arc<str>, claim: ClaimId) {
        tracing::info!(node = &**name, claim = claim.0, "released");
        if self.world.claims().contains_key(&claim) {
            self.apply_event(&Event::ClaimGone(claim));
        }
        let here = self.world.node_named(name).and_then(|node| self.world.node(node));
        if here.is_some_and(|here| here.notice.is_none()) {
            self.apply_event(&Event::NodeGone(name.clone()));
        }
    }

    /// Handles a deleted node. If it was being released, its claim is gone as well.
    pub(crate) fn assigned_node_deleted(&mut self, name: &str) {
        self.issued_requests.assigning.remove(name);
        if let Some(claim) = self.issued_requests.releasing.remove(name)
            && self.world.claims().contains_key(&claim)
        {
            self.apply_event(&Event::ClaimGone(claim));
        }
    }

    fn annotate_node(&mut self, name: &Arc<str>, patch: Value) {
        let write_key: Arc<str> = format!("node {name}").into();
        let (writer, outcomes, name) = (self.writer.clone(), self.outcomes.clone(), name.clone());
        self.ordered_writes.write(&write_key, async move {
            let nodes: Api<Node> = Api::all(writer.client.clone());
            match writer.patch(&nodes, &name, &patch).await {
                Ok(_) | Err(ApiError::NotFound | ApiError::NotLeader) => {}
                Err(error) => {
                    tracing::warn!(node = &*name, %error, "the assignment of a node was not written");
                    tokio::time::sleep(RETRY_PAUSE).await;
                    let _ = outcomes.send(Outcome::NodeMarkFailed(name));
                }
            }
        });
    }

    /// Handles a failed write of a node's assignment: a release is retried, an assignment is decided again.
    pub(crate) fn retry_node_annotations(&mut self, name: Arc<str>) {
        self.issued_requests.assigning.remove(&name);
        if self.issued_requests.releasing.contains_key(&name) {
            self.annotate_node(&name, release_patch());
        }
        self.dirty.nodes.insert(name);
    }
}
