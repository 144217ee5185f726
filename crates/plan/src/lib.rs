//! The planner: World in, Plan out.
//!
//! [`plan`] is one scheduling cycle: settle what is under way, order the queue, place, reserve, backfill, preempt or
//! provision, resize, supply, explain. Each step is a module; `cycle` calls them in this order.
//!
//! Architecture invariant: pure and synchronous. No clock, no file, no socket, no async runtime, no random
//! source; hash order never reaches a decision. The same World, policy and time give the same Plan, byte for
//! byte. What-if is a [`scratch::Scratch`] over the World that undoes itself when dropped; the World is
//! never copied.

pub mod policy;
pub mod predict;
pub mod scratch;

mod cycle;

mod settle;

mod order;
pub mod place;
mod reserve;

mod backfill;
mod preempt;
mod provision;

mod reassign_nodes;

mod grow;
mod supply;

mod explain;

pub use cycle::{plan, world_for};
pub use explain::{Why, why};
pub use policy::{Policy, QueueOrder};
