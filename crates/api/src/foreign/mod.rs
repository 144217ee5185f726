//! Lenient reading of other systems' objects: as JSON values field by field, and from files.

pub(crate) mod json;

pub(crate) mod files;
