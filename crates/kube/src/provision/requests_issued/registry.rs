//! Nodes that are asked of an autoscaler: ProvisioningRequests that Muster itself writes.
//!
//! Claims of a pool whose provider is `provisioningRequest` are asked for all at once (`ask`). What the autoscaler says of
//! a request becomes events of its claims (`standing`, `follow`). It makes nodes and never says which: a node that
//! comes while a request waits and looks like what was asked for is taken for one of its claims, and that is
//! written on the node before it is used (`take`). What nobody waits for is removed (`settle`), and after a restart all of
//! it is read off requests and nodes again (`found`).
//!
//! Deliberately not here: taking nodes away. They are the autoscaler's; Muster holds them and lets them go.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube::api::{Api, DynamicObject};
use muster_api::{Autoscaler, Provider};
use muster_core::id::{ClaimId, OfferingRef};
use muster_core::order::{Claim, ClaimState};
use muster_core::time::Time;

use crate::cache::kinds::KindRole;
use crate::host::Host;
use crate::provision::karpenter::claim_name;
use crate::provision::requests_issued::node_marks::marks;
use crate::provision::requests_issued::progress::PodsByState;
use crate::provision::requests_issued::request_object::Asked;

/// Requests that Muster has written, and nodes that came of them.
#[derive(Debug, Default)]
pub(crate) struct IssuedRequests {
    /// By name. Those that are being written are among them.
    pub(crate) known: BTreeMap<Arc<str>, Known>,
    /// Templates there are.
    pub(crate) templates: BTreeSet<Arc<str>>,
    /// Nodes on which it is being written whose they are. The World does not know them yet.
    pub(crate) taking: BTreeMap<Arc<str>, ClaimId>,
    /// Nodes off which that is being taken.
    pub(crate) leaving: BTreeMap<Arc<str>, ClaimId>,
}

/// One request.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) asked: Asked,
    /// When it was made, once it was seen. The server's clock, as that of nodes.
    pub(crate) made: Option<Time>,
    pub(crate) standing: PodsByState,
}

impl IssuedRequests {
    /// Whether a node is being taken for this claim.
    pub(crate) fn is_taken_for(&self, id: ClaimId) -> bool {
        self.taking.values().any(|claim| *claim == id)
    }
}

/// Whether a claim waits for its node.
pub(crate) fn waits(claim: &Claim) -> bool {
    let comes = matches!(claim.state, ClaimState::Requested | ClaimState::Launched);
    comes && claim.joined.is_none() && !claim.releasing
}

impl Host {
    /// The autoscaler that nodes of an offering are asked of, if they are asked of one.
    pub(crate) fn autoscaler_of(&self, offering: OfferingRef) -> Option<&Autoscaler> {
        let pool = &self.world.pools().get(offering.pool)?.spec.name;
        match &self.pools.get(pool)?.manifest.provider {
            Provider::ProvisioningRequest(autoscaler) => Some(autoscaler),
            Provider::Simulated(_) | Provider::Karpenter { .. } | Provider::Local => None,
        }
    }

    /// Whether a claim was asked of an autoscaler. What there is of it says so, whatever its pool's provider is now: a
    /// NodeClaim, what is written on its node, or a request. Where there is nothing yet its pool says it.
    pub(crate) fn is_of_autoscaler(&self, id: ClaimId) -> bool {
        let Some(claim) = self.world.claims().get(&id) else { return false };
        if self.pending_claims.knows(id) || self.cache.claims.get(&claim_name(id)).is_some() {
            return false;
        }
        let name = claim.joined.and_then(|node| self.world.node_name(node));
        let node = name.and_then(|name| self.cache.nodes.get(name));
        node.is_some_and(|node| marks(node).is_some_and(|marks| marks.id == id))
            || self.issued_requests.known.values().any(|one| one.asked.claims.contains(&id))
            || self.autoscaler_of(claim.offering).is_some()
    }

    /// Where Muster's own objects of a kind that has namespaces are.
    pub(crate) fn own(&self, interest: KindRole) -> Option<Api<DynamicObject>> {
        let kind = self.sources.resource(interest)?;
        Some(Api::namespaced_with(self.writer.client.clone(), &self.config.namespace, kind))
    }
}
