//! Reads files of manifests and reports findings.
//!
//! Read in this order: a file is split into documents (`files`), each document is dispatched by its kind (`object`),
//! all objects are checked against each other (`cross_check`), and everything that is wrong is a finding (`finding`).

pub(crate) mod files;
pub(crate) mod object;

pub(crate) mod cross_check;
pub(crate) mod finding;
