//! What nobody waits for is removed.
//!
//! A request is wanted while one of its claims waits for its node, or belongs to an order that assembles. When its order is
//! complete the nodes are held by what is written on them; when its order is given up, nodes that have not come are not
//! waited for any more, unless another order was promised them.

use std::sync::Arc;

use muster_core::Event;
use muster_core::id::ClaimId;

use crate::cache::kinds::Interest;
use crate::host::Host;
use crate::provision::requests_issued::registry::waits;

impl Host {
    /// Removes requests that nobody wants, with their templates, and claims that will not come of them.
    pub(crate) fn settle_requisitions(&mut self) {
        let (mut over, mut unwanted) = (Vec::<ClaimId>::new(), Vec::<Arc<str>>::new());
        for (name, one) in &self.requisitions.known {
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
            .requisitions
            .templates
            .iter()
            .filter(|name| !self.requisitions.known.contains_key(*name));
        unwanted.extend(lost.cloned());
        for id in over {
            self.happened(&Event::ClaimGone(id));
        }
        unwanted.iter().for_each(|name| self.remove_requisition(name));
    }

    fn remove_requisition(&mut self, name: &Arc<str>) {
        // One that was not seen yet is removed when it is.
        if self.requisitions.known.get(name).is_some_and(|one| one.made.is_none()) {
            self.requisitions.known.remove(name);
            return;
        }
        let lane: Arc<str> = format!("request {name}").into();
        let (Some(requests), Some(templates)) =
            (self.own(Interest::Request), self.own(Interest::PodTemplate))
        else {
            return;
        };
        if self.lanes.is_busy(&lane) {
            return;
        }
        let (hands, name) = (self.hands.clone(), name.clone());
        self.lanes.write(&lane, async move {
            for objects in [requests, templates] {
                if hands.remove(&objects, &name).await.is_err() {
                    return;
                }
            }
            tracing::debug!(request = &*name, "removed");
        });
    }
}
