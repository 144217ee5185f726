//! The README's picture: the quick start as it happens with Muster, and with one pod at a time.

mod draw;
mod facts;
mod runs;

pub(super) use runs::write;
