//! Place the members of a gang on nodes: all of its minimum, or nothing.
//!
//! Read in this order: a gang, the domains it is tried in, the nodes of a domain, members to be spread, and the counts
//! that all of these ask for.

mod gang;

mod fill;
mod search;

mod spread;
mod spread_counts;

mod by_name;
mod fits;
mod fragments;

pub(crate) use fill::{Filling, fill_paper};
pub use fits::{Fits, Want};
pub(crate) use gang::{Ask, Asks, asks, place_together};
pub use gang::{Misfit, place};
pub(crate) use spread::add_spread;
pub(crate) use spread_counts::{NodeCounts, SpreadCounts, SpreadGroup, spread_groups};
