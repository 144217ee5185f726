//! The server over real sockets, in front of a host that only keeps what it is told.

mod client;
mod host;

mod document;
mod ending;
mod errors;
mod events;
mod keys;
mod limits;
mod lists;
mod mounted;
mod rights;
mod streams;
