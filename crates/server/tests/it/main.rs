//! The server over real sockets, in front of a toy host that stores objects and runs no gang.

mod client;
mod host;

mod authorization;
mod errors;
mod events;
mod idempotency;
mod limits;
mod mounted_router;
mod openapi;
mod pagination;
mod shutdown;
mod streams;
