//! The tables of the page: what a column is (`columns`), and then each table.

pub(crate) mod columns;

pub(crate) mod policies;
pub(crate) mod queues;

pub(crate) mod money;
pub(crate) mod supply;
