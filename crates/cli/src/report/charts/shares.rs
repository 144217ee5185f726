//! The share of the used capacity per queue or user, against the share by weight.

use muster_sim::report::{By, Report, Shares};

use crate::report::charts::legend;
use crate::report::charts::legend::{PolicyColour, numbered};
use crate::report::charts::plot::{Axis, Frame, Kind, line, panel, text, x_axis, y_axis};
use crate::report::charts::scale::Scale;
use crate::report::charts::ticks;
use crate::report::markup::Markup;
use crate::report::numbers;
use crate::report::numbers::{Px, percent, span, units, whole};

const HEIGHT: f64 = 185.0;
const LEFT: f64 = 42.0;
/// The margin to the right of each chart.
const MARGIN: f64 = 8.0;
/// The width of a chart with two, three or four in a row.
const WIDTHS: [f64; 3] = [580.0, 380.0, 280.0];
const TOP: f64 = 12.0;
const BOTTOM: f64 = 146.0;

/// A small chart for each queue or user, all on the same scales, with a curve per policy.
pub(crate) fn figures(html: &mut Markup, report: &Report) {
    let Shares { by, top, dues, .. } = &report.shares;
    let what = match by {
        By::Queue => "Each queue's share of the capacity used, against its share by weight",
        By::User => "Each user's share of the capacity used, against an equal share",
    };
    html.tag("h3").text(what);
    html.classed("p", "note").text(intro(report));
    legend::policies(html, report, |_| String::new());
    let columns = top.named.len().clamp(2, 4);
    let width = WIDTHS[columns - 2];
    let longest = report.grid.to().since(report.grid.from).as_secs_f64();
    let values = report.runs.iter().flat_map(|run| run.shares.iter().flatten().flatten());
    let most = values.chain(dues).copied().fold(0.05, f64::max);
    let marks = ticks::percents(most, 3);
    let end = marks.last().map_or(1.0, |last| last.0);
    let (moments, unit) = ticks::times(longest, width as usize / 50);
    let x = Axis {
        scale: Scale::linear((0.0, longest), (LEFT, width - MARGIN)),
        ticks: moments,
        kind: Kind::Moment,
        label: unit.into(),
    };
    let y = Axis {
        scale: Scale::linear((0.0, end), (BOTTOM, TOP)),
        ticks: marks,
        kind: Kind::Percent,
        label: String::new(),
    };
    html.classed("div", format_args!("small by{columns}")).with(|html| {
        for (party, name) in top.named.iter().enumerate() {
            html.tag("figure").with(|html| {
                let name = numbers::name(name);
                let due = dues.get(party).copied().unwrap_or(0.0);
                html.tag("figcaption").with(|html| {
                    html.text(name);
                    html.classed("span", "how").text(due_words(*by, due));
                });
                chart(html, report, (&x, &y), (party, name, due));
            });
        }
    });
}

fn due_words(by: By, due: f64) -> String {
    match by {
        By::Queue => format!("dashed: {} by weight", percent(due)),
        By::User => format!("dashed: an equal share, {}", percent(due)),
    }
}

fn intro(report: &Report) -> String {
    let Shares { by, top, window, .. } = &report.shares;
    let parties = if *by == By::Queue { "queues" } else { "users" };
    let mut words = format!(
        "Each point is the share of {} used within {} around it. Demand below the share leaves the rest to \
         the others. Where hardly anything is used there is no curve.",
        units(report.measure),
        span(window.as_secs_f64())
    );
    if top.others > 0 {
        let (shown, all) = (top.named.len(), whole(top.among() as f64));
        words += &format!(" Shown are the {shown} of {all} {parties} that ask for most.");
    }
    words
}

fn chart(html: &mut Markup, report: &Report, (x, y): (&Axis, &Axis), party: (usize, &str, f64)) {
    let (place, name, due) = party;
    let title = format!("Share of the capacity used by {name} over time");
    let right = x.scale.places.1;
    let frame = Frame { width: right + MARGIN, height: HEIGHT };
    frame.draw(html, &title, Some(x), |svg| {
        x_axis(svg, x, (TOP, BOTTOM));
        y_axis(svg, y, (LEFT, right));
        let at = Px(y.scale.at(due));
        let line_due = svg.classed("line", "due").attr("x1", Px(LEFT)).attr("x2", Px(right));
        line_due.attr("y1", at).attr("y2", at).empty();
        panel(svg, y, "", |svg| {
            for (policy, run) in numbered(report) {
                for stretch in stretches(&run.shares[place], x, y) {
                    line(svg, PolicyColour(policy), &run.summary.policy, &stretch);
                }
            }
        });
        if report.runs.iter().all(|run| run.shares[place].iter().all(Option::is_none)) {
            text(
                svg,
                "middle",
                f64::midpoint(LEFT, right),
                f64::midpoint(TOP, BOTTOM),
                "nothing used",
            );
        }
    });
}

/// The curve in pieces: where nothing is used there are no shares.
fn stretches(shares: &[Option<f64>], x: &Axis, y: &Axis) -> Vec<Vec<(f64, f64)>> {
    let last = (shares.len() - 1).max(1) as f64;
    let place = |(i, share): (usize, &Option<f64>)| {
        let moment = x.scale.ends.1 * i as f64 / last;
        share.map(|share| (x.scale.at(moment), y.scale.at(share)))
    };
    let points: Vec<Option<(f64, f64)>> = shares.iter().enumerate().map(place).collect();
    points
        .split(Option::is_none)
        .map(|piece| piece.iter().flatten().copied().collect::<Vec<_>>())
        .filter(|piece| !piece.is_empty())
        .collect()
}
