//! The rows of the result table, group by group.

use muster_core::time::Span;
use muster_sim::Summary;
use muster_sim::meter::State;
use muster_sim::summary::{DisruptionFigures, Supply};

use crate::figures::{grouped, span};

/// Rows that belong together.
pub(crate) struct Group {
    pub(crate) title: &'static str,
    pub(crate) rows: &'static [Row],
    /// Whether they apply to these runs.
    pub(crate) applies: fn(&[Summary]) -> bool,
}

fn always(_: &[Summary]) -> bool {
    true
}

/// Whether nodes can be bought.
fn buys(runs: &[Summary]) -> bool {
    runs.iter().any(|run| run.supply.is_some())
}

/// Whether running gangs were disrupted.
fn disturbs(runs: &[Summary]) -> bool {
    runs.iter().any(|run| run.disruptions.is_some())
}

/// The name of a row, and its value for a run.
type Row = (&'static str, fn(&Summary) -> String);

fn seconds(secs: f64) -> String {
    span(Span::from_secs_f64(secs))
}

fn percent(part: f64) -> String {
    format!("{:.1} %", part * 100.0)
}

/// A value of the supply, if nodes could be bought.
fn of_supply(summary: &Summary, show: impl FnOnce(&Supply) -> String) -> String {
    summary.supply.as_ref().map_or_else(|| "\u{2013}".to_owned(), show)
}

/// A value of the disruptions, if there were any.
fn of_disruptions(summary: &Summary, show: impl FnOnce(&DisruptionFigures) -> String) -> String {
    summary.disruptions.as_ref().map_or_else(|| "\u{2013}".to_owned(), show)
}

/// GPU-hours in one state, and their share of those bought.
fn state(summary: &Summary, state: State) -> String {
    of_supply(summary, |supply| {
        format!("{:.1} ({})", supply.gpu_hours[state], percent(supply.share(state)))
    })
}

/// All groups of the table. `--json` has more.
pub(crate) const GROUPS: &[Group] = &[
    Group {
        title: "jobs",
        rows: &[
            ("jobs done", |s| format!("{} of {}", grouped(s.ended as u64), grouped(s.jobs as u64))),
            ("mean wait", |s| seconds(s.mean_wait_s)),
            ("median wait", |s| seconds(s.p50_wait_s)),
            ("95 % wait at most", |s| seconds(s.p95_wait_s)),
            ("99 % wait at most", |s| seconds(s.p99_wait_s)),
            ("longest wait", |s| seconds(s.max_wait_s)),
            ("average bounded slowdown", |s| format!("{:.2}", s.avg_bsld)),
            ("mean time to completion", |s| seconds(s.mean_completion_s)),
            ("makespan", |s| seconds(s.makespan_s)),
            ("started at once: all / on several nodes", |s| {
                let rate = |rate: Option<f64>| rate.map_or_else(|| "\u{2013}".to_owned(), percent);
                format!("{} / {}", rate(s.gang_hit_rate), rate(s.multi_node_hit_rate))
            }),
            ("GPU-hours run", |s| format!("{:.1}", s.busy_gpu_hours)),
            ("GPU-hours lost to restarts", |s| format!("{:.1}", s.lost_gpu_hours)),
            ("GPU-hours lost to partial starts", |s| format!("{:.1}", s.partial_gpu_hours)),
        ],
        applies: always,
    },
    Group {
        title: "gangs disturbed",
        rows: &[
            ("preempted / reclaimed / rotated / moved", |s| {
                of_disruptions(s, |d| {
                    [d.preemptions, d.reclaims, d.rotations, d.moves].map(grouped).join(" / ")
                })
            }),
            ("stopped because of a node", |s| of_disruptions(s, |d| grouped(d.repairs))),
            ("grown / shrunk / declined", |s| {
                of_disruptions(s, |d| [d.grown, d.shrunk, d.declined].map(grouped).join(" / "))
            }),
            ("GPU-hours not saved when stopped for others", |s| {
                of_disruptions(s, |d| format!("{:.1}", d.evicted_gpu_hours))
            }),
            ("GPU-hours restarting and resizing", |s| {
                of_disruptions(s, |d| format!("{:.1}", d.paused_gpu_hours))
            }),
        ],
        applies: disturbs,
    },
    Group {
        title: "orders",
        rows: &[
            ("orders / rolled back", |s| {
                format!("{} / {}", grouped(s.orders), grouped(s.rollbacks))
            }),
            ("cost of rollbacks", |s| {
                of_supply(s, |supply| format!("{:.2}", supply.rollback_cost))
            }),
            ("all nodes ready, median / 95 %", |s| {
                of_supply(s, |supply| match (supply.ready_p50_s, supply.ready_p95_s) {
                    (Some(p50), Some(p95)) => format!("{} / {}", seconds(p50), seconds(p95)),
                    _ => "\u{2013}".to_owned(),
                })
            }),
            ("nodes asked for / failed", |s| {
                format!("{} / {}", grouped(s.claims), grouped(s.failed_claims))
            }),
            ("out of stock / asked again / replaced", |s| {
                of_supply(s, |supply| {
                    let figures = [supply.stock_outs, supply.retries, supply.top_ups];
                    figures.map(grouped).join(" / ")
                })
            }),
        ],
        applies: buys,
    },
    Group {
        title: "GPU-hours bought",
        rows: &[
            ("all", |s| of_supply(s, |supply| format!("{:.1}", supply.bought_gpu_hours))),
            ("running", |s| state(s, State::Running)),
            ("stranded on nodes others use", |s| state(s, State::Stranded)),
            ("gathering: ready, the rest to come", |s| state(s, State::Gathering)),
            ("booting", |s| state(s, State::Booting)),
            ("warm: ready, not used yet", |s| state(s, State::Warm)),
            ("idle after use", |s| state(s, State::Idle)),
        ],
        applies: buys,
    },
    Group {
        title: "money",
        rows: &[
            ("node-hours bought", |s| format!("{:.1}", s.node_hours)),
            ("cost", |s| format!("{:.2}", s.cost)),
            ("of this, paid by no queue", |s| {
                of_supply(s, |supply| format!("{:.2}", supply.shared))
            }),
        ],
        applies: buys,
    },
    Group {
        title: "simulation",
        rows: &[
            ("promises broken", |s| {
                s.violations.map_or("not checked".to_owned(), |count| count.to_string())
            }),
            ("steps", |s| grouped(s.steps)),
        ],
        applies: always,
    },
];
