//! Pods that Muster creates from a Gang's own templates.

pub(crate) mod create;

pub(crate) mod create_backoff;
