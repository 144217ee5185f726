//! The queue order: which discipline serves the gangs that wait, chosen by name.

use muster_core::gang::Gang;
use muster_core::time::Time;
use serde::{Deserialize, Serialize};

use super::measured::{easy_plus_plus, easy_sjbf, edf, sjf, wfp};
use super::{conservative, easy, fair, fifo, muster};
use crate::order::View;
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
pub(crate) enum Overtaking {
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
    fn overtaking(&self) -> Overtaking {
        Overtaking::Backfill(1)
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

    /// The orders that the product offers, as its help lists them. The others are for measurements.
    pub const PRODUCT_NAMES: [&'static str; 5] = ["muster", "fair", "fifo", "easy", "conservative"];

    /// The names that the product offers, as its help lists them.
    pub fn product_names() -> String {
        Self::PRODUCT_NAMES.join(", ")
    }
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
            QueueOrder::Fifo => &fifo::Fifo { overtake: false },
            QueueOrder::FifoOvertake => &fifo::Fifo { overtake: true },
            QueueOrder::Easy => &easy::Easy,
            QueueOrder::EasySjbf => &easy_sjbf::EasySjbf,
            QueueOrder::EasyPlusPlus => &easy_plus_plus::EasyPlusPlus,
            QueueOrder::Conservative => &conservative::Conservative,
            QueueOrder::Sjf => &sjf::Sjf,
            QueueOrder::Wfp => &wfp::Wfp,
            QueueOrder::Edf => &edf::Edf,
            QueueOrder::Fair => &fair::Fair,
            QueueOrder::Muster => &muster::Muster,
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
