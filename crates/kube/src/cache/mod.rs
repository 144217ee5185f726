pub(crate) mod cluster_cache;
pub(crate) mod kinds;
pub(crate) mod node_usage;
pub(crate) mod queues;
pub(crate) mod store;
pub(crate) mod watched_objects;
