//! Collects runs and computes the report.

use muster_core::queue::QueueSpec;
use muster_core::time::{Span, Time};

use crate::accounts::Outcome;
use crate::host::{Setup, Sim};
use crate::report::capacity::Measure;
use crate::report::demand::{Demand, Names};
use crate::report::fairness::{By, Shares, Slowdowns, by_weight};
use crate::report::figures::Figures;
use crate::report::job::{JobRun, hours};
use crate::report::raw_run::RawRun;
use crate::report::runs::{Report, Run, Stage, WAIT_FROM_S};
use crate::report::sizes::{classes, waits};
use crate::report::stats::buckets::Grid;
use crate::report::stats::quantile::curve;
use crate::report::stats::top::{Load, Top};
use crate::report::summary::Summary;
use crate::report::timeline::Timeline;

/// Buckets of a timeline: as many as a wide screen can show.
const BUCKETS: usize = 600;
/// Queues listed in a table by name.
const LISTED: usize = 24;
/// Queues with a colour of their own in a timeline, and curves of shares.
const DRAWN: usize = 8;
/// A run is shown to its end, unless that much of it, in per cent, shows all that matters.
const SHORTENED: u64 = 80;
/// Points of a cumulative curve.
const POINTS: usize = 240;

/// Collects the runs of one setup.
#[derive(Clone, Debug)]
pub struct Gather {
    measure: Measure,
    specs: Vec<QueueSpec>,
    queues: Names,
    users: Names,
    asked: Vec<Demand>,
    nodes: usize,
    capacity: u64,
    pools: usize,
    raws: Vec<RawRun>,
}

impl Gather {
    /// Starts with the setup of all runs.
    pub fn new(setup: &Setup) -> Self {
        let measure = Measure::of(&setup.jobs);
        let (mut queues, mut users) = (Names::default(), Names::default());
        let mut specs = setup.queues.clone();
        for queue in &specs {
            queues.number(&queue.name);
        }
        let ask = |job| Demand::new(job, measure, &mut queues, &mut users);
        let asked = setup.jobs.iter().map(ask).collect();
        // Jobs of undeclared queues are refused, and listed all the same.
        specs.extend(queues.list[specs.len()..].iter().map(|name| QueueSpec::open(name)));
        Self {
            measure,
            specs,
            queues,
            users,
            asked,
            nodes: setup.nodes.len(),
            capacity: setup.nodes.iter().map(|node| measure.of_node(node)).sum(),
            pools: setup.pools.len(),
            raws: Vec::new(),
        }
    }

    /// Adds a run of the same setup.
    pub fn add(&mut self, sim: &Sim, summary: Summary) {
        let accounts = sim.accounts();
        let bought_gpu_ms = accounts.meter().bought().bought_gpu_ms();
        self.add_run(summary, accounts.outcomes(), bought_gpu_ms, sim.now());
    }

    pub(crate) fn add_run(
        &mut self,
        summary: Summary,
        outcomes: &[Outcome],
        bought_gpu_ms: u64,
        now: Time,
    ) {
        let pairs = self.asked.iter().zip(outcomes);
        let lives = pairs.map(|(asked, outcome)| JobRun::new(*asked, outcome)).collect();
        self.raws.push(RawRun { summary, lives, now, bought_gpu_ms });
    }

    /// The report on all runs added.
    pub fn finish(self) -> Report {
        let mut report = self.without_runs();
        let (sizes, class_of) = classes(&self.asked);
        report.sizes = sizes;
        let longest = self.most(JobRun::wait_s, WAIT_FROM_S);
        let slowest = self.most(JobRun::slowdown, 1.0);
        let (by, among) = match self.users.len() {
            users @ 2.. => (By::User, users),
            _ => (By::Queue, self.queues.len()),
        };
        let (first, last_submit) = self.submits();
        for raw in &self.raws {
            let span = raw.last().since(first);
            report.runs.push(Run {
                summary: raw.summary.clone(),
                all: Figures::of(raw.lives.iter(), raw.now),
                span,
                utilisation: self.utilisation(raw, span),
                utilisation_while_submitting: self.while_submitting(raw, first, last_submit),
                queues: by_queue(raw, &report.queues),
                waits: curve(&raw.sorted(JobRun::wait_s), WAIT_FROM_S, longest, POINTS),
                slowdowns: curve(&raw.sorted(JobRun::slowdown), 1.0, slowest, POINTS),
                by_size: waits(&raw.lives, report.sizes.len(), &class_of),
                timeline: Timeline::of(&raw.lives, &report.bands, report.grid, raw.now),
                shares: report.shares.of_run(&raw.lives, report.grid, raw.now),
                fairness: Slowdowns::of(&raw.lives, by, among),
            });
        }
        report
    }

    /// The common part of the report.
    fn without_runs(&self) -> Report {
        let loads = self.loads(self.queues.len(), |job| job.queue);
        let has_jobs: Vec<bool> = loads.iter().map(|load| load.jobs > 0).collect();
        let weights = by_weight(&self.specs, &has_jobs);
        let dues_of = |top: &Top| {
            let mut dues = vec![0.0; top.places()];
            for queue in (0..weights.len()).filter(|queue| has_jobs[*queue]) {
                dues[top.place(queue)] += weights[queue];
            }
            dues
        };
        let grid = self.grid();
        let queues = Top::new(&self.queues.list, &loads, LISTED);
        let bands = Top::new(&self.queues.list, &loads, DRAWN);
        let shares = if queues.among() > 1 {
            Shares::new(By::Queue, bands.clone(), dues_of(&bands), grid)
        } else {
            let loads = self.loads(self.users.len(), |job| job.user);
            let top = Top::new(&self.users.list, &loads, DRAWN);
            let dues = vec![1.0 / top.among().max(1) as f64; top.named.len()];
            Shares::new(By::User, top, dues, grid)
        };
        Report {
            measure: self.measure,
            stage: self.stage(queues.among()),
            dues: dues_of(&queues),
            queues,
            bands,
            sizes: Vec::new(),
            grid,
            shares,
            runs: Vec::new(),
        }
    }

    /// The first submission and the last.
    fn submits(&self) -> (Time, Time) {
        let submits = || self.asked.iter().map(|job| job.submit);
        (submits().min().unwrap_or_default(), submits().max().unwrap_or_default())
    }

    fn stage(&self, queues: usize) -> Stage {
        let (first, last_submit) = self.submits();
        Stage {
            jobs: self.asked.len(),
            users: self.users.len(),
            queues,
            nodes: self.nodes,
            capacity: self.capacity as f64 / 1_000.0,
            pools: self.pools,
            asked_hours: hours(self.asked.iter().map(Demand::work).sum()),
            submitting: last_submit.since(first),
        }
    }

    fn loads(&self, count: usize, number: impl Fn(&Demand) -> usize) -> Vec<Load> {
        let mut loads = vec![Load::default(); count];
        for job in &self.asked {
            let load = &mut loads[number(job)];
            load.jobs += 1;
            load.work += job.work();
        }
        loads
    }

    fn while_submitting(&self, raw: &RawRun, first: Time, last: Time) -> Option<f64> {
        let there = u128::from(self.capacity) * u128::from(last.since(first).0);
        let used = raw
            .lives
            .iter()
            .filter_map(|life| life.run(raw.now))
            .map(|(from, to, size)| u128::from(size) * u128::from(to.min(last).since(from).0));
        (there > 0 && self.pools == 0).then(|| used.sum::<u128>() as f64 / there as f64)
    }

    fn grid(&self) -> Grid {
        let (first, _) = self.submits();
        let last = self.raws.iter().map(RawRun::last).max().unwrap_or(first);
        let whole = Grid::over(first, last, BUCKETS);
        let settled = self.raws.iter().map(|raw| raw.settled(whole)).max().unwrap_or(last);
        let worth_it = settled.since(first).0 < whole.to().since(first).0 / 100 * SHORTENED;
        if worth_it { Grid::over(first, settled, BUCKETS) } else { whole }
    }

    /// The largest value in any run, and never quite the smallest one, so that there is something to draw.
    fn most(&self, value: impl Fn(&JobRun) -> Option<f64> + Copy, from: f64) -> f64 {
        let values = self.raws.iter().flat_map(|raw| raw.lives.iter().filter_map(value));
        values.fold(from * 10.0, f64::max)
    }

    fn utilisation(&self, raw: &RawRun, span: Span) -> Option<f64> {
        let bought = match self.measure {
            Measure::Gpu => u128::from(raw.bought_gpu_ms) * 1_000,
            // Purchased cores are not counted.
            Measure::Cpu if self.pools > 0 => return None,
            Measure::Cpu => 0,
        };
        let there = u128::from(self.capacity) * u128::from(span.0) + bought;
        let used: u128 = raw.lives.iter().map(|life| life.used(raw.now)).sum();
        (there > 0).then(|| used as f64 / there as f64)
    }
}

/// The jobs of each queue, by its place.
fn by_queue(raw: &RawRun, queues: &Top) -> Vec<Figures> {
    let mut lives = vec![Vec::new(); queues.places()];
    for life in &raw.lives {
        lives[queues.place(life.asked.queue)].push(life);
    }
    lives.into_iter().map(|lives| Figures::of(lives.into_iter(), raw.now)).collect()
}
