pub(crate) mod news;
pub(crate) mod objects;
pub(crate) mod size;
