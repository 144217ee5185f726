//! What a gang declares does not take from other queues what they can count on.

mod allowed;
mod declared_values;
mod non_preemptible;
