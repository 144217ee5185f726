pub(crate) mod listen;
pub(crate) mod shutdown;
pub(crate) mod tls;
