//! Recovers failures from the statuses that the previous leader wrote: offerings without stock, orders that failed.
//!
//! Without it a new leader would request at once what was refused a moment ago, and leaders that change often would never request
//! anything else. The reliability of an offering over days is not stored: hours later it says little.

use std::sync::Arc;

use muster_api::crd::{GangStatus, PoolStatus};
use muster_core::Event;
use muster_core::id::GangId;
use muster_core::time::Time;
use serde::Deserialize;

use crate::cache::kinds::KindRole;
use crate::host::Host;
use crate::provision::order_object::offering_named;

impl Host {
    /// Restores the health of offerings from the statuses of Pools.
    pub(crate) fn recover_offering_health(&mut self) {
        for moved in self.all_objects(KindRole::Pool) {
            let status = moved.is.as_ref().and_then(|pool| pool.data.get("status"));
            // An invalid status was not written by Muster.
            let status = status.and_then(|status| PoolStatus::deserialize(status).ok());
            for offering_status in status.into_iter().flat_map(|status| status.offerings) {
                let Some(offering) = offering_named(&self.world, &moved.key, &offering_status.name)
                else {
                    continue;
                };
                self.apply_event(&Event::OfferingFound {
                    offering,
                    was: offering_status.remembered(),
                });
            }
        }
    }

    /// Restores how many orders of a gang have failed since it was submitted.
    pub(crate) fn recover_failed_orders(&mut self, name: &Arc<str>, gang: GangId, submitted: Time) {
        let status = self.gang_object(name).and_then(|gang| gang.data.get("status"));
        let Some(status) = status.and_then(|status| GangStatus::deserialize(status).ok()) else {
            return;
        };
        let orders = status.failed_orders.and_then(|orders| u32::try_from(orders).ok());
        let last = status.last_failed_order.map(|stamp| stamp.0);
        // The status may be that of an earlier gang of the same name.
        if let (Some(orders @ 1..), Some(last)) = (orders, last.filter(|last| *last >= submitted)) {
            self.apply_event(&Event::OrdersFailed { gang, orders, last });
        }
    }
}
