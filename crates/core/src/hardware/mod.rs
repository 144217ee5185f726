//! Hardware: resources, GPUs, the topology of nodes, and what members require of nodes.

pub mod device;
pub mod resource;

pub mod topology;

pub mod constraint;
