//! The board: every published object, and the feed of changes for clients that follow it.

pub(crate) mod objects;

pub(crate) mod feed;

pub(crate) mod size;
