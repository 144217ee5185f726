//! How other provisioners buy nodes for gangs, for comparison.
//!
//! Each is a small simulation on the same clouds as Muster's and with the same accounts: a machine is billed from its
//! launch to its release, and a gang waits from its submission until its last member starts. They support gangs of one
//! rigid role with whole GPUs, which is all that the compared traces hold. They have no queues, shares, priorities or pool
//! limits: the comparison is about supply alone.
//!
//! Read in this order: running a rival, the simulation that all of them share and its events, what two of them share
//! (members that are scheduled one by one, offerings with back-off), and the three strategies.

mod run;

mod events;
mod simulation;

mod offerings;
mod pending_members;

mod accepted;
mod per_pod;
mod serial;

pub use accepted::AcceptedTerms;
pub use per_pod::PerPodTerms;
pub use run::{Market, NotComparable, Rival, Run, run};
pub use serial::SerialTerms;
