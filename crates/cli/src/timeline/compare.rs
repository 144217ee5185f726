//! Runs the same workload without gangs, and compares both runs.

use comfy_table::{CellAlignment, Table, presets};
use muster_core::money::Money;
use muster_core::time::{Span, Time};
use muster_plan::{Policy, QueueOrder};
use muster_sim::naive::{put_together, take_apart};
use muster_sim::{Setup, Sim, SimOptions};
use serde::Serialize;

use crate::figures::{grouped, span};

/// How long after the end of Muster's run the run without gangs may take: jobs that still wait then are deadlocked.
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
    makespan_s: Option<f64>,
    naive_makespan_s: Option<f64>,
}

/// Runs the workload without gangs and compares it with `sim`.
pub(crate) fn compare(setup: Setup, sim: &Sim, seed: u64) -> anyhow::Result<Comparison> {
    let jobs = setup.jobs.clone();
    let apart = take_apart(&jobs);
    let policy = Policy { order: QueueOrder::FifoOvertake, ..Policy::default() };
    let options =
        SimOptions { seed, barrier: Some(apart.group_of.clone()), ..SimOptions::default() };
    let mut naive = Sim::new(Setup { jobs: apart.jobs.clone(), ..setup }, policy, options)?;
    naive.run(sim.now() + PATIENCE);
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
    // The end of the last job, if all ended.
    let makespan = |sim: &Sim| {
        let ends: Option<Vec<Time>> = sim.accounts().outcomes().iter().map(|o| o.ended).collect();
        ends.map(|ends| ends.into_iter().max().unwrap_or_default().as_secs_f64())
    };
    Ok(Comparison {
        gangs: gangs.collect(),
        cost: sim.accounts().meter().bought().cost().as_units(),
        naive_cost: naive.accounts().meter().bought().cost().as_units(),
        makespan_s: makespan(sim),
        naive_makespan_s: makespan(&naive),
    })
}

const HEADER: [&str; 7] = [
    "\ngang (members)",
    "Muster:\nwait",
    "start\nspread",
    "wasted\nGPU-s",
    "one by one:\nwait",
    "start\nspread",
    "wasted\nGPU-s",
];

const LEGEND: &str = "
  one by one    the same workload without gangs: each member asks for its own node and starts when it is there
  start spread  from the first member's start to the last one's
  wasted        GPU-seconds that started members spent waiting for the rest of their gang
";

impl std::fmt::Display for Comparison {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut table = Table::new();
        table.load_style(presets::UTF8_FULL_CONDENSED);
        table.set_header(HEADER);
        for row in &self.gangs {
            table.add_row([
                format!("{} ({})", row.gang, row.members),
                seconds(row.wait_s),
                format!("{} ms", row.spread_ms),
                grouped(row.wasted_gpu_s as u64),
                seconds(row.naive_wait_s),
                seconds(Some(row.naive_spread_s)),
                grouped(row.naive_wasted_gpu_s as u64),
            ]);
        }
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        writeln!(f, "{table}\n")?;
        let money = |units: f64| Money::from_units(units).unwrap_or_default().to_string();
        let (ours, naive) = (seconds(self.makespan_s), seconds(self.naive_makespan_s));
        writeln!(f, "  all done      {ours} with Muster, {naive} one by one")?;
        let (ours, naive) = (money(self.cost), money(self.naive_cost));
        writeln!(f, "  cost          {ours} with Muster, {naive} one by one")?;
        f.write_str(LEGEND)
    }
}

fn seconds(secs: Option<f64>) -> String {
    secs.map_or("never".to_owned(), |secs| span(Span::from_secs_f64(secs)))
}
