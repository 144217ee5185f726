//! Converts orders to and from Order objects: the World refers to nodes, gangs and offerings by index, the object by name.

use muster_api::crd::{
    GangRef, OrderClaim, OrderPlacement, OrderSpec, PreemptedPlacement, Preemption, Stamp, StopFor,
};
use muster_core::World;
use muster_core::device::DeviceSet;
use muster_core::gang::{Gang, Seat};
use muster_core::id::{ClaimId, GangId, OfferingRef, OrderId};
use muster_core::order::{self, Place, Reservation};
use muster_core::plan::StopReason;

use crate::cache::store::split_key;
use crate::provision::karpenter::{node_claim_name, offering_name};

/// The name of an order's object.
pub(crate) fn order_name(id: OrderId) -> String {
    format!("order-{}", id.0)
}

/// The spec of an order's object. `None` when its gang does not exist any more.
pub(crate) fn order_manifest(
    world: &World,
    spec: &order::OrderSpec,
    top_ups: u32,
) -> Option<OrderSpec> {
    let gang = world.gang(spec.gang)?;
    Some(OrderSpec {
        number: spec.id.0,
        gang: gang_ref(gang),
        claims: spec.claims.iter().filter_map(|claim| claim_manifest(world, *claim)).collect(),
        placements: spec
            .reservations
            .iter()
            .filter_map(|one| placement_manifest(world, gang, one))
            .collect(),
        deadline: Stamp(spec.deadline),
        preempts: spec
            .after
            .iter()
            .filter_map(|preemption| preemption_manifest(world, preemption))
            .collect(),
        replaced_claims: top_ups,
    })
}

fn gang_ref(gang: &Gang) -> GangRef {
    let (namespace, name) = split_key(&gang.spec.name);
    GangRef { namespace: namespace.into(), name: name.into(), uid: None }
}

fn claim_manifest(world: &World, (id, offering): (ClaimId, OfferingRef)) -> Option<OrderClaim> {
    let pool = &world.pools().get(offering.pool)?.spec.name;
    let offering = offering_name(&world.offering(offering).spec);
    Some(OrderClaim {
        id: id.0,
        name: (&*node_claim_name(id)).into(),
        pool: (&**pool).into(),
        offering: (&*offering).into(),
    })
}

fn placement_manifest(world: &World, gang: &Gang, one: &Reservation) -> Option<OrderPlacement> {
    let (node, claim) = match one.place {
        Place::Node(node) => (Some((&**world.node_name(node)?).into()), None),
        Place::Claim(claim) => (None, Some(claim.0)),
    };
    let role = &*gang.spec.roles[usize::from(one.role)].name;
    Some(OrderPlacement {
        role: role.into(),
        members: one.members,
        node,
        claim,
        devices: devices(one.devices),
    })
}

fn devices(set: DeviceSet) -> Vec<u8> {
    set.iter().map(|device| device as u8).collect()
}

fn preemption_manifest(world: &World, preemption: &order::VictimSeats) -> Option<Preemption> {
    let gang = world.gang(preemption.gang)?;
    let leaving = |seat: &Seat| {
        let role = &*gang.spec.roles[usize::from(seat.role)].name;
        let node = (&**world.node_name(seat.node)?).into();
        Some(PreemptedPlacement {
            role: role.into(),
            members: seat.members,
            node,
            devices: devices(seat.devices),
        })
    };
    let stop = preemption.stop.and_then(|reason| match reason {
        StopReason::Preempted(_) => Some(StopFor::Preempted),
        StopReason::Reclaimed(_) => Some(StopFor::Reclaimed),
        StopReason::Rotated(_) => Some(StopFor::Rotated),
        StopReason::Moved => Some(StopFor::Moved),
        StopReason::NodeLost(_) | StopReason::Cancelled | StopReason::NodeFailing(_) => None,
    });
    Some(Preemption {
        gang: gang_ref(gang),
        placements: preemption.seats.iter().filter_map(leaving).collect(),
        stop,
    })
}

/// The order that an object describes, in this World. `None` when something it names does not exist any more: it cannot complete
/// as it was, and its gang is planned again.
pub(crate) fn order_from_manifest(world: &World, spec: &OrderSpec) -> Option<order::OrderSpec> {
    let gang_id = gang_by_ref(world, &spec.gang)?;
    let gang = world.gang(gang_id)?;
    let claims = spec.claims.iter().map(|claim| {
        Some((ClaimId(claim.id), offering_named(world, &claim.pool, &claim.offering)?))
    });
    let seats = spec.placements.iter().map(|seat| {
        let place = match (&seat.node, seat.claim) {
            (Some(node), None) => Place::Node(world.node_named(node)?),
            (None, Some(claim)) => Place::Claim(ClaimId(claim)),
            _ => return None,
        };
        let (role, devices) = (role_index(gang, &seat.role)?, device_set(&seat.devices)?);
        Some(Reservation { place, devices, role, members: seat.members })
    });
    let after = spec.preempts.iter().map(|preemption| victim_seats(world, preemption, gang_id));
    Some(order::OrderSpec {
        id: OrderId(spec.number),
        gang: gang_id,
        claims: claims.collect::<Option<_>>()?,
        reservations: seats.collect::<Option<_>>()?,
        deadline: spec.deadline.0,
        after: after.collect::<Option<_>>()?,
        gap: 0,
        ways: Vec::new(),
    })
}

fn gang_by_ref(world: &World, gang: &GangRef) -> Option<GangId> {
    world.gang_named(&format!("{}/{}", gang.namespace, gang.name))
}

fn role_index(gang: &Gang, name: &str) -> Option<u16> {
    let at = gang.spec.roles.iter().position(|role| &*role.name == name)?;
    u16::try_from(at).ok()
}

fn device_set(devices: &[u8]) -> Option<DeviceSet> {
    devices.iter().try_fold(DeviceSet::default(), |set, device| {
        Some(DeviceSet(set.0 | 1u64.checked_shl(u32::from(*device))?))
    })
}

/// The offering with this name in a pool.
pub(crate) fn offering_named(world: &World, pool: &str, name: &str) -> Option<OfferingRef> {
    let pool = world.pool_named(pool)?;
    let offerings = &world.pools()[pool].spec.offerings;
    let slot = offerings.iter().position(|offering| offering_name(offering) == name)?;
    Some(OfferingRef { pool, slot: u16::try_from(slot).ok()? })
}

fn victim_seats(world: &World, preemption: &Preemption, by: GangId) -> Option<order::VictimSeats> {
    let gang_id = gang_by_ref(world, &preemption.gang)?;
    let gang = world.gang(gang_id)?;
    let seats: Option<Vec<Seat>> = match preemption.stop {
        // All of its seats, on whichever devices it was restored.
        Some(_) => Some(gang.seats.clone()),
        None => {
            let seats = preemption.placements.iter().map(|seat| {
                let (node, devices) = (world.node_named(&seat.node)?, device_set(&seat.devices)?);
                Some(Seat {
                    devices,
                    node,
                    role: role_index(gang, &seat.role)?,
                    members: seat.members,
                })
            });
            seats.collect()
        }
    };
    let stop = preemption.stop.map(|reason| match reason {
        StopFor::Preempted => StopReason::Preempted(by),
        StopFor::Reclaimed => StopReason::Reclaimed(by),
        StopFor::Rotated => StopReason::Rotated(by),
        StopFor::Moved => StopReason::Moved,
    });
    Some(order::VictimSeats { gang: gang_id, seats: seats?, stop })
}
