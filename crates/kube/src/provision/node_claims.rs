//! The states of a claim that its NodeClaim reports: launched, failed, gone.
//!
//! ```text
//! Requested --Launched=True--> Launched --node observed--> Registered --see node_readiness--> Ready
//!     |                            |                            |
//!     +--deleted: StockOut         +--deleted: Vanished         +--deleted: the node is lost
//! ```
//!
//! Rule:
//! - Launched: the NodeClaim's condition `Launched` is `True`.
//! - Terminating (its deletion was requested): the claim is released if its node is unused; a used node gets a notice, and its
//!   gangs have until it is gone; without a node the claim has failed.
//! - Deleted although Muster did not release it: `Vanished` if it was launched, else `StockOut`, because a NodeClaim that was
//!   never launched could not be had.
//! - Timeouts: the pool's `timeouts` for launch, registration and resources (10 minutes each by default), never less than the
//!   offering's boot time. The World keeps them and the planner releases a claim that is overdue, so they are not in this file.
//!
//! Registered and ready are properties of the node: see [`node_readiness`](super::node_readiness).

use muster_core::Event;
use muster_core::id::ClaimId;
use muster_core::order::{ClaimFailure, ClaimState};
use muster_core::plan::Action;
use muster_core::time::Time;

use crate::cache::store::ObjectChange;
use crate::host::Host;
use crate::objects::node_claim::NodeClaim;
use crate::provision::karpenter::{ClaimIdentity, claim_identity};
use crate::provision::order_object::offering_named;
use crate::recover::timestamps::{created_at, instant};

impl Host {
    /// Handles a change of a NodeClaim.
    pub(crate) fn observe_node_claim(&mut self, moved: &ObjectChange<NodeClaim>) {
        match &moved.is {
            Some(claim) => self.reconcile_node_claim(claim),
            None => self.node_claim_deleted(moved),
        }
    }

    fn reconcile_node_claim(&mut self, claim: &NodeClaim) {
        let Some(identity) = claim_identity(claim) else { return };
        if !self.world.claims().contains_key(&identity.id)
            && !self.recover_node_claim(&identity, claim)
        {
            return;
        }
        let state = self.world.claims()[&identity.id].state;
        if claim.is_launched() && state == ClaimState::Requested {
            self.apply_event(&Event::ClaimLaunched(identity.id));
        }
        if claim.is_terminating() {
            self.node_claim_terminating(identity.id, claim);
        }
        if let Some(node) = &claim.status.node_name {
            // The node may have been observed before its claim was known.
            self.dirty.nodes.insert(node.as_str().into());
        }
    }

    /// Adds the claim of a NodeClaim that this process has not requested. Returns whether the World accepted it.
    pub(crate) fn recover_node_claim(
        &mut self,
        identity: &ClaimIdentity,
        claim: &NodeClaim,
    ) -> bool {
        let requested = created_at(&claim.metadata).unwrap_or_else(|| self.now());
        let launched = claim.is_launched().then(|| claim.launched_at().map_or(requested, instant));
        self.recover_claim(identity, requested, launched)
    }

    /// Adds a claim that this process has not requested, with the age of its object, so that its timeouts go on.
    pub(crate) fn recover_claim(
        &mut self,
        identity: &ClaimIdentity,
        requested: Time,
        launched: Option<Time>,
    ) -> bool {
        let find = |host: &Self| offering_named(&host.world, &identity.pool, &identity.offering);
        let mut found = find(self);
        if found.is_none() {
            tracing::warn!(claim = identity.id.0, pool = %identity.pool, offering = %identity.offering,
                "the pool or offering of a claim does not exist any more");
            found = self
                .retire_offering(&identity.pool, &identity.offering)
                .then(|| find(self))
                .flatten();
        }
        let Some(offering) = found else { return false };
        self.apply_event(&Event::ClaimFound {
            claim: identity.id,
            offering,
            asked: requested,
            launched,
        })
    }

    /// Handles a NodeClaim that is being deleted. If Muster did not release it, pods on its node have until it is gone.
    fn node_claim_terminating(&mut self, id: ClaimId, claim: &NodeClaim) {
        let known = &self.world.claims()[&id];
        if known.releasing || matches!(known.state, ClaimState::Failed(_)) {
            return;
        }
        let node = known.joined.and_then(|node| self.world.node(node));
        let is_used = known.order.is_some() || node.is_some_and(|node| node.seats > 0);
        let event = match node {
            // Unused: it is released as if by Muster, which may have released it before a restart.
            Some(_) if !is_used => Event::Decided(Action::Release { claim: id }),
            Some(node) => Event::NodeNotice { name: node.name.clone(), by: self.now() },
            None => Event::ClaimFailed(id, loss_of(claim.is_launched())),
        };
        self.apply_event(&event);
    }

    fn node_claim_deleted(&mut self, moved: &ObjectChange<NodeClaim>) {
        let Some(was) = &moved.was else { return };
        let Some(ClaimIdentity { id, .. }) = claim_identity(was) else { return };
        self.close_claim(id, was.is_launched());
    }

    /// Ends a claim whose object is gone: as released, or as failed if Muster did not release it.
    pub(crate) fn close_claim(&mut self, id: ClaimId, launched: bool) {
        let Some(known) = self.world.claims().get(&id) else { return };
        if known.releasing {
            self.apply_event(&Event::ClaimGone(id));
        } else if !matches!(known.state, ClaimState::Failed(_)) {
            self.apply_event(&Event::ClaimFailed(id, loss_of(launched)));
        }
    }
}

/// Why a claim was lost that Muster did not release.
fn loss_of(launched: bool) -> ClaimFailure {
    if launched { ClaimFailure::Vanished } else { ClaimFailure::StockOut }
}
