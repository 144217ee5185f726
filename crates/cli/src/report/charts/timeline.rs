//! Running and waiting capacity over time, a chart per policy on common scales.

use muster_sim::report::{Report, Run, Timeline};

use crate::report::charts::legend;
use crate::report::charts::legend::{NEVER, PolicyColour, QueueColour, band_name, numbered};
use crate::report::charts::plot::{Axis, Frame, Kind, area, panel, text, x_axis, y_axis};
use crate::report::charts::scale::Scale;
use crate::report::charts::ticks;
use crate::report::markup::Markup;
use crate::report::numbers::{Px, amount, capitalised, percent, span, units, whole};

const FRAME: Frame = Frame { width: 1_180.0, height: 330.0 };
const LEFT: f64 = 56.0;
const RIGHT: f64 = 1_164.0;
/// Running capacity grows up from here, waiting demand down.
const GROUND: f64 = 170.0;
const GAP: f64 = 5.0;
const TOP: f64 = 24.0;
const BOTTOM: f64 = 284.0;

/// A chart per policy.
pub(crate) fn figures(html: &mut Markup, report: &Report) {
    let axes = axes(report);
    let never = report.runs.iter().any(|run| run.timeline.never.iter().any(|amount| *amount > 0.0));
    if report.bands.places() > 1 || never {
        legend::bands(html, &report.bands, never);
    }
    if let Some(note) = not_shown(report) {
        html.classed("p", "note").text(note);
    }
    for (i, run) in numbered(report) {
        html.classed("figure", "wide").with(|html| figure(html, report, &axes, i, run));
    }
}

/// The note on a run whose end is cut off.
fn not_shown(report: &Report) -> Option<String> {
    let longest = report.runs.iter().map(|run| run.span).max()?;
    let shown = report.grid.to().since(report.grid.from);
    (longest.0 > shown.0 + report.grid.width.0).then(|| {
        format!(
            "Shown are the first {}, in which every start and nearly all of the work falls. The last job ends after {}.",
            span(shown.as_secs_f64()),
            span(longest.as_secs_f64())
        )
    })
}

/// The axes: time, running capacity, waiting demand. The same for all policies, so that charts can be compared.
fn axes(report: &Report) -> [Axis; 3] {
    let timelines = || report.runs.iter().map(|run| &run.timeline);
    let runs = timelines().flat_map(|line| total(&line.running, &[])).fold(0.0, f64::max);
    let waits = timelines().flat_map(|line| total(&line.waiting, &line.never)).fold(0.0, f64::max);
    let units = units(report.measure);
    let up = ticks::numbers(runs.max(report.stage.capacity).max(1.0), 3);
    let down = ticks::numbers(waits.max(1.0), 3);
    let end = |ticks: &[ticks::Tick]| ticks.last().map_or(1.0, |last| last.0);
    let length = span_s(report);
    let (moments, unit) = ticks::times(length, 14);
    let time = Axis {
        scale: Scale::linear((0.0, length), (LEFT, RIGHT)),
        ticks: moments,
        kind: Kind::Moment,
        label: format!("{unit} since the first submission"),
    };
    // Running capacity never exceeds the capacity of the nodes, so its axis may end a little above that.
    let most_runs = (runs.max(report.stage.capacity) * 1.02).max(1.0).min(end(&up).max(1.0));
    let running = Axis {
        scale: Scale::linear((0.0, most_runs), (GROUND, TOP)),
        ticks: up.into_iter().filter(|tick| tick.0 <= most_runs).collect(),
        kind: Kind::Amount,
        label: format!("{} running", capitalised(units)),
    };
    let waiting = Axis {
        scale: Scale::linear((0.0, end(&down)), (GROUND + GAP, BOTTOM)),
        ticks: down.into_iter().skip(1).collect(),
        kind: Kind::Amount,
        label: String::new(),
    };
    [time, running, waiting]
}

fn span_s(report: &Report) -> f64 {
    report.grid.to().since(report.grid.from).as_secs_f64()
}

fn figure(html: &mut Markup, report: &Report, axes: &[Axis; 3], policy: usize, run: &Run) {
    let [time, up, down] = axes;
    let units = units(report.measure);
    let name = &run.summary.policy;
    let title = format!("{} running and waiting under {name}", capitalised(units));
    html.tag("figcaption").with(|html| {
        html.classed("i", format_args!("dot {}", PolicyColour(policy))).text("");
        html.text(&title);
        html.classed("span", "how").text(peak(report, run));
    });
    html.classed("div", "scroll").with(|html| {
        FRAME.draw(html, &title, Some(time), |svg| {
            x_axis(svg, time, (TOP, BOTTOM));
            y_axis(svg, up, (LEFT, RIGHT));
            y_axis(svg, down, (LEFT, RIGHT));
            svg.classed("g", "axis").with(|svg| {
                svg.classed("text", "label")
                    .attr("x", Px(LEFT - 38.0))
                    .attr("y", Px(BOTTOM + 33.0))
                    .text(format_args!("{} waiting", capitalised(units)));
            });
            let Timeline { running, waiting, never } = &run.timeline;
            let bands = Stack { report, policy, time };
            panel(svg, up, "running", |svg| bands.draw(svg, up, running, &[]));
            panel(svg, down, "waiting", |svg| bands.draw(svg, down, waiting, never));
            capacity(svg, report, up);
        });
    });
}

fn capacity(svg: &mut Markup, report: &Report, up: &Axis) {
    if report.stage.capacity <= 0.0 {
        return;
    }
    let y = up.scale.at(report.stage.capacity);
    let line = svg.classed("line", "capacity").attr("x1", Px(LEFT)).attr("x2", Px(RIGHT));
    line.attr("y1", Px(y)).attr("y2", Px(y)).empty();
    let from_start = if report.stage.pools > 0 { " there from the start" } else { "" };
    let words = format!("{} {}{from_start}", amount(report.stage.capacity), units(report.measure));
    svg.classed("g", "axis").with(|svg| text(svg, "end", RIGHT, y - 5.0, &words));
}

/// The peak of waiting demand, and its time.
fn peak(report: &Report, run: &Run) -> String {
    let mut words = String::new();
    if let Some(used) = run.utilisation {
        words = format!("Utilisation {}. ", percent(used));
    }
    let waits = total(&run.timeline.waiting, &run.timeline.never);
    let (mut at, mut most) = (0, 0.0);
    for (bucket, waits) in waits.into_iter().enumerate() {
        if waits > most {
            (at, most) = (bucket, waits);
        }
    }
    let units = units(report.measure);
    if most > 0.0 {
        let when = report.grid.width.as_secs_f64() * at as f64;
        words += &format!("At most {} {units} wait, after {}.", whole(most.max(1.0)), span(when));
    } else {
        words += "No job waits.";
    }
    words
}

/// Stacked areas, one per band.
struct Stack<'a> {
    report: &'a Report,
    policy: usize,
    time: &'a Axis,
}

impl Stack<'_> {
    /// Draws the bands, and the demand that never starts beyond them. The outermost area comes first and each hides the
    /// inner part of the one before, so that an area needs only its outer edge.
    fn draw(&self, svg: &mut Markup, y: &Axis, bands: &[Vec<f64>], never: &[f64]) {
        if never.iter().any(|amount| *amount > 0.0) {
            self.area(svg, y, "never", NEVER, &total(bands, never));
        }
        for band in (0..bands.len()).rev() {
            let edge = total(&bands[..=band], &[]);
            let name = band_name(&self.report.bands, band);
            if bands.len() == 1 {
                // A single queue needs no colour of its own; it has the colour of the policy.
                self.area(svg, y, &PolicyColour(self.policy).to_string(), "all", &edge);
            } else {
                self.area(svg, y, &QueueColour(band).to_string(), &name, &edge);
            }
        }
    }

    fn area(&self, svg: &mut Markup, y: &Axis, class: &str, name: &str, edge: &[f64]) {
        let width = self.report.grid.width.as_secs_f64();
        let place = |(bucket, amount): (usize, &f64)| {
            (self.time.scale.at((bucket as f64 + 0.5) * width), y.scale.at(*amount))
        };
        let points: Vec<(f64, f64)> = edge.iter().enumerate().map(place).collect();
        area(svg, class, name, &points, y.scale.places.0);
    }
}

/// All bands together, bucket by bucket.
fn total(bands: &[Vec<f64>], more: &[f64]) -> Vec<f64> {
    let buckets = bands.first().map_or(more.len(), Vec::len);
    let sum = |bucket: usize| {
        let more = more.get(bucket).copied().unwrap_or(0.0);
        bands.iter().fold(more, |sum, band| sum + band[bucket])
    };
    (0..buckets).map(sum).collect()
}
