pub(crate) mod constraints;
pub(crate) mod disruption;
pub(crate) mod gang_spec;
pub(crate) mod role;
pub(crate) mod scaling;
