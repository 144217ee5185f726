//! The database: one SQLite file, one writer. Committed data survives a crash and a power cut.
//!
//! One turn of the control plane is one transaction: its inputs, its decisions, and the side effects that are about to
//! follow. The control plane acts only after the commit. When a commit fails, uncommitted state is dropped and the control
//! plane restarts from the database: going on would mean acting on state that a restart would not know.

pub(crate) mod database;

pub(crate) mod log;

pub(crate) mod objects;

pub(crate) mod gangs;

pub(crate) mod runs;

pub(crate) mod machines;

pub(crate) mod usage;

pub(crate) mod answers;

#[cfg(test)]
mod tests;
