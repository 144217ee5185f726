//! Preempt: free nodes for a gang that waits by shrinking, reclaiming from, rotating, stopping or moving other gangs.
//!
//! Read in this order: which gangs are eligible and why, what preempting them costs, the candidates, the search for the
//! victims that lose least, and their eviction; then how many searches a cycle may make, and preempting together with a
//! purchase.

mod eligibility;

mod candidates;
mod cost;

mod search;
mod shrink;
mod victims;

mod evict;

mod budget;
mod with_purchase;

pub(crate) use budget::{MaySearch, Searches};
pub(crate) use candidates::Victim;
pub(crate) use cost::{lost_time, minimum_size};
pub(crate) use eligibility::{Leaving, Reason};
pub(crate) use evict::{evict, hold_and_evict, pending_evictions};
pub(crate) use victims::{VictimSet, find_victims};
pub(crate) use with_purchase::buy_and_preempt;
