//! What nobody waits for is removed.
//!
//! A request is wanted while one of its claims waits for its node, or belongs to an order that assembles. When its order is
//! complete the nodes are held by what is written on them; when its order is given up, nodes that have not come are not
//! waited for any more, unless another order was promised them.

use std::sync::Arc;

use muster_core::Event;
use muster_core::id::ClaimId;

use crate::cache::kinds::KindRole;
use crate::host::Host;
use crate::provision::requests_issued::registry::waits;

impl Host {
    /// Removes requests that nobody wants, with their templates, and claims that will not come of them.
    pub(crate) fn clean_up_issued_requests(&mut self) {
        let (mut over, mut unwanted) = (Vec::<ClaimId>::new(), Vec::<Arc<str>>::new());
        for (name, one) in &self.issued_requests.known {
            let order = one.asked.order;
            let is_closed = order.is_some_and(|order| !self.world.orders().contains_key(&order));
            let mut wanted = false;
            for id in &one.asked.claims {
                let Some(claim) = self.world.claims().get(id) else { continue };
                if claim.order.is_some() || (waits(claim) && !is_closed) {
                    wanted = true;
                } else if waits(claim) {
                    over.push(*id);
                }
            }
            if !wanted {
                unwanted.push(name.clone());
            }
        }
        let lost = self
            .issued_requests
            .templates
            .iter()
            .filter(|name| !self.issued_requests.known.contains_key(*name));
        unwanted.extend(lost.cloned());
        for id in over {
            self.apply_event(&Event::ClaimGone(id));
        }
        unwanted.iter().for_each(|name| self.delete_issued_request(name));
    }

    fn delete_issued_request(&mut self, name: &Arc<str>) {
        // One that was not seen yet is removed when it is.
        if self.issued_requests.known.get(name).is_some_and(|one| one.made.is_none()) {
            self.issued_requests.known.remove(name);
            return;
        }
        let lane: Arc<str> = format!("request {name}").into();
        let (Some(requests), Some(templates)) =
            (self.own(KindRole::Request), self.own(KindRole::PodTemplate))
        else {
            return;
        };
        if self.ordered_writes.is_busy(&lane) {
            return;
        }
        let (hands, name) = (self.writer.clone(), name.clone());
        self.ordered_writes.write(&lane, async move {
            for objects in [requests, templates] {
                if hands.remove(&objects, &name).await.is_err() {
                    return;
                }
            }
            tracing::debug!(request = &*name, "removed");
        });
    }
}
