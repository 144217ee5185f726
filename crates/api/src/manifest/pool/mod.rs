pub(crate) mod offering;
pub(crate) mod pool_spec;
pub(crate) mod proactive;
pub(crate) mod provider;
pub(crate) mod simulated;
