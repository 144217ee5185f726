//! How objects and logs are printed: kinds, columns, tables, formats, and the prefix of a member's lines.

pub(crate) mod kinds;

pub(crate) mod age;
pub(crate) mod columns;
pub(crate) mod table;

pub(crate) mod output_prefix;
pub(crate) mod printer;
