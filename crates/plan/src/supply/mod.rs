//! Supply: have the nodes that will be needed, and release those that are not.
//!
//! Read in this order: what each pool has, how many free nodes it should have, ordering ahead what it lacks, releasing
//! what it can spare, and emptying underused nodes.

mod pools;

mod inventory;
mod target;

mod order_ahead;
mod release;

mod consolidate;

pub(crate) use pools::supply;
