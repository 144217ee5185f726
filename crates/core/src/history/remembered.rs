//! The learned state of a World, which cannot be observed from the cluster: usage of queues, run times of users,
//! demand for pools.
//!
//! A host that rebuilds its World from the cluster stores this now and then, and gives it to the next World. The rest
//! is deliberately not here: observable state is observed again, and decisions are stored where they are acted on.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::history::Run;
use crate::history::demand::Arrival;
use crate::units::time::Time;

/// The learned state.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Remembered {
    /// The instant at which the averages of the queues hold.
    pub at: Time,
    /// Average usage of queues, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub queues: BTreeMap<Arc<str>, PastUse>,
    /// Users' latest runs, the oldest first.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub users: BTreeMap<Arc<str>, Vec<Run>>,
    /// Demand for pools, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pools: BTreeMap<Arc<str>, PastDemand>,
}

/// The decayed average usage of a queue.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct PastUse {
    /// GPUs, in thousandths of a device.
    pub gpu_milli: u64,
    /// Other resources by name, in their base units.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub amounts: BTreeMap<Arc<str>, u64>,
}

/// The demand for a pool.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PastDemand {
    /// Since when every arrival is recorded.
    pub since: Time,
    /// Until when: gangs that were submitted later and are found are new arrivals.
    pub until: Time,
    /// Arrivals, the oldest first.
    pub arrivals: Vec<Arrival>,
}
