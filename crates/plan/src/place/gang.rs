//! Place a gang's minimum on free nodes: every role, or nothing.
//!
//! Members of a role are interchangeable, so nothing here loops over members x nodes: domains answer how many fit
//! from their tallies, and leaves give out nodes state by state.

use muster_core::gang::{Closeness, Gang, Seat};
use muster_core::id::SigIdx;
use muster_core::topology::{Level, ROOT};
use smallvec::SmallVec;

use super::fits::{Fits, Want};
use super::{search, spread};
use crate::scratch::Scratch;

/// One role's members to be placed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask {
    /// The role, by place in the gang's list.
    pub(crate) role: u16,
    /// What its members are like.
    pub(crate) sig: SigIdx,
    /// How many.
    pub(crate) count: u32,
}

/// Asks of one gang; nearly always one or two.
pub(crate) type Asks = SmallVec<[Ask; 2]>;

/// Why a gang does not fit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Misfit {
    /// A role has too few places, in the best domain if the gang must stay within one.
    Role {
        /// The role, by place in the gang's list.
        role: u16,
        /// Members that fit.
        fits: u32,
        /// Members needed.
        needs: u32,
    },
    /// Each role fits alone, but not all of them together.
    Together,
}

/// The gang's minimum, hardest role first: the one that needs most GPUs, then most of everything else.
pub(crate) fn asks(scratch: &Scratch<'_>, gang: &Gang) -> Asks {
    let mut asks: Asks = gang
        .spec
        .roles
        .iter()
        .zip(&gang.sigs)
        .enumerate()
        .map(|(role, (spec, sig))| Ask { role: role as u16, sig: *sig, count: spec.min })
        .collect();
    if asks.len() == 1 {
        return asks;
    }
    asks.sort_by(|a, b| {
        let weight = |ask: &Ask| {
            let signature = scratch.world.signature(ask.sig);
            (signature.gpu_milli(), signature.key.amounts.clone(), u64::from(ask.count))
        };
        weight(b).cmp(&weight(a)).then(a.role.cmp(&b.role))
    });
    asks
}

/// How many of the best floors are tried with all preferences; then any node that suits.
const WAYS: usize = 8;

/// Gives every member of the gang's minimum a seat.
///
/// # Errors
/// Says why it does not fit; the scratch is unchanged then.
pub fn place(scratch: &mut Scratch<'_>, fits: &mut Fits, gang: &Gang) -> Result<Vec<Seat>, Misfit> {
    place_as(scratch, fits, gang, true)
}

/// The same without spreading members: where victims leave for them, or other gangs wait behind them, using as few
/// nodes as possible counts for more.
///
/// # Errors
/// Says why it does not fit; the scratch is unchanged then.
pub(crate) fn place_together(
    scratch: &mut Scratch<'_>,
    fits: &mut Fits,
    gang: &Gang,
) -> Result<Vec<Seat>, Misfit> {
    place_as(scratch, fits, gang, false)
}

fn place_as(
    scratch: &mut Scratch<'_>,
    fits: &mut Fits,
    gang: &Gang,
    spread: bool,
) -> Result<Vec<Seat>, Misfit> {
    let asks = asks(scratch, gang);
    let required = match &gang.spec.closeness {
        Some(Closeness::Required(_)) => gang.level,
        Some(Closeness::Preferred(_)) | None => None,
    };
    for ask in &asks {
        let want = Want::any(ask.sig);
        let free = fits.in_domain(scratch, ROOT, want);
        if free < u64::from(ask.count) {
            return Err(misfit(ask, free));
        }
    }
    let floors = fits.floors(scratch, &asks);
    // The lower the floor, the more fits: floors that leave too little room altogether are skipped.
    let roomy = floors.partition_point(|wants| {
        let enough = |(ask, want): (&Ask, &Want)| {
            fits.in_domain(scratch, ROOT, *want) >= u64::from(ask.count)
        };
        !asks.iter().zip(wants).all(enough)
    });
    let floors = &floors[roomy..];
    let last = floors.len().saturating_sub(1);
    for wants in floors.iter().take(WAYS.min(last)).chain(floors.last()) {
        if spread && let Some(mut seats) = spread::place_spread(scratch, fits, gang, &asks, wants) {
            seats.sort_by_key(|seat| seat.role);
            return Ok(seats);
        }
        let found = match (required, gang.level) {
            (Some(Level::Node), _) => search::one_node(scratch, fits, &asks, wants),
            (Some(Level::Domain(level)), _) => {
                search::within(scratch, fits, &asks, wants, level, level)
            }
            (None, Some(Level::Node)) => search::one_node(scratch, fits, &asks, wants)
                .or_else(|| search::anywhere(scratch, fits, &asks, wants, None)),
            (None, Some(Level::Domain(level))) => {
                search::anywhere(scratch, fits, &asks, wants, Some(level))
            }
            (None, None) => search::anywhere(scratch, fits, &asks, wants, None),
        };
        if let Some(mut seats) = found {
            seats.sort_by_key(|seat| seat.role);
            scratch.count_spread(gang, &seats);
            return Ok(seats);
        }
    }
    Err(search::explain(scratch, fits, &asks, required))
}

pub(super) fn misfit(ask: &Ask, free: u64) -> Misfit {
    Misfit::Role { role: ask.role, fits: u32::try_from(free).unwrap_or(u32::MAX), needs: ask.count }
}
