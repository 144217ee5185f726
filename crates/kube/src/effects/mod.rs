pub(crate) mod ordered;
pub(crate) mod outcome;
