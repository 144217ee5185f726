//! The planner: World in, Plan out.
//!
//! [`plan`] reads like the cycle it is: settle what is under way, order the queue, place, reserve, backfill,
//! provision, supply, explain. Each step is a module.
//!
//! Architecture invariant: pure and synchronous. No clock, no file, no socket, no async runtime, no random
//! source; hash order never reaches a decision. The same World, policy and time give the same Plan, byte for
//! byte. What-if is a [`scratch::Scratch`] over the World that undoes itself when dropped; the World is
//! never copied.

pub mod policy;
pub mod predict;

mod cycle;

mod allowed;
mod guard;
mod lendable;
mod order;
mod repair;
mod serve;
mod settle;
mod share;
mod sooner;

mod company;
pub mod place;
pub mod scratch;

mod backfill;
mod reserve;

mod choose;
mod grow;
mod make_way;
mod mix;
mod odds;
mod oversize;
mod pace;
mod provision;
mod quota;
mod supply;
mod top_up;

mod explain;
mod outlook;
mod why;

pub use cycle::{plan, world_for};
pub use policy::{Policy, QueueOrder};
pub use why::{Why, why};
