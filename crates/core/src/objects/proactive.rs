//! What a pool keeps ready ahead of need, as written.
//!
//! Four reasons to have nodes nobody uses yet: some always, some in proportion to what is used, some at
//! certain hours, and some because demand is expected.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::units::money::Money;
use crate::units::time::{Span, Time};

/// Nodes kept free: so many whatever is used, or in proportion to that.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Buffer {
    /// So many nodes.
    Nodes(u32),
    /// So many thousandths of the nodes in use, rounded up.
    Permille(u32),
}

/// A pool is at least so large at certain hours.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Schedule {
    /// When it begins: minute, hour, day, month, weekday.
    pub cron: Arc<str>,
    /// By the clocks of which time zone.
    pub timezone: Arc<str>,
    /// For how long.
    pub duration: Span,
    /// Nodes the pool has then, used or free.
    pub nodes: u32,
}

/// Nodes kept free because of what is expected to be asked for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ForecastSpec {
    /// After how long demand repeats itself, such as a day and a week.
    pub seasons: Vec<Span>,
    /// Thousandths of gangs that are to find all their nodes ready. Where an hour of waiting has a price, that
    /// decides instead.
    pub service_level: u32,
    /// What it costs when one gang waits for an hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_of_waiting: Option<Money>,
    /// Never more nodes than these for a forecast's sake.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_nodes: Option<u32>,
    /// How much history there must be before anything is expected at all.
    pub min_history: Span,
    /// Only say what would be kept; keep nothing.
    #[serde(default)]
    pub only_tell: bool,
}

impl Default for ForecastSpec {
    fn default() -> Self {
        Self {
            seasons: vec![Span::hours(24), Span::hours(168)],
            service_level: 950,
            cost_of_waiting: None,
            max_nodes: None,
            min_history: Span::hours(24),
            only_tell: false,
        }
    }
}

/// Everything a pool keeps ready ahead of need.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Ahead {
    /// Nodes that run and are free, always.
    #[serde(default)]
    pub warm: u32,
    /// Nodes that were booted once and are stopped: they cost little and come back sooner than new ones.
    #[serde(default)]
    pub stopped: u32,
    /// Nodes asked for beside those that orders wait for, in thousandths of them: whoever is slow to boot, or fails,
    /// is not waited for. What is too many in the end is taken back before it has cost much.
    #[serde(default)]
    pub spare: u32,
    /// Nodes free beside those in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer: Option<Buffer>,
    /// Sizes at certain hours.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub schedules: Vec<Schedule>,
    /// Nodes for expected demand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forecast: Option<ForecastSpec>,
}

/// What a forecaster expects of one pool, as it was told to the World.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Outlook {
    /// When the first step begins.
    pub from: Time,
    /// How long a step is.
    pub step: Span,
    /// Free nodes wanted in each step.
    pub nodes: Vec<u32>,
}

impl Outlook {
    /// The most free nodes wanted at any time within `[from, to]`; none after the outlook ends.
    pub fn most_within(&self, from: Time, to: Time) -> u32 {
        let step = |at: Time| (at.since(self.from).0 / self.step.0.max(1)) as usize;
        let nodes = self.nodes.iter().skip(step(from)).take(step(to) - step(from) + 1);
        nodes.copied().max().unwrap_or(0)
    }
    /// When the number of nodes wanted next changes.
    pub fn next_change(&self, now: Time) -> Option<Time> {
        let past = now.since(self.from).0 / self.step.0.max(1);
        let next = self.from + self.step.saturating_mul(past + 1);
        ((past as usize) < self.nodes.len()).then_some(next)
    }
}

/// What may be done about nodes that are used too little.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Consolidate {
    /// A node that was bought stays.
    Never,
    /// A node that nobody uses goes after the pool's idle time.
    #[default]
    WhenEmpty,
    /// The same, and what may be moved is moved off nodes that hardly anybody uses.
    WhenUnderused,
}

/// How long each stage of a claim may take before it counts as failed.
///
/// A provider that has said nothing for so long will not say anything better later.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Patience {
    /// From asking until the machine runs.
    pub launch: Span,
    /// From there until its node has joined.
    pub register: Span,
    /// From there until every GPU, and every extended resource, has appeared.
    pub gpus: Span,
}

impl Default for Patience {
    fn default() -> Self {
        Self { launch: Span::mins(10), register: Span::mins(10), gpus: Span::mins(10) }
    }
}
