//! Chance that can be played again: what it gives hangs on a seed, which is printed.

use std::hash::{DefaultHasher, Hash, Hasher};

/// The seed of this run: `MUSTER_SEED`, or the clock.
pub(crate) fn seed() -> u64 {
    let given = std::env::var("MUSTER_SEED").ok().and_then(|text| text.parse().ok());
    let seed = given.unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.map_or(1, |now| now.as_millis() as u64)
    });
    eprintln!("seed {seed}: MUSTER_SEED={seed} plays it again");
    seed
}

/// A small generator.
#[derive(Clone, Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed | 1)
    }

    /// One of its own for everything that has a name: what others draw meanwhile changes nothing for it.
    pub(crate) fn of(seed: u64, name: impl Hash) -> Self {
        let mut hasher = DefaultHasher::new();
        (seed, name).hash(&mut hasher);
        Self::new(hasher.finish())
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    /// Whether something happens that happens so many times in a thousand.
    pub(crate) fn strikes(&mut self, in_thousand: u64) -> bool {
        self.below(1_000) < in_thousand
    }
}
