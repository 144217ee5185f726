//! Provision: buy the nodes a gang lacks, as one order, where that is the cheapest way to start it.
//!
//! Read in this order: the choice between waiting, buying and preempting; the order and its best offering; the draft of
//! an order on paper; how likely an offering is out of stock; replacing a claim that failed.

mod choose;
mod right_size;

mod order;

mod claims;
mod draft;
mod instance_mix;
mod scope;

mod stockout;

mod replace_claim;

pub(crate) use choose::{Choice, Purchase, choose, is_worth};
pub(crate) use draft::ready_in;
pub(crate) use order::{
    Blockers, avoided, is_sold, may_order, members_per_node, offerings_for, over_budget, provision,
    provision_new,
};
pub(crate) use replace_claim::{replacement, suits};
pub(crate) use right_size::{are_oversized, is_oversized};
pub(crate) use stockout::stockout_odds;
