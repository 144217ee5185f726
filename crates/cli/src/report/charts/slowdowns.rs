//! Mean slowdown per user or queue, in ascending order.

use muster_sim::report::{By, Report, Run};

use crate::report::charts::legend;
use crate::report::charts::legend::{PolicyColour, numbered};
use crate::report::charts::plot::{Axis, Frame, Kind, line, panel, x_axis, y_axis};
use crate::report::charts::scale::Scale;
use crate::report::charts::ticks;
use crate::report::markup::Markup;
use crate::report::numbers::whole;

const FRAME: Frame = Frame { width: 1_180.0, height: 320.0 };
const LEFT: f64 = 56.0;
const RIGHT: f64 = 1_158.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 274.0;

/// A curve per policy over users, or over queues where jobs have no users.
pub(crate) fn figure(html: &mut Markup, report: &Report) {
    let fairness = &report.runs[0].fairness;
    let (parties, one) = match fairness.by {
        By::User => ("users", "user"),
        By::Queue => ("queues", "queue"),
    };
    let values = report.runs.iter().flat_map(|run| &run.fairness.curve);
    let most = values.map(|(_, mean)| *mean).fold(2.0, f64::max) * 1.1;
    let title = format!("Mean bounded slowdown of each {one}, the least slowed down first");
    let x = Axis {
        scale: Scale::linear((0.0, 1.0), (LEFT, RIGHT)),
        ticks: ticks::percents(1.0, 10),
        kind: Kind::Percent,
        label: format!("share of {parties}"),
    };
    let y = Axis {
        scale: Scale::log((1.0, most), (BOTTOM, TOP)),
        ticks: ticks::factors(most),
        kind: Kind::Factor,
        label: "mean bounded slowdown (log scale)".into(),
    };
    html.classed("figure", "wide").with(|html| {
        html.tag("figcaption").with(|html| {
            html.text(&title);
            html.classed("span", "how").text(format_args!(
                "{} {parties}. A flat curve treats all alike. Jain's index is 1 when all means are the same.",
                whole(fairness.among as f64)
            ));
        });
        let jain = |run: &Run| format!("Jain's index {:.3}", run.fairness.jain);
        legend::policies(html, report, jain);
        html.classed("div", "scroll").with(|html| {
            FRAME.draw(html, &title, Some(&x), |svg| {
                x_axis(svg, &x, (TOP, BOTTOM));
                y_axis(svg, &y, (LEFT, RIGHT));
                panel(svg, &y, "", |svg| {
                    for (policy, run) in numbered(report) {
                        let place =
                            |(share, mean): &(f64, f64)| (x.scale.at(*share), y.scale.at(*mean));
                        let points: Vec<(f64, f64)> = run.fairness.curve.iter().map(place).collect();
                        line(svg, PolicyColour(policy), &run.summary.policy, &points);
                    }
                });
            });
        });
    });
}
