//! Applies the progress of issued requests to their claims.
//!
//! Rule: provisioned means launched; refused fails a waiting claim as `StockOut`; expired or revoked fails it as `BootFailed`; a
//! revoked claim whose node has joined gives the node notice. A request that was deleted, and not by Muster, ends the claims
//! that still wait.

use std::sync::Arc;

use kube::api::DynamicObject;
use muster_core::Event;
use muster_core::order::{ClaimFailure, ClaimState};
use muster_core::time::Time;

use crate::cache::store::ObjectChange;
use crate::cache::store::split_key;
use crate::host::Host;
use crate::objects::node::Node;
use crate::provision::requests_issued::progress::RequestProgress;
use crate::provision::requests_issued::registry::{IssuedRequestState, awaits_node};
use crate::provision::requests_issued::request_object::request_scope;
use crate::provision::requests_served::conditions::Conditions;
use crate::recover::timestamps::created_at;

impl Host {
    /// Handles a change of a request, if Muster issued it.
    pub(crate) fn observe_issued_request(&mut self, moved: &ObjectChange<DynamicObject>) {
        let (namespace, name) = split_key(&moved.key);
        if *namespace != *self.config.namespace {
            return;
        }
        let name: Arc<str> = name.into();
        match moved.is.as_deref() {
            Some(request) => {
                self.track_issued_request(&name, request);
                self.reconcile_issued_request(&name);
            }
            None => self.issued_request_deleted(&name),
        }
    }

    /// Handles a change of a PodTemplate, if Muster created it.
    pub(crate) fn observe_own_template(&mut self, moved: &ObjectChange<DynamicObject>) {
        let (namespace, name) = split_key(&moved.key);
        if *namespace != *self.config.namespace {
            return;
        }
        match moved.is.as_deref().and_then(request_scope) {
            Some(_) => self.issued_requests.templates.insert(name.into()),
            None => self.issued_requests.templates.remove(name),
        };
    }

    pub(crate) fn track_issued_request(&mut self, name: &Arc<str>, request: &DynamicObject) {
        let Some(scope) = request_scope(request) else { return };
        let created_at = created_at(&request.metadata);
        let progress = RequestProgress::of(&Conditions::of(request));
        self.issued_requests
            .requests
            .insert(name.clone(), IssuedRequestState { scope, created_at, progress });
    }

    /// Applies a request's progress to its claims, and requeues nodes that may have been made for it.
    pub(crate) fn reconcile_issued_request(&mut self, name: &Arc<str>) {
        let Some(one) = self.issued_requests.requests.get(name) else { return };
        let (progress, issued_at) = (one.progress, one.created_at);
        for id in one.scope.claims.clone() {
            let Some(claim) = self.world.claims().get(&id) else { continue };
            let event = match progress {
                RequestProgress::Pending | RequestProgress::Accepted => None,
                RequestProgress::Provisioned => {
                    let is_new = claim.state == ClaimState::Requested && !claim.releasing;
                    is_new.then_some(Event::ClaimLaunched(id))
                }
                RequestProgress::Revoked if claim.joined.is_some() => {
                    let node = claim.joined.and_then(|node| self.world.node_name(node)).cloned();
                    node.map(|name| Event::NodeNotice { name, by: self.now() })
                }
                _ if !awaits_node(claim) || self.issued_requests.is_assigning_to(id) => None,
                RequestProgress::Refused => Some(Event::ClaimFailed(id, ClaimFailure::StockOut)),
                RequestProgress::Expired | RequestProgress::Revoked => {
                    Some(Event::ClaimFailed(id, ClaimFailure::BootFailed))
                }
            };
            if let Some(event) = event {
                self.apply_event(&event);
            }
        }
        if progress.expects_nodes() {
            let is_new = |node: &Node| issued_at.is_some_and(|issued| created_since(node, issued));
            let nodes = self.cache.nodes.iter().filter(|(_, node)| is_new(node));
            self.dirty.nodes.extend(nodes.map(|(name, _)| name.clone()));
        }
    }

    /// Handles a deleted request. Unless Muster deleted it, its nodes will not be made.
    fn issued_request_deleted(&mut self, name: &Arc<str>) {
        let Some(one) = self.issued_requests.requests.remove(name) else { return };
        for id in one.scope.claims {
            let is_waiting = self.world.claims().get(&id).is_some_and(awaits_node);
            if is_waiting && !self.issued_requests.is_assigning_to(id) {
                self.close_claim(id, one.progress == RequestProgress::Provisioned);
            }
        }
    }
}

/// Whether a node was created at or after this time. The API server gives both to the second.
pub(crate) fn created_since(node: &Node, since: Time) -> bool {
    created_at(&node.metadata).is_some_and(|created| created >= since)
}
