//! Policies side by side.

use muster_sim::report::{Figures, Report, Run};

use crate::report::charts::legend::{PolicyColour, numbered};
use crate::report::markup::Markup;
use crate::report::numbers::{amount, money, percent, span, whole};
use crate::report::tables::columns::{Best, Column, JOBS};

/// A row per policy; changes are against the first.
pub(crate) fn table(html: &mut Markup, report: &Report) {
    let columns = columns(report);
    let rows: Vec<&Run> = report.runs.iter().collect();
    let jobs: Vec<&Figures> = report.runs.iter().map(|run| &run.all).collect();
    html.classed("div", "scroll").with(|html| {
        html.classed("table", "policies").with(|html| {
            html.tag("thead").with(|html| {
                html.tag("tr").with(|html| {
                    html.tag("th").attr("scope", "col").text("policy");
                    JOBS.iter().for_each(|column| column.head(html));
                    columns.iter().for_each(|column| column.head(html));
                });
            });
            html.tag("tbody").with(|html| {
                for (i, run) in numbered(report) {
                    html.tag("tr").with(|html| {
                        html.tag("th").attr("scope", "row").with(|html| {
                            html.classed("i", format_args!("dot {}", PolicyColour(i))).text("");
                            html.text(&run.summary.policy);
                        });
                        for column in &JOBS {
                            let base = (i > 0).then_some(jobs[0]);
                            column.cell(html, &run.all, column.best_of(&jobs), base);
                        }
                        for column in &columns {
                            let base = (i > 0).then_some(rows[0]);
                            column.cell(html, run, column.best_of(&rows), base);
                        }
                    });
                }
            });
        });
    });
    notes(html, report);
}

fn notes(html: &mut Markup, report: &Report) {
    if let [first, _, ..] = report.runs.as_slice() {
        let first = &first.summary.policy;
        html.classed("p", "note").text(format_args!(
            "The best value of each column is marked. Small figures are the change against {first}."
        ));
    }
}

/// The columns that apply to these runs, besides those of their jobs.
fn columns(report: &Report) -> Vec<Column<Run>> {
    let mut columns = vec![UTILISATION];
    if report.runs.iter().any(|run| run.utilisation_while_submitting.is_some()) {
        columns.push(WHILE_SUBMITTING);
    }
    columns.push(MAKESPAN);
    if report.stage.pools > 0 {
        columns.extend([COST, ROLLBACKS]);
    }
    if report.runs.iter().any(|run| run.summary.disruptions.is_some()) {
        columns.extend([EVICTIONS, RESIZES, DISTURBED]);
    }
    if report.runs.iter().any(|run| run.fairness.among > 1) {
        columns.push(JAIN);
    }
    if report.runs.iter().any(|run| run.summary.violations.is_some()) {
        columns.push(BROKEN);
    }
    columns
}

const UTILISATION: Column<Run> = Column {
    title: "utilisation",
    meaning: "capacity used of the capacity there was or was bought, over the makespan",
    value: |run| run.utilisation,
    show: percent,
    best: Best::Most,
    compare: false,
};

const WHILE_SUBMITTING: Column<Run> = Column {
    title: "utilisation while jobs come",
    meaning: "capacity used of the capacity there was, from the first submission to the last",
    value: |run| run.utilisation_while_submitting,
    ..UTILISATION
};

const MAKESPAN: Column<Run> = Column {
    title: "makespan",
    meaning: "from the first submission to the last end",
    value: |run| Some(run.span.as_secs_f64()),
    show: span,
    best: Best::Least,
    compare: true,
};

const COST: Column<Run> = Column {
    title: "cost",
    meaning: "what bought nodes cost, from launch to release",
    value: |run| Some(run.summary.cost),
    show: money,
    best: Best::Least,
    compare: true,
};

const ROLLBACKS: Column<Run> = Column {
    title: "rollbacks",
    meaning: "orders rolled back",
    value: |run| Some(run.summary.rollbacks as f64),
    show: whole,
    best: Best::Least,
    compare: false,
};

const EVICTIONS: Column<Run> = Column {
    title: "evictions",
    meaning: "gangs stopped while they could have gone on: preempted, reclaimed, rotated or moved",
    value: |run| run.summary.disruptions.map(|disturbed| disturbed.evictions() as f64),
    ..ROLLBACKS
};

const RESIZES: Column<Run> = Column {
    title: "resizes",
    meaning: "resizes of running gangs",
    value: |run| run.summary.disruptions.map(|disturbed| disturbed.resizes() as f64),
    best: Best::None,
    ..ROLLBACKS
};

const DISTURBED: Column<Run> = Column {
    title: "GPU-hours lost to disruptions",
    meaning: "unsaved work of gangs that were stopped for others, and time spent restarting and resizing",
    value: |run| run.summary.disruptions.map(|lost| lost.evicted_gpu_hours + lost.paused_gpu_hours),
    show: amount,
    best: Best::Least,
    compare: false,
};

const JAIN: Column<Run> = Column {
    title: "fairness (Jain)",
    meaning: "Jain's index of mean bounded slowdowns, user by user or queue by queue: 1 when all are the same",
    value: |run| Some(run.fairness.jain),
    show: |index| format!("{index:.3}"),
    best: Best::Most,
    compare: false,
};

const BROKEN: Column<Run> = Column {
    title: "promises broken",
    meaning: "promises broken",
    value: |run| run.summary.violations.map(|count| count as f64),
    show: whole,
    best: Best::Least,
    compare: false,
};
