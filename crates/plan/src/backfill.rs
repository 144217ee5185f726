//! Backfill: let gangs start in the holes beside booked starts, where they delay no booking.
//!
//! A gang that is believed to end before the first booked start may take anything that is free. One that ends later
//! may take only what is free now and at every booked start before its end, beside the booked seats.

use muster_core::gang::{Gang, Seat};
use muster_core::id::{GangId, NodeIdx};
use muster_core::order::{OrderSpec, Place};
use muster_core::state::NodeState;
use muster_core::time::Span;
use muster_core::topology::ROOT;

use crate::cycle::Cycle;
use crate::order::{QueuedGang, quota};
use crate::place::{Fits, Misfit, Want, place};
use crate::predict;
use crate::predict::Belief;
use crate::preempt::{self, VictimSet};
use crate::reserve::{Booking, Bookings, booked_nodes, nodes_of};
use crate::scratch::Scratch;

/// Booked start times and the holes beside them.
#[derive(Default)]
pub(crate) struct Holes<'w> {
    pub(crate) bookings: Bookings<'w>,
    /// What is free now and at the first, the first two, ... booked starts; computed as far as it was needed.
    throughout: Vec<(Scratch<'w>, Fits)>,
}

impl<'w> Holes<'w> {
    /// Whether no gang holds a start time.
    pub(crate) fn is_empty(&self) -> bool {
        self.bookings.0.is_empty()
    }
    /// How many gangs hold a start time.
    pub(crate) fn len(&self) -> usize {
        self.bookings.0.len()
    }
    /// The gang with the first booked start.
    pub(crate) fn ahead(&self) -> Option<GangId> {
        self.bookings.0.first().map(|booking| booking.gang)
    }

    /// Whether a gang would exceed a limit at one of the first `starts` booked starts, because of the booked gangs.
    pub(crate) fn is_quota_booked(&self, gang: &Gang, starts: usize) -> bool {
        let over = |booking: &Booking<'_>| quota::over_limit(&booking.then, gang).is_some();
        self.bookings.0[..starts].iter().any(over)
    }

    /// Whether counting alone shows that a gang would delay a booked gang if its estimate is right, and nothing can
    /// be bought for it.
    pub(crate) fn would_delay(&mut self, cycle: &Cycle<'w>, queued: &QueuedGang) -> bool {
        let Some((sig, needs)) = queued.simple.filter(|_| cycle.scratch.world.pools().is_empty())
        else {
            return false;
        };
        let trusts_estimate = cycle.policy.order.belief().of_newcomers() == Belief::Estimate;
        let before = self.bookings.before(cycle.now + queued.said);
        if !trusts_estimate || queued.said == Span::ZERO || before == 0 {
            return false;
        }
        let (throughout, fits) = self.throughout(cycle, before);
        fits.in_domain(throughout, ROOT, Want::any(sig)) < u64::from(needs)
    }

    /// Keeps the seats of a booking from gangs that are served later.
    pub(crate) fn book(&mut self, gang: &Gang, booking: Booking<'w>) {
        self.bookings.add(gang, booking);
        self.throughout.clear();
    }

    /// Seats for a gang that delay no booking, taken in the cycle's scratch.
    ///
    /// # Errors
    /// Says why it does not fit now, or `None` when it would fit but delay a booked gang.
    pub(crate) fn place(
        &mut self,
        cycle: &mut Cycle<'w>,
        gang: &Gang,
    ) -> Result<Vec<Seat>, Option<Misfit>> {
        let belief = cycle.policy.order.belief().of_newcomers();
        let ends = predict::end(cycle.scratch.world, gang, belief, cycle.now);
        let before = self.bookings.before(ends);
        if before == 0 {
            let seats = place(&mut cycle.scratch, &mut cycle.fits, gang).map_err(Some)?;
            self.refresh(cycle, &nodes_of(&seats));
            return Ok(seats);
        }
        if let Some(misfit) = misfit_by_count(cycle, gang) {
            return Err(Some(misfit));
        }
        // Its usage must not be what a booked gang counts on under a limit.
        if self.is_quota_booked(gang, before) {
            return Err(misfit_now(cycle, gang));
        }
        let (throughout, fits) = self.throughout(cycle, before);
        let seats = match place(&mut throughout.trial(), fits, gang) {
            Ok(seats) => seats,
            Err(_) => return Err(misfit_now(cycle, gang)),
        };
        cycle.scratch.sit(gang, &seats);
        for booking in &mut self.bookings.0[..before] {
            booking.then.sit(gang, &seats);
            quota::charge_later(&mut booking.then, gang);
        }
        self.refresh(cycle, &nodes_of(&seats));
        Ok(seats)
    }

    /// Draws up an order that keeps off what is booked, since the time at which it will be complete is unknown.
    pub(crate) fn provide<E>(
        &mut self,
        cycle: &mut Cycle<'w>,
        draw_up: impl FnOnce(&mut Cycle<'w>) -> Result<OrderSpec, E>,
        gang: &Gang,
    ) -> Result<OrderSpec, E> {
        if self.is_empty() {
            return draw_up(cycle);
        }
        let now = self.hide_booked(cycle);
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
        for booking in self.bookings.0.iter_mut().filter(|_| drawn.is_ok()) {
            booking.then.sit(gang, &seats);
            quota::charge_later(&mut booking.then, gang);
        }
        self.refresh(cycle, &nodes_of(&seats));
        drawn
    }

    /// Leaves free on booked nodes only what is free throughout; returns what was free there.
    fn hide_booked(&mut self, cycle: &mut Cycle<'w>) -> Vec<(NodeIdx, NodeState)> {
        let booked = booked_nodes(&self.bookings.0);
        let (throughout, _) = self.throughout(cycle, self.bookings.0.len());
        let mut now = Vec::with_capacity(booked.len());
        for node in booked {
            if let (Some(free), Some(kept)) =
                (cycle.scratch.node_state(node), throughout.node_state(node))
            {
                now.push((node, free));
                cycle.scratch.set_node_state(node, kept);
            }
        }
        now
    }

    /// What is free now and at every booked start, as an overlay of its own; `None` if no gang is booked.
    pub(crate) fn beside_bookings(&mut self, cycle: &Cycle<'w>) -> Option<(Scratch<'w>, Fits)> {
        if self.is_empty() {
            return None;
        }
        let (throughout, _) = self.throughout(cycle, self.bookings.0.len());
        Some((throughout.later(), Fits::default()))
    }

    /// The victims to preempt so that a gang can start, delaying no booked gang.
    pub(crate) fn find_victims(&mut self, cycle: &mut Cycle<'w>, id: GangId) -> Option<VictimSet> {
        if self.is_empty() {
            return preempt::find_victims(cycle, id, &[]);
        }
        let now = self.hide_booked(cycle);
        let victims = preempt::find_victims(cycle, id, &booked_nodes(&self.bookings.0));
        for (node, free) in now {
            cycle.scratch.set_node_state(node, free);
        }
        victims
    }

    /// Takes seats that victims have not left yet, now and at every booked start.
    pub(crate) fn sit_over(&mut self, cycle: &mut Cycle<'w>, gang: &Gang, seats: &[Seat]) {
        cycle.scratch.sit_over(gang, seats);
        for booking in &mut self.bookings.0 {
            booking.then.sit_over(gang, seats);
            quota::charge_later(&mut booking.then, gang);
        }
        self.refresh(cycle, &nodes_of(seats));
    }

    /// What is free now and at the first `starts` booked starts.
    fn throughout(&mut self, cycle: &Cycle<'w>, starts: usize) -> &mut (Scratch<'w>, Fits) {
        while self.throughout.len() < starts {
            let at = self.throughout.len();
            let mut free = match self.throughout.last() {
                Some((before, _)) => before.later(),
                None => cycle.scratch.later(),
            };
            for node in booked_nodes(&self.bookings.0[..=at]) {
                let then = self.bookings.0[at].then.node_state(node);
                if let (Some(now), Some(then)) = (free.node_state(node), then) {
                    free.set_node_state(node, now.common(&then));
                }
            }
            self.throughout.push((free, Fits::default()));
        }
        &mut self.throughout[starts - 1]
    }

    /// Brings what is free throughout up to date on nodes where seats were taken.
    fn refresh(&mut self, cycle: &Cycle<'w>, nodes: &[NodeIdx]) {
        for node in nodes.iter().copied() {
            let Some(mut free) = cycle.scratch.node_state(node) else { continue };
            for (booking, (throughout, _)) in self.bookings.0.iter().zip(&mut self.throughout) {
                let Some(then) = booking.then.node_state(node) else { break };
                free = free.common(&then);
                throughout.set_node_state(node, free.clone());
            }
        }
    }
}

/// Why a gang of one role without closeness does not fit on what is free now. Counting is exact for such a gang, and
/// no seats have to be found.
pub(crate) fn misfit_by_count(cycle: &mut Cycle<'_>, gang: &Gang) -> Option<Misfit> {
    let ([sig], [role], None) =
        (gang.sigs.as_slice(), gang.spec.roles.as_slice(), &gang.spec.closeness)
    else {
        return None;
    };
    let free = cycle.fits.in_domain(&cycle.scratch, ROOT, Want::any(*sig));
    let fits = u32::try_from(free).unwrap_or(u32::MAX);
    (fits < role.min).then_some(Misfit::Role { role: 0, fits, needs: role.min })
}

/// Why a gang does not fit on what is free now; `None` when it does.
fn misfit_now(cycle: &mut Cycle<'_>, gang: &Gang) -> Option<Misfit> {
    if gang.sigs.len() == 1 && gang.spec.closeness.is_none() {
        return misfit_by_count(cycle, gang);
    }
    place(&mut cycle.scratch.trial(), &mut cycle.fits, gang).err()
}
