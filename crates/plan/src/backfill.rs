//! Step 4b: let smaller gangs into the holes, if they do not delay the reservation.
//!
//! A gang that is believed to end before the reserved start may take anything that is free. One that ends
//! later may take only what is free now *and* then, beside the reserved seats.

use muster_core::gang::{Gang, Seat};
use muster_core::id::{GangId, NodeIdx};
use muster_core::order::{OrderSpec, Place};
use muster_core::topology::ROOT;

use crate::cycle::Cycle;
use crate::place::{Fits, Misfit, Want, place};
use crate::predict;
use crate::reserve::Reservation;
use crate::scratch::Scratch;

/// The holes beside one reservation.
pub(crate) struct Holes<'w> {
    reservation: Reservation<'w>,
    /// What is free both now and at the reserved start.
    throughout: Scratch<'w>,
    fits: Fits,
    /// Nodes on which the reservation has seats.
    nodes: Vec<NodeIdx>,
}

impl<'w> Holes<'w> {
    /// The holes beside a reservation, as things stand in the cycle.
    pub(crate) fn beside(cycle: &Cycle<'w>, reservation: Reservation<'w>) -> Self {
        let throughout = cycle.scratch.later();
        let nodes = nodes_of(&reservation.seats);
        let mut holes = Self { throughout, fits: Fits::default(), nodes: Vec::new(), reservation };
        holes.refresh(cycle, &nodes);
        holes.nodes = nodes;
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
                .map_err(|_| misfit_now(cycle, gang))?;
            cycle.scratch.sit(gang, &seats);
            self.reservation.then.sit(gang, &seats);
            seats
        };
        self.refresh(cycle, &nodes_of(&seats));
        Ok(seats)
    }

    /// Draws up an order that keeps off what the reservation needs: nobody knows when it will be complete.
    pub(crate) fn provide<E>(
        &mut self,
        cycle: &mut Cycle<'w>,
        draw_up: impl FnOnce(&mut Cycle<'w>) -> Result<OrderSpec, E>,
        gang: &Gang,
    ) -> Result<OrderSpec, E> {
        let mut now = Vec::with_capacity(self.nodes.len());
        for node in self.nodes.iter().copied() {
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
                let muster_core::order::Reservation { devices, role, members, .. } = *reservation;
                Some(Seat { devices, node, role, members })
            }));
        }
        for (node, free) in now {
            cycle.scratch.set_node_state(node, free);
            let here: Vec<Seat> = seats.iter().copied().filter(|seat| seat.node == node).collect();
            cycle.scratch.sit(gang, &here);
        }
        self.reservation.then.sit(gang, &seats);
        self.refresh(cycle, &nodes_of(&seats));
        drawn
    }

    /// Brings what is free throughout up to date on these nodes.
    fn refresh(&mut self, cycle: &Cycle<'w>, nodes: &[NodeIdx]) {
        for node in nodes.iter().copied() {
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

/// The nodes some seats are on, each once.
fn nodes_of(seats: &[Seat]) -> Vec<NodeIdx> {
    let mut nodes: Vec<NodeIdx> =
        seats.chunk_by(|a, b| a.node == b.node).map(|on_node| on_node[0].node).collect();
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}

/// Why a gang does not fit on what is free now; `None` when it does.
fn misfit_now(cycle: &mut Cycle<'_>, gang: &Gang) -> Option<Misfit> {
    if let ([sig], [role], None) =
        (gang.sigs.as_slice(), gang.spec.roles.as_slice(), &gang.spec.closeness)
    {
        // For one role without closeness counting is exact, and spares the seats.
        let free = cycle.fits.in_domain(&cycle.scratch, ROOT, Want::any(*sig));
        let fits = u32::try_from(free).unwrap_or(u32::MAX);
        return (fits < role.min).then_some(Misfit::Role { role: 0, fits, needs: role.min });
    }
    place(&mut cycle.scratch.trial(), &mut cycle.fits, gang).err()
}
