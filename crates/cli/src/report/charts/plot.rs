//! A chart: a frame, its axes, and curves in it.

use std::fmt;

use crate::report::charts::scale::Scale;
use crate::report::charts::ticks::Tick;
use crate::report::markup::Markup;
use crate::report::numbers::Px;

/// The unit of an axis, for the values shown under the pointer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// A number.
    Amount,
    /// A fraction of one.
    Percent,
    /// A span of time in seconds.
    Span,
    /// Seconds since the first submission.
    Moment,
    /// A factor.
    Factor,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Amount => "amount",
            Self::Percent => "percent",
            Self::Span => "span",
            Self::Moment => "moment",
            Self::Factor => "factor",
        }
    }
}

/// An axis: its scale, and the values that are labelled.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    pub(crate) scale: Scale,
    pub(crate) ticks: Vec<Tick>,
    pub(crate) kind: Kind,
    pub(crate) label: String,
}

/// `kind from to place place log`, as the script reads it.
impl fmt::Display for Axis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Scale { log, ends, places } = self.scale;
        let (kind, log) = (self.kind.name(), u8::from(log));
        write!(f, "{kind} {} {} {} {} {log}", ends.0, ends.1, Px(places.0), Px(places.1))
    }
}

/// Points of a curve.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Points<'a>(pub(crate) &'a [(f64, f64)]);

impl fmt::Display for Points<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (x, y)) in self.0.iter().enumerate() {
            let space = if i == 0 { "" } else { " " };
            write!(f, "{space}{},{}", Px(*x), Px(*y))?;
        }
        Ok(())
    }
}

/// The size of a chart; it is scaled to the width of the page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    pub(crate) width: f64,
    pub(crate) height: f64,
}

impl Frame {
    /// Draws a chart with a horizontal axis. `title` is its accessible name.
    pub(crate) fn draw(
        self,
        html: &mut Markup,
        title: &str,
        x: Option<&Axis>,
        content: impl FnOnce(&mut Markup),
    ) {
        let mut svg = html.classed("svg", "chart");
        svg = svg.attr("viewBox", format_args!("0 0 {} {}", Px(self.width), Px(self.height)));
        svg = svg.attr("role", "img").attr("aria-label", title);
        if let Some(x) = x {
            svg = svg.attr("data-x", x);
        }
        svg.with(content);
    }
}

/// Draws the labels of a horizontal axis, with grid lines up to `top` and the axis label below.
pub(crate) fn x_axis(svg: &mut Markup, axis: &Axis, (top, bottom): (f64, f64)) {
    svg.classed("g", "axis").with(|svg| {
        for (value, label) in &axis.ticks {
            let x = Px(axis.scale.at(*value));
            let line = svg.tag("line").attr("x1", x).attr("x2", x);
            line.attr("y1", Px(top)).attr("y2", Px(bottom)).empty();
            text(svg, "middle", x.0, bottom + 15.0, label);
        }
        let (left, right) = axis.scale.places;
        if !axis.label.is_empty() {
            svg.classed("text", "label")
                .attr("text-anchor", "middle")
                .attr("x", Px(f64::midpoint(left, right)))
                .attr("y", Px(bottom + 33.0))
                .text(&axis.label);
        }
    });
}

/// Draws the labels of a vertical axis, with grid lines from left to right and the axis label above.
pub(crate) fn y_axis(svg: &mut Markup, axis: &Axis, (left, right): (f64, f64)) {
    svg.classed("g", "axis").with(|svg| {
        for (value, label) in &axis.ticks {
            let y = Px(axis.scale.at(*value));
            let is_base = *value == axis.scale.ends.0;
            let line = svg.classed("line", if is_base { "base" } else { "rule" });
            line.attr("x1", Px(left)).attr("x2", Px(right)).attr("y1", y).attr("y2", y).empty();
            text(svg, "end", left - 6.0, y.0 + 3.5, label);
        }
        if !axis.label.is_empty() {
            let top = axis.scale.places.0.min(axis.scale.places.1);
            svg.classed("text", "label")
                .attr("x", Px(left - 38.0))
                .attr("y", Px(top - 11.0))
                .text(&axis.label);
        }
    });
}

/// A line of small text.
pub(crate) fn text(svg: &mut Markup, anchor: &'static str, x: f64, y: f64, words: &str) {
    svg.tag("text").attr("text-anchor", anchor).attr("x", Px(x)).attr("y", Px(y)).text(words);
}

/// A part of a chart whose curves share a vertical axis.
pub(crate) fn panel(svg: &mut Markup, y: &Axis, name: &str, content: impl FnOnce(&mut Markup)) {
    svg.classed("g", format_args!("panel {name}"))
        .attr("data-y", y)
        .attr("data-panel", name)
        .with(content);
}

/// A curve, shown as `name` under the pointer.
pub(crate) fn line(svg: &mut Markup, class: impl fmt::Display, name: &str, points: &[(f64, f64)]) {
    let line = svg.classed("polyline", format_args!("line {class}"));
    line.attr("data-name", name).attr("points", Points(points)).empty();
}

/// The area between a curve and `base`.
pub(crate) fn area(
    svg: &mut Markup,
    class: impl fmt::Display,
    name: &str,
    points: &[(f64, f64)],
    base: f64,
) {
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return };
    let closed = [&[(first.0, base)], points, &[(last.0, base)]].concat();
    let area = svg.classed("polygon", format_args!("area {class}"));
    area.attr("data-name", name).attr("points", Points(&closed)).empty();
}
