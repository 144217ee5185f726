//! Nodes are taken for claims, held, and let go.

use std::collections::BTreeSet;
use std::sync::Arc;

use kube::api::Api;
use muster_core::Event;
use muster_core::id::ClaimId;
use serde_json::Value;

use crate::api::retry::Said;
use crate::effects::outcome::Outcome;
use crate::host::Host;
use crate::objects::node::Node;
use crate::provision::order_object::find_offering;
use crate::provision::requests_issued::node_marks::marks;
use crate::provision::requests_issued::node_marks::{is_new, is_of, letting_go, taking};
use crate::provision::requests_issued::reconcile::came_since;
use crate::provision::requests_issued::registry::waits;
use crate::schedule::placement::AGAIN;

impl Host {
    /// Settles whose a node is that an autoscaler may have made. The World is not told of it while that is being written.
    pub(crate) fn is_being_taken(&mut self, name: &Arc<str>, node: &Node) -> bool {
        if let Some(marks) = marks(node) {
            self.issued_requests.taking.remove(name);
            if !self.is_node_of(marks.id, name) && !self.issued_requests.leaving.contains_key(name)
            {
                // Its claim is over, or has another node.
                self.mark(name, letting_go());
            }
            return false;
        }
        if let Some(claim) = self.issued_requests.leaving.remove(name) {
            self.is_let_go(name, claim);
        }
        if let Some(claim) = self.issued_requests.taking.get(name).copied() {
            if self.world.claims().get(&claim).is_some_and(waits) {
                return true;
            }
            self.issued_requests.taking.remove(name);
        }
        let Some(claim) = self.claim_for(name, node) else { return false };
        self.take_for(name, claim)
    }

    /// The claim that a node was taken for, if it may be used for it.
    pub(crate) fn taken_for(&self, node: &Node) -> Option<ClaimId> {
        let id = marks(node)?.id;
        let name = node.metadata.name.as_deref()?;
        self.is_node_of(id, name).then_some(id)
    }

    /// Whether a node on which a claim is written is the claim's, or the first that comes for it. Only nodes of autoscalers
    /// have that written on them: they stay what they are when their pool is rewritten, cannot be read, or is gone.
    fn is_node_of(&self, id: ClaimId, name: &str) -> bool {
        let claim = self.world.claims().get(&id);
        claim.is_some_and(|claim| {
            claim.joined.is_none_or(|node| self.world.node_named(name) == Some(node))
        })
    }

    /// A claim that waits for such a node, if the node can have come for it: the one that was asked for first. A node that the
    /// World took for a claim's already stays it, whoever took that off it. One that somebody uses, or that was let go
    /// before, is of no use to who waits for a whole new one.
    fn claim_for(&self, name: &str, node: &Node) -> Option<ClaimId> {
        let here = self.world.node_named(name).and_then(|node| self.world.node(node));
        if let Some(claim) = here.and_then(|here| here.claim) {
            let is_its = self.is_of_autoscaler(claim) && self.is_node_of(claim, name);
            return is_its.then_some(claim);
        }
        let is_used = here.is_some_and(|here| here.seats > 0) || self.foreign_on(name).takes_gpus();
        if is_used || !is_new(node) {
            return None;
        }
        let open = self.issued_requests.known.values().filter(|one| {
            let offering = find_offering(&self.world, &one.asked.pool, &one.asked.offering);
            one.standing.brings_nodes()
                && one.made.is_some_and(|made| came_since(node, made))
                && offering.is_some_and(|at| is_of(node, &self.world.offering(at).spec))
        });
        let taken: BTreeSet<ClaimId> = self.issued_requests.taking.values().copied().collect();
        let free =
            |id: &&ClaimId| self.world.claims().get(*id).is_some_and(waits) && !taken.contains(*id);
        open.flat_map(|one| &one.asked.claims).filter(free).min().copied()
    }

    /// Writes on a node whose it is. Whether the World is to wait for that.
    fn take_for(&mut self, name: &Arc<str>, id: ClaimId) -> bool {
        let Some(claim) = self.world.claims().get(&id) else { return false };
        let waits = claim.joined.is_none();
        let pool = &self.world.pools()[claim.offering.pool].spec.name;
        let patch = taking(id, pool, &self.world.offering(claim.offering).spec);
        if waits {
            tracing::info!(node = &**name, claim = id.0, "taken for a claim");
            self.issued_requests.taking.insert(name.clone(), id);
        }
        self.mark(name, patch);
        waits
    }

    /// A claim is given back. Its node is the autoscaler's to take away: Muster holds it no longer.
    pub(crate) fn give_up_node(&mut self, id: ClaimId) {
        let node = self.world.claims().get(&id).and_then(|claim| claim.joined);
        match node.and_then(|node| self.world.node_name(node)).cloned() {
            Some(name) => {
                self.issued_requests.leaving.insert(name.clone(), id);
                self.mark(&name, letting_go());
            }
            None => {
                self.apply_event(&Event::ClaimGone(id));
            }
        }
    }

    /// A node is nobody's any more. The World forgets it, and sees it again as one that anybody may use; but for one that is
    /// about to be taken away, which nobody may.
    fn is_let_go(&mut self, name: &Arc<str>, claim: ClaimId) {
        tracing::info!(node = &**name, claim = claim.0, "let go");
        if self.world.claims().contains_key(&claim) {
            self.apply_event(&Event::ClaimGone(claim));
        }
        let here = self.world.node_named(name).and_then(|node| self.world.node(node));
        if here.is_some_and(|here| here.notice.is_none()) {
            self.apply_event(&Event::NodeGone(name.clone()));
        }
    }

    /// A node is gone. If it was being let go, so is its claim.
    pub(crate) fn taken_node_is_gone(&mut self, name: &str) {
        self.issued_requests.taking.remove(name);
        if let Some(claim) = self.issued_requests.leaving.remove(name)
            && self.world.claims().contains_key(&claim)
        {
            self.apply_event(&Event::ClaimGone(claim));
        }
    }

    fn mark(&mut self, name: &Arc<str>, patch: Value) {
        let lane: Arc<str> = format!("node {name}").into();
        let (hands, told, name) = (self.writer.clone(), self.outcomes.clone(), name.clone());
        self.ordered_writes.write(&lane, async move {
            let nodes: Api<Node> = Api::all(hands.client.clone());
            match hands.patch(&nodes, &name, &patch).await {
                Ok(_) | Err(Said::Gone | Said::NotLeader) => {}
                Err(said) => {
                    tracing::warn!(node = &*name, %said, "whose it is was not written");
                    tokio::time::sleep(AGAIN).await;
                    let _ = told.send(Outcome::NodeMarkFailed(name));
                }
            }
        });
    }

    /// Whose a node is could not be written on it: that is tried again, and decided anew.
    pub(crate) fn was_not_marked(&mut self, name: Arc<str>) {
        self.issued_requests.taking.remove(&name);
        if self.issued_requests.leaving.contains_key(&name) {
            self.mark(&name, letting_go());
        }
        self.dirty.nodes.insert(name);
    }
}
