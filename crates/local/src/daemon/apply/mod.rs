//! Applies manifests: all objects of a request, or none.

pub(crate) mod manifests;

pub(crate) mod dry_run;
