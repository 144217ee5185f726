//! A report on several runs as one page that needs nothing but itself: no network, no other file.
//!
//! What is shown is gathered in `muster_sim::report`; here is only how it looks. Read in this order: the writer
//! that lets no name become a tag, how figures are written, the parts of a chart, tables and figures one by
//! one, and the page they make up.

mod markup;
mod numbers;

mod plot;
mod scale;
mod ticks;

mod columns;
mod policies;
mod queues;

mod curves;
mod legend;
mod shares;
mod sizes;
mod slowdowns;
mod timeline;

mod money;
mod supply;

mod heading;
mod page;

use std::io::Write;

use muster_sim::report::Report;

pub(crate) use heading::Called;

/// Writes the page.
pub(crate) fn write(mut out: impl Write, report: &Report, called: &Called) -> std::io::Result<()> {
    out.write_all(page::page(report, called).as_bytes())?;
    out.flush()
}
