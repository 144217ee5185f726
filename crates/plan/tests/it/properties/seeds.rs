//! Randomness with a printed seed: a failing run prints the command that repeats it.

/// A small generator of even quality (SplitMix64), so that a seed means the same on every machine and version.
pub(crate) struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    /// One of `0..bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
    /// One of these.
    pub(crate) fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }
    /// True this often in a hundred.
    pub(crate) fn percent(&mut self, often: usize) -> bool {
        self.below(100) < often
    }
}

/// Prints how to repeat its run, if that run panics.
struct Replay<'a> {
    test: &'a str,
    seed: u64,
}

impl Drop for Replay<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Self { test, seed } = self;
            let package = env!("CARGO_PKG_NAME");
            println!("MUSTER_SEED={seed} cargo test -p {package} --test it {test}");
        }
    }
}

/// The seed to replay, if `MUSTER_SEED` is set.
pub(crate) fn chosen() -> Option<u64> {
    std::env::var("MUSTER_SEED").ok().map(|seed| seed.parse().expect("a number"))
}

/// Runs a property on `count` seeds, on as many as `MUSTER_SEEDS` says, or only on the chosen one.
pub(crate) fn for_seeds(test: &str, count: u64, mut property: impl FnMut(&mut Rng)) {
    let count = std::env::var("MUSTER_SEEDS").map_or(count, |n| n.parse().expect("a number"));
    for seed in chosen().map_or(0..count, |seed| seed..seed + 1) {
        let _replay = Replay { test, seed };
        property(&mut Rng(seed));
    }
}
