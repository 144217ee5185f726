pub(crate) mod bounds;
pub(crate) mod concurrency;
pub(crate) mod connections;
