//! Step 4b: let smaller gangs into the holes, if they do not delay the reservation.
//!
//! A gang that is believed to end before the reserved start may take anything that is free. One that ends
//! later may take only what is free now *and* then, beside the reserved seats.

use muster_core::gang::{Gang, Seat};
use muster_core::id::{GangId, NodeIdx};
use muster_core::order::{OrderSpec, Place};

use crate::cycle::Cycle;
use crate::place::{Fits, Misfit, place};
use crate::predict;
use crate::reserve::Reservation;
use crate::scratch::Scratch;

/// The holes beside one reservation.
pub(crate) struct Holes<'w> {
    reservation: Reservation<'w>,
    /// What is free both now and at the reserved start.
    throughout: Scratch<'w>,
    fits: Fits,
}

impl<'w> Holes<'w> {
    /// The holes beside a reservation, as things stand in the cycle.
    pub(crate) fn beside(cycle: &Cycle<'w>, reservation: Reservation<'w>) -> Self {
        let throughout = cycle.scratch.later();
        let mut holes = Self { throughout, fits: Fits::default(), reservation };
        let nodes: Vec<NodeIdx> = holes.reservation.seats.iter().map(|seat| seat.node).collect();
        holes.refresh(cycle, &nodes);
        holes
    }

    /// Whom the holes are beside.
    pub(crate) fn ahead(&self) -> GangId {
        self.reservation.gang
    }

    /// Seats for a gang that delay nobody, taken in the cycle's scratch.
    ///
    /// # Errors
    /// Says why it does not fit now, or `None` when it would fit but delay the reservation.
    pub(crate) fn place(
        &mut self,
        cycle: &mut Cycle<'w>,
        gang: &Gang,
    ) -> Result<Vec<Seat>, Option<Misfit>> {
        let belief = cycle.policy.order.belief();
        let ends = predict::end(gang, belief, cycle.now);
        let seats = if ends <= self.reservation.start {
            place(&mut cycle.scratch, &mut cycle.fits, gang).map_err(Some)?
        } else {
            let seats = place(&mut self.throughout, &mut self.fits, gang)
                .map_err(|_| place(&mut cycle.scratch.trial(), &mut cycle.fits, gang).err())?;
            cycle.scratch.sit(gang, &seats);
            self.reservation.then.sit(gang, &seats);
            seats
        };
        let nodes: Vec<NodeIdx> = seats.iter().map(|seat| seat.node).collect();
        self.refresh(cycle, &nodes);
        Ok(seats)
    }

    /// Draws up an order that keeps off what the reservation needs: nobody knows when it will be complete.
    pub(crate) fn provide<E>(
        &mut self,
        cycle: &mut Cycle<'w>,
        draw_up: impl FnOnce(&mut Cycle<'w>) -> Result<OrderSpec, E>,
        gang: &Gang,
    ) -> Result<OrderSpec, E> {
        let mut nodes: Vec<NodeIdx> = self.reservation.seats.iter().map(|seat| seat.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let mut now = Vec::with_capacity(nodes.len());
        for node in nodes {
            if let (Some(free), Some(kept)) =
                (cycle.scratch.node_state(node), self.throughout.node_state(node))
            {
                now.push((node, free));
                cycle.scratch.set_node_state(node, kept);
            }
        }
        let drawn = draw_up(cycle);
        let mut seats: Vec<Seat> = Vec::new();
        if let Ok(spec) = &drawn {
            seats.extend(spec.reservations.iter().filter_map(|reservation| {
                let Place::Node(node) = reservation.place else { return None };
                Some(Seat { devices: reservation.devices, node, role: reservation.role })
            }));
        }
        for (node, free) in now {
            cycle.scratch.set_node_state(node, free);
            let here: Vec<Seat> = seats.iter().copied().filter(|seat| seat.node == node).collect();
            cycle.scratch.sit(gang, &here);
        }
        self.reservation.then.sit(gang, &seats);
        let nodes: Vec<NodeIdx> = seats.iter().map(|seat| seat.node).collect();
        self.refresh(cycle, &nodes);
        drawn
    }

    /// Brings what is free throughout up to date on these nodes.
    fn refresh(&mut self, cycle: &Cycle<'w>, nodes: &[NodeIdx]) {
        for same in nodes.chunk_by(|a, b| a == b) {
            let node = same[0];
            let (Some(now), Some(then)) =
                (cycle.scratch.node_state(node), self.reservation.then.node_state(node))
            else {
                continue;
            };
            let both = now.common(&then);
            self.throughout.set_node_state(node, both);
        }
    }
}
