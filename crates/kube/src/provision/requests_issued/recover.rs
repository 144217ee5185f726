//! Recovers the claims of issued requests after a restart, from annotated nodes and from the requests.

use std::sync::Arc;

use muster_core::time::Time;

use crate::cache::kinds::KindRole;
use crate::cache::store::split_key;
use crate::host::Host;
use crate::provision::karpenter::ClaimIdentity;
use crate::provision::requests_issued::node_annotations::assigned_claim_identity;
use crate::recover::timestamps::created_at;

impl Host {
    /// Adds the claims that nodes are assigned to, and those that requests were issued for.
    pub(crate) fn recover_issued_requests(&mut self) {
        self.issued_requests.requests.clear();
        self.issued_requests.templates.clear();
        let assigned = self.cache.nodes.iter();
        let assigned = assigned.filter_map(|(_, node)| {
            Some((assigned_claim_identity(node)?, created_at(&node.metadata)))
        });
        for (identity, created_at) in assigned.collect::<Vec<_>>() {
            let created_at = created_at.unwrap_or_else(|| self.now());
            self.recover_claim(&identity, created_at, Some(created_at));
        }
        for moved in self.all_objects(KindRole::PodTemplate) {
            self.observe_own_template(&moved);
        }
        for moved in self.all_objects(KindRole::Request) {
            let (namespace, name) = split_key(&moved.key);
            if let Some(request) = moved.is.filter(|_| *namespace == *self.config.namespace) {
                self.track_issued_request(&name.into(), &request);
            }
        }
        let requested: Vec<(ClaimIdentity, Option<Time>)> =
            (self.issued_requests.requests.values())
                .flat_map(|one| {
                    let (pool, offering) = (&one.scope.pool, &one.scope.offering);
                    let claims = one.scope.claims.iter();
                    claims.map(|id| {
                        let (pool, offering) = (pool.clone(), offering.clone());
                        (ClaimIdentity { id: *id, pool, offering }, one.created_at)
                    })
                })
                .collect();
        for (identity, created_at) in &requested {
            let requested = created_at.unwrap_or_else(|| self.now());
            self.recover_claim(identity, requested, None);
        }
    }

    /// Applies the progress that requests made before the restart.
    pub(crate) fn reconcile_issued_requests(&mut self) {
        let names: Vec<Arc<str>> = self.issued_requests.requests.keys().cloned().collect();
        names.iter().for_each(|name| self.reconcile_issued_request(name));
    }
}
