//! Step 3: buy what a gang lacks, and only that, as one order.
//!
//! The gang is placed by the same code as ever, on a world that has a few nodes more: what is free is used
//! first, and nodes of an offering are opened on paper for the rest. The cheapest offering wins.

use muster_core::World;
use muster_core::gang::{Closeness, Gang, ProvisioningMode, Seat};
use muster_core::id::{ClaimId, DomainIdx, GangId, OfferingRef, OrderId};
use muster_core::money::Money;
use muster_core::order::{OrderSpec, Place, Reservation};
use muster_core::time::{Span, Time};
use muster_core::topology::{Level, ROOT};
use muster_core::verdict::Blocker;
use smallvec::SmallVec;

use crate::cycle::{Cycle, earliest};
use crate::place::{Ask, Asks, Want, asks, fill_domain, fill_paper};

/// Why nothing was ordered.
pub(crate) type Blockers = SmallVec<[Blocker; 1]>;

/// What an order would cost and how soon it would be there; the least is the best.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Bid {
    /// Members of one role on different kinds of nodes, or in different zones, work less well together:
    /// only when no single offering has room.
    mixed: bool,
    /// Per hour; or in all, with the cost of the delay, for a gang that says what that is.
    price: Money,
    boot: Span,
    offering: OfferingRef,
    hourly: Money,
}

/// What the cheapest order for a gang would be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quote {
    /// What its nodes cost until the gang is done.
    pub(crate) nodes: Money,
    /// How long until all of them are there.
    pub(crate) boot: Span,
}

/// What the cheapest order that lets the gang start would be; nothing is held for it.
///
/// # Errors
/// Says why nothing can be ordered now.
pub(crate) fn quote(cycle: &mut Cycle<'_>, gang: &Gang) -> Result<Quote, Blockers> {
    let (bid, ..) = best_bid(cycle, gang)?;
    let nodes = bid.hourly.per_hour_for(bid.boot + gang.spec.said_duration());
    Ok(Quote { nodes, boot: bid.boot })
}

/// Draws up the cheapest order that lets the gang start, and holds what it needs in the scratch.
///
/// # Errors
/// Says why nothing can be ordered now; the scratch is unchanged then.
pub(crate) fn provision(
    cycle: &mut Cycle<'_>,
    id: GangId,
    gang: &Gang,
) -> Result<OrderSpec, Blockers> {
    let (best, asks, pivot) = best_bid(cycle, gang)?;
    let (_, draft) = draw_up(cycle, gang, &asks, pivot, best.offering, true)
        .expect("it was drawn up a moment ago");
    Ok(number(cycle, id, gang, draft))
}

/// The best of all offerings, for which role it was looked for, and what all roles ask.
fn best_bid(cycle: &mut Cycle<'_>, gang: &Gang) -> Result<(Bid, Asks, usize), Blockers> {
    let world = cycle.scratch.world;
    if !may_order(world, gang) {
        return Err(SmallVec::from_elem(Blocker::ProvisioningOff, 1));
    }
    if let Some(until) = cooling_off(cycle, gang) {
        cycle.wake = earliest(cycle.wake, Some(until));
        return Err(SmallVec::from_elem(Blocker::CoolingOff { until }, 1));
    }
    let asks = asks(&cycle.scratch, gang);
    let pivot = pivot(cycle, &asks);
    let (offerings, mut blockers) = suitable(cycle, gang, &asks[pivot]);
    let mut best: Option<Bid> = None;
    for offering in &offerings {
        let bid = draw_up(cycle, gang, &asks, pivot, *offering, false).map(|(bid, _)| bid);
        best = best.into_iter().chain(bid).min();
    }
    if let Some(best) = best {
        return Ok((best, asks, pivot));
    }
    if let Some(room) = offerings.iter().map(|offering| cycle.scratch.room(*offering)).max() {
        blockers.insert(0, Blocker::PoolsFull { room });
    }
    Err(blockers)
}

/// Whether nodes may be bought for a gang, and there is somebody to buy them from.
pub(crate) fn may_order(world: &World, gang: &Gang) -> bool {
    gang.spec.provisioning.mode != ProvisioningMode::Never && !world.pools().is_empty()
}

/// Until when a gang whose orders keep failing leaves ordering alone.
fn cooling_off(cycle: &Cycle<'_>, gang: &Gang) -> Option<Time> {
    let last =
        gang.last_failure.filter(|_| gang.failed_orders >= gang.spec.provisioning.attempts)?;
    let until = last + cycle.policy.cool_off;
    (cycle.now < until).then_some(until)
}

/// Offerings that can take the hardest role's members now, and what speaks against the others.
fn suitable(cycle: &mut Cycle<'_>, gang: &Gang, hardest: &Ask) -> (Vec<OfferingRef>, Blockers) {
    let listed = offerings_for(cycle, gang, hardest);
    if listed.is_empty() {
        return (listed, SmallVec::from_elem(Blocker::NoOffering { role: hardest.role }, 1));
    }
    let mut open = Vec::new();
    let mut avoided_until: Option<Time> = None;
    // Pools kept for gangs ahead are left out; the verdict says who is ahead.
    for offering in
        listed.into_iter().filter(|offering| !cycle.barred_pools.contains(&offering.pool))
    {
        match avoided(cycle, offering) {
            Some(until) => avoided_until = earliest(avoided_until, Some(until)),
            None => open.push(offering),
        }
    }
    cycle.wake = earliest(cycle.wake, avoided_until);
    (open, avoided_until.map(|until| Blocker::OfferingsAvoided { until }).into_iter().collect())
}

/// Offerings whose empty node takes at least one member, in the operator's order.
pub(crate) fn offerings_for(cycle: &mut Cycle<'_>, gang: &Gang, ask: &Ask) -> Vec<OfferingRef> {
    let world = cycle.scratch.world;
    let mut found = Vec::new();
    for (pool, listed) in world.pools().iter() {
        let allowed = world.queue_path(gang.queue).all(|queue| {
            let tiers = &world.queue(queue).spec.tiers;
            tiers.is_empty() || tiers.contains(&listed.spec.tier)
        });
        if !allowed {
            continue;
        }
        for slot in 0..listed.offerings.len() {
            let offering = OfferingRef { pool, slot: slot as u16 };
            let in_time = listed.offerings[slot].spec.boot_time < gang.spec.provisioning.timeout;
            if in_time && members_per_node(cycle, offering, ask) > 0 {
                found.push(offering);
            }
        }
    }
    found
}

/// Members of a role that fit on one empty node of an offering.
pub(crate) fn members_per_node(cycle: &mut Cycle<'_>, offering: OfferingRef, ask: &Ask) -> u32 {
    let world = cycle.scratch.world;
    let listed = world.offering(offering);
    let state = cycle.scratch.intern(world.empty_state(listed.class));
    // Bars keep present nodes for gangs ahead; pools are barred apart, so they are not asked here.
    let suits = cycle.fits.score(&cycle.scratch, ask.sig, listed.class, listed.leaf).is_some();
    if suits { world.signature(ask.sig).times_fits(cycle.scratch.state(state)) } else { 0 }
}

/// Until when an offering that failed lately is left alone.
fn avoided(cycle: &Cycle<'_>, offering: OfferingRef) -> Option<Time> {
    let health = cycle.scratch.world.offering(offering).health;
    let until =
        cycle.policy.avoid_until(health.streak, health.last_failure.filter(|_| health.streak > 0)?);
    (cycle.now < until).then_some(until)
}

/// Seats for the whole gang, some of them on nodes of `offering` that exist on paper only.
struct Draft {
    seats: Vec<Seat>,
    paper: std::ops::Range<usize>,
}

/// Places the whole gang on what is free and on new nodes, mostly of one offering.
///
/// With `keep`, the scratch holds the result; otherwise, and on failure, it is unchanged.
fn draw_up(
    cycle: &mut Cycle<'_>,
    gang: &Gang,
    asks: &[Ask],
    pivot: usize,
    offering: OfferingRef,
    keep: bool,
) -> Option<(Bid, Draft)> {
    let scope = scope(cycle, gang, offering)?;
    let barred = cycle.barred_pools.clone();
    let others: Vec<Vec<OfferingRef>> =
        asks.iter().map(|ask| offerings_for(cycle, gang, ask)).collect();
    if !has_room(cycle, &asks[pivot], &others[pivot], &scope) {
        return None;
    }
    let now_avoided: Vec<OfferingRef> =
        others.iter().flatten().copied().filter(|other| avoided(cycle, *other).is_some()).collect();

    let world = cycle.scratch.world;
    let fits = &mut cycle.fits;
    let mut trial = cycle.scratch.trial();
    let first = trial.paper().len();
    let (mut seats, mut mixed) = (Vec::new(), false);
    for (i, (ask, others)) in asks.iter().zip(&others).enumerate() {
        let mut left = ask.count;
        for domain in scope.domains() {
            left -=
                fill_domain(&mut trial, fits, *domain, ask, Want::any(ask.sig), left, &mut seats);
        }
        for paper in first..trial.paper().len() {
            left -= fill_paper(&mut trial, fits, paper, ask, left, &mut seats);
        }
        while left > 0 {
            let usable = |other: &OfferingRef| {
                scope.allows(world, *other)
                    && !barred.contains(&other.pool)
                    && !now_avoided.contains(other)
            };
            // The role in question keeps to the offering being tried while that has room; others, and what is
            // left of it, go to the cheapest.
            let next = if i == pivot && trial.room(offering) > 0 {
                offering
            } else {
                mixed |= i == pivot;
                cheapest(&trial, ask, others.iter().copied().filter(usable))?
            };
            if scope == Scope::OneNewNode && trial.paper().len() > first {
                return None;
            }
            let paper = trial.open_paper(next);
            let seated = fill_paper(&mut trial, fits, paper, ask, left, &mut seats);
            if seated == 0 {
                return None;
            }
            left -= seated;
        }
    }
    let paper = first..trial.paper().len();
    let opened =
        trial.paper()[paper.clone()].iter().map(|node| &world.offering(node.offering).spec);
    let (mut hourly, mut boot) = (Money::ZERO, Span::ZERO);
    for spec in opened {
        hourly += spec.price;
        boot = boot.max(spec.boot_time);
    }
    if paper.is_empty() {
        return None;
    }
    if keep {
        trial.keep();
    }
    let price = match gang.spec.cost_of_waiting {
        None => hourly,
        Some(cost) => {
            hourly.per_hour_for(boot + gang.spec.said_duration()) + cost.per_hour_for(boot)
        }
    };
    Some((Bid { mixed, price, boot, offering, hourly }, Draft { seats, paper }))
}

/// The hardest role that lacks places, or the hardest of all when roles only compete.
fn pivot(cycle: &mut Cycle<'_>, asks: &[Ask]) -> usize {
    let mut lacks = |ask: &Ask| {
        let free = cycle.fits.in_domain(&cycle.scratch, ROOT, Want::any(ask.sig));
        free < u64::from(ask.count)
    };
    asks.iter().position(&mut lacks).unwrap_or(0)
}

/// Whether all offerings together have room for at least the members that lack a place. Saves drawing up
/// in vain.
fn has_room(cycle: &mut Cycle<'_>, ask: &Ask, offerings: &[OfferingRef], scope: &Scope) -> bool {
    let widest = scope.domains().last().copied();
    let free =
        widest.map_or(0, |domain| cycle.fits.in_domain(&cycle.scratch, domain, Want::any(ask.sig)));
    let mut lacking = u64::from(ask.count).saturating_sub(free);
    for offering in offerings {
        if scope.allows(cycle.scratch.world, *offering) {
            let each = u64::from(members_per_node(cycle, *offering, ask));
            lacking = lacking.saturating_sub(each * u64::from(cycle.scratch.room(*offering)));
        }
    }
    lacking == 0
}

/// The offering that costs least per member of a role and has room for one more node.
fn cheapest(
    scratch: &crate::scratch::Scratch<'_>,
    ask: &Ask,
    usable: impl Iterator<Item = OfferingRef>,
) -> Option<OfferingRef> {
    let world = scratch.world;
    usable.filter(|offering| scratch.room(*offering) > 0).min_by_key(|offering| {
        let listed = world.offering(*offering);
        let fits = world.signature(ask.sig).times_fits(&world.empty_state(listed.class));
        (listed.spec.price.0 / i64::from(fits.clamp(1, ask.count)), *offering)
    })
}

/// Where members may sit when nodes of an offering are added.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Scope {
    /// Free nodes near the offering first, then farther away; new nodes wherever they come up.
    Anywhere(Vec<DomainIdx>),
    /// Only in this domain.
    Within([DomainIdx; 1]),
    /// All on one node, which is new: a free one was looked for already.
    OneNewNode,
}

impl Scope {
    fn domains(&self) -> &[DomainIdx] {
        match self {
            Scope::Anywhere(domains) => domains,
            Scope::Within(domain) => domain,
            Scope::OneNewNode => &[],
        }
    }
    fn allows(&self, world: &muster_core::World, offering: OfferingRef) -> bool {
        match self {
            Scope::Anywhere(_) | Scope::OneNewNode => true,
            Scope::Within([domain]) => {
                world.topology().contains(*domain, world.offering(offering).leaf)
            }
        }
    }
}

/// `None` when the gang must stay within a domain and the offering does not say in which it comes up.
fn scope(cycle: &Cycle<'_>, gang: &Gang, offering: OfferingRef) -> Option<Scope> {
    let topology = cycle.scratch.world.topology();
    let leaf = cycle.scratch.world.offering(offering).leaf;
    match (&gang.spec.closeness, gang.level) {
        (Some(Closeness::Required(_)), Some(Level::Node)) => Some(Scope::OneNewNode),
        (Some(Closeness::Required(_)), Some(Level::Domain(level))) => {
            let depth = level.0 + 1;
            let domain =
                topology.path(leaf).find(|domain| topology.domain(*domain).depth == depth)?;
            topology.is_named(domain).then_some(Scope::Within([domain]))
        }
        _ => Some(Scope::Anywhere(topology.path(leaf).collect())),
    }
}

/// Turns nodes on paper into numbered claims.
fn number(cycle: &mut Cycle<'_>, id: GangId, gang: &Gang, draft: Draft) -> OrderSpec {
    let world = cycle.scratch.world;
    let base = ClaimId(world.next_claim().0 + cycle.claims_given);
    let claims: Vec<(ClaimId, OfferingRef)> = cycle.scratch.paper()[draft.paper.clone()]
        .iter()
        .enumerate()
        .map(|(i, node)| (ClaimId(base.0 + i as u32), node.offering))
        .collect();
    let first_paper = (world.node_slots() + draft.paper.start) as u32;
    let place = |seat: &Seat| match seat.node.0.checked_sub(first_paper) {
        Some(i) => Place::Claim(ClaimId(base.0 + i)),
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
    let order = OrderId(world.next_order().0 + cycle.orders_given);
    cycle.claims_given += claims.len() as u32;
    cycle.orders_given += 1;
    let deadline = cycle.now + gang.spec.provisioning.timeout;
    OrderSpec { id: order, gang: id, claims, reservations, deadline }
}
