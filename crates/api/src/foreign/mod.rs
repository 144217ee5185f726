pub(crate) mod files;
pub(crate) mod json;
