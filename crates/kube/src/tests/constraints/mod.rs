pub(crate) mod preferred;
pub(crate) mod volumes;
