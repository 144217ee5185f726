//! The life of one machine, drawn when it is asked for.

use muster_core::order::ClaimFailure;
use muster_core::pool::OfferingSpec;
use muster_core::time::{Span, Time};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, LogNormal};

use super::model::CloudModel;

/// A step in a machine's life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
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

/// A provider that has none says so quickly.
const STOCK_OUT_ANSWER: Span = Span::secs(4);

/// What will become of a machine, and when.
pub(super) fn life(
    rng: &mut ChaCha8Rng,
    now: Time,
    spec: &OfferingSpec,
    model: &CloudModel,
    scripted: Option<ClaimFailure>,
    in_stock: bool,
    calm: bool,
) -> Vec<(Time, Stage)> {
    let total = (model.launch + model.register + model.gpus).0.max(1);
    // The offering knows its own boot time; the model says how it is divided.
    let scale = spec.boot_time.0 as f64 / total as f64;
    let sigma = if calm { 0.0 } else { model.sigma };
    let mut draw = |median: Span| {
        let median = median.as_secs_f64() * scale;
        let spread = LogNormal::new(0.0, sigma).expect("a finite sigma").sample(rng);
        Span::from_secs_f64(median * spread)
    };
    let launched = now + draw(model.launch);
    let joined = launched + draw(model.register);
    let shown = joined + draw(model.gpus);
    let overdue = shown + draw(model.register);
    let by_chance =
        (!calm).then(|| (rng.random_bool(model.boot_failed), rng.random_bool(model.gpus_missing)));
    let fate = scripted.or(match by_chance {
        _ if !in_stock => Some(ClaimFailure::StockOut),
        Some((true, _)) => Some(ClaimFailure::BootFailed),
        Some((false, true)) => Some(ClaimFailure::GpusMissing),
        _ => None,
    });
    match fate {
        Some(ClaimFailure::StockOut) => {
            vec![(now + STOCK_OUT_ANSWER, Stage::Fails(ClaimFailure::StockOut))]
        }
        Some(failure @ (ClaimFailure::BootFailed | ClaimFailure::Vanished)) => {
            // Nobody hears from a machine that does not join; it is missed when the others are long there.
            vec![(launched, Stage::Launched), (overdue, Stage::Fails(failure))]
        }
        Some(ClaimFailure::GpusMissing) if spec.gpus > 0 => vec![
            (launched, Stage::Launched),
            (joined, Stage::Joined),
            (shown, Stage::Shows(spec.gpus - 1)), // and that is all it ever shows; nobody says so
        ],
        Some(ClaimFailure::GpusMissing) | None => {
            vec![
                (launched, Stage::Launched),
                (joined, Stage::Joined),
                (shown, Stage::Shows(spec.gpus)),
            ]
        }
    }
}
