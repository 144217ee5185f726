//! Guarantees of the forecaster, on synthetic demand whose distribution is known.

mod bursts;
mod independent;
mod synthetic;
