pub(crate) mod memory;
pub(crate) mod replay;
