//! Authentication (tokens, browser sessions) and authorization (the rights matrix, redaction).

pub(crate) mod caller;

pub(crate) mod tokens;

pub(crate) mod token_file;

pub(crate) mod sessions;

pub(crate) mod access;

pub(crate) mod rights;
pub(crate) mod visibility;
