//! What an operator can choose about planning, as plain data, so that a decision can be saved and replayed.
//!
//! Who goes first is a discipline, chosen by name; each is a file of its own.

use muster_core::World;
use muster_core::gang::Gang;
use muster_core::id::OfferingRef;
use muster_core::queue::Allowed;
use muster_core::time::{Span, Time};
use serde::{Deserialize, Serialize};

use crate::order::rank::View;
use crate::predict::Belief;

/// Who goes first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueueOrder {
    /// By priority, then by age. A gang that must wait keeps those behind it off the nodes it waits for.
    Fifo,
    /// By priority, then by age, but whoever fits may overtake. Large gangs can starve.
    FifoOvertake,
    /// By age; the first that must wait gets a start time, and whoever does not delay it may go before.
    Easy,
    /// The same, and those that go before are taken shortest first.
    EasySjbf,
    /// The same, by what the user's last runs took instead of what the user says.
    EasyPlusPlus,
    /// By age; the first hundred that must wait get start times, and whoever delays nobody may go before.
    Conservative,
    /// Shortest first; the first that must wait gets a start time.
    Sjf,
    /// By how long a gang has waited for its length, larger ones sooner; the first gets a start time.
    Wfp,
    /// Whose deadline comes first; the first that must wait gets a start time.
    Edf,
    /// The queue that has least of its share first, then by age; the first that must wait gets a start time.
    Fair,
    /// Queues by share, gangs by how much they are slowed down, and whoever is due gets a start time.
    #[default]
    Muster,
}

/// How those behind a gang that must wait are treated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Behind {
    /// They stay off the nodes and pools it waits for.
    Barred,
    /// They may take anything.
    Free,
    /// So many gangs get a start time, in order; others may take what delays none of them.
    Backfill(usize),
    /// The same, but only gangs that are due, and where queues compete the first that must wait.
    BackfillDue(usize),
}

/// One way to run the queue.
pub(crate) trait Discipline {
    /// Its place in the queue, lowest first, after priority and before age; none when age decides.
    fn rank(&self, _view: &View<'_>, _gang: &Gang) -> Option<f64> {
        None
    }
    /// Since when it goes before all of its priority and queue that are not due; none when it is not due.
    fn due_since(&self, _view: &View<'_>, _gang: &Gang) -> Option<Time> {
        None
    }
    /// Whether queues take turns by what they have of their share.
    fn by_share(&self) -> bool {
        false
    }
    /// How those behind a gang that must wait are treated.
    fn behind(&self) -> Behind {
        Behind::Backfill(1)
    }
    /// Its place among those that may go before a reservation; `None` for the queue's own order.
    fn backfill_rank(&self, _view: &View<'_>, _gang: &Gang) -> Option<f64> {
        None
    }
    /// Whose word is taken for how long a gang runs.
    fn belief(&self) -> Belief {
        Belief::Estimate
    }
}

impl QueueOrder {
    /// Every policy, by the name it is chosen with.
    pub const NAMES: [(&'static str, QueueOrder); 11] = [
        ("fifo", QueueOrder::Fifo),
        ("fifo-overtake", QueueOrder::FifoOvertake),
        ("easy", QueueOrder::Easy),
        ("easy-sjbf", QueueOrder::EasySjbf),
        ("easy-plus-plus", QueueOrder::EasyPlusPlus),
        ("conservative", QueueOrder::Conservative),
        ("sjf", QueueOrder::Sjf),
        ("wfp", QueueOrder::Wfp),
        ("edf", QueueOrder::Edf),
        ("fair", QueueOrder::Fair),
        ("muster", QueueOrder::Muster),
    ];

    /// The name it is chosen with.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, order)| *order == self).expect("every policy is named").0
    }
    /// Every name, as a person lists them.
    pub fn names() -> String {
        Self::NAMES.map(|(name, _)| name).join(", ")
    }
    /// Whether it compares with what plain EASY would have done; the World must keep that then.
    pub fn needs_baseline(self) -> bool {
        self == QueueOrder::Muster
    }
    /// Whether the start that the first in line is promised is never put off as long as what submitters say
    /// holds: age alone decides, so nobody who comes later is entitled to go before.
    pub fn starts_are_firm(self) -> bool {
        matches!(self, QueueOrder::Easy | QueueOrder::EasySjbf | QueueOrder::Conservative)
    }
    /// Whose word this policy takes for how long a gang runs.
    pub fn belief(self) -> Belief {
        self.discipline().belief()
    }
    pub(crate) fn discipline(self) -> &'static dyn Discipline {
        match self {
            QueueOrder::Fifo => &crate::policy::fifo::Fifo { overtake: false },
            QueueOrder::FifoOvertake => &crate::policy::fifo::Fifo { overtake: true },
            QueueOrder::Easy => &crate::policy::easy::Easy,
            QueueOrder::EasySjbf => &crate::policy::measured::easy_sjbf::EasySjbf,
            QueueOrder::EasyPlusPlus => &crate::policy::measured::easy_plus_plus::EasyPlusPlus,
            QueueOrder::Conservative => &crate::policy::conservative::Conservative,
            QueueOrder::Sjf => &crate::policy::measured::sjf::Sjf,
            QueueOrder::Wfp => &crate::policy::measured::wfp::Wfp,
            QueueOrder::Edf => &crate::policy::measured::edf::Edf,
            QueueOrder::Fair => &crate::policy::fair::Fair,
            QueueOrder::Muster => &crate::policy::muster::Muster,
        }
    }
}

impl std::str::FromStr for QueueOrder {
    type Err = String;

    /// The policy of that name, or a sentence that lists the names.
    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::NAMES.iter().find(|(known, _)| *known == name);
        found
            .map(|(_, order)| *order)
            .ok_or_else(|| format!("no such policy; there are {}", Self::names()))
    }
}

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
