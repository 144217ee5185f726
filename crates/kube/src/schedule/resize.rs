//! Gangs that run get more members, or fewer: written down, told, done.
//!
//! Where a gang will have members is written down before the first of them is bound, as when it starts: whoever takes
//! over in between finds everybody who may be somewhere. Where it gives members up, the seats stay written down until
//! they are left.

use std::sync::Arc;

use kube::runtime::events::EventType;
use muster_api::words;
use muster_core::Event;
use muster_core::gang::{Gang, Seat, members_of};
use muster_core::id::GangId;

use crate::cache::store::Key;
use crate::host::Host;
use crate::schedule::phase::PodsByState;

impl Host {
    /// A gang is to have other members than it has.
    pub(crate) fn begin_resize(&mut self, id: GangId) {
        let Some(gang) = self.world.gang(id) else { return };
        let Some(resize) = &gang.resize else { return };
        let (name, grows) = (gang.spec.name.clone(), !resize.added.is_empty());
        let (reason, words) = self.resize_message(id, gang);
        let action = format!("ResizeTo{}", members_of(&resize.to));
        self.record_event(&name, EventType::Normal, (reason, &action), &words);
        if grows && let Some(record) = self.gangs.get_mut(&name) {
            record.placement_written = false;
            self.write_placement(&name, id);
        }
        self.dirty.gangs.insert(name);
    }

    /// What is told of a gang that is resized.
    fn resize_message(&self, id: GangId, gang: &Gang) -> (&'static str, String) {
        let (to, added) = gang
            .resize
            .as_ref()
            .map_or((0, 0), |resize| (members_of(&resize.to), members_of(&resize.added)));
        let from = members_of(&gang.seats) - added;
        let order = self.world.makes_way_for(id).and_then(|order| self.world.orders().get(&order));
        let whose = order.map(|order| words::gang(&self.world, order.spec.gang));
        let why = whose.map_or(String::new(), |whose| format!(", to make room for {whose}"));
        let reason = if to >= from { "Growing" } else { "Shrinking" };
        (reason, format!("from {from} to {to} members{why}"))
    }

    /// Members that a resized gang gives up go, those with the highest indexes on each node; when they are gone, and
    /// those it gets are there, it is done.
    pub(crate) fn resize(&mut self, name: &Arc<str>, id: GangId, by_state: &PodsByState) {
        let gang = self.world.gang(id).expect("followed");
        let Some(resize) = &gang.resize else { return };
        let record = self.gangs.get(name).expect("followed");
        let mut seats: Vec<(u16, Arc<str>)> = Vec::new();
        for Seat { role, node, members, .. } in &resize.to {
            let Some(node) = self.world.node_name(*node) else { continue };
            seats.extend((0..*members).map(|_| (*role, node.clone())));
        }
        let mut bound: Vec<&(Key, Arc<str>)> = by_state.bound.iter().collect();
        let is_leaving = |key: &Key| self.cache.pods.get(key).is_some_and(|pod| pod.is_leaving());
        bound.sort_by_key(|(key, _)| (is_leaving(key), record.rank(key)));
        let mut surplus: Vec<(Key, Arc<str>)> = Vec::new();
        for (key, node) in bound {
            let role = record.pod_roles.get(key).copied().unwrap_or(u16::MAX);
            match seats.iter().position(|seat| *seat == (role, node.clone())) {
                Some(at) => drop(seats.swap_remove(at)),
                None => surplus.push((key.clone(), node.clone())),
            }
        }
        let grace = gang.spec.disruption.grace;
        if !surplus.is_empty() {
            self.evict_pods(name, &surplus, grace);
        } else if seats.is_empty()
            || (by_state.unbound.is_empty() && record.creating_pods.is_empty())
        {
            self.apply_event(&Event::GangResized(id));
            if !seats.is_empty() {
                self.return_empty_seats(name, id, by_state);
            }
            self.write_placement(name, id);
            // What it became meanwhile was not taken in.
            self.dirty.gangs.insert(name.clone());
        }
    }
}
