//! The page: its sections in order.

use std::io::Write;

use muster_sim::report::Report;

use crate::report::charts::{curves, legend, shares, sizes, slowdowns, timeline};
use crate::report::heading::{Invocation, heading, title};
use crate::report::markup::Markup;
use crate::report::tables::{money, policies, queues, supply};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Writes the page.
pub(crate) fn write(
    mut out: impl Write,
    report: &Report,
    invocation: &Invocation,
) -> std::io::Result<()> {
    out.write_all(page(report, invocation).as_bytes())?;
    out.flush()
}

/// The whole page.
fn page(report: &Report, invocation: &Invocation) -> String {
    let mut html = Markup::default();
    html.tag("html").attr("lang", "en").with(|html| {
        html.tag("head").with(|html| {
            html.tag("meta").attr("charset", "utf-8").empty();
            let viewport = html.tag("meta").attr("name", "viewport");
            viewport.attr("content", "width=device-width, initial-scale=1").empty();
            html.tag("title").text(format_args!("Muster: {}", title(report)));
            html.tag("style").verbatim(STYLE);
        });
        html.tag("body").with(|html| {
            html.tag("main").with(|html| body(html, report, invocation));
            html.classed("div", "pointer").attr("id", "pointer").text("");
            html.tag("script").verbatim(SCRIPT);
        });
    });
    format!("<!doctype html>\n{}\n", html.into_string())
}

fn body(html: &mut Markup, report: &Report, invocation: &Invocation) {
    heading(html, report, invocation);
    section(html, "Policies side by side", |html| policies::table(html, report));
    if report.queues.among() > 1 {
        section(html, "Queue by queue", |html| queues::table(html, report));
    }
    section(html, "Waits and slowdowns", |html| {
        legend::policies(html, report, |_| String::new());
        html.classed("div", "pair").with(|html| {
            curves::waits(html, report);
            curves::slowdowns(html, report);
        });
        sizes::figure(html, report);
    });
    section(html, "Running and waiting", |html| timeline::figures(html, report));
    if report.stage.pools > 0 {
        section(html, "Bought capacity", |html| {
            supply::table(html, report);
            supply::hours(html, report);
            money::tables(html, report);
        });
    }
    section(html, "Shares and fairness", |html| fairness(html, report));
    footer(html);
}

fn section(html: &mut Markup, title: &str, content: impl FnOnce(&mut Markup)) {
    html.tag("section").with(|html| {
        html.tag("h2").text(title);
        content(html);
    });
}

fn fairness(html: &mut Markup, report: &Report) {
    let shared = report.shares.top.among() > 1;
    let many = report.runs.iter().any(|run| run.fairness.among >= CURVE_FROM);
    if !shared && !many {
        let alone = "All jobs come from one queue and one user: there are no shares to compare.";
        html.classed("p", "note").text(alone);
        return;
    }
    if shared {
        shares::figures(html, report);
    }
    if many {
        slowdowns::figure(html, report);
    }
}

/// With fewer users or queues than this a curve says nothing that the tables do not.
const CURVE_FROM: usize = 3;

fn footer(html: &mut Markup) {
    html.tag("footer").with(|html| {
        html.tag("h2").text("Terms");
        html.tag("dl").with(|html| {
            for (word, meaning) in MEANINGS {
                html.tag("dt").text(word);
                html.tag("dd").text(meaning);
            }
        });
    });
}

const MEANINGS: [(&str, &str); 7] = [
    (
        "wait",
        "From submission to the start that led to the end, of jobs that ended. A job that had to start over \
         waits until its last start. Percentiles are values that occurred.",
    ),
    (
        "bounded slowdown",
        "max(1, (wait + run) / max(run, 10 s)): how many times as long as its run a job took, with jobs \
         below ten seconds counted as ten.",
    ),
    (
        "utilisation",
        "What jobs used from their last start to their end, of the capacity there was from the first \
         submission to the last end: nodes that were there from the start, and GPUs bought from launch to \
         release. While jobs come: the same up to the last submission.",
    ),
    (
        "started at once",
        "Gangs whose first start fell on the instant of their submission. Gangs that never started count as \
         late; on several nodes counts gangs that started on more than one.",
    ),
    (
        "all ready",
        "From the first order for a gang to its start, rollbacks and new orders included, for every start that \
         needed an order.",
    ),
    (
        "by weight",
        "A queue's weight among its siblings, times its parent's share, counting only queues with jobs.",
    ),
    (
        "fairness",
        "Jain's index of mean bounded slowdowns, user by user or queue by queue: the square of the sum over \
         n times the sum of squares. 1 when all are the same, 1/n when one bears it all.",
    ),
];
