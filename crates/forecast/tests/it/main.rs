//! What the forecaster promises, on made-up demand whose truth is known.

mod bursts;
mod independent;
mod synthetic;
