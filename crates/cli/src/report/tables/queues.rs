//! Queue by queue, within each policy.

use muster_sim::report::{Figures, Measure, Report};

use crate::figures::count;
use crate::report::charts::legend::{PolicyColour, band_name, numbered};
use crate::report::markup::Markup;
use crate::report::numbers::{amount, percent, unit_hours};
use crate::report::tables::columns::JOBS;

/// A row per queue, policy by policy; changes are against the same queue under the first.
pub(crate) fn table(html: &mut Markup, report: &Report) {
    let (queues, runs) = (report.queues.places(), report.runs.len());
    if queues * runs <= OPEN_MAX {
        return all(html, report);
    }
    html.tag("details").with(|html| {
        let rows = count(queues * runs, "row");
        html.tag("summary").text(format_args!("{rows}: each queue under each policy"));
        all(html, report);
    });
}

/// A table with more rows is collapsed at first.
const OPEN_MAX: usize = 40;

fn all(html: &mut Markup, report: &Report) {
    let width = JOBS.len() + 4;
    html.classed("div", "scroll").with(|html| {
        html.classed("table", "queues").with(|html| {
            html.tag("thead").with(|html| {
                html.tag("tr").with(|html| head(html, report.measure));
            });
            for (i, run) in numbered(report) {
                html.tag("tbody").with(|html| {
                    html.classed("tr", "under").with(|html| {
                        let under = html.tag("th").attr("scope", "rowgroup").attr("colspan", width);
                        under.with(|html| {
                            html.classed("i", format_args!("dot {}", PolicyColour(i))).text("");
                            html.text(&run.summary.policy);
                        });
                    });
                    for queue in 0..report.queues.places() {
                        html.tag("tr").with(|html| row(html, report, i, queue));
                    }
                });
            }
        });
    });
    let mut note = String::from("Shares are of all capacity used in the run.");
    if report.runs.len() > 1 {
        note += " For each queue, the policy that serves it best is marked.";
    }
    html.classed("p", "note").text(note);
}

fn head(html: &mut Markup, measure: Measure) {
    html.tag("th").attr("scope", "col").text("queue");
    for column in &JOBS {
        column.head(html);
    }
    html.tag("th").attr("scope", "col").attr("title", "capacity used").text(unit_hours(measure));
    html.tag("th").attr("scope", "col").attr("title", "of all capacity used").text("share");
    let by_weight = "the queue's part by weight, among the queues that have jobs";
    html.tag("th").attr("scope", "col").attr("title", by_weight).text("by weight");
}

fn row(html: &mut Markup, report: &Report, run: usize, queue: usize) {
    let same: Vec<&Figures> = report.runs.iter().map(|run| &run.queues[queue]).collect();
    let figures = same[run];
    html.tag("th").attr("scope", "row").text(band_name(&report.queues, queue));
    for column in &JOBS {
        column.cell(html, figures, column.best_of(&same), (run > 0).then_some(same[0]));
    }
    let all = report.runs[run].all.used_hours;
    html.tag("td").text(amount(figures.used_hours));
    html.tag("td").text(if all > 0.0 {
        percent(figures.used_hours / all)
    } else {
        "\u{2013}".into()
    });
    html.tag("td").text(percent(report.dues[queue]));
}
