pub(crate) mod namespace_limits;
pub(crate) mod priority;
pub(crate) mod queue_access;
pub(crate) mod trusted_annotations;
