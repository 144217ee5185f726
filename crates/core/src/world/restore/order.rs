//! Restores orders that were placed before a restart: with claims that are ready by now, and claims that were never
//! requested.

use std::collections::BTreeMap;

use crate::capacity::state::NodeState;
use crate::id::{NodeIdx, OfferingRef};
use crate::messages::event::{Refusal, Stale};
use crate::objects::gang::{Phase, Seat};
use crate::objects::order::{ClaimState, OrderSpec, Place, Reservation};
use crate::units::time::Time;
use crate::world::World;
use crate::world::orders::{has_victims, present, seat_on, seats_on_claim};

impl World {
    /// Takes in an order that an earlier process placed, or changes nothing. Claims of it that exist are its own
    /// again, in whatever state; those that do not exist were not requested yet, or failed.
    pub(in crate::world) fn restore_order(
        &mut self,
        spec: &OrderSpec,
        placed: Time,
        top_ups: u32,
    ) -> Result<(), Refusal> {
        let gang = self.gang(spec.gang).ok_or(Refusal::UnknownGang(spec.gang))?;
        if gang.phase != Phase::Waiting || spec.id.0 < self.next_order {
            return Err(Stale::Gang.into());
        }
        let mut unasked: Vec<OfferingRef> = Vec::new();
        for (claim, offering) in &spec.claims {
            match self.claims.get(claim) {
                Some(known)
                    if known.offering == *offering && known.order.is_none() && !known.releasing => {
                }
                None => unasked.push(*offering),
                Some(_) => return Err(Stale::Order.into()),
            }
        }
        self.check_pools(&unasked)?;
        let mut spec = spec.clone();
        self.pick_devices(&mut spec);
        let ready = spec.claims.iter().filter_map(|(id, _)| match self.claims.get(id)?.state {
            ClaimState::Ready(node) => Some(seats_on_claim(&spec, *id, node)),
            _ => None,
        });
        let here: Vec<Seat> = present(&spec.reservations).chain(ready.flatten()).collect();
        self.enter_order(&spec, here, placed.min(self.now), top_ups)
    }

    /// Gives seats on nodes that are here other devices, where theirs are taken and others are free: which device each
    /// member has was not stored, and gangs that were restored first took the first ones.
    fn pick_devices(&self, spec: &mut OrderSpec) {
        let mut states: BTreeMap<NodeIdx, NodeState> = BTreeMap::new();
        let gang = self.gang(spec.gang).expect("checked by who asks");
        for at in 0..spec.reservations.len() {
            let reservation = spec.reservations[at];
            let Some(node) = self.node_of(&reservation) else { continue };
            let Some(sig) = gang.sigs.get(usize::from(reservation.role)) else { continue };
            if has_victims(&spec.after, node) {
                continue;
            }
            let signature = self.signature(*sig);
            let state =
                states.entry(node).or_insert_with(|| self.states.get(self.row(node).state).clone());
            let mut seat = seat_on(&reservation, node);
            let (gpus, share) = signature.gpu();
            if gpus > 0 && !state.has_free(signature, &seat) {
                seat.devices = state.devices.clone().take(gpus, share).unwrap_or(seat.devices);
            }
            if state.has_free(signature, &seat) {
                state.sit(signature, &seat);
                spec.reservations[at].devices = seat.devices;
            }
        }
    }

    /// The node of a reservation, if it is here.
    fn node_of(&self, reservation: &Reservation) -> Option<NodeIdx> {
        let node = match reservation.place {
            Place::Node(node) => node,
            Place::Claim(claim) => match self.claims.get(&claim)?.state {
                ClaimState::Ready(node) => node,
                _ => return None,
            },
        };
        self.node(node).is_some().then_some(node)
    }
}
