//! Everything that was observed through watches, read-only within a cycle.
//!
//! Reading order: [`kinds`] lists what is watched, [`watched_objects`] which part of the host handles a change of it,
//! [`store`] keeps the objects of one kind, [`cluster_cache`] all stores and their indexes. [`queues`] and [`node_usage`] are
//! the two views that need several stores: the queues that exist, and what pods use of a node beyond the seats of gangs.
//!
//! Not here: watching itself (`api::watch`), and anything that was decided (the World).

pub(crate) mod kinds;
pub(crate) mod watched_objects;

pub(crate) mod cluster_cache;
pub(crate) mod store;

pub(crate) mod node_usage;
pub(crate) mod queues;
