pub(crate) mod distribute;
pub(crate) mod domains;
pub(crate) mod rule;
