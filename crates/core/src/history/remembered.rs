//! What a World knows that nobody could see by looking: how much queues have used, how long users' gangs really ran, what
//! was asked of pools.
//!
//! A host whose World is made anew of what it sees writes this down now and then, and tells the next World. The rest is
//! deliberately not here: what can be seen is looked at, and what was decided is written down where it is acted on.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::history::Run;
use crate::history::demand::Arrival;
use crate::units::time::Time;

/// What a World remembers.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Remembered {
    /// As of when queues have used so much.
    pub at: Time,
    /// What they have used, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub queues: BTreeMap<Arc<str>, PastUse>,
    /// Users' latest runs, the oldest first.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub users: BTreeMap<Arc<str>, Vec<Run>>,
    /// What was asked of pools, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pools: BTreeMap<Arc<str>, PastDemand>,
}

/// What a queue has used, averaged over time, the newer the more it counts.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct PastUse {
    /// GPUs, in thousandths of a device.
    pub gpu_milli: u64,
    /// Other resources by name, in their base units.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub amounts: BTreeMap<Arc<str>, u64>,
}

/// What was asked of a pool.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PastDemand {
    /// Since when every gang was noted.
    pub since: Time,
    /// And until when: those that came later and are found all the same are news.
    pub until: Time,
    /// Gangs that came, the oldest first.
    pub arrivals: Vec<Arrival>,
}
