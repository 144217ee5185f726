//! Requests are followed: what is said of them happens to their claims.

use std::sync::Arc;

use kube::api::DynamicObject;
use muster_core::Event;
use muster_core::order::{ClaimFailure, ClaimState};
use muster_core::time::Time;

use crate::cache::store::Moved;
use crate::host::Host;
use crate::objects::node::Node;
use crate::provision::order_object::parts;
use crate::provision::requests_issued::progress::PodsByState;
use crate::provision::requests_issued::registry::{Known, waits};
use crate::provision::requests_issued::request_object::asked;
use crate::provision::requests_served::conditions::Conditions;
use crate::recover::timestamps::made;

impl Host {
    /// Takes in a change of a request, if Muster wrote it.
    pub(crate) fn observe_issued_request(&mut self, moved: &Moved<DynamicObject>) {
        let (namespace, name) = parts(&moved.key);
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

    /// Takes in a change of a template, if Muster wrote it.
    pub(crate) fn observe_own_template(&mut self, moved: &Moved<DynamicObject>) {
        let (namespace, name) = parts(&moved.key);
        if *namespace != *self.config.namespace {
            return;
        }
        match moved.is.as_deref().and_then(asked) {
            Some(_) => self.issued_requests.templates.insert(name.into()),
            None => self.issued_requests.templates.remove(name),
        };
    }

    pub(crate) fn track_issued_request(&mut self, name: &Arc<str>, request: &DynamicObject) {
        let Some(asked) = asked(request) else { return };
        let made = made(&request.metadata);
        let standing = PodsByState::of(&Conditions::of(request));
        self.issued_requests.known.insert(name.clone(), Known { asked, made, standing });
    }

    /// Tells the claims of a request what has become of it.
    pub(crate) fn reconcile_issued_request(&mut self, name: &Arc<str>) {
        let Some(one) = self.issued_requests.known.get(name) else { return };
        let (standing, made) = (one.standing, one.made);
        for id in one.asked.claims.clone() {
            let Some(claim) = self.world.claims().get(&id) else { continue };
            let event = match standing {
                PodsByState::Unheard | PodsByState::Accepted => None,
                PodsByState::Provisioned => {
                    let is_new = claim.state == ClaimState::Requested && !claim.releasing;
                    is_new.then_some(Event::ClaimLaunched(id))
                }
                PodsByState::Revoked if claim.joined.is_some() => {
                    let node = claim.joined.and_then(|node| self.world.node_name(node)).cloned();
                    node.map(|name| Event::NodeNotice { name, by: self.now() })
                }
                _ if !waits(claim) || self.issued_requests.is_taken_for(id) => None,
                PodsByState::Refused => Some(Event::ClaimFailed(id, ClaimFailure::StockOut)),
                PodsByState::Lapsed | PodsByState::Revoked => {
                    Some(Event::ClaimFailed(id, ClaimFailure::BootFailed))
                }
            };
            if let Some(event) = event {
                self.apply_event(&event);
            }
        }
        if standing.brings_nodes() {
            let came = |node: &Node| made.is_some_and(|made| came_since(node, made));
            let nodes = self.cache.nodes.iter().filter(|(_, node)| came(node));
            self.dirty.nodes.extend(nodes.map(|(name, _)| name.clone()));
        }
    }

    /// Somebody removed a request. Unless it was Muster, its nodes will not come.
    fn issued_request_deleted(&mut self, name: &Arc<str>) {
        let Some(one) = self.issued_requests.known.remove(name) else { return };
        for id in one.asked.claims {
            let is_waiting = self.world.claims().get(&id).is_some_and(waits);
            if is_waiting && !self.issued_requests.is_taken_for(id) {
                self.end_claim(id, one.standing == PodsByState::Provisioned);
            }
        }
    }
}

/// Whether a node has come since an instant. Servers tell both to the second.
pub(crate) fn came_since(node: &Node, since: Time) -> bool {
    made(&node.metadata).is_some_and(|made| made >= since)
}
