//! The World: everything observed and everything decided but not yet confirmed.
//!
//! It changes only by [`World::apply`], one event at a time, and keeps its indexes as it goes. An event that
//! does not fit is refused and leaves the World exactly as it was. Nothing here decides anything.

mod queries;
mod state;

mod apply;

mod nodes;
mod quarantine;
mod supply;

mod gangs;
mod resize;
mod seats;
pub mod wait_queue;

mod claims;
mod orders;

mod restore;

pub use state::World;
