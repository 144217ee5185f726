//! Parsing shared by all formats: the stream, its numbered lines, rows and columns of tables, cells, and names.

pub(super) mod open;

pub(super) mod lines;

pub(super) mod columns;
pub(super) mod split;

pub(super) mod cell;
pub(super) mod names;

pub use cell::CellError;
pub use open::open;
