//! Applies manifests: all objects of a request, or none.

pub(crate) mod dry_run;
pub(crate) mod manifests;
