//! The World's books: what is counted as it goes is what would be counted from scratch.

mod books;

mod claims;
mod gangs;
mod mended;
mod nodes;
mod orders;
mod remembered;
mod restore;
mod restore_orders;
mod supply;

mod audit;
mod chaos;
mod properties;
// One generator for both crates' tests, so that a seed is replayed the same way everywhere.
#[path = "../../../plan/tests/it/seeds.rs"]
mod seeds;
