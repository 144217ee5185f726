//! Muster's own order: nobody waits long for his length, and the oldest is sure of his turn.
//!
//! The oldest gang that must wait holds a start time computed from what users say, which is never too short.
//! Whoever does not delay it may go before, most slowed down first: waiting hurts a short gang sooner than a
//! long one, and how long a gang really is, its user's history tells better than its user.

use muster_core::World;
use muster_core::gang::Gang;
use muster_core::time::{Span, Time};

use super::{Behind, Discipline};
use crate::predict::likely;

/// The oldest first, then by expected slowdown.
pub(super) struct Muster;

/// Gangs likely to be longer than this are hardly told apart: their guesses are too rough.
const LONG: Span = Span::hours(4);
/// A little above one: of two gangs equally slowed down the shorter goes first.
const SHORTNESS: f64 = 1.2;

impl Discipline for Muster {
    fn behind(&self) -> Behind {
        Behind::BackfillOldest
    }
    fn rank(&self, world: &World, gang: &Gang, now: Time) -> f64 {
        let likely = likely(world, gang, now).as_secs_f64();
        let length = 1.0 / (1.0 / likely.max(1.0) + 1.0 / LONG.as_secs_f64());
        let wait = now.since(gang.submitted).as_secs_f64();
        -(wait + length) / length.powf(SHORTNESS)
    }
}
