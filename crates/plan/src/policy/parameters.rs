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
    /// Who goes first.
    pub order: QueueOrder,
    /// How long an offering is left alone after its first failure; doubles with every further one.
    pub avoid_base: Span,
    /// The longest an offering is left alone.
    pub avoid_max: Span,
    /// In which order offerings are tried.
    #[serde(default)]
    pub failover: Failover,
    /// How often one order may have a failed claim replaced instead of being given up.
    #[serde(default)]
    pub top_ups: u32,
    /// How often a claim that the provider puts off is asked for again.
    #[serde(default)]
    pub retries: u32,
    /// Kinds of nodes among which the cheapest mix is looked for exactly; with more of them it is looked for
    /// greedily.
    #[serde(default)]
    pub mix_budget: usize,
    /// For how many gangs it is looked for others that could make way, in one cycle.
    #[serde(default)]
    pub searches: u32,
    /// How much more the delay of a gang counts than what those of lower priority lose who make way for it.
    #[serde(default)]
    pub urgency: u32,
    /// What taking turns may cost: work lost and starting again, in thousandths of a slice.
    #[serde(default)]
    pub rotation_overhead: u32,
    /// How long a gang that was resized, or would not be, is not made larger.
    #[serde(default)]
    pub settle_in: Span,
    /// How long a gang whose orders keep failing pauses before it orders again.
    pub cool_off: Span,
    /// Placements tried in one cycle before the rest of the queue is put off to the next.
    pub trials: u32,
    /// What gangs may declare where neither their queue nor one above it says: on a host whose tenants do not trust each
    /// other no duration is without a bound.
    #[serde(default)]
    pub unsaid: Allowed,
    /// Say of every gang where it stands. Whoever only wants to know who starts saves the time.
    pub explain: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            order: QueueOrder::default(),
            // Measured stock-outs last 48 to 215 minutes, but asking costs seconds, and only one asks at a time.
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

/// How long after the provider first says "not now" it is asked again; doubles with every time.
const RETRY_AFTER: Span = Span::secs(5);

impl Policy {
    /// Until when an offering that failed lately is left alone.
    pub(crate) fn avoided(&self, world: &World, now: Time, offering: OfferingRef) -> Option<Time> {
        let health = world.offering(offering).health;
        let failed = health.last_failure.filter(|_| health.streak > 0)?;
        let until = self.avoid_until(health.streak, failed);
        (now < until).then_some(until)
    }
    /// When a claim that the provider has put off `retries` times is asked for again.
    pub(crate) fn retry_at(&self, put_off: Time, retries: u32) -> Time {
        put_off + RETRY_AFTER.saturating_mul(1 << retries.min(10))
    }
    /// Until when an offering with this many failures in a row is left alone.
    pub fn avoid_until(&self, streak: u32, last_failure: Time) -> Time {
        let doubled = self.avoid_base.saturating_mul(1 << streak.saturating_sub(1).min(20));
        last_failure + doubled.min(self.avoid_max)
    }
}
