pub(crate) mod document;
pub(crate) mod schemas;
