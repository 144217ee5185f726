//! Find the smallest domain that holds the whole gang, and try it.

use muster_core::gang::Seat;
use muster_core::id::{DomainIdx, Id, LevelIdx, StateIdx};
use muster_core::signature::Reach;
use muster_core::topology::{Level, ROOT};
use smallvec::SmallVec;

use super::fill::{Filling, seats_on};
use super::fits::{Fits, Want};
use super::gang::{Ask, Misfit, misfit};
use crate::scratch::Scratch;

/// Domains tried per level. A single role fits wherever its count says so; several roles can get in each
/// other's way, and then the next best domain is tried, but not without end.
pub(super) const TRIES_PER_LEVEL: usize = 16;

/// Domains that hold the whole gang role by role, by depth; each with what would be left over.
pub(super) type Sufficient = Vec<Vec<(u64, DomainIdx)>>;

/// The smallest sufficient domain anywhere, starting no deeper than `from`.
pub(super) fn anywhere(
    scratch: &mut Scratch<'_>,
    fits: &mut Fits,
    asks: &[Ask],
    wants: &[Want],
    from: Option<LevelIdx>,
) -> Option<Vec<Seat>> {
    let deepest = scratch.world.topology().levels().0.len();
    let from = from.map_or(deepest, |level| level.index() + 1);
    let sufficient = survey(scratch, fits, asks, wants, from);
    sufficient
        .into_iter()
        .rev()
        .find_map(|candidates| try_each(scratch, fits, asks, wants, candidates))
}

/// A sufficient domain of one of these levels.
pub(super) fn within(
    scratch: &mut Scratch<'_>,
    fits: &mut Fits,
    asks: &[Ask],
    wants: &[Want],
    widest: LevelIdx,
    narrowest: LevelIdx,
) -> Option<Vec<Seat>> {
    let sufficient = survey(scratch, fits, asks, wants, narrowest.index() + 1);
    let levels = sufficient.into_iter().skip(widest.index() + 1).rev();
    levels.into_iter().find_map(|candidates| try_each(scratch, fits, asks, wants, candidates))
}

/// A single node that takes the whole gang: where least is lost to other gangs, then the fullest that can.
pub(super) fn one_node(
    scratch: &mut Scratch<'_>,
    fits: &mut Fits,
    asks: &[Ask],
    wants: &[Want],
) -> Option<Vec<Seat>> {
    let topology = scratch.world.topology();
    let leaves =
        (0..topology.len()).map(DomainIdx::from_index).filter(|domain| topology.is_leaf(*domain));
    let mut best: Option<((i64, u64), DomainIdx, u32, StateIdx)> = None;
    for leaf in leaves.collect::<Vec<_>>() {
        for (state, _) in scratch.tally(leaf).to_vec() {
            let Some(after) = holds_all(scratch, fits, asks, wants, leaf, state) else { continue };
            let added = fits.fragments.lost(scratch, after) - fits.fragments.lost(scratch, state);
            let cost = (added, scratch.state(state).devices.free_milli());
            if best.is_some_and(|(least, ..)| least <= cost) {
                continue;
            }
            let slots = scratch.groups(leaf).slots_in(state).collect::<Vec<_>>();
            let slot = slots.into_iter().find(|slot| {
                wants.iter().all(|want| fits.on_slot(scratch, leaf, *slot, state, *want) > 0)
            });
            best = slot.map(|slot| (cost, leaf, slot, state)).or(best);
        }
    }
    let (_, leaf, slot, mut state) = best?;
    let mut seats = Vec::new();
    for ask in asks {
        state = seats_on(scratch, leaf, &[slot], state, ask, ask.count, &mut seats);
    }
    Some(seats)
}

/// Why nothing was found: the role that lacks most in the best domain, or that roles compete.
pub(super) fn explain(
    scratch: &Scratch<'_>,
    fits: &mut Fits,
    asks: &[Ask],
    required: Option<Level>,
) -> Misfit {
    for ask in asks {
        let want = Want::any(ask.sig);
        let most = match required {
            None => fits.in_domain(scratch, ROOT, want),
            Some(Level::Domain(level)) => {
                let domains = scratch.world.topology().of_level(level).iter();
                let named = domains.filter(|domain| scratch.world.topology().is_named(**domain));
                named.map(|domain| fits.in_domain(scratch, *domain, want)).max().unwrap_or(0)
            }
            Some(Level::Node) => {
                let states = scratch.tally(ROOT).iter();
                states
                    .map(|(state, _)| u64::from(fits.on_state(scratch, *state, want, ROOT)))
                    .max()
                    .unwrap_or(0)
            }
        };
        if most < u64::from(ask.count) {
            return misfit(ask, most);
        }
    }
    Misfit::Together
}

/// Walks down from the root as long as a domain is sufficient, and notes those that are.
pub(super) fn survey(
    scratch: &Scratch<'_>,
    fits: &mut Fits,
    asks: &[Ask],
    wants: &[Want],
    deepest: usize,
) -> Sufficient {
    let mut sufficient: Sufficient = vec![Vec::new(); deepest + 1];
    let mut stack: SmallVec<[DomainIdx; 32]> = SmallVec::from_slice(&[ROOT]);
    while let Some(domain) = stack.pop() {
        let Some(left) = left_over(scratch, fits, asks, wants, domain) else { continue };
        let here = scratch.world.topology().domain(domain);
        let depth = usize::from(here.depth);
        if domain == ROOT || !here.name.is_empty() {
            sufficient[depth].push((left, domain));
        }
        if depth < deepest {
            stack.extend(here.children.iter().copied());
        }
    }
    sufficient
}

/// What would be left of the hardest role's places, if every role's count is there; `None` if not.
fn left_over(
    scratch: &Scratch<'_>,
    fits: &mut Fits,
    asks: &[Ask],
    wants: &[Want],
    domain: DomainIdx,
) -> Option<u64> {
    let mut left = None;
    for (ask, want) in asks.iter().zip(wants) {
        let spare = fits.in_domain(scratch, domain, *want).checked_sub(u64::from(ask.count))?;
        left = left.or(Some(spare));
    }
    left
}

fn try_each(
    scratch: &mut Scratch<'_>,
    fits: &mut Fits,
    asks: &[Ask],
    wants: &[Want],
    mut candidates: Vec<(u64, DomainIdx)>,
) -> Option<Vec<Seat>> {
    rank(scratch, fits, wants, &mut candidates);
    for (_, domain) in candidates.into_iter().take(TRIES_PER_LEVEL) {
        let mut trial = scratch.trial();
        let mut seats = Vec::with_capacity(asks.iter().map(|ask| ask.count as usize).sum());
        let all = asks.iter().zip(wants).all(|(ask, want)| {
            let (scratch, seats) = (&mut trial, &mut seats);
            let mut filling = Filling { scratch, fits, ask, want: *want, seats };
            filling.domain(domain, ask.count) == ask.count
        });
        if all {
            trial.keep();
            return Some(seats);
        }
    }
    None
}

/// The tightest first, on hardware that other gangs want least where there is a choice.
pub(super) fn rank(
    scratch: &Scratch<'_>,
    fits: &mut Fits,
    wants: &[Want],
    candidates: &mut [(u64, DomainIdx)],
) {
    if candidates.len() > 1 && fits.is_chooser(scratch, wants[0].sig) {
        candidates.sort_by_cached_key(|(left, domain)| {
            (fits.scarcity(scratch, *domain, wants[0]), *left, *domain)
        });
    } else {
        candidates.sort_unstable();
    }
}

/// The state one node is in when it has taken all roles together, if it takes them.
fn holds_all(
    scratch: &mut Scratch<'_>,
    fits: &mut Fits,
    asks: &[Ask],
    wants: &[Want],
    leaf: DomainIdx,
    mut state: StateIdx,
) -> Option<StateIdx> {
    for (ask, want) in asks.iter().zip(wants) {
        // Names are looked at node by node afterwards; here only what fits counts.
        let each = match want.reach(scratch) {
            Reach::Name => scratch.world.signature(ask.sig).times_fits(scratch.state(state)),
            Reach::Class | Reach::Place => fits.on_state(scratch, state, *want, leaf),
        };
        if each < ask.count {
            return None;
        }
        state = scratch.fill(state, ask.sig, ask.count).state;
    }
    Some(state)
}
