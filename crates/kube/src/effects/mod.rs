pub(crate) mod ordered;
