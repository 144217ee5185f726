//! Deletes issued requests that are not needed any more.
//!
//! Rule: a request is needed while one of its claims waits for its node, or belongs to an order that assembles. When its order
//! is complete, annotations keep the nodes; when its order is rolled back, nodes that do not exist yet are not waited for any
//! more, unless another order was promised them.

use std::sync::Arc;

use muster_core::Event;
use muster_core::id::ClaimId;

use crate::cache::kinds::KindRole;
use crate::host::Host;
use crate::provision::requests_issued::registry::awaits_node;

impl Host {
    /// Deletes requests that are not needed, with their templates, and ends claims that no request serves any more.
    pub(crate) fn clean_up_issued_requests(&mut self) {
        let (mut ended, mut unneeded) = (Vec::<ClaimId>::new(), Vec::<Arc<str>>::new());
        for (name, one) in &self.issued_requests.requests {
            let order = one.scope.order;
            let is_closed = order.is_some_and(|order| !self.world.orders().contains_key(&order));
            let mut is_needed = false;
            for id in &one.scope.claims {
                let Some(claim) = self.world.claims().get(id) else { continue };
                if claim.order.is_some() || (awaits_node(claim) && !is_closed) {
                    is_needed = true;
                } else if awaits_node(claim) {
                    ended.push(*id);
                }
            }
            if !is_needed {
                unneeded.push(name.clone());
            }
        }
        let orphaned = self
            .issued_requests
            .templates
            .iter()
            .filter(|name| !self.issued_requests.requests.contains_key(*name));
        unneeded.extend(orphaned.cloned());
        for id in ended {
            self.apply_event(&Event::ClaimGone(id));
        }
        unneeded.iter().for_each(|name| self.delete_issued_request(name));
    }

    fn delete_issued_request(&mut self, name: &Arc<str>) {
        // One that was not observed yet is deleted when it is.
        if self.issued_requests.requests.get(name).is_some_and(|one| one.created_at.is_none()) {
            self.issued_requests.requests.remove(name);
            return;
        }
        let write_key: Arc<str> = format!("request {name}").into();
        let (Some(requests), Some(templates)) = (
            self.own_namespace_api(KindRole::Request),
            self.own_namespace_api(KindRole::PodTemplate),
        ) else {
            return;
        };
        if self.ordered_writes.is_busy(&write_key) {
            return;
        }
        let (writer, name) = (self.writer.clone(), name.clone());
        self.ordered_writes.write(&write_key, async move {
            for objects in [requests, templates] {
                if writer.delete_until_gone(&objects, &name).await.is_err() {
                    return;
                }
            }
            tracing::debug!(request = &*name, "deleted");
        });
    }
}
