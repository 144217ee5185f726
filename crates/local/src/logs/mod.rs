//! Serves the output of members: what was printed, and what is printed while a client follows.

pub(crate) mod stream;

pub(crate) mod rotated_log;
