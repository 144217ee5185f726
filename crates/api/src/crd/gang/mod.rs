pub(crate) mod conditions;
pub(crate) mod constraints;
pub(crate) mod disruption;
pub(crate) mod placement;
pub(crate) mod role;
pub(crate) mod spec;
pub(crate) mod status;
