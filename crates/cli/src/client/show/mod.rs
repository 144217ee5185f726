//! The commands that read from a control plane and change nothing.

pub(crate) mod get;
pub(crate) mod shorthand;

pub(crate) mod describe;
pub(crate) mod logs;
pub(crate) mod what_if;
pub(crate) mod why;

pub(crate) mod audit;
pub(crate) mod usage;
pub(crate) mod whoami;
