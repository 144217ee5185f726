//! The state of issued requests: which exist, and which nodes are being assigned or released.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube::api::{Api, DynamicObject};
use muster_api::{Autoscaler, Provider};
use muster_core::id::{ClaimId, OfferingRef};
use muster_core::order::{Claim, ClaimState};
use muster_core::time::Time;

use crate::cache::kinds::KindRole;
use crate::host::Host;
use crate::provision::karpenter::node_claim_name;
use crate::provision::requests_issued::node_annotations::assigned_claim_identity;
use crate::provision::requests_issued::progress::RequestProgress;
use crate::provision::requests_issued::request_object::RequestScope;

/// Requests that Muster has issued, and their nodes while they are assigned or released.
#[derive(Debug, Default)]
pub(crate) struct IssuedRequests {
    /// By name, including those that are being created.
    pub(crate) requests: BTreeMap<Arc<str>, IssuedRequestState>,
    /// PodTemplates that exist.
    pub(crate) templates: BTreeSet<Arc<str>>,
    /// Nodes whose assignment is being written. The World does not know them yet.
    pub(crate) assigning: BTreeMap<Arc<str>, ClaimId>,
    /// Nodes whose release is being written.
    pub(crate) releasing: BTreeMap<Arc<str>, ClaimId>,
}

/// One issued request.
#[derive(Debug)]
pub(crate) struct IssuedRequestState {
    pub(crate) scope: RequestScope,
    /// By the API server's clock, as for nodes. `None` until it is observed.
    pub(crate) created_at: Option<Time>,
    pub(crate) progress: RequestProgress,
}

impl IssuedRequests {
    /// Whether a node is being assigned to this claim.
    pub(crate) fn is_assigning_to(&self, id: ClaimId) -> bool {
        self.assigning.values().any(|claim| *claim == id)
    }
}

/// Whether a claim waits for its node.
pub(crate) fn awaits_node(claim: &Claim) -> bool {
    let comes = matches!(claim.state, ClaimState::Requested | ClaimState::Launched);
    comes && claim.joined.is_none() && !claim.releasing
}

impl Host {
    /// The autoscaler that makes the nodes of an offering, if its pool's provider is one.
    pub(crate) fn autoscaler_of(&self, offering: OfferingRef) -> Option<&Autoscaler> {
        let pool = &self.world.pools().get(offering.pool)?.spec.name;
        match &self.pools.get(pool)?.manifest.provider {
            Provider::ProvisioningRequest(autoscaler) => Some(autoscaler),
            Provider::Simulated(_) | Provider::Karpenter { .. } | Provider::Local => None,
        }
    }

    /// Whether a claim was requested from an autoscaler. Its objects decide, whatever its pool's provider is now: a NodeClaim, the
    /// annotations of its node, or a request. Where none exists yet, the pool's provider decides.
    pub(crate) fn is_autoscaler_claim(&self, id: ClaimId) -> bool {
        let Some(claim) = self.world.claims().get(&id) else { return false };
        if self.pending_claims.contains(id) || self.cache.claims.get(&node_claim_name(id)).is_some()
        {
            return false;
        }
        let name = claim.joined.and_then(|node| self.world.node_name(node));
        let node = name.and_then(|name| self.cache.nodes.get(name));
        node.is_some_and(|node| {
            assigned_claim_identity(node).is_some_and(|identity| identity.id == id)
        }) || self.issued_requests.requests.values().any(|one| one.scope.claims.contains(&id))
            || self.autoscaler_of(claim.offering).is_some()
    }

    /// The API of a namespaced kind in Muster's own namespace.
    pub(crate) fn own_namespace_api(&self, kind_role: KindRole) -> Option<Api<DynamicObject>> {
        let kind = self.sources.resource(kind_role)?;
        Some(Api::namespaced_with(self.writer.client.clone(), &self.config.namespace, kind))
    }
}
