//! Idempotency keys: a request that is sent twice is executed once, and answered twice.

pub(crate) mod replay;
pub(crate) mod store;
