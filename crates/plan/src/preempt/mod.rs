//! Preempt: free nodes for a gang that waits by shrinking, reclaiming from, rotating, stopping or moving other gangs.
//!
//! Read in this order: which gangs are eligible and why, what preempting them costs, the search for the victims that
//! lose least, how many searches a cycle may make, and the same together with a purchase.

mod cost;
mod eligibility;
mod victims;

mod search;
mod shrink;

mod budget;
mod with_purchase;

pub(crate) use budget::{MayLook, Searches};
pub(crate) use cost::{least_size, lost_time};
pub(crate) use eligibility::{Leaving, Right};
pub(crate) use victims::{Offer, Prey, offer, owed, take, tell};
pub(crate) use with_purchase::buy_beside;
