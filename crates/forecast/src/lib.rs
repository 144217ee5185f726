//! How many nodes to keep free and ready, so that whole gangs start at once.
//!
//! A pool of k free nodes is worth nothing to a gang of k+1, so the measure is *gang hits*: gangs that found all
//! the nodes they needed free when they were submitted. [`forecast()`] says how many free nodes that takes over
//! the next minutes. Where gangs arrive independently it forecasts how many will arrive and adds up their sizes over
//! a lead time; where they arrive in bursts, as they do on real clusters, it learns which bursts follow which.
//!
//! Read in this order: arrivals, the model of bursts, the model of independent arrivals, the forecast that chooses
//! between them, and the forecaster that a host keeps.
//!
//! Architecture invariant: this crate knows no clock, file, socket or random source. It is called every few
//! minutes of a simulated year, so what it learns is kept in values ([`BurstModel`], [`Seasonal`]) that grow by what
//! is new.
//!
//! Deliberately not here: buying and releasing nodes, and how long an idle node is kept. That is the planner's.

mod arrival;
mod level;

mod burst_model;
mod burst_rate;
mod calibration;
mod miss_curve;
mod rate_mixture;
mod size_class;

mod compound_poisson;
mod dispersion;
mod hourly;
mod seasonal;

mod forecast;
mod forecaster;

pub use arrival::Arrival;
pub use burst_model::BurstModel;
pub use compound_poisson::CompoundPoisson;
pub use dispersion::dispersion;
pub use forecast::{Forecast, Goal, Inputs, Model, Objective, TooLittleHistory, forecast};
pub use forecaster::Forecaster;
pub use seasonal::{Backtest, Hourly, Seasonal};
