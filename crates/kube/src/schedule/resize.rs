//! Grows and shrinks gangs that run, as the planner decides.
//!
//! The placement of a growing gang is written before the first new member is bound, as at its start: a leader that takes over
//! in between finds every pod that may be on a node. When a gang shrinks, its seats stay in the placement until the pods are
//! gone.

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
    /// Begins a resize: records an Event, and writes the placement if the gang grows.
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

    /// The reason and the message of a resize.
    fn resize_message(&self, id: GangId, gang: &Gang) -> (&'static str, String) {
        let (to, added) = gang
            .resize
            .as_ref()
            .map_or((0, 0), |resize| (members_of(&resize.to), members_of(&resize.added)));
        let from = members_of(&gang.seats) - added;
        let order = self.world.preempted_for(id).and_then(|order| self.world.orders().get(&order));
        let preemptor = order.map(|order| words::gang(&self.world, order.spec.gang));
        let why =
            preemptor.map_or(String::new(), |preemptor| format!(", to make room for {preemptor}"));
        let reason = if to >= from { "Growing" } else { "Shrinking" };
        (reason, format!("from {from} to {to} members{why}"))
    }

    /// Evicts the members that a resized gang gives up, those with the highest ranks on each node. The resize is done when these
    /// are gone and the new members are bound.
    pub(crate) fn resize(&mut self, name: &Arc<str>, id: GangId, by_state: &PodsByState) {
        let gang = self.world.gang(id).expect("the World has the gang");
        let Some(resize) = &gang.resize else { return };
        let record = self.gangs.get(name).expect("the gang has a record");
        let mut seats: Vec<(u16, Arc<str>)> = Vec::new();
        for Seat { role, node, members, .. } in &resize.to {
            let Some(node) = self.world.node_name(*node) else { continue };
            seats.extend((0..*members).map(|_| (*role, node.clone())));
        }
        let mut bound: Vec<&(Key, Arc<str>)> = by_state.bound.iter().collect();
        let is_leaving =
            |key: &Key| self.cache.pods.get(key).is_some_and(|pod| pod.is_terminating());
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
            // Changes of its spec were not accepted meanwhile.
            self.dirty.gangs.insert(name.clone());
        }
    }
}
