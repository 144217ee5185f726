//! Reserve: give a gang that must wait a start time and the seats it will have then.
//!
//! The same placement code is run on the scratch as it would be later: gangs end one after the other, as predicted,
//! nodes that are still booting become free when the gang they were ordered for has ended, and gangs that hold start
//! times take their seats, until the gang fits and stays clear of all of them for as long as it runs.

use muster_core::World;
use muster_core::gang::{Gang, Seat};
use muster_core::id::{GangId, NodeIdx, OrderId};
use muster_core::order::{Claim, Order};
use muster_core::queue::Usage;
use muster_core::time::{Span, Time};
use smallvec::SmallVec;

use crate::cycle::Cycle;
use crate::order::quota;
use crate::place::{Fits, place_together};
use crate::predict;
use crate::predict::Belief;
use crate::scratch::Scratch;

/// The horizon: later starts are not promised. Time has an end, and gangs declared to run for ages must not reach it,
/// where everything would start and end at once.
const FOREVER: Span = Span::hours(24 * 365 * 100);

/// A start time for one gang, and the world as predicted for then, with the gang in its seats.
#[derive(Clone)]
pub(crate) struct Booking<'w> {
    /// The gang that starts.
    pub(crate) gang: GangId,
    /// When it starts at the latest, if predictions hold.
    pub(crate) start: Time,
    /// When it is predicted to end then.
    end: Time,
    /// Where it will sit.
    pub(crate) seats: Vec<Seat>,
    /// Everything at that time.
    pub(crate) then: Scratch<'w>,
}

/// Start times promised in this cycle, soonest first.
#[derive(Clone, Default)]
pub(crate) struct Bookings<'w>(pub(crate) Vec<Booking<'w>>);

/// A change that is predicted for later.
#[derive(Clone, Copy)]
enum Change {
    /// A gang that runs ends.
    Ends(GangId),
    /// A gang admitted in this cycle ends; by place in the cycle's list.
    StartedNowEnds(usize),
    /// An order has become complete, and its gang has run and ended.
    OrderEnds(OrderId),
    /// A booked gang starts, by place in the list.
    Starts(usize),
    /// A booked gang ends, by place in the list.
    BookedEnds(usize),
}

impl<'w> Bookings<'w> {
    /// The earliest time from now on at which the gang fits without delaying a booked gang; `None` if waiting alone
    /// never makes it fit.
    pub(crate) fn earliest(
        &self,
        cycle: &Cycle<'w>,
        id: GangId,
        gang: &Gang,
    ) -> Option<Booking<'w>> {
        let belief = cycle.policy.order.belief();
        let lasts = predict::lasts(cycle.scratch.world, gang, belief);
        let mut coming = self.changes(cycle, belief).peekable();
        let mut changes: Vec<(Time, Change)> = Vec::with_capacity(64);
        let mut free = cycle.scratch.free();
        // States on paper are numbered per scratch, so what fits is counted apart too.
        let mut later: Option<(Scratch<'w>, Fits)> = None;
        let mut applied = 0;
        while let Some((at, _)) = coming.peek().copied() {
            while let Some((_, change)) = coming.next_if(|(time, _)| *time == at) {
                self.count(cycle, change, &mut free);
                changes.push((at, change));
            }
            if at >= cycle.now + FOREVER {
                return None;
            }
            if !covers(&free, &gang.wants) {
                continue;
            }
            let (then, fits) = later.get_or_insert_with(|| {
                let (scratch, from) = self.base(cycle, at);
                applied = changes.partition_point(|(time, _)| *time <= from);
                (scratch, Fits::default())
            });
            self.apply(cycle, &changes[applied..], then);
            applied = changes.len();
            if quota::over_limit(then, gang).is_some() {
                continue;
            }
            let end = at + lasts;
            if let Some(seats) = self.place_clear_of_all(then, fits, gang, at, end) {
                let (mut then, _) = later.take()?;
                then.sit(gang, &seats);
                quota::charge_later(&mut then, gang);
                return Some(Booking { gang: id, start: at, end, seats, then });
            }
        }
        None
    }

    /// Enters a booking; gangs that are booked to start while it runs see its seats taken.
    pub(crate) fn add(&mut self, gang: &Gang, booking: Booking<'w>) {
        for other in &mut self.0 {
            if booking.start <= other.start && other.start < booking.end {
                other.then.sit_as_booked(gang, &booking.seats);
                quota::charge_later(&mut other.then, gang);
            }
        }
        let at = self.0.partition_point(|other| other.start <= booking.start);
        self.0.insert(at, booking);
    }

    /// How many bookings start before a time: the ones that a gang which runs until then could delay.
    pub(crate) fn before(&self, end: Time) -> usize {
        self.0.partition_point(|booking| booking.start < end)
    }

    /// Seats at `at` that no gang which is booked to start before `end` needs.
    fn place_clear_of_all(
        &self,
        then: &mut Scratch<'w>,
        fits: &mut Fits,
        gang: &Gang,
        at: Time,
        end: Time,
    ) -> Option<Vec<Seat>> {
        let from = self.0.partition_point(|booking| booking.start <= at);
        let ahead = &self.0[from..self.before(end).max(from)];
        if ahead.is_empty() {
            return place_together(&mut then.trial(), fits, gang).ok();
        }
        let in_the_way = |booking: &Booking<'_>| {
            !covers(&booking.then.free(), &gang.wants)
                || quota::over_limit(&booking.then, gang).is_some()
        };
        if ahead.iter().any(in_the_way) {
            return None;
        }
        // What is free at both ends of every start is free throughout: in between things only end.
        let mut throughout = then.trial();
        for node in booked_nodes(ahead) {
            let Some(mut free) = throughout.node_state(node) else { continue };
            for later in ahead.iter().filter_map(|booking| booking.then.node_state(node)) {
                free = free.common(&later);
            }
            throughout.set_node_state(node, free);
        }
        place_together(&mut throughout, fits, gang).ok()
    }

    /// The world at the last booked start up to `at`, or now.
    fn base(&self, cycle: &Cycle<'w>, at: Time) -> (Scratch<'w>, Time) {
        let before = self.0.partition_point(|booking| booking.start <= at);
        match self.0[..before].last() {
            Some(booking) => (booking.then.later(), booking.start),
            None => (cycle.scratch.later(), cycle.now),
        }
    }

    /// All predicted changes after now, soonest first. Computed lazily: a gang that waits for two others does not
    /// need to know when a thousand end.
    fn changes<'a>(
        &'a self,
        cycle: &'a Cycle<'w>,
        belief: Belief,
    ) -> impl Iterator<Item = (Time, Change)> + 'a {
        let world = cycle.scratch.world;
        let mut others: Vec<(Time, Change)> = Vec::new();
        // A victim that leaves since this cycle ends no later than that; where its seats are taken over, nothing is
        // freed.
        let mut as_said = world.estimated_ends().peekable();
        // Ends by estimate are in order already, except for gangs that have outlived their estimates.
        while let Some((_, id)) =
            as_said.next_if(|(said, _)| belief != Belief::Estimate || *said <= cycle.now)
        {
            let gang = world.gang(id).expect("it runs");
            others.push((predict::end(world, gang, belief, cycle.now), Change::Ends(id)));
        }
        for (at, (id, _)) in cycle.given.admitted.iter().enumerate() {
            let gang = world.gang(*id).expect("it was just admitted");
            let end = predict::end(world, gang, belief.of_newcomers(), cycle.now);
            others.push((end, Change::StartedNowEnds(at)));
        }
        for (id, order) in
            world.orders().iter().filter(|(id, _)| !cycle.given.started_early.contains(id))
        {
            let gang = world.gang(order.spec.gang).expect("it has an order");
            let end = ready_at(world, order, cycle.now) + predict::lasts(world, gang, belief);
            others.push((end, Change::OrderEnds(*id)));
        }
        for (at, booking) in self.0.iter().enumerate() {
            others.push((booking.start, Change::Starts(at)));
            others.push((booking.end, Change::BookedEnds(at)));
        }
        others.sort_by_key(|(at, _)| *at);
        let mut others = others.into_iter().peekable();
        std::iter::from_fn(move || {
            let said = as_said.peek().map(|(said, _)| *said);
            match others.peek() {
                Some((at, _)) if said.is_none_or(|said| *at < said) => others.next(),
                _ => as_said.next().map(|(said, id)| (said, Change::Ends(id))),
            }
        })
    }

    /// Adds what a change frees, or subtracts what it takes; `free` is never less than what is free.
    fn count(&self, cycle: &Cycle<'w>, change: Change, free: &mut Usage) {
        let world = cycle.scratch.world;
        let mut add = |gang: &Gang, seats: &[Seat]| {
            for seat in seats {
                let signature = world.signature(gang.sigs[usize::from(seat.role)]);
                let members = u32::from(seat.members);
                free.add(&signature.key.amounts, signature.gpu_milli(), members);
            }
        };
        match change {
            Change::Ends(id) => {
                let gang = world.gang(id).expect("it runs");
                add(gang, &gang.seats);
            }
            Change::StartedNowEnds(at) => {
                let (id, seats) = &cycle.given.admitted[at];
                add(world.gang(*id).expect("it was just admitted"), seats);
            }
            Change::BookedEnds(at) => {
                let booking = &self.0[at];
                add(world.gang(booking.gang).expect("it waits"), &booking.seats);
            }
            Change::OrderEnds(id) => {
                let order = &world.orders()[&id];
                add(world.gang(order.spec.gang).expect("it has an order"), &order.held);
                for class in booting(world, order).map(|(class, _)| class) {
                    let shape = world.class(class);
                    free.add(&shape.allocatable, shape.gpu_milli(), 1);
                }
            }
            Change::Starts(at) => {
                let gang = world.gang(self.0[at].gang).expect("it waits");
                let wants = &gang.wants;
                free.gpu_milli = free.gpu_milli.saturating_sub(wants.gpu_milli);
                for (resource, want) in wants.amounts.iter() {
                    let left = free.amounts.get(resource).saturating_sub(want);
                    free.amounts.set(resource, left);
                }
            }
        }
    }

    /// Applies changes to a scratch. Gangs that end one after the other are removed together, node by node.
    fn apply(&self, cycle: &Cycle<'w>, changes: &[(Time, Change)], then: &mut Scratch<'w>) {
        let world = cycle.scratch.world;
        let mut leaving: Vec<(&Gang, &[Seat])> = Vec::new();
        for (_, change) in changes {
            match *change {
                Change::Ends(id) => {
                    let gang = world.gang(id).expect("it runs");
                    leaving.push((gang, &gang.seats));
                }
                Change::StartedNowEnds(at) => {
                    let (id, seats) = &cycle.given.admitted[at];
                    leaving.push((world.gang(*id).expect("it was just admitted"), seats));
                }
                Change::BookedEnds(at) => {
                    let booking = &self.0[at];
                    leaving.push((world.gang(booking.gang).expect("it waits"), &booking.seats));
                }
                Change::Starts(at) => {
                    leave(then, &mut leaving);
                    let booking = &self.0[at];
                    let gang = world.gang(booking.gang).expect("it waits");
                    then.sit_as_booked(gang, &booking.seats);
                    quota::charge_later(then, gang);
                }
                Change::OrderEnds(id) => {
                    leave(then, &mut leaving);
                    let order = &world.orders()[&id];
                    let gang = world.gang(order.spec.gang).expect("it has an order");
                    then.rise(gang, &order.held);
                    quota::refund_minimum(then, gang);
                    for (class, leaf) in booting(world, order) {
                        then.appear(class, leaf);
                    }
                }
            }
        }
        leave(then, &mut leaving);
    }
}

/// Frees all seats of some gangs.
fn leave(then: &mut Scratch<'_>, leaving: &mut Vec<(&Gang, &[Seat])>) {
    then.rise_all(leaving);
    for (gang, seats) in leaving.drain(..) {
        quota::refund_later(then, gang, seats);
    }
}

/// Nodes that an order still waits for: what they will be, and where.
fn booting<'a>(
    world: &'a World,
    order: &'a Order,
) -> impl Iterator<Item = (muster_core::id::ClassIdx, muster_core::id::DomainIdx)> + 'a {
    order.spec.claims.iter().filter(|(claim, _)| !is_ready(world, *claim)).map(|(_, offering)| {
        let offering = world.offering(*offering);
        (offering.class, offering.leaf)
    })
}

fn is_ready(world: &World, claim: muster_core::id::ClaimId) -> bool {
    world.claims().get(&claim).is_some_and(Claim::is_ready)
}

/// When an order is expected to be complete: when the slowest of its nodes has booted, or, if that is past, half of
/// the time that is left until its deadline.
pub(crate) fn ready_at(world: &World, order: &Order, now: Time) -> Time {
    let slowest = order.spec.claims.iter().filter(|(claim, _)| !is_ready(world, *claim));
    let boots = slowest.map(|(_, offering)| world.offering(*offering).spec.boot_time).max();
    let ready = order.placed + boots.unwrap_or(Span::ZERO);
    if ready > now { ready } else { now + Span(order.spec.deadline.since(now).0 / 2) }
}

/// The nodes some seats are on, each once.
pub(crate) fn nodes_of(seats: &[Seat]) -> SmallVec<[NodeIdx; 8]> {
    let mut nodes: SmallVec<[NodeIdx; 8]> =
        seats.chunk_by(|a, b| a.node == b.node).map(|on_node| on_node[0].node).collect();
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}

/// Nodes on which any of these gangs will run, each once.
pub(crate) fn booked_nodes(bookings: &[Booking<'_>]) -> Vec<NodeIdx> {
    let mut nodes: Vec<NodeIdx> = bookings.iter().flat_map(|b| nodes_of(&b.seats)).collect();
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}

/// Whether at least this much is there, all nodes together.
fn covers(free: &Usage, wants: &Usage) -> bool {
    free.gpu_milli >= wants.gpu_milli && free.amounts.times_fits(&wants.amounts) > 0
}
