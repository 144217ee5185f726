//! The same workload again, without gangs, and both side by side.

use comfy_table::{Cell, CellAlignment, Table, presets};
use muster_core::money::Money;
use muster_core::time::{Span, Time};
use muster_plan::{Policy, QueueOrder};
use muster_sim::naive::{Together, put_together, take_apart};
use muster_sim::{Setup, Sim, SimOptions};
use serde::Serialize;

use crate::figures::{grouped, span};

/// When the naive run is given up: by then whoever still waits is deadlocked.
const PATIENCE: Span = Span::hours(24);

/// One gang, both ways.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    gang: String,
    members: u32,
    wait_s: Option<f64>,
    spread_ms: u64,
    wasted_gpu_s: f64,
    naive_wait_s: Option<f64>,
    naive_spread_s: f64,
    naive_wasted_gpu_s: f64,
    naive_ended: bool,
}

/// Both runs side by side.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Comparison {
    gangs: Vec<Row>,
    cost: f64,
    naive_cost: f64,
    makespan_s: f64,
    naive_makespan_s: Option<f64>,
}

/// Runs the workload without gangs and puts it beside what `sim` came to.
pub(crate) fn compare(setup: Setup, sim: &Sim, seed: u64) -> anyhow::Result<Comparison> {
    let jobs = setup.jobs.clone();
    let apart = take_apart(&jobs);
    let policy = Policy { order: QueueOrder::FifoOvertake, ..Policy::default() };
    let options =
        SimOptions { seed, barrier: Some(apart.group_of.clone()), ..SimOptions::default() };
    let mut naive = Sim::new(Setup { jobs: apart.jobs.clone(), ..setup }, policy, options)?;
    naive.run(Time::ZERO + PATIENCE);
    let together = put_together(&apart, naive.accounts().outcomes(), jobs.len(), naive.now());
    let gangs =
        jobs.iter().zip(sim.accounts().outcomes()).zip(&together).map(|((job, outcome), naive)| {
            Row {
                gang: job.gang.name.to_string(),
                members: job.gang.roles.iter().map(|role| role.min).sum(),
                wait_s: outcome.wait().map(Span::as_secs_f64),
                spread_ms: outcome.spread.0,
                wasted_gpu_s: outcome.partial_gpu_ms as f64 / 1e3,
                naive_wait_s: naive.wait.map(Span::as_secs_f64),
                naive_spread_s: naive.spread.as_secs_f64(),
                naive_wasted_gpu_s: naive.wasted_gpu_ms as f64 / 1e3,
                naive_ended: naive.ended,
            }
        });
    let ended = together.iter().all(|gang: &Together| gang.ended);
    let last_end =
        |sim: &Sim| sim.accounts().outcomes().iter().filter_map(|outcome| outcome.ended).max();
    let makespan = |sim: &Sim| last_end(sim).unwrap_or_default().as_secs_f64();
    Ok(Comparison {
        gangs: gangs.collect(),
        cost: sim.accounts().cost.as_units(),
        naive_cost: naive.accounts().cost.as_units(),
        makespan_s: makespan(sim),
        naive_makespan_s: ended.then(|| makespan(&naive)),
    })
}

impl std::fmt::Display for Comparison {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut table = Table::new();
        table.load_style(presets::UTF8_FULL_CONDENSED);
        let ours = ["wait", "start spread", "wasted GPU-s"];
        let naive = ["one by one:\nwait", "\nstart spread", "\nwasted GPU-s"];
        let ours =
            [format!("Muster:\n{}", ours[0]), format!("\n{}", ours[1]), format!("\n{}", ours[2])];
        let names = std::iter::once("\ngang (members)".to_owned()).chain(ours);
        table.set_header(names.chain(naive.map(str::to_owned)));
        for row in &self.gangs {
            let wait = |secs: Option<f64>| {
                secs.map_or("never".to_owned(), |s| span(Span::from_secs_f64(s)))
            };
            table.add_row([
                format!("{} ({})", row.gang, row.members),
                wait(row.wait_s),
                format!("{} ms", row.spread_ms),
                grouped(row.wasted_gpu_s as u64),
                wait(row.naive_wait_s),
                span(Span::from_secs_f64(row.naive_spread_s)),
                grouped(row.naive_wasted_gpu_s as u64),
            ]);
        }
        let money = |units: f64| Money::from_units(units).unwrap_or_default().to_string();
        let wasted: f64 = self.gangs.iter().map(|row| row.wasted_gpu_s).sum();
        let naive_wasted: f64 = self.gangs.iter().map(|row| row.naive_wasted_gpu_s).sum();
        let makespan =
            |secs: Option<f64>| secs.map_or("never".to_owned(), |s| span(Span::from_secs_f64(s)));
        table.add_row([
            Cell::new("all"),
            Cell::new(format!("done {}", makespan(Some(self.makespan_s)))),
            Cell::new(format!("cost {}", money(self.cost))),
            Cell::new(grouped(wasted as u64)),
            Cell::new(format!("done {}", makespan(self.naive_makespan_s))),
            Cell::new(format!("cost {}", money(self.naive_cost))),
            Cell::new(grouped(naive_wasted as u64)),
        ]);
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        writeln!(f, "{table}")
    }
}
