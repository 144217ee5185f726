//! Muster's vocabulary and state.
//!
//! Read in this order: what things are called and measured in, what specs say, how free capacity is
//! indexed, and the [`World`] that holds it all and changes only by [`World::apply`].
//!
//! Architecture invariant: this crate knows no clock, file, socket, async runtime or random source. Time is a
//! parameter; hash order never reaches a caller.

pub mod id;
pub mod money;
pub mod quantity;
pub mod time;

pub mod device;
pub mod resource;

pub mod ahead;
pub mod allowed;
pub mod baseline;
pub mod calendar;
pub mod constraint;
pub mod demand;
pub mod disruption;
pub mod gang;
pub mod health;
pub mod history;
pub mod line;
pub mod node;
pub mod order;
pub mod past;
pub mod pool;
pub mod queue;
pub mod remembered;
pub mod topology;
pub mod work;

pub mod capacity;
pub mod mention;
pub mod shapes;
pub mod signature;
pub mod state;

pub mod event;
pub mod fact;
pub mod plan;
pub mod verdict;
pub mod world;

pub use event::Event;
pub use fact::Fact;
pub use plan::Plan;
pub use verdict::Verdict;
pub use world::World;
