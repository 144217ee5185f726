pub(crate) mod cross_check;
pub(crate) mod files;
pub(crate) mod finding;
pub(crate) mod object;
