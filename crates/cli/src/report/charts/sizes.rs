//! Wait by size of job.

use muster_sim::report::{Five, Report, SizeClass, WAIT_FROM_S};

use crate::figures::count;
use crate::report::charts::legend::{PolicyColour, numbered};
use crate::report::charts::plot::{Axis, Frame, Kind, text, y_axis};
use crate::report::charts::scale::Scale;
use crate::report::charts::ticks;
use crate::report::markup::Markup;
use crate::report::numbers::{Px, capitalised, span, units, whole};

const FRAME: Frame = Frame { width: 1_180.0, height: 340.0 };
const LEFT: f64 = 56.0;
const RIGHT: f64 = 1_164.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 280.0;
/// The widest box.
const BOX_MAX: f64 = 34.0;

/// A box per policy for each size of job.
pub(crate) fn figure(html: &mut Markup, report: &Report) {
    let boxes = || report.runs.iter().flat_map(|run| run.by_size.iter().flatten());
    let most = boxes().map(|five| five.p95).fold(WAIT_FROM_S * 60.0, f64::max) * 1.3;
    let mut marks = ticks::spans(WAIT_FROM_S, most);
    if let Some(first) = marks.first_mut() {
        first.1 = format!("\u{2264} {}", first.1);
    }
    let y = Axis {
        scale: Scale::log((WAIT_FROM_S, most), (BOTTOM, TOP)),
        ticks: marks,
        kind: Kind::Span,
        label: "wait (log scale)".into(),
    };
    let units = units(report.measure);
    let title = format!("Wait by how many {units} a job asks for");
    html.classed("figure", "wide").with(|html| {
        html.tag("figcaption").with(|html| {
            html.text(&title);
            let how = "Line: median. Box: the middle half. Whiskers: 5th to 95th percentile.";
            html.classed("span", "how").text(how);
        });
        html.classed("div", "scroll").with(|html| {
            FRAME.draw(html, &title, None, |svg| {
                y_axis(svg, &y, (LEFT, RIGHT));
                for (i, class) in report.sizes.iter().enumerate() {
                    one_size(svg, report, &y.scale, i, *class);
                }
                text(
                    svg,
                    "middle",
                    f64::midpoint(LEFT, RIGHT),
                    BOTTOM + 52.0,
                    &format!("{} per job", capitalised(units)),
                );
            });
        });
    });
}

fn one_size(svg: &mut Markup, report: &Report, y: &Scale, i: usize, class: SizeClass) {
    let step = (RIGHT - LEFT) / report.sizes.len() as f64;
    let middle = LEFT + step * (i as f64 + 0.5);
    let runs = report.runs.len() as f64;
    let slot = (step * 0.8 / runs).min(BOX_MAX + 8.0);
    let width = (slot * 0.78).min(BOX_MAX);
    for (policy, run) in numbered(report) {
        let Some(five) = &run.by_size[i] else { continue };
        let x = middle + slot * (policy as f64 - (runs - 1.0) / 2.0);
        svg.classed("g", format_args!("box {}", PolicyColour(policy))).with(|svg| {
            svg.tag("title").text(words(&run.summary.policy, &size(class), five));
            draw(svg, y, five, x, width);
        });
    }
    svg.classed("g", "axis").with(|svg| {
        text(svg, "middle", middle, BOTTOM + 17.0, &size(class));
    });
    let jobs = report.runs.iter().filter_map(|run| run.by_size[i]).map(|five| five.count).max();
    svg.classed("g", "axis faint").with(|svg| {
        let jobs = count(jobs.unwrap_or(0), "job");
        text(svg, "middle", middle, BOTTOM + 32.0, &jobs);
    });
}

fn draw(svg: &mut Markup, y: &Scale, five: &Five, x: f64, width: f64) {
    let (left, right) = (x - width / 2.0, x + width / 2.0);
    let rule = |svg: &mut Markup, class, from: (f64, f64), to: (f64, f64)| {
        let line = svg.classed("line", class).attr("x1", Px(from.0)).attr("x2", Px(to.0));
        line.attr("y1", Px(from.1)).attr("y2", Px(to.1)).empty();
    };
    rule(svg, "whisker", (x, y.at(five.p95)), (x, y.at(five.p75)));
    rule(svg, "whisker", (x, y.at(five.p25)), (x, y.at(five.p5)));
    let (top, bottom) = (y.at(five.p75), y.at(five.p25));
    let block = svg.tag("rect").attr("x", Px(left)).attr("y", Px(top)).attr("width", Px(width));
    block.attr("height", Px((bottom - top).max(1.0))).attr("rx", 2).empty();
    rule(svg, "median", (left, y.at(five.p50)), (right, y.at(five.p50)));
}

fn words(policy: &str, size: &str, five: &Five) -> String {
    let Five { count: jobs, p5, p25, p50, p75, p95 } = *five;
    let (low, high) =
        (format!("{} to {}", span(p25), span(p75)), format!("{} to {}", span(p5), span(p95)));
    let jobs = count(jobs, "job");
    format!(
        "{policy}, {size}: {jobs}, median {}, half of them {low}, nine in ten {high}",
        span(p50)
    )
}

/// `none`, `part of one`, `1`, `3 to 4`.
fn size(class: SizeClass) -> String {
    let SizeClass { least, most } = class;
    match (least.div_ceil(1_000), most / 1_000) {
        _ if most == 0 => "none".into(),
        (_, 0) => "part of one".into(),
        (least, most) if least == most => whole(most as f64),
        (least, most) => format!("{}\u{2013}{}", whole(least as f64), whole(most as f64)),
    }
}
