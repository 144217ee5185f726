pub(crate) mod fields;
pub(crate) mod hint;
pub(crate) mod instant;
pub(crate) mod names;
pub(crate) mod opaque;
pub(crate) mod tree;
pub(crate) mod value;
