pub(crate) mod offering;
pub(crate) mod proactive;
pub(crate) mod provider;
pub(crate) mod simulated;
pub(crate) mod spec;
pub(crate) mod status;
