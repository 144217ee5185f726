//! Where nodes come from: clouds that are played, and this machine.

mod machine;
mod played;

pub use machine::{Machine, this_machine};
pub use played::cloud_of;
