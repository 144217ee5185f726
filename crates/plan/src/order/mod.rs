//! Order the queue: which gang is served next, and whether its queue lets it start at all.
//!
//! Rank, fair share and starvation decide the order; what a queue allows, its limits, and guarantees lent to others
//! decide whether a gang may start when its turn comes.

mod rank;
mod share;
mod starvation;

pub(crate) mod allowed;
mod lendable;
pub(crate) mod quota;

pub(crate) use lendable::NonPreemptibleUse;
pub(crate) use rank::{QueuedGang, ServingOrder, View, repairs};
pub(crate) use share::counts_on;
pub(crate) use starvation::{StarvationBound, latest_start};
