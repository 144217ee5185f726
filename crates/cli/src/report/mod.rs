//! A report on several runs as one self-contained HTML page: no network, no other file.
//!
//! The data is gathered in `muster_sim::report`; this module renders it. Read in this order: the HTML writer, which escapes
//! every name (`markup`), how figures are written (`numbers`), charts, tables, and the page they make up.

mod markup;
mod numbers;

mod charts;
mod tables;

mod heading;
mod page;

pub(crate) use heading::Invocation;
pub(crate) use page::write;
