//! Promises about gangs: whole starts, evictions with a cause, grace, and resizing as told.

pub(super) mod members;

pub(super) mod evictions;
pub(super) mod grace;

pub(super) mod resizing;
