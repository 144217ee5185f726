//! What an operator can choose about planning: the queue order and the planner's parameters.
//!
//! Everything is plain data, so that a decision can be saved and replayed. A queue order is a discipline, chosen by
//! name; each is a file of its own. Orders that exist only for measurements are in `measured`.

mod discipline;
mod parameters;
mod settings;

mod conservative;
mod easy;
mod fair;
mod fifo;
mod muster;

mod measured;

pub use discipline::QueueOrder;
pub(crate) use discipline::{Discipline, Overtaking};
pub use parameters::{Failover, Policy};
