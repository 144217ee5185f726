pub(crate) mod nodes;
