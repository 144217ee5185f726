//! Generates the OpenAPI document from the operations and their types.

pub(crate) mod document;
pub(crate) mod schemas;
