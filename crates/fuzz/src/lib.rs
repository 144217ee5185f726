//! Fuzz targets: functions that take any bytes, parse them as one kind of input, and panic where a parser breaks a
//! guarantee.
//!
//! `make test` gives every target its corpus and a stated number of mutations of it ([`mutate`]). `make fuzz` gives
//! the same functions to libFuzzer, in `fuzz/`, where the corpora are. The HTTP API is not here: schemathesis tests a
//! real control plane (`crates/server/tests/fuzz`).

mod cron;
mod durations;
mod foreign;
mod keeper;
mod manifests;
mod quantities;
mod simulations;
mod watch_pages;

pub mod mutate;

/// A target.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name, and that of its corpus.
    pub name: &'static str,
    /// Panics when a parser breaks a guarantee.
    pub run: fn(&[u8]),
    /// Tokens that get an input past the first check of its parser.
    pub words: &'static [&'static str],
    /// Mutations in a short run: a few seconds of each target.
    pub rounds: u32,
}

/// All targets.
pub const TARGETS: [Target; 8] = [
    manifests::TARGET,
    simulations::TARGET,
    quantities::TARGET,
    durations::TARGET,
    cron::TARGET,
    foreign::TARGET,
    watch_pages::TARGET,
    keeper::TARGET,
];

/// The target of a name.
pub fn target(name: &str) -> Option<Target> {
    TARGETS.into_iter().find(|target| target.name == name)
}
