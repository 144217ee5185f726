//! How a cloud behaves, as numbers.

use std::collections::BTreeMap;
use std::sync::Arc;

use muster_core::order::ClaimFailure;
use muster_core::time::Span;

use crate::cloud::availability::Availability;

/// How long an offering has machines and how long it has none, on average. Its region and its provider going
/// out as a whole is part of that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StockModel {
    /// Mean time with machines.
    pub mean_up: Span,
    /// Mean time without.
    pub mean_down: Span,
}

impl StockModel {
    /// The share of time with machines; neither 0 nor 1, as nothing is for ever.
    pub(crate) fn share_up(self) -> f64 {
        let (up, down) = (self.mean_up.0.max(1) as f64, self.mean_down.0.max(1) as f64);
        up / (up + down)
    }
}

/// A failure that is part of a story: the n-th claim ever made in a zone fails this way.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scripted {
    /// Where.
    pub zone: Arc<str>,
    /// Which claim, 1 for the first.
    pub claim: u32,
    /// How.
    pub fails: ClaimFailure,
}

/// How the machines of a pool come up and fail.
///
/// The defaults are medians measured on public clouds: launch 150 s, join 45 s, GPUs visible 60 s later,
/// log-normal with a sigma of 0.35.
#[derive(Clone, PartialEq, Debug)]
pub struct CloudModel {
    /// Median time from asking to a machine that runs.
    pub launch: Span,
    /// Median time from there to a node that has joined.
    pub register: Span,
    /// Median time from there to all GPUs visible.
    pub gpus: Span,
    /// Spread of each, as the sigma of a log-normal; 0 is exact.
    pub sigma: f64,
    /// Chance that a machine never joins.
    pub boot_failed: f64,
    /// Chance that a node lacks a GPU for ever.
    pub gpus_missing: f64,
    /// Chance that the provider answers a request with "not now, ask again".
    pub throttled: f64,
    /// Stock-outs; none when absent.
    pub stock: Option<StockModel>,
    /// Zones where the machines to be had were recorded; `stock` does not apply there. The record is of each
    /// offering in the zone, not of all together.
    pub recorded: BTreeMap<Arc<str>, Arc<Availability>>,
    /// Mean time a machine in service lasts; for ever when absent.
    pub mean_time_to_failure: Option<Span>,
    /// How long before a machine in service fails, or is taken back, its customer is told; not at all when zero.
    pub notice: Span,
    /// Failures that are part of a story.
    pub script: Vec<Scripted>,
}

impl Default for CloudModel {
    fn default() -> Self {
        Self {
            launch: Span::secs(150),
            register: Span::secs(45),
            gpus: Span::secs(60),
            sigma: 0.35,
            boot_failed: 0.0,
            gpus_missing: 0.0,
            throttled: 0.0,
            stock: None,
            recorded: BTreeMap::new(),
            mean_time_to_failure: None,
            notice: Span::ZERO,
            script: Vec::new(),
        }
    }
}

impl CloudModel {
    /// What the script says about this claim.
    pub(crate) fn scripted(&self, zone: &str, asked: u32) -> Option<ClaimFailure> {
        let line = self.script.iter().find(|line| *line.zone == *zone && line.claim == asked);
        line.map(|line| line.fails)
    }
}
