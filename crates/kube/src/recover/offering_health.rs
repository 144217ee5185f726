//! What whoever led before has learned, from where it was written down: offerings that had nothing to give, orders that failed.
//!
//! Without it a new leader would ask at once for what was refused a moment ago, and leaders that change often would never ask
//! for anything else. How trustworthy an offering is over days is not written down: hours later that says little.

use std::sync::Arc;

use muster_api::crd::{GangStatus, PoolStatus};
use muster_core::Event;
use muster_core::id::GangId;
use muster_core::time::Time;
use serde::Deserialize;

use crate::cache::kinds::KindRole;
use crate::host::Host;
use crate::provision::order_object::find_offering;

impl Host {
    /// Offerings are avoided as they were.
    pub(crate) fn recall_offerings(&mut self) {
        for moved in self.all_of(KindRole::Pool) {
            let status = moved.is.as_ref().and_then(|pool| pool.data.get("status"));
            // What cannot be understood was not written by Muster.
            let status = status.and_then(|status| PoolStatus::deserialize(status).ok());
            for told in status.into_iter().flat_map(|status| status.offerings) {
                let Some(offering) = find_offering(&self.world, &moved.key, &told.name) else {
                    continue;
                };
                self.apply_event(&Event::OfferingFound { offering, was: told.remembered() });
            }
        }
    }

    /// A gang has tried as often as it has, since it was submitted.
    pub(crate) fn recall_orders(&mut self, name: &Arc<str>, gang: GangId, submitted: Time) {
        let status = self.gang_seen(name).and_then(|gang| gang.data.get("status"));
        let Some(status) = status.and_then(|status| GangStatus::deserialize(status).ok()) else {
            return;
        };
        let orders = status.failed_orders.and_then(|orders| u32::try_from(orders).ok());
        let last = status.last_failed_order.map(|stamp| stamp.0);
        // What is told may be of another that had its name.
        if let (Some(orders @ 1..), Some(last)) = (orders, last.filter(|last| *last >= submitted)) {
            self.apply_event(&Event::OrdersFailed { gang, orders, last });
        }
    }
}
