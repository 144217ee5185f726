//! Right-size: a small gang does not occupy a large node alone where a node of its size is cheaper.
//!
//! A member that needs one GPU of eight keeps all of a bought node that would otherwise be released. A node of the
//! right size is there after a boot, and costs a fraction for as long as the gang runs. The cheaper of both is
//! chosen, waiting included.

use muster_core::gang::{Gang, Seat};
use muster_core::id::NodeIdx;
use muster_core::money::Money;

use super::order::{avoided, members_per_node, offerings_for};
use crate::cycle::Cycle;
use crate::place::{asks, place};

/// Whether the nodes that the gang would have to itself cost so much more than new ones of the right size that it had
/// better wait for those.
pub(crate) fn is_oversized(cycle: &mut Cycle<'_>, gang: &Gang) -> bool {
    if cycle.scratch.world.pools().is_empty() {
        return false;
    }
    let Ok(seats) = place(&mut cycle.scratch.trial(), &mut cycle.fits, gang) else { return false };
    are_oversized(cycle, gang, &seats)
}

/// The same, for seats that were found already.
pub(crate) fn are_oversized(cycle: &mut Cycle<'_>, gang: &Gang, seats: &[Seat]) -> bool {
    let taken = price_alone(cycle, seats);
    if taken == Money::ZERO {
        return false;
    }
    let mut new = Money::ZERO;
    let mut boot = muster_core::time::Span::ZERO;
    for ask in asks(&cycle.scratch, gang) {
        let mut best = None;
        for offering in offerings_for(cycle, gang, &ask) {
            if avoided(cycle, offering).is_some() || cycle.scratch.room(offering) == 0 {
                continue;
            }
            let spec = &cycle.scratch.world.offering(offering).spec;
            let each = members_per_node(cycle, offering, &ask);
            let price = spec.marginal_price().times(ask.count.div_ceil(each));
            best = best.into_iter().chain([(price, spec.boot_time)]).min();
        }
        let Some((price, takes)) = best else { return false };
        new += price;
        boot = boot.max(takes);
    }
    let lasts = gang.estimated_run_time();
    let waiting = gang.spec.cost_of_waiting.unwrap_or(new);
    new.per_hour_for(boot + lasts) + waiting.per_hour_for(boot) < taken.per_hour_for(lasts)
}

/// What the bought nodes cost per hour that only this gang would use.
fn price_alone(cycle: &Cycle<'_>, seats: &[Seat]) -> Money {
    let world = cycle.scratch.world;
    let mut nodes: Vec<NodeIdx> = seats.iter().map(|seat| seat.node).collect();
    nodes.sort_unstable();
    nodes.dedup();
    let mut sum = Money::ZERO;
    for node in nodes {
        let Some(here) = world.node(node).filter(|here| here.seats == 0) else { continue };
        let Some(claim) = here.claim.and_then(|claim| world.claims().get(&claim)) else { continue };
        let state = cycle.scratch.node_state(node);
        let untouched = state.is_some_and(|state| state == world.empty_state(here.class));
        if untouched {
            sum += world.offering(claim.offering).spec.marginal_price();
        }
    }
    sum
}
