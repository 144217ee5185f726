//! Turns the draft of an order into numbered claims.

use muster_core::gang::{Gang, Seat};
use muster_core::id::{ClaimId, GangId, OfferingRef, OrderId};
use muster_core::order::{OrderSpec, Place, Reservation};

use super::draft::Draft;
use crate::cycle::Cycle;

/// The order of a draft. Claims that are under way keep their numbers.
pub(super) fn to_order_spec(
    cycle: &mut Cycle<'_>,
    id: GangId,
    gang: &Gang,
    draft: Draft,
) -> OrderSpec {
    let world = cycle.scratch.world;
    let mut next = world.next_claim().0 + cycle.given.claims;
    let claims: Vec<(ClaimId, OfferingRef)> = cycle.scratch.paper()[draft.paper.clone()]
        .iter()
        .map(|node| {
            let claim = node.coming.unwrap_or_else(|| {
                next += 1;
                ClaimId(next - 1)
            });
            (claim, node.offering)
        })
        .collect();
    let first_paper = (world.node_slots() + draft.paper.start) as u32;
    let place = |seat: &Seat| match seat.node.0.checked_sub(first_paper) {
        Some(i) => Place::Claim(claims[i as usize].0),
        None => Place::Node(seat.node),
    };
    let mut seats = draft.seats;
    seats.sort_by_key(|seat| seat.role);
    let reservations = seats
        .iter()
        .map(|seat| Reservation {
            place: place(seat),
            devices: seat.devices,
            role: seat.role,
            members: seat.members,
        })
        .collect();
    let order = OrderId(world.next_order().0 + cycle.given.orders);
    cycle.given.claims = next - world.next_claim().0;
    cycle.given.orders += 1;
    let deadline = cycle.now + gang.spec.provisioning.timeout;
    OrderSpec {
        id: order,
        gang: id,
        claims,
        reservations,
        deadline,
        after: Vec::new(),
        gap: draft.gap,
        ways: Vec::new(),
    }
}
