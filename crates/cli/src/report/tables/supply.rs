//! Bought capacity: hours by state, and results of orders.

use muster_sim::meter::{ByState, State};
use muster_sim::report::{Report, Run};
use muster_sim::summary::Supply;

use crate::report::charts::legend::{PolicyColour, numbered};
use crate::report::charts::plot::{Axis, Frame, Kind, text, x_axis};
use crate::report::charts::scale::Scale;
use crate::report::charts::ticks;
use crate::report::markup::Markup;
use crate::report::numbers::{Px, amount, capitalised, money, percent, span, whole};
use crate::report::tables::columns::{Best, Column};

const WIDTH: f64 = 1_180.0;
const LEFT: f64 = 122.0;
const RIGHT: f64 = 1_066.0;
const TOP: f64 = 8.0;
/// The distance between bars.
const PITCH: f64 = 40.0;
const BAR: f64 = 26.0;
/// The space below the bars, for the axis and its label.
const FOOT: f64 = 40.0;
/// A part narrower than this is not labelled.
const LABELLED: f64 = 44.0;
/// A part at least this wide is labelled with its name as well.
const NAMED: f64 = 118.0;

/// The colour of a state, as a class of the page.
pub(crate) fn colour(state: State) -> String {
    format!("s-{}", state.name())
}

/// The meaning of a state, in a few words.
pub(crate) fn meaning(state: State) -> &'static str {
    match state {
        State::Running => "used by members",
        State::Stranded => "unused, on a node in use",
        State::Gathering => "ready, waiting for the rest of the gang's nodes",
        State::Booting => "launched, not ready",
        State::Warm => "ready, not used yet",
        State::Idle => "empty again after use",
        State::Broken => "failed, not released yet",
    }
}

/// Runs that can buy nodes, with their numbers.
pub(crate) fn buyers(report: &Report) -> Vec<(usize, &Run, &Supply)> {
    numbered(report).filter_map(|(i, run)| Some((i, run, supply(run)?))).collect()
}

fn supply(run: &Run) -> Option<&Supply> {
    run.summary.supply.as_ref()
}

/// What the bars are measured in: GPU-hours, or node-hours where no GPU was bought.
struct Bars {
    unit: &'static str,
    hours: fn(&Supply) -> ByState<f64>,
}

impl Bars {
    fn of(report: &Report) -> Self {
        if buyers(report).iter().any(|(_, _, supply)| supply.bought_gpu_hours > 0.0) {
            Self { unit: "GPU-hours", hours: |supply| supply.gpu_hours }
        } else {
            Self { unit: "node-hours", hours: |supply| supply.node_hours }
        }
    }
    fn total(&self, supply: &Supply) -> f64 {
        (self.hours)(supply).iter().map(|(_, hours)| hours).sum()
    }
}

/// A bar per policy on a common scale: the hours bought, by state.
pub(crate) fn hours(html: &mut Markup, report: &Report) {
    let (bars, buyers) = (Bars::of(report), buyers(report));
    let most = buyers.iter().map(|(_, _, supply)| bars.total(supply)).fold(0.0, f64::max);
    if most <= 0.0 {
        html.classed("p", "note").text("Nothing was bought.");
        return;
    }
    let title = format!("Where the {} bought went", bars.unit);
    let bottom = TOP + PITCH * buyers.len() as f64;
    let x = Axis {
        scale: Scale::linear((0.0, most), (LEFT, RIGHT)),
        ticks: ticks::numbers(most, 8).into_iter().filter(|tick| tick.0 <= most).collect(),
        kind: Kind::Amount,
        label: format!("{} paid for, from launch to release", bars.unit),
    };
    html.classed("figure", "wide").with(|html| {
        html.tag("figcaption").text(&title);
        states(html, &bars, &buyers);
        html.classed("div", "scroll").with(|html| {
            Frame { width: WIDTH, height: bottom + FOOT }.draw(html, &title, None, |svg| {
                x_axis(svg, &x, (TOP, bottom));
                for (row, (_, run, supply)) in buyers.iter().enumerate() {
                    let top = TOP + PITCH * row as f64 + (PITCH - BAR) / 2.0;
                    let middle = top + BAR / 2.0 + 4.0;
                    svg.classed("g", "axis bar-ends").with(|svg| {
                        text(svg, "end", LEFT - 10.0, middle, &run.summary.policy);
                        let total = bars.total(supply);
                        text(svg, "start", x.scale.at(total) + 8.0, middle, &amount(total));
                    });
                    bar(svg, &bars, &x, supply, (top, middle));
                }
            });
        });
    });
}

/// The parts of one bar, from left to right.
fn bar(svg: &mut Markup, bars: &Bars, x: &Axis, supply: &Supply, (top, middle): (f64, f64)) {
    let total = bars.total(supply).max(f64::MIN_POSITIVE);
    let mut from = 0.0;
    for (state, hours) in (bars.hours)(supply).iter().filter(|(_, hours)| *hours > 0.0) {
        let (left, right) = (x.scale.at(from), x.scale.at(from + hours));
        from += hours;
        svg.classed("g", format_args!("part {}", colour(state))).with(|svg| {
            let block = svg.tag("rect").attr("x", Px(left)).attr("y", Px(top));
            block.attr("width", Px(right - left)).attr("height", Px(BAR)).with(|svg| {
                let (name, share) = (capitalised(state.name()), percent(hours / total));
                let words = format!("{name}: {} {}, {share}", amount(hours), bars.unit);
                svg.tag("title").text(words);
            });
            let share = percent(hours / total);
            let words = match right - left {
                wide if wide >= NAMED => format!("{} {share}", state.name()),
                wide if wide >= LABELLED => share,
                _ => return,
            };
            text(svg, "middle", f64::midpoint(left, right), middle, &words);
        });
    }
}

/// The legend of the states; states that never occurred are left out.
fn states(html: &mut Markup, bars: &Bars, buyers: &[(usize, &Run, &Supply)]) {
    html.classed("ul", "legend").with(|html| {
        for state in State::ALL {
            if buyers.iter().all(|(_, _, supply)| (bars.hours)(supply)[state] <= 0.0) {
                continue;
            }
            html.tag("li").with(|html| {
                html.classed("svg", "swatch").attr("viewBox", "0 0 12 10").with(|svg| {
                    let block = svg.classed("rect", format_args!("area {}", colour(state)));
                    block.attr("width", 12).attr("height", 10).attr("rx", 2).empty();
                });
                html.text(state.name());
                html.classed("span", "more").text(meaning(state));
            });
        }
    });
}

/// The results of orders, a row per policy.
pub(crate) fn table(html: &mut Markup, report: &Report) {
    let rows: Vec<&Run> = report.runs.iter().collect();
    html.classed("div", "scroll").with(|html| {
        html.classed("table", "policies").with(|html| {
            html.tag("thead").with(|html| {
                html.tag("tr").with(|html| {
                    html.tag("th").attr("scope", "col").text("policy");
                    COLUMNS.iter().for_each(|column| column.head(html));
                });
            });
            html.tag("tbody").with(|html| {
                for (i, run) in numbered(report) {
                    html.tag("tr").with(|html| {
                        html.tag("th").attr("scope", "row").with(|html| {
                            html.classed("i", format_args!("dot {}", PolicyColour(i))).text("");
                            html.text(&run.summary.policy);
                        });
                        for column in &COLUMNS {
                            let base = (i > 0).then_some(rows[0]);
                            column.cell(html, run, column.best_of(&rows), base);
                        }
                    });
                }
            });
        });
    });
}

const PLAIN: Column<Run> = Column {
    title: "",
    meaning: "",
    value: |_| None,
    show: whole,
    best: Best::None,
    compare: false,
};

const COLUMNS: [Column<Run>; 11] = [
    Column {
        title: "started at once",
        meaning: "gangs that started the instant they were submitted, of all gangs",
        value: |run| run.summary.gang_hit_rate,
        show: percent,
        best: Best::Most,
        ..PLAIN
    },
    Column {
        title: "\u{2026} on several nodes",
        meaning: "the same, of gangs that started on more than one node",
        value: |run| run.summary.multi_node_hit_rate,
        show: percent,
        best: Best::Most,
        ..PLAIN
    },
    Column {
        title: "p50 all ready",
        meaning: "from the first order for a gang to its start: half of them took no longer",
        value: |run| supply(run)?.ready_p50_s,
        show: span,
        best: Best::Least,
        compare: true,
    },
    Column {
        title: "p95 all ready",
        meaning: "from the first order for a gang to its start: 95 of 100 took no longer",
        value: |run| supply(run)?.ready_p95_s,
        show: span,
        best: Best::Least,
        compare: true,
    },
    Column {
        title: "orders",
        meaning: "orders placed",
        value: |run| Some(run.summary.orders as f64),
        ..PLAIN
    },
    Column {
        title: "rollbacks",
        meaning: "orders rolled back",
        value: |run| Some(run.summary.rollbacks as f64),
        best: Best::Least,
        ..PLAIN
    },
    Column {
        title: "cost of rollbacks",
        meaning: "cost of the nodes of rolled-back orders, from launch until first use",
        value: |run| Some(supply(run)?.rollback_cost),
        show: money,
        best: Best::Least,
        compare: true,
    },
    Column {
        title: "top-ups",
        meaning: "failed nodes that were replaced without a rollback of their order",
        value: |run| Some(supply(run)?.top_ups as f64),
        ..PLAIN
    },
    Column {
        title: "nodes asked for",
        meaning: "requests to providers",
        value: |run| Some(run.summary.claims as f64),
        ..PLAIN
    },
    Column {
        title: "out of stock",
        meaning: "requests that the provider answered with a stock-out",
        value: |run| Some(supply(run)?.stock_outs as f64),
        ..PLAIN
    },
    Column {
        title: "asked again",
        meaning: "requests retried because the provider was busy",
        value: |run| Some(supply(run)?.retries as f64),
        ..PLAIN
    },
];
