//! What is up to a gang and nobody else: how long it takes to save, and whether it wants more members.
//!
//! Every gang has random numbers of its own, so that nobody else's luck depends on who is stopped, and when.

use muster_core::gang::Disruption;
use muster_core::id::GangId;
use muster_core::time::Span;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::job::Job;

/// Above the streams of clouds, which start from the same seed.
const STREAMS: u64 = 16 << 32;
/// Random words kept for one time a gang is asked something; it takes a handful.
const WORDS_PER_TIME: u128 = 16;

fn stream(seed: u64, gang: GangId, time: u32) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(STREAMS | u64::from(gang.0));
    rng.set_word_pos(u128::from(time) * WORDS_PER_TIME);
    rng
}

/// How long a gang takes to leave seats it is told to leave: some part of its grace if it saves when told. Others
/// have nothing to do there any more.
pub(crate) fn time_in_grace(seed: u64, gang: GangId, time: u32, disruption: &Disruption) -> Span {
    let saves = disruption.checkpoint.is_some_and(|checkpoint| checkpoint.signal.is_some());
    if !saves || disruption.grace == Span::ZERO {
        return Span::ZERO;
    }
    Span(stream(seed, gang, time).random_range(0..=disruption.grace.0))
}

/// Whether a gang does not want the members it is offered.
pub(crate) fn declines(seed: u64, gang: GangId, time: u32, job: &Job) -> bool {
    let often = job.nature.declines;
    often > 0 && stream(seed, gang, time).random_range(0..1_000) < often
}
