pub(crate) mod allowed;
pub(crate) mod queue_spec;
pub(crate) mod quota;
