//! How many nodes to keep free and ready, so that whole gangs start at once.
//!
//! A pool of k free nodes is worth nothing to a gang of k+1, so what is counted is *gang hits*: gangs that found
//! all they needed free the moment they came. [`outlook()`] says how many free nodes that takes over the next
//! minutes. Where gangs come one by one it forecasts how many will come and adds up their sizes over a lead;
//! where they come in bursts, which on real clusters they do, it goes by what has been seen to follow what.
//!
//! Read in this order: what comes, how demand that comes in bursts is learnt, how even demand is forecast, and
//! the outlook that puts them together, and the forecaster that a host keeps.
//!
//! Architecture invariant: this crate knows no clock, file, socket or random source. It is called every few
//! minutes of a simulated year, so what it learns is kept in values ([`Memory`], [`Seasonal`]) that grow by what
//! is new.
//!
//! Deliberately not here: buying and releasing nodes, and how long an idle node is kept. That is the planner's.

mod arrival;
mod level;

mod band;
mod gauge;
mod memory;
mod misses;
mod mix;
mod pulse;

mod clump;
mod compound;
mod hourly;
mod seasonal;

mod forecaster;
mod outlook;

pub use arrival::Arrival;
pub use clump::clumping;
pub use compound::Demand;
pub use forecaster::Forecaster;
pub use memory::Memory;
pub use outlook::{Aim, Asked, Model, NotYet, Outlook, Wanted, outlook};
pub use seasonal::{Backtest, Hourly, Seasonal};
