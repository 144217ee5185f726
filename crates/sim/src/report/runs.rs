//! The parts of a report.

use muster_core::time::Span;

use crate::report::capacity::Measure;
use crate::report::fairness::{Shares, Slowdowns};
use crate::report::figures::Figures;
use crate::report::sizes::SizeClass;
use crate::report::stats::buckets::Grid;
use crate::report::stats::quantile::{Curve, Five};
use crate::report::stats::top::Top;
use crate::report::summary::Summary;
use crate::report::timeline::Timeline;

/// The setup of all runs.
#[derive(Clone, PartialEq, Debug)]
pub struct Stage {
    /// Jobs in the workload.
    pub jobs: usize,
    /// Users of the jobs; jobs without a user count as one.
    pub users: usize,
    /// Queues they are submitted to.
    pub queues: usize,
    /// Nodes that exist from the start.
    pub nodes: usize,
    /// GPUs or cores of those nodes.
    pub capacity: f64,
    /// Pools that nodes can be bought from.
    pub pools: usize,
    /// Work in all jobs, in GPU-hours or core-hours.
    pub asked_hours: f64,
    /// From the first submission to the last.
    pub submitting: Span,
}

/// One run, by policy.
#[derive(Clone, PartialEq, Debug)]
pub struct Run {
    /// The figures that are printed on the command line as well.
    pub summary: Summary,
    /// All jobs together.
    pub all: Figures,
    /// From the first submission to the last end.
    pub span: Span,
    /// Used share of the capacity, from the first submission to the last end: that of the nodes that exist from the start,
    /// and of purchased ones. None where it is not known.
    pub utilisation: Option<f64>,
    /// The same from the first submission to the last, when new jobs still come. None where nodes are bought.
    pub utilisation_while_submitting: Option<f64>,
    /// The jobs of each queue, as they are placed in [`Report::queues`].
    pub queues: Vec<Figures>,
    /// Waits in seconds, from [`WAIT_FROM_S`] on.
    pub waits: Curve,
    /// Bounded slowdowns, from 1 on.
    pub slowdowns: Curve,
    /// Waits in seconds for each of [`Report::sizes`].
    pub by_size: Vec<Option<Five>>,
    /// Running and waiting capacity over time.
    pub timeline: Timeline,
    /// Shares over time for each of those named in [`Report::shares`].
    pub shares: Vec<Vec<Option<f64>>>,
    /// Slowdowns user by user, or queue by queue.
    pub fairness: Slowdowns,
}

/// Several runs of one workload.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// The unit of capacity.
    pub measure: Measure,
    /// The setup of all runs.
    pub stage: Stage,
    /// Queues as they are listed in tables.
    pub queues: Top,
    /// The fair share of each of those queues by weight.
    pub dues: Vec<f64>,
    /// Queues as they are drawn in timelines.
    pub bands: Top,
    /// Sizes of jobs, small ones first.
    pub sizes: Vec<SizeClass>,
    /// The time that all timelines cover: until no job waits any more and nearly all work is done. The few
    /// jobs that run on for long after that would leave no room for the rest.
    pub grid: Grid,
    /// Shares of queues or users.
    pub shares: Shares,
    /// The runs, in the order they were added.
    pub runs: Vec<Run>,
}

/// Waits below this are not told apart where waits are shown by logarithm.
pub const WAIT_FROM_S: f64 = 1.0;
