//! The World's indexes and counters equal a recount from scratch after every event.

mod fixture;

mod claims;
mod gangs;
mod nodes;
mod orders;
mod regressions;
mod remembered;
mod restore;
mod restore_orders;
mod supply;

mod audit;
mod properties;
mod random_events;
// One generator for both crates' tests, so that a seed is replayed the same way everywhere.
#[path = "../../../plan/tests/it/properties/seeds.rs"]
mod seeds;
