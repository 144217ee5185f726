//! The objects of a cluster: gangs, queues, nodes, pools and orders, as specified and as they stand.

pub mod disruption;
pub mod gang;
pub mod progress;

pub mod allowed;
pub mod queue;

pub mod node;

pub mod order;
pub mod pool;
pub mod proactive;
