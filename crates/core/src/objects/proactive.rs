//! Capacity that a pool keeps ready ahead of need.
//!
//! Four reasons to have idle nodes: some always, some in proportion to the nodes in use, some at certain hours, and
//! some because demand is forecast.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::units::money::Money;
use crate::units::time::{Span, Time};

/// Nodes kept free: a fixed number, or in proportion to the nodes in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Buffer {
    /// So many nodes.
    Nodes(u32),
    /// So many thousandths of the nodes in use, rounded up.
    Permille(u32),
}

/// A minimum size of a pool at certain hours.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Schedule {
    /// When it begins: minute, hour, day, month, weekday.
    pub cron: Arc<str>,
    /// The time zone of the expression.
    pub timezone: Arc<str>,
    /// For how long.
    pub duration: Span,
    /// Nodes the pool has then, used or free.
    pub nodes: u32,
}

/// Nodes kept free for forecast demand.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ForecastSpec {
    /// After how long demand repeats itself, such as a day and a week.
    pub seasons: Vec<Span>,
    /// Thousandths of gangs that are to find all their nodes ready. Where an hour of waiting has a price, the price
    /// decides instead.
    pub service_level: u32,
    /// What it costs when one gang waits for an hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_of_waiting: Option<Money>,
    /// The most nodes kept free for a forecast.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_nodes: Option<u32>,
    /// How much history there must be before a forecast.
    pub min_history: Span,
    /// Only report the forecast; keep no nodes for it.
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
pub struct Proactive {
    /// Nodes that run and are free, always.
    #[serde(default)]
    pub warm: u32,
    /// Nodes that were booted once and are stopped: they cost little and start sooner than new ones.
    #[serde(default)]
    pub stopped: u32,
    /// Extra nodes requested beside those that orders wait for, in thousandths of them: an order does not wait for a
    /// machine that is slow to boot, or fails. Surplus nodes are released before they have cost much.
    #[serde(default)]
    pub spare: u32,
    /// Free nodes beside those in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer: Option<Buffer>,
    /// Minimum sizes at certain hours.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub schedules: Vec<Schedule>,
    /// Nodes for forecast demand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forecast: Option<ForecastSpec>,
}

/// The forecast of one pool, as reported to the World.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PoolForecast {
    /// When the first step begins.
    pub from: Time,
    /// How long a step is.
    pub step: Span,
    /// Free nodes wanted in each step.
    pub nodes: Vec<u32>,
}

impl PoolForecast {
    /// The most free nodes wanted at any time within `[from, to]`; none after the forecast ends.
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

/// What may be done about underused nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Consolidate {
    /// A node that was bought stays.
    Never,
    /// An idle node is released after the pool's idle time.
    #[default]
    WhenEmpty,
    /// The same, and gangs that may be moved are moved off underused nodes.
    WhenUnderused,
}

/// Timeouts of the stages of a claim.
///
/// A provider that has not answered for so long will not give a better answer later.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Timeouts {
    /// From request until the machine runs.
    pub launch: Span,
    /// From there until its node has joined.
    pub register: Span,
    /// From there until every GPU, and every extended resource, has appeared.
    pub gpus: Span,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { launch: Span::mins(10), register: Span::mins(10), gpus: Span::mins(10) }
    }
}
