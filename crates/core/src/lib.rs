//! The words and the state of the scheduler: units, objects, messages and the [`World`].
//!
//! Read in this order: ids and units, hardware, the objects of a cluster, what is learned of the past, how free
//! capacity is indexed, the messages between hosts and planner, and the [`World`] that holds all of it and changes
//! only by [`World::apply`].
//!
//! Architecture invariant: this crate knows no clock, file, socket, async runtime or random source. Time is a
//! parameter; hash order never reaches a caller.

pub mod id;
pub mod units;

pub mod hardware;
pub mod objects;

pub mod history;

pub mod capacity;

pub mod messages;
pub mod world;

pub use capacity::{named_nodes, signature, state};
pub use hardware::{constraint, device, resource, topology};
pub use history::{baseline, decayed_usage, demand, demand_mix, health, remembered};
pub use messages::{event, fact, plan, verdict};
pub use objects::{allowed, disruption, gang, node, order, pool, proactive, progress, queue};
pub use units::{calendar, money, quantity, time};
pub use world::wait_queue;

pub use event::Event;
pub use fact::Fact;
pub use plan::Plan;
pub use verdict::Verdict;
pub use world::World;
