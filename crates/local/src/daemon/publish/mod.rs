//! Publishes objects, statuses and events to the board, after they are committed.

pub(crate) mod objects;

pub(crate) mod outbox;

pub(crate) mod facts;
