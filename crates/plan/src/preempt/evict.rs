//! Evict victims: the order that holds their seats for the gang that waits, and what the victims are told.

use std::collections::BTreeMap;

use muster_core::World;
use muster_core::gang::{Gang, Phase, Seat};
use muster_core::id::{GangId, OrderId, QueueIdx};
use muster_core::order::{OrderSpec, Place, Reservation, VictimSeats};
use muster_core::plan::{Action, StopReason};
use muster_core::time::{Span, Time};

use super::victims::VictimSet;
use crate::cycle::Cycle;

/// How long victims may take to leave beyond their grace, before the gang that waits for them goes back to the queue.
pub(super) const SLACK: Span = Span::mins(2);

/// The order that holds the seats of a gang, and the actions that evict its victims: at once, as nothing else is
/// waited for.
pub(crate) fn hold_and_evict(
    cycle: &mut Cycle<'_>,
    id: GangId,
    victims: &VictimSet,
) -> (OrderSpec, Vec<Action>) {
    let world = cycle.scratch.world;
    let mut seats = victims.seats.clone();
    seats.sort_by_key(|seat| seat.role);
    let reservations = seats
        .iter()
        .map(|seat| {
            let Seat { devices, node, role, members } = *seat;
            Reservation { place: Place::Node(node), devices, role, members }
        })
        .collect();
    let spec = OrderSpec {
        id: OrderId(world.next_order().0 + cycle.given.orders),
        gang: id,
        claims: Vec::new(),
        reservations,
        deadline: cycle.now + victims.delay + SLACK,
        after: victims.preempts.clone(),
        gap: 0,
        ways: Vec::new(),
    };
    cycle.given.orders += 1;
    let evictions =
        victims.preempts.iter().filter_map(|way| evict(cycle.scratch.world.gang(way.gang)?, way));
    let evictions = evictions.collect();
    note_victims(cycle, &victims.preempts);
    (spec, evictions)
}

/// Notes victims, so that they are not chosen for another gang.
pub(super) fn note_victims(cycle: &mut Cycle<'_>, ways: &[VictimSeats]) {
    for way in ways {
        cycle.given.disrupted.push(way.gang);
        if let Some(other) = cycle.scratch.world.gang(way.gang) {
            cycle.given.leaving.note(cycle.scratch.world, other, &way.seats);
        }
        if let (Some(stop), Some(other)) = (way.stop, cycle.scratch.world.gang(way.gang))
            && !matches!(stop, StopReason::Reclaimed(_))
        {
            *cycle.limits.evicted.entry(other.queue).or_default() += 1;
        }
    }
}

/// The action that evicts a victim; none if it was told already, or cannot be told now.
pub(crate) fn evict(other: &Gang, way: &VictimSeats) -> Option<Action> {
    let runs = matches!(other.phase, Phase::Running { .. } | Phase::Admitted { .. });
    match way.stop {
        Some(reason) if runs => Some(Action::Stop { gang: way.gang, reason }),
        None if other.is_steady() => {
            let seats = muster_core::gang::without(&other.seats, &way.seats);
            Some(Action::Resize { gang: way.gang, seats })
        }
        Some(_) | None => None,
    }
}

/// Victims of each queue that orders will stop and that have not been told yet: they count for their queue's eviction
/// budget from the moment an order relies on it.
pub(crate) fn pending_evictions(world: &World) -> BTreeMap<QueueIdx, u32> {
    let mut pending = BTreeMap::new();
    for way in world.orders().values().flat_map(|order| &order.after) {
        let Some(other) = world.gang(way.gang) else { continue };
        let is_told = !matches!(other.phase, Phase::Running { .. } | Phase::Admitted { .. });
        if !is_told && way.stop.is_some_and(|stop| !matches!(stop, StopReason::Reclaimed(_))) {
            *pending.entry(other.queue).or_default() += 1;
        }
    }
    pending
}

/// Eviction budgets: how many more gangs of each queue may be stopped for other gangs now, where that is limited.
impl Cycle<'_> {
    pub(crate) fn eviction_budgets(&self) -> BTreeMap<QueueIdx, u32> {
        let queues = self.scratch.world.queues().iter();
        let limited = queues.filter_map(|(idx, queue)| {
            let most = queue.spec.evictions_per_hour?;
            let recent = queue.evicted.iter().filter(|at| self.now.since(**at) < Span::hours(1));
            let now = self.limits.evicted.get(&idx).copied().unwrap_or(0);
            Some((idx, most.saturating_sub(recent.count() as u32 + now)))
        });
        limited.collect()
    }
    /// Whether one more gang of a queue may be stopped for another now.
    pub(crate) fn may_evict(&self, queue: QueueIdx) -> bool {
        let listed = self.scratch.world.queue(queue);
        listed.spec.evictions_per_hour.is_none()
            || self.eviction_budgets().get(&queue).is_none_or(|left| *left > 0)
    }
    /// When one more gang of a queue may be stopped for another; never if it allows none.
    pub(crate) fn next_eviction(&self, queue: QueueIdx) -> Option<Time> {
        if self.may_evict(queue) {
            return Some(self.now);
        }
        let listed = self.scratch.world.queue(queue);
        let most = listed.spec.evictions_per_hour.filter(|most| *most > 0)?;
        let now = self.limits.evicted.get(&queue).copied().unwrap_or(0);
        // The evictions of this cycle are the latest.
        let before = most.checked_sub(now + 1);
        let first = before.and_then(|before| listed.evicted.iter().rev().nth(before as usize));
        Some(first.copied().unwrap_or(self.now) + Span::hours(1))
    }
    /// Whether a gang is a victim already, or stopped or resized in this cycle.
    pub(crate) fn is_disrupted(&self, id: GangId) -> bool {
        self.scratch.world.preempted_for(id).is_some() || self.given.disrupted.contains(&id)
    }
}
