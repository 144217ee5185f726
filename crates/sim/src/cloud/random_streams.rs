//! A random stream of its own for each thing that is random.
//!
//! Two strategies that request at different times, or different things, must meet the same outages and the same machines;
//! otherwise they would differ by chance. So no two things share a stream.

use muster_core::id::OfferingRef;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// The purpose of a stream of random numbers. The numbers of streams are well above those of generated workloads,
/// which start from the same seed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stream {
    /// Outages of one offering alone.
    Offering(OfferingRef),
    /// Outages of one region of a pool, by the order in which its offerings name them.
    Region { pool: u16, region: u16 },
    /// Outages of a pool everywhere at once.
    Everywhere { pool: u16 },
    /// Failures in service of one offering's machines.
    Failures(OfferingRef),
    /// The lifecycle of the n-th machine ever requested of one offering, from 0.
    Machine(OfferingRef, u32),
    /// The next machine that a job loses at work after it has lost so many.
    GangFailures { job: u32, failures: u32 },
}

/// Random words reserved for one machine; its lifecycle takes some dozens.
const WORDS_PER_MACHINE: u128 = 1_024;

impl Stream {
    /// The stream from its beginning.
    pub(crate) fn open(self, seed: u64) -> ChaCha8Rng {
        let (kind, pool, index) = match self {
            Self::Offering(at) => (1, at.pool.0, at.slot),
            Self::Region { pool, region } => (2, pool, region),
            Self::Everywhere { pool } => (3, pool, 0),
            Self::Failures(at) => (4, at.pool.0, at.slot),
            Self::Machine(at, _) => (5, at.pool.0, at.slot),
            Self::GangFailures { job, .. } => (6, (job >> 16) as u16, job as u16),
        };
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(kind << 32 | u64::from(pool) << 16 | u64::from(index));
        if let Self::Machine(_, number) | Self::GangFailures { failures: number, .. } = self {
            rng.set_word_pos(u128::from(number) * WORDS_PER_MACHINE);
        }
        rng
    }
}
