pub(crate) mod amount;
pub(crate) mod duration;
pub(crate) mod stamp;
pub(crate) mod text;
