//! Recounts everything from what the World shows, and compares it with its own counters.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use muster_core::World;
use muster_core::device::{DeviceSet, WHOLE};
use muster_core::gang::{Gang, Phase, Seat};
use muster_core::id::{ClassIdx, DomainIdx, GangId, Id, NodeIdx, OfferingRef, QueueIdx, StateIdx};
use muster_core::node::Node;
use muster_core::pool::PoolUsage;
use muster_core::queue::Usage;
use muster_core::resource::Amounts;
use muster_core::state::NodeState;

/// Every index equals its recount.
pub(crate) fn audit(world: &World) {
    nodes(world);
    capacity(world);
    queues(world);
    total(world);
    pools(world);
    lists(world);
}

/// What is free on a node is what its members leave.
fn nodes(world: &World) {
    let mut states: BTreeSet<StateIdx> = BTreeSet::new();
    for idx in (0..world.node_slots()).map(NodeIdx::from_index) {
        states.extend(world.node_state(idx));
        let seats = seats_on(world, idx);
        let Some(node) = world.node(idx) else { continue };
        let members: u32 = seats.iter().map(|(_, seat)| u32::from(seat.members)).sum();
        assert_eq!(node.seats, members, "seats on {}", node.name);
        let left = free_after(world, node, &seats);
        let shown = world.states().get(world.node_state(idx).expect("it is here"));
        assert_eq!(*shown, left, "what is free on {}", node.name);
        assert_eq!(world.node_named(&node.name), Some(idx), "found by name");
    }
    assert_eq!(world.states().in_use(), states.len(), "states with a node in them");
}

/// What these seats leave free on a node. A node too small for them has nothing left of what it lacks, and no core and
/// no byte left if it lacks any of these.
fn free_after(world: &World, node: &Node, seats: &[(&Gang, Seat)]) -> NodeState {
    let mut left = world.empty_state(node.class);
    let (mut amounts, mut shares) = (Amounts::default(), BTreeMap::new());
    for (gang, seat) in seats {
        let signature = world.signature(gang.sigs[usize::from(seat.role)]);
        amounts.add(&signature.key.amounts, u32::from(seat.members));
        for device in seat.devices.iter() {
            *shares.entry(device).or_default() += signature.gpu().1;
        }
    }
    for (device, share) in shares {
        assert!(share <= WHOLE, "a device of {} is given twice", node.name);
        let there = device < left.devices.len();
        let taken = left.devices.take_exactly(DeviceSet(1 << device), share);
        assert_eq!(taken, there, "device {device} of {}", node.name);
    }
    if left.free.times_fits(&amounts) > 0 {
        left.free.take(&amounts, 1);
    } else {
        left.free = Amounts::default();
    }
    left
}

fn seats_on(world: &World, node: NodeIdx) -> Vec<(&Gang, Seat)> {
    let mut seats = Vec::new();
    for (_, gang) in world.gangs() {
        let held = match gang.phase {
            Phase::Assembling(order) => &world.orders()[&order].held[..],
            _ => &[],
        };
        let all = gang.seats.iter().chain(held);
        seats.extend(all.filter(|seat| seat.node == node).map(|seat| (gang, *seat)));
    }
    seats
}

/// Each domain counts its nodes, each leaf lists its own.
fn capacity(world: &World) {
    let topology = world.topology();
    for domain in (0..topology.len()).map(DomainIdx::from_index) {
        let mut free: BTreeMap<StateIdx, Vec<NodeIdx>> = BTreeMap::new();
        let mut standing: BTreeMap<ClassIdx, u32> = BTreeMap::new();
        for (idx, node) in world.nodes() {
            if !topology.contains(domain, node.leaf) {
                continue;
            }
            if node.takes_more() {
                free.entry(world.node_state(idx).expect("it is here")).or_default().push(idx);
            }
            // A quarantined node comes back: it still counts for what could ever run.
            if node.stays() {
                *standing.entry(node.class).or_default() += u32::from(node.claim.is_none());
            }
        }
        standing.retain(|_, nodes| *nodes > 0);
        let counted: Vec<(StateIdx, u32)> =
            free.iter().map(|(state, nodes)| (*state, nodes.len() as u32)).collect();
        assert_eq!(world.capacity().tally(domain).entries(), counted, "tally of {domain:?}");
        let standing: Vec<(ClassIdx, u32)> = standing.into_iter().collect();
        assert_eq!(world.standing(domain).entries(), standing, "standing in {domain:?}");
        if topology.is_leaf(domain) {
            let leaf = world.capacity().leaf(domain);
            for state in (0..world.states().len()).map(StateIdx::from_index) {
                let mut handed: Vec<NodeIdx> =
                    leaf.groups().slots_in(state).map(|slot| leaf.node(slot)).collect();
                handed.sort_unstable();
                let there = free.get(&state).cloned().unwrap_or_default();
                assert_eq!(handed, there, "nodes of {domain:?} in {state:?}");
            }
        }
    }
}

/// A queue holds the seats and reservations of its gangs, and what the queues below it hold.
fn queues(world: &World) {
    let mut held: BTreeMap<QueueIdx, Usage> = BTreeMap::new();
    let mut by_user: BTreeMap<(QueueIdx, Arc<str>), Usage> = BTreeMap::new();
    for (_, gang) in world.gangs() {
        let roles: Vec<(u16, u16)> = match gang.phase {
            Phase::Assembling(order) => {
                let seats = world.orders()[&order].spec.reservations.iter();
                seats.map(|seat| (seat.role, seat.members)).collect()
            }
            _ => gang.seats.iter().map(|seat| (seat.role, seat.members)).collect(),
        };
        for (role, members) in roles {
            let signature = world.signature(gang.sigs[usize::from(role)]);
            for queue in world.queue_path(gang.queue) {
                let usage = held.entry(queue).or_default();
                usage.amounts.add(&signature.key.amounts, u32::from(members));
                usage.gpu_milli += signature.gpu_milli() * u64::from(members);
                if !world.queue(queue).user_limit.is_empty() {
                    let own = by_user.entry((queue, gang.spec.user.clone())).or_default();
                    own.add(&signature.key.amounts, signature.gpu_milli(), u32::from(members));
                }
            }
        }
    }
    for (idx, queue) in world.queues().iter() {
        assert_eq!(queue.usage, held.remove(&idx).unwrap_or_default(), "queue {}", queue.spec.name);
        for (user, own) in &queue.users {
            let counted = by_user.remove(&(idx, user.clone()));
            assert_eq!(Some(own), counted.as_ref(), "{user} in queue {}", queue.spec.name);
        }
    }
}

/// The total is that of all usable nodes, each counted once.
fn total(world: &World) {
    let mut total = Usage::default();
    for (_, node) in world.nodes().filter(|(_, node)| node.takes_more()) {
        let shape = world.class(node.class);
        total.add(&shape.allocatable, u64::from(shape.gpus) * u64::from(WHOLE), 1);
    }
    assert_eq!(*world.total(), total, "all there is");
}

/// A pool uses what was claimed of it and is not gone.
fn pools(world: &World) {
    for (idx, pool) in world.pools().iter() {
        let mut usage = PoolUsage::default();
        for (slot, offering) in pool.offerings.iter().enumerate() {
            let this = OfferingRef { pool: idx, slot: slot as u16 };
            let claims =
                world.claims().values().filter(|claim| claim.offering == this).count() as u32;
            assert_eq!(offering.nodes, claims, "{}/{slot}", pool.spec.name);
            usage.nodes += claims;
            usage.gpus += claims * u32::from(offering.spec.gpus);
            usage.hourly += offering.spec.price.times(claims);
        }
        assert_eq!(pool.usage, usage, "pool {}", pool.spec.name);
        assert_eq!(pool.spec.offerings.len(), pool.offerings.len(), "pool {}", pool.spec.name);
    }
}

/// Lists by phase, and references between objects.
fn lists(world: &World) {
    let all = |keep: &dyn Fn(&Gang) -> bool| -> BTreeSet<GangId> {
        world.gangs().filter(|(_, gang)| keep(gang)).map(|(id, _)| id).collect()
    };
    assert_eq!(*world.pending(), all(&Gang::is_pending), "gangs that wait");
    let waits = |gang: &Gang| gang.phase == Phase::Waiting;
    let in_line: Vec<GangId> = world.waiting().iter().map(|waiter| waiter.id).collect();
    let mut by_rank: Vec<GangId> = all(&waits).into_iter().collect();
    by_rank.sort_by_key(|id| {
        let gang = world.gang(*id).expect("it waits");
        (std::cmp::Reverse(gang.spec.priority), gang.waits_since, *id)
    });
    assert_eq!(in_line, by_rank, "gangs in line, by priority and age");
    let mut ends: Vec<_> =
        world.gangs().filter_map(|(id, gang)| Some((gang.estimated_end()?, id))).collect();
    ends.sort_unstable();
    assert_eq!(
        world.estimated_ends().collect::<Vec<_>>(),
        ends,
        "when those that run are said to end"
    );
    let longest = world.gangs().map(|(_, gang)| gang.spec.estimated_with_min()).max();
    assert_eq!(world.longest_estimate(), longest.unwrap_or_default(), "the longest that is said");
    let lost = |gang: &Gang| gang.seats.iter().any(|seat| world.node(seat.node).is_none());
    let broken: BTreeSet<GangId> = world.broken().keys().copied().collect();
    assert_eq!(broken, all(&lost), "gangs with a member on a node that is gone");
    for (id, gang) in world.gangs() {
        assert_eq!(world.gang_named(&gang.spec.name), Some(id), "found by name");
        assert!(
            !gang.is_pending() || gang.seats.is_empty(),
            "{} waits in its seats",
            gang.spec.name
        );
    }
    for (id, order) in world.orders() {
        let gang = world.gang(order.spec.gang).expect("an order is for a gang");
        assert!(gang.has_order(*id) && *id < world.next_order(), "{id:?} is its gang's order");
    }
    for (id, claim) in world.claims() {
        assert!(*id < world.next_claim(), "{id:?} is not given out again");
        let listed =
            |order: &muster_core::order::Order| order.spec.claims.iter().any(|(c, _)| c == id);
        let owner = world.orders().iter().find(|(_, order)| listed(order)).map(|(id, _)| *id);
        assert_eq!(claim.order, owner, "the order of {id:?}");
    }
}
