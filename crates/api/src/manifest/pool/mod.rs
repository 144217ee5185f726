//! Reads `kind: Pool`: the spec, its offerings, its provider (or a simulated cloud), and what it keeps ready.

pub(crate) mod pool_spec;

pub(crate) mod offering;
pub(crate) mod provider;
pub(crate) mod simulated;

pub(crate) mod proactive;
