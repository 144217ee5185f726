//! The model of a cloud: boot times, failure rates, stock.

use std::collections::BTreeMap;
use std::sync::Arc;

use muster_core::order::ClaimFailure;
use muster_core::time::Span;

use crate::cloud::availability::Availability;

/// Mean time in stock and out of stock of an offering. Outages of its whole region and of its provider are part of that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StockModel {
    /// Mean time in stock.
    pub mean_up: Span,
    /// Mean time out of stock.
    pub mean_down: Span,
}

impl StockModel {
    /// The share of time in stock; neither 0 nor 1.
    pub(crate) fn share_up(self) -> f64 {
        let (up, down) = (self.mean_up.0.max(1) as f64, self.mean_down.0.max(1) as f64);
        up / (up + down)
    }
}

/// A scripted failure: the n-th claim ever made in a zone fails this way.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scripted {
    /// The zone.
    pub zone: Arc<str>,
    /// The number of the claim, 1 for the first.
    pub claim: u32,
    /// How it fails.
    pub fails: ClaimFailure,
}

/// How the machines of a pool boot and fail.
///
/// The defaults are medians measured on public clouds: launch 150 s, join 45 s, GPUs visible 60 s later,
/// log-normal with a sigma of 0.35.
#[derive(Clone, PartialEq, Debug)]
pub struct CloudModel {
    /// Median time from request to launch.
    pub launch: Span,
    /// Median time from there until the node has joined.
    pub register: Span,
    /// Median time from there until all GPUs are visible.
    pub gpus: Span,
    /// Spread of each, as the sigma of a log-normal; 0 is exact.
    pub sigma: f64,
    /// Chance that a machine never joins.
    pub boot_failed: f64,
    /// Chance that a node lacks a GPU for ever.
    pub gpus_missing: f64,
    /// Chance that the provider throttles a request, which is retried.
    pub throttled: f64,
    /// Stock-outs; none when absent.
    pub stock: Option<StockModel>,
    /// Zones with recorded availability; `stock` does not apply there. The record is of each offering in the zone, not of
    /// all together.
    pub recorded: BTreeMap<Arc<str>, Arc<Availability>>,
    /// Mean time until a machine in service fails; never when absent.
    pub mean_time_to_failure: Option<Span>,
    /// The notice before a machine in service fails or is reclaimed; none when zero.
    pub notice: Span,
    /// Scripted failures.
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
    /// The scripted failure of this claim, if there is one.
    pub(crate) fn scripted(&self, zone: &str, asked: u32) -> Option<ClaimFailure> {
        let line = self.script.iter().find(|line| *line.zone == *zone && line.claim == asked);
        line.map(|line| line.fails)
    }
}
