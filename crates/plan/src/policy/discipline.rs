//! The queue order: which discipline serves the gangs that wait, chosen by name.

use muster_core::gang::Gang;
use muster_core::time::Time;
use serde::{Deserialize, Serialize};

use super::measured::{easy_plus_plus, easy_sjbf, edf, sjf, wfp};
use super::{conservative, easy, fair, fifo, muster};
use crate::order::View;
use crate::predict::Belief;

/// The order in which gangs are served.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueueOrder {
    /// By priority, then by age. A gang that must wait keeps those behind it off the nodes it waits for.
    Fifo,
    /// By priority, then by age, but any gang that fits may overtake. Large gangs can starve.
    FifoOvertake,
    /// By age; the first that must wait gets a start time, and gangs that do not delay it may go before.
    Easy,
    /// The same, with backfill of the shortest first.
    EasySjbf,
    /// The same, predicting by the user's last runs instead of the estimate.
    EasyPlusPlus,
    /// By age; the first hundred that must wait get start times, and gangs that delay none of them may go before.
    Conservative,
    /// Shortest first; the first that must wait gets a start time.
    Sjf,
    /// By wait relative to length, larger gangs sooner; the first that must wait gets a start time.
    Wfp,
    /// By deadline; the first that must wait gets a start time.
    Edf,
    /// The queue with the least of its share first, then by age; the first that must wait gets a start time.
    Fair,
    /// Queues by share, gangs by how much they are slowed down; gangs that are due get a start time.
    #[default]
    Muster,
}

/// Whether gangs behind one that must wait may overtake it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Overtaking {
    /// They stay off the nodes and pools it waits for.
    Barred,
    /// They may take anything.
    Free,
    /// So many gangs get a start time, in order; others may take what delays none of them.
    Backfill(usize),
    /// The same, but only for gangs that are due, and where queues compete for the first that must wait.
    BackfillDue(usize),
}

/// A queueing discipline.
pub(crate) trait Discipline {
    /// A gang's rank in the queue, lowest first, after priority and before age; none when age decides.
    fn rank(&self, _view: &View<'_>, _gang: &Gang) -> Option<f64> {
        None
    }
    /// Since when a gang goes before all of its priority and queue that are not due; none when it is not due.
    fn due_since(&self, _view: &View<'_>, _gang: &Gang) -> Option<Time> {
        None
    }
    /// Whether queues take turns by fair share.
    fn by_share(&self) -> bool {
        false
    }
    /// Whether gangs behind one that must wait may overtake it.
    fn overtaking(&self) -> Overtaking {
        Overtaking::Backfill(1)
    }
    /// A gang's rank among those that may go before a reservation; `None` for the queue's own order.
    fn backfill_rank(&self, _view: &View<'_>, _gang: &Gang) -> Option<f64> {
        None
    }
    /// Which prediction of durations is used.
    fn belief(&self) -> Belief {
        Belief::Estimate
    }
}

impl QueueOrder {
    /// Every order, by the name it is chosen with.
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
    /// The name of this order.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, order)| *order == self).expect("every policy is named").0
    }
    /// Every name, separated by commas.
    pub fn names() -> String {
        Self::NAMES.map(|(name, _)| name).join(", ")
    }
    /// Whether it compares with what plain EASY would have done; the World must keep that then.
    pub fn needs_baseline(self) -> bool {
        self == QueueOrder::Muster
    }
    /// Whether the start that is promised to the first gang is never put off as long as estimates hold: age alone
    /// decides, so no gang that comes later is entitled to go before.
    pub fn starts_are_firm(self) -> bool {
        matches!(self, QueueOrder::Easy | QueueOrder::EasySjbf | QueueOrder::Conservative)
    }
    /// Which prediction of durations this order uses.
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

    /// The order of that name, or a sentence that lists the names.
    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::NAMES.iter().find(|(known, _)| *known == name);
        found
            .map(|(_, order)| *order)
            .ok_or_else(|| format!("no such policy; there are {}", Self::names()))
    }
}
