//! `kind: Pool`: its spec (offerings, provider, what it keeps ready) and its status.

pub(crate) mod spec;

pub(crate) mod offering;
pub(crate) mod provider;
pub(crate) mod simulated;

pub(crate) mod proactive;
pub(crate) mod status;
