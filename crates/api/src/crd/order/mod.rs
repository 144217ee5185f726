pub(crate) mod spec;
pub(crate) mod status;
