pub(crate) mod access;
pub(crate) mod caller;
pub(crate) mod rights;
pub(crate) mod sessions;
pub(crate) mod token_file;
pub(crate) mod tokens;
pub(crate) mod visibility;
