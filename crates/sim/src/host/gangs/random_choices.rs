//! Random choices of a gang: how long it takes to save, and whether it declines more members.
//!
//! Every gang has random numbers of its own, so that the draws of one do not depend on which others are stopped, and when.

use muster_core::gang::Disruption;
use muster_core::id::GangId;
use muster_core::time::Span;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::job::Job;

/// Above the streams of clouds, which start from the same seed.
const STREAMS: u64 = 16 << 32;
/// Random words reserved for one draw of a gang; it takes a handful.
const WORDS_PER_TIME: u128 = 16;

fn stream(seed: u64, gang: GangId, time: u32) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(STREAMS | u64::from(gang.0));
    rng.set_word_pos(u128::from(time) * WORDS_PER_TIME);
    rng
}

/// How long a gang takes to leave seats: some part of its grace if it saves on a signal, no time otherwise.
pub(crate) fn time_in_grace(seed: u64, gang: GangId, time: u32, disruption: &Disruption) -> Span {
    let saves = disruption.checkpoint.is_some_and(|checkpoint| checkpoint.signal.is_some());
    if !saves || disruption.grace == Span::ZERO {
        return Span::ZERO;
    }
    Span(stream(seed, gang, time).random_range(0..=disruption.grace.0))
}

/// Whether a gang declines the members it is offered.
pub(crate) fn declines(seed: u64, gang: GangId, time: u32, job: &Job) -> bool {
    let often = job.nature.declines;
    often > 0 && stream(seed, gang, time).random_range(0..1_000) < often
}
