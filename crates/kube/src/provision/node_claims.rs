//! NodeClaims become claims: found, launched, gone.

use muster_core::Event;
use muster_core::id::ClaimId;
use muster_core::order::{ClaimFailure, ClaimState};
use muster_core::plan::Action;
use muster_core::time::Time;

use crate::cache::store::Moved;
use crate::host::Host;
use crate::objects::node_claim::NodeClaim;
use crate::provision::karpenter::{Marks, marks};
use crate::provision::order_object::find_offering;
use crate::recover::timestamps::{instant, made};

impl Host {
    /// Takes in what became of a NodeClaim.
    pub(crate) fn observe_node_claim(&mut self, moved: &Moved<NodeClaim>) {
        match &moved.is {
            Some(claim) => self.claim_is(claim),
            None => self.claim_is_gone(moved),
        }
    }

    fn claim_is(&mut self, claim: &NodeClaim) {
        let Some(marks) = marks(claim) else { return };
        if !self.world.claims().contains_key(&marks.id) && !self.find_node_claim(&marks, claim) {
            return;
        }
        let state = self.world.claims()[&marks.id].state;
        if claim.is_launched() && state == ClaimState::Requested {
            self.apply_event(&Event::ClaimLaunched(marks.id));
        }
        if claim.is_leaving() {
            self.claim_leaves(marks.id, claim);
        }
        if let Some(node) = &claim.status.node_name {
            // The node may have been seen before it was known whose it is.
            self.dirty.nodes.insert(node.as_str().into());
        }
    }

    /// A NodeClaim of Muster's that this process has not asked for.
    pub(crate) fn find_node_claim(&mut self, marks: &Marks, claim: &NodeClaim) -> bool {
        let asked = made(&claim.metadata).unwrap_or_else(|| self.now());
        let launched = claim.is_launched().then(|| claim.launched_at().map_or(asked, instant));
        self.find_claim(marks, asked, launched)
    }

    /// A claim of Muster's that this process has not asked for: it was there before, and is as old as it is.
    pub(crate) fn find_claim(
        &mut self,
        marks: &Marks,
        asked: Time,
        launched: Option<Time>,
    ) -> bool {
        let find = |host: &Self| find_offering(&host.world, &marks.pool, &marks.offering);
        let mut found = find(self);
        if found.is_none() {
            tracing::warn!(claim = marks.id.0, pool = %marks.pool, offering = %marks.offering,
                "a NodeClaim is of a pool or offering that is no longer there");
            found =
                self.retire_offering(&marks.pool, &marks.offering).then(|| find(self)).flatten();
        }
        let Some(offering) = found else { return false };
        self.apply_event(&Event::ClaimFound { claim: marks.id, offering, asked, launched })
    }

    /// Somebody has asked for the end of a claim. If it was not Muster, whoever is on its node has until it is gone.
    fn claim_leaves(&mut self, id: ClaimId, claim: &NodeClaim) {
        let known = &self.world.claims()[&id];
        if known.releasing || matches!(known.state, ClaimState::Failed(_)) {
            return;
        }
        let node = known.joined.and_then(|node| self.world.node(node));
        let is_used = known.order.is_some() || node.is_some_and(|node| node.seats > 0);
        let event = match node {
            // Nobody minds: it goes as if Muster had said so, which it may have before it began anew.
            Some(_) if !is_used => Event::Decided(Action::Release { claim: id }),
            Some(node) => Event::NodeNotice { name: node.name.clone(), by: self.now() },
            None => Event::ClaimFailed(id, lost(claim.is_launched())),
        };
        self.apply_event(&event);
    }

    fn claim_is_gone(&mut self, moved: &Moved<NodeClaim>) {
        let Some(was) = &moved.was else { return };
        let Some(Marks { id, .. }) = marks(was) else { return };
        self.end_claim(id, was.is_launched());
    }

    /// Nothing is left of a claim.
    pub(crate) fn end_claim(&mut self, id: ClaimId, launched: bool) {
        let Some(known) = self.world.claims().get(&id) else { return };
        if known.releasing {
            self.apply_event(&Event::ClaimGone(id));
        } else if !matches!(known.state, ClaimState::Failed(_)) {
            self.apply_event(&Event::ClaimFailed(id, lost(launched)));
        }
    }
}

/// Why a claim went that nobody gave back. One that was never launched could not be had.
fn lost(launched: bool) -> ClaimFailure {
    if launched { ClaimFailure::Vanished } else { ClaimFailure::StockOut }
}
