//! Listens on sockets, with or without TLS, and shuts down gracefully.

pub(crate) mod listen;

pub(crate) mod tls;

pub(crate) mod shutdown;
