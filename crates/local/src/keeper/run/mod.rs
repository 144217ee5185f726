//! One run of a gang inside its keeper: start, follow, resize, end.

pub(crate) mod keeper;

pub(crate) mod follow;

pub(crate) mod resize;
