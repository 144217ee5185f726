//! Recovers served requests after a restart: their conditions, and the seats that are still booked.

use std::collections::BTreeMap;
use std::sync::Arc;

use muster_core::Event;
use muster_core::event::RoleSeats;
use muster_core::id::{GangId, NodeIdx};
use muster_core::time::Time;

use crate::cache::kinds::KindRole;
use crate::gang::identity::GangSource;
use crate::gang::record::GangRecord;
use crate::host::Host;
use crate::provision::requests_served::build::is_served;
use crate::provision::requests_served::reconcile::source_of_request;
use crate::recover::timestamps::created_at;

impl Host {
    /// Tracks all requests. Closed ones keep only their conditions.
    pub(crate) fn recover_requests(&mut self) {
        for moved in self.all_objects(KindRole::Request) {
            let Some(object) = moved.is.filter(|object| is_served(object)) else { continue };
            let source = source_of_request(&moved.key);
            let gang = source.gang_name();
            self.track_request(source, &object);
            if !self.served_requests.is_open(&gang) && self.gang_object(&gang).is_some() {
                self.remove_object(&gang);
            }
        }
    }

    /// When a request was created.
    pub(crate) fn request_created_at(&self, source: &GangSource) -> Option<Time> {
        created_at(&self.request(source)?.metadata)
    }

    /// The seats of a booking that no gang has taken over. They are compared by node only, since the roles of those gangs may have
    /// other names.
    pub(crate) fn remaining_booking(
        &self,
        name: &str,
        mut booked: Vec<RoleSeats>,
    ) -> Vec<RoleSeats> {
        for consumer in self.gangs.names() {
            let record = self.gangs.get(consumer).expect("named");
            if self.booking_named_by(record).as_deref() != Some(name) {
                continue;
            }
            for (node, mut gone) in self.members_by_node(consumer, record) {
                for one in booked.iter_mut().filter(|one| one.node == node) {
                    let here = one.members.min(gone);
                    (one.members, gone) = (one.members - here, gone - here);
                }
            }
        }
        booked.retain(|one| one.members > 0);
        booked
    }

    /// A gang's members on each node: by its pods, finished ones included, and by its recorded placement, whichever is more.
    /// Finished pods have consumed their seats, and the placement may have been rewritten without them.
    fn members_by_node(&self, consumer: &str, record: &GangRecord) -> BTreeMap<NodeIdx, u16> {
        let mut seen: BTreeMap<NodeIdx, u16> = BTreeMap::new();
        for key in &record.pods {
            let node = self.cache.pods.get(key).and_then(|pod| self.world.node_named(pod.node()?));
            if let Some(node) = node {
                *seen.entry(node).or_default() += 1;
            }
        }
        let mut placed: BTreeMap<NodeIdx, u16> = BTreeMap::new();
        for one in self.recorded_seats(consumer).unwrap_or_default() {
            *placed.entry(one.node).or_default() += one.members;
        }
        for (node, members) in placed {
            let here = seen.entry(node).or_default();
            *here = members.max(*here);
        }
        seen
    }

    /// Marks a request as consumed whose seats were all taken over before the restart.
    pub(crate) fn booking_was_consumed(&mut self, name: &Arc<str>, id: GangId) {
        self.apply_event(&Event::GangCancelled(id));
        self.gangs.remove(name);
        if let Some(known) = self.served_requests.requests.get_mut(name) {
            known.is_consumed = true;
        }
    }
}
