//! What an operator can choose about planning, as plain data, so that a decision can be saved and replayed.

use muster_core::time::{Span, Time};
use serde::{Deserialize, Serialize};

/// Who goes first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueueOrder {
    /// By priority, then by age. A gang that must wait keeps those behind it off the nodes it waits for.
    #[default]
    Fifo,
    /// By priority, then by age, but whoever fits may overtake. Large gangs can starve.
    FifoOvertake,
}

impl QueueOrder {
    /// Every policy, by the name it is chosen with.
    pub const NAMES: [(&'static str, QueueOrder); 2] =
        [("fifo", QueueOrder::Fifo), ("fifo-overtake", QueueOrder::FifoOvertake)];

    /// The name it is chosen with.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, order)| *order == self).expect("every policy is named").0
    }
    /// The policy of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, order)| *order)
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
    /// How long a gang whose orders keep failing pauses before it orders again.
    pub cool_off: Span,
    /// Placements tried in one cycle before the rest of the queue is put off to the next.
    pub trials: u32,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            order: QueueOrder::Fifo,
            // Karpenter forgets a stock-out after 3 minutes, and measured stock-outs last 48 to 215:
            // asking again after 3 and then ever later wastes little either way.
            avoid_base: Span::mins(3),
            avoid_max: Span::hours(1),
            cool_off: Span::mins(30),
            trials: 100_000,
        }
    }
}

impl Policy {
    /// Until when an offering with this many failures in a row is left alone.
    pub fn avoid_until(&self, streak: u32, last_failure: Time) -> Time {
        let doubled = self.avoid_base.saturating_mul(1 << streak.saturating_sub(1).min(20));
        last_failure + doubled.min(self.avoid_max)
    }
}
