//! The parameters of the planner: avoidance, retries, preemption, growth and the bounds of one cycle.

use muster_core::World;
use muster_core::id::OfferingRef;
use muster_core::queue::Allowed;
use muster_core::time::{Span, Time};
use serde::{Deserialize, Serialize};

use super::QueueOrder;

/// In which order offerings are tried.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Failover {
    /// By what each is expected to cost: price, time to boot, odds of a stock-out.
    #[default]
    ByCost,
    /// As the operator lists them: pools in order of declaration, offerings in the pool's order.
    AsListed,
}

impl std::str::FromStr for Failover {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "by-cost" => Ok(Self::ByCost),
            "as-listed" => Ok(Self::AsListed),
            _ => Err("no such order; there are by-cost, as-listed".to_owned()),
        }
    }
}

/// How the planner decides.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Policy {
    /// The order in which gangs are served.
    pub order: QueueOrder,
    /// How long an offering is avoided after its first failure; doubles with every further one.
    pub avoid_base: Span,
    /// The longest time an offering is avoided.
    pub avoid_max: Span,
    /// In which order offerings are tried.
    #[serde(default)]
    pub failover: Failover,
    /// How often one order may have a failed claim replaced before it is rolled back.
    #[serde(default)]
    pub top_ups: u32,
    /// How often a claim that the provider puts off is retried.
    #[serde(default)]
    pub retries: u32,
    /// Kinds of nodes among which the cheapest mix is computed exactly; with more of them it is chosen greedily.
    #[serde(default)]
    pub mix_budget: usize,
    /// For how many gangs victims are searched in one cycle.
    #[serde(default)]
    pub searches: u32,
    /// How many times the delay of a gang counts against the loss of its victims of lower priority.
    #[serde(default)]
    pub urgency: u32,
    /// What rotation may cost: work lost and starting again, in thousandths of a slice.
    #[serde(default)]
    pub rotation_overhead: u32,
    /// How long a gang that was resized, or declined to be, is not made larger.
    #[serde(default)]
    pub settle_in: Span,
    /// How long a gang whose orders keep failing pauses before it orders again.
    pub cool_off: Span,
    /// Placements tried in one cycle before the rest of the queue is put off to the next.
    pub trials: u32,
    /// What gangs may declare where neither their queue nor one above it says: on a host whose tenants do not trust
    /// each other every duration is bounded.
    #[serde(default)]
    pub unsaid: Allowed,
    /// Give every gang a verdict. Hosts that only need to know which gangs start save the time.
    pub explain: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            order: QueueOrder::default(),
            // Measured stock-outs last 48 to 215 minutes, but a request costs seconds, and only one gang probes at a
            // time.
            avoid_base: Span::mins(3),
            avoid_max: Span::mins(6),
            failover: Failover::default(),
            top_ups: 2,
            retries: 4,
            mix_budget: 48,
            searches: 16,
            urgency: 10,
            rotation_overhead: 50,
            settle_in: Span::mins(5),
            cool_off: Span::mins(30),
            trials: 100_000,
            unsaid: Allowed::default(),
            explain: true,
        }
    }
}

/// How long after the provider first puts a claim off it is retried; doubles with every retry.
const RETRY_AFTER: Span = Span::secs(5);

impl Policy {
    /// Until when an offering that failed lately is avoided.
    pub(crate) fn avoided(&self, world: &World, now: Time, offering: OfferingRef) -> Option<Time> {
        let health = world.offering(offering).health;
        let failed = health.last_failure.filter(|_| health.streak > 0)?;
        let until = self.avoid_until(health.streak, failed);
        (now < until).then_some(until)
    }
    /// When a claim that the provider has put off `retries` times is retried.
    pub(crate) fn retry_at(&self, put_off: Time, retries: u32) -> Time {
        put_off + RETRY_AFTER.saturating_mul(1 << retries.min(10))
    }
    /// Until when an offering with this many failures in a row is avoided.
    pub fn avoid_until(&self, streak: u32, last_failure: Time) -> Time {
        let doubled = self.avoid_base.saturating_mul(1 << streak.saturating_sub(1).min(20));
        last_failure + doubled.min(self.avoid_max)
    }
}
