//! Requests after a restart: what was said of them, and where their room is.

use std::collections::BTreeMap;
use std::sync::Arc;

use muster_core::Event;
use muster_core::event::Sitting;
use muster_core::id::{GangId, NodeIdx};
use muster_core::time::Time;

use crate::cache::kinds::KindRole;
use crate::gang::identity::GangSource;
use crate::gang::record::GangRecord;
use crate::host::Host;
use crate::provision::requests_served::build::is_served;
use crate::provision::requests_served::reconcile::source_of;
use crate::recover::timestamps::made;

impl Host {
    /// Requests there are. Of those that are over nothing is left but what was said of them.
    pub(crate) fn recover_requests(&mut self) {
        for moved in self.all_of(KindRole::Request) {
            let Some(object) = moved.is.filter(|object| is_served(object)) else { continue };
            let origin = source_of(&moved.key);
            let gang = origin.gang_name();
            self.track_request(origin, &object);
            if !self.served_requests.is_open(&gang) && self.gang_seen(&gang).is_some() {
                self.remove_object(&gang);
            }
        }
    }

    /// When a request was made.
    pub(crate) fn request_made(&self, origin: &GangSource) -> Option<Time> {
        made(&self.request(origin)?.metadata)
    }

    /// What is left of booked room by those who have taken some of it. It is told apart by nodes only: those who took it
    /// may call their roles otherwise.
    pub(crate) fn still_booked(&self, name: &str, mut booked: Vec<Sitting>) -> Vec<Sitting> {
        for taker in self.gangs.names() {
            let group = self.gangs.get(taker).expect("named");
            if self.consumes(group).as_deref() != Some(name) {
                continue;
            }
            for (node, mut gone) in self.was_taken(taker, group) {
                for one in booked.iter_mut().filter(|one| one.node == node) {
                    let here = one.members.min(gone);
                    (one.members, gone) = (one.members - here, gone - here);
                }
            }
        }
        booked.retain(|one| one.members > 0);
        booked
    }

    /// Where a gang's members are, were, or were told to go. Those that are done have used their room, and a placement may
    /// have been written anew without them.
    fn was_taken(&self, taker: &str, group: &GangRecord) -> BTreeMap<NodeIdx, u16> {
        let mut seen: BTreeMap<NodeIdx, u16> = BTreeMap::new();
        for key in &group.pods {
            let node = self.cache.pods.get(key).and_then(|pod| self.world.node_named(pod.node()?));
            if let Some(node) = node {
                *seen.entry(node).or_default() += 1;
            }
        }
        let mut told: BTreeMap<NodeIdx, u16> = BTreeMap::new();
        for one in self.recorded(taker).unwrap_or_default() {
            *told.entry(one.node).or_default() += one.members;
        }
        for (node, members) in told {
            let here = seen.entry(node).or_default();
            *here = members.max(*here);
        }
        seen
    }

    /// All room of a request was taken before the restart.
    pub(crate) fn was_spent(&mut self, name: &Arc<str>, id: GangId) {
        self.apply_event(&Event::GangCancelled(id));
        self.gangs.remove(name);
        if let Some(known) = self.served_requests.known.get_mut(name) {
            known.is_spent = true;
        }
    }
}
