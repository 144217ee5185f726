//! Colours and names of policies and queues.

use std::fmt;

use muster_sim::report::{Report, Run, Top};

use crate::report::markup::Markup;
use crate::report::numbers;

/// The number of colours for policies and for queues; beyond it policies repeat them.
const COLOURS: usize = 8;

/// The colour of a policy, as a class of the page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PolicyColour(pub(crate) usize);

impl fmt::Display for PolicyColour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "p{}", self.0 % COLOURS)
    }
}

/// The colour of a queue, as a class of the page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueColour(pub(crate) usize);

impl fmt::Display for QueueColour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "q{}", self.0.min(COLOURS))
    }
}

/// The policies with their numbers.
pub(crate) fn numbered(report: &Report) -> impl Iterator<Item = (usize, &Run)> {
    report.runs.iter().enumerate()
}

/// The legend of policies and their curves, with `more` after each name. A single policy needs none.
pub(crate) fn policies(html: &mut Markup, report: &Report, more: impl Fn(&Run) -> String) {
    if report.runs.len() < 2 && more(&report.runs[0]).is_empty() {
        return;
    }
    html.classed("ul", "legend").with(|html| {
        for (i, run) in numbered(report) {
            html.tag("li").with(|html| {
                html.classed("svg", "swatch").attr("viewBox", "0 0 24 10").with(|svg| {
                    let line = svg.classed("line", format_args!("line {}", PolicyColour(i)));
                    line.attr("x1", 1).attr("x2", 23).attr("y1", 5).attr("y2", 5).empty();
                });
                html.text(&run.summary.policy);
                let more = more(run);
                if !more.is_empty() {
                    html.classed("span", "more").text(more);
                }
            });
        }
    });
}

/// The legend of a timeline's bands.
pub(crate) fn bands(html: &mut Markup, bands: &Top, never: bool) {
    let band = |html: &mut Markup, class: &dyn fmt::Display, name: &str| {
        html.tag("li").with(|html| {
            html.classed("svg", "swatch").attr("viewBox", "0 0 12 10").with(|svg| {
                let block = svg.classed("rect", format_args!("area {class}"));
                block.attr("width", 12).attr("height", 10).attr("rx", 2).empty();
            });
            html.text(name);
        });
    };
    html.classed("ul", "legend").with(|html| {
        // A single queue is drawn in the colour of its policy.
        for i in (0..bands.places()).filter(|_| bands.places() > 1) {
            band(html, &QueueColour(i), &band_name(bands, i));
        }
        if never {
            band(html, &"never", NEVER);
        }
    });
}

/// The name of jobs that wait and do not start.
pub(crate) const NEVER: &str = "not started by the end";

/// The name of a band of a timeline or a row of a table.
pub(crate) fn band_name(bands: &Top, place: usize) -> String {
    match bands.named.get(place) {
        Some(name) => numbers::name(name).to_owned(),
        None => format!("{} others", numbers::whole(bands.others as f64)),
    }
}
