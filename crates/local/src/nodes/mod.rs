//! Where nodes come from: simulated clouds, and this machine.

pub(crate) mod machine;
pub(crate) mod simulated_cloud;
