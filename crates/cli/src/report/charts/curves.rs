//! Cumulative distributions of waits and slowdowns.

use muster_sim::report::{Curve, Report, Run, WAIT_FROM_S};

use crate::report::charts::legend::{PolicyColour, numbered};
use crate::report::charts::plot::{Axis, Frame, Kind, line, panel, x_axis, y_axis};
use crate::report::charts::scale::Scale;
use crate::report::charts::ticks;
use crate::report::markup::Markup;

const FRAME: Frame = Frame { width: 580.0, height: 330.0 };
const LEFT: f64 = 48.0;
const RIGHT: f64 = 568.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 284.0;

/// The share of jobs whose wait is at most the value on the axis.
pub(crate) fn waits(html: &mut Markup, report: &Report) {
    let title = "Share of jobs that waited no longer than this";
    let most = end(report, |run| &run.waits);
    let mut marks = ticks::spans(WAIT_FROM_S, most);
    if let Some(first) = marks.first_mut() {
        first.1 = format!("\u{2264} {}", first.1);
    }
    let axis = Axis {
        scale: Scale::log((WAIT_FROM_S, most), (LEFT, RIGHT)),
        ticks: marks,
        kind: Kind::Span,
        label: "wait (log scale)".into(),
    };
    figure(html, report, title, &axis, |run| &run.waits);
}

/// The share of jobs whose slowdown is at most the value on the axis.
pub(crate) fn slowdowns(html: &mut Markup, report: &Report) {
    let title = "Share of jobs that were slowed down no more than this";
    let most = end(report, |run| &run.slowdowns);
    let axis = Axis {
        scale: Scale::log((1.0, most), (LEFT, RIGHT)),
        ticks: ticks::factors(most),
        kind: Kind::Factor,
        label: "bounded slowdown (log scale)".into(),
    };
    figure(html, report, title, &axis, |run| &run.slowdowns);
}

fn end(report: &Report, curve: fn(&Run) -> &Curve) -> f64 {
    report.runs.iter().filter_map(|run| curve(run).last()).map(|point| point.0).fold(1.0, f64::max)
}

/// The lowest share on the axis: where most jobs do not wait at all, there is nothing to see below.
fn first_shown(report: &Report, curve: fn(&Run) -> &Curve) -> f64 {
    let starts = report.runs.iter().filter_map(|run| curve(run).first()).map(|point| point.1);
    match starts.fold(1.0, f64::min) {
        least if least >= 0.9 => 0.9,
        least if least >= 0.5 => 0.5,
        _ => 0.0,
    }
}

fn figure(html: &mut Markup, report: &Report, title: &str, x: &Axis, curve: fn(&Run) -> &Curve) {
    let from = first_shown(report, curve);
    let marks = ticks::percents(1.0, if from == 0.0 { 4 } else { (5.0 / (1.0 - from)) as usize });
    let y = Axis {
        scale: Scale::linear((from, 1.0), (BOTTOM, TOP)),
        ticks: marks.into_iter().filter(|tick| tick.0 >= from).collect(),
        kind: Kind::Percent,
        label: match from {
            0.0 => "share of jobs".into(),
            from => format!("share of jobs, from {:.0} % on", from * 100.0),
        },
    };
    html.tag("figure").with(|html| {
        html.tag("figcaption").text(title);
        FRAME.draw(html, title, Some(x), |svg| {
            x_axis(svg, x, (TOP, BOTTOM));
            y_axis(svg, &y, (LEFT, RIGHT));
            panel(svg, &y, "", |svg| {
                for (i, run) in numbered(report) {
                    let place =
                        |(value, share): &(f64, f64)| (x.scale.at(*value), y.scale.at(*share));
                    let points: Vec<(f64, f64)> = curve(run).iter().map(place).collect();
                    line(svg, PolicyColour(i), &run.summary.policy, &points);
                }
            });
        });
    });
}
