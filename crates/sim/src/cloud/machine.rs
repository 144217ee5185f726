//! The lifecycle of one machine, drawn when it is requested.

use muster_core::id::OfferingRef;
use muster_core::order::ClaimFailure;
use muster_core::pool::OfferingSpec;
use muster_core::time::{Span, Time};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, LogNormal};
use serde::{Deserialize, Serialize};

use crate::cloud::model::CloudModel;

/// A stage in the lifecycle of a machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Stage {
    /// The provider has started it.
    Launched,
    /// Its node has joined, without GPUs yet.
    Joined,
    /// Its node shows this many GPUs and is ready.
    Shows(u16),
    /// It will not come.
    Fails(ClaimFailure),
}

/// A machine at its provider.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    pub(crate) offering: OfferingRef,
    pub(crate) billed_from: Option<Time>,
    pub(crate) released: bool,
    /// Reclaimed by the provider; its later stages do not come.
    pub(crate) reclaimed: bool,
    /// When it was requested.
    pub(crate) asked: Time,
    /// When it shows its GPUs; never when its boot fails.
    pub(crate) up: Option<Time>,
    /// Since when it is stopped, or will be.
    pub(crate) stopped: Option<Time>,
    /// Whether it takes a machine from the stock of the provider.
    pub(crate) held: bool,
    /// Its own random numbers.
    pub(crate) rng: ChaCha8Rng,
}

impl Machine {
    /// Whether it shows its GPUs.
    pub(crate) fn is_up(&self, now: Time) -> bool {
        self.up.is_some_and(|up| up <= now) && self.stopped.is_none()
    }
    /// Whether it was released or stopped.
    pub(crate) fn is_away(&self) -> bool {
        self.released || self.stopped.is_some()
    }
    /// Whether the provider wants it back, and it has not been released yet.
    pub(crate) fn is_wanted_back(&self) -> bool {
        !self.held && !self.is_away() && !self.reclaimed
    }
}

/// Stock-outs and throttling are answered quickly.
const STOCK_OUT_ANSWER: Span = Span::secs(4);
const THROTTLED_ANSWER: Span = Span::secs(3);

/// The random faults of a machine, drawn before anything else so that its number alone decides them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BootDraw {
    pub(crate) throttled: bool,
    boot_failed: bool,
    gpus_missing: bool,
}

impl BootDraw {
    pub(crate) fn draw(rng: &mut ChaCha8Rng, model: &CloudModel) -> Self {
        Self {
            throttled: rng.random_bool(model.throttled),
            boot_failed: rng.random_bool(model.boot_failed),
            gpus_missing: rng.random_bool(model.gpus_missing),
        }
    }
    /// How the boot of a granted machine fails, if it does.
    pub(crate) fn of_boot(self) -> Option<ClaimFailure> {
        match self {
            Self { boot_failed: true, .. } => Some(ClaimFailure::BootFailed),
            Self { gpus_missing: true, .. } => Some(ClaimFailure::GpusMissing),
            _ => None,
        }
    }
}

/// The stages of a machine with their times: a boot that takes `median` in total, with this fate.
pub(crate) fn life(
    rng: &mut ChaCha8Rng,
    now: Time,
    (spec, median): (&OfferingSpec, Span),
    (model, sigma): (&CloudModel, f64),
    fate: Option<ClaimFailure>,
) -> Vec<(Time, Stage)> {
    let total = (model.launch + model.register + model.gpus).0.max(1);
    // The offering knows its own boot time; the model says how it is divided.
    let scale = median.0 as f64 / total as f64;
    let mut draw = |median: Span| {
        let median = median.as_secs_f64() * scale;
        let spread = LogNormal::new(0.0, sigma).expect("a finite sigma").sample(rng);
        Span::from_secs_f64(median * spread)
    };
    let launched = now + draw(model.launch);
    let joined = launched + draw(model.register);
    let shown = joined + draw(model.gpus);
    let overdue = shown + draw(model.register);
    let fails = |after: Span, failure| vec![(now + after, Stage::Fails(failure))];
    let shows = |gpus: u16| {
        vec![(launched, Stage::Launched), (joined, Stage::Joined), (shown, Stage::Shows(gpus))]
    };
    match fate {
        Some(failure @ ClaimFailure::StockOut) => fails(STOCK_OUT_ANSWER, failure),
        Some(failure @ ClaimFailure::Throttled) => fails(THROTTLED_ANSWER, failure),
        Some(failure @ (ClaimFailure::BootFailed | ClaimFailure::Vanished)) => {
            // A machine that does not join is silent; its failure shows when a good one would long be ready.
            vec![(launched, Stage::Launched), (overdue, Stage::Fails(failure))]
        }
        // One GPU less for ever, without an error. Whether it is too small is not the provider's decision.
        Some(ClaimFailure::GpusMissing | ClaimFailure::TooSmall) => {
            shows(spec.gpus.saturating_sub(1))
        }
        None => shows(spec.gpus),
    }
}

/// When a machine with these stages shows its GPUs.
pub(crate) fn up_at(life: &[(Time, Stage)]) -> Option<Time> {
    let shows = |(at, stage): &(Time, Stage)| matches!(stage, Stage::Shows(_)).then_some(*at);
    life.iter().find_map(shows)
}
