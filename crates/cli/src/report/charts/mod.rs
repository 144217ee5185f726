//! The charts of the page: what all of them share (`plot`, `scale`, `ticks`, `legend`), and then each chart.

pub(crate) mod legend;
pub(crate) mod plot;
pub(crate) mod scale;
pub(crate) mod ticks;

pub(crate) mod curves;
pub(crate) mod shares;
pub(crate) mod sizes;
pub(crate) mod slowdowns;
pub(crate) mod timeline;
