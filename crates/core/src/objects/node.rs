//! Nodes as a host reports them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::hardware::constraint::{Labels, Taint};
use crate::hardware::device::{GpuKind, WHOLE};
use crate::hardware::resource::NamedAmounts;
use crate::id::{ClaimId, ClassIdx, DomainIdx};
use crate::units::time::Time;

/// A node as a host sees it now. Reporting one again replaces what was known under that name.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NodeSpec {
    /// Its name, unique in the cluster.
    pub name: Arc<str>,
    /// Its labels, among them the ones the topology levels are read from.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    /// Its taints.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint>,
    /// What members may use, without GPUs.
    pub allocatable: NamedAmounts,
    /// What its GPUs are, when it has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<GpuKind>,
    /// GPUs that have appeared so far.
    #[serde(default)]
    pub gpus: u16,
    /// Whether the host reports it ready.
    pub ready: bool,
    /// The claim it fulfils, when Muster requested it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<ClaimId>,
    /// Whether a pod that the World does not know runs on it, other than those that run on every node (DaemonSets).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub others: bool,
}

/// What makes two nodes interchangeable while both are empty.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeShape {
    /// Labels, without those that only say where the node is or what its name is.
    pub labels: Labels,
    /// Taints, sorted.
    pub taints: Vec<Taint>,
    /// What an empty node offers, without GPUs.
    pub allocatable: crate::hardware::resource::Amounts,
    /// What its GPUs are.
    pub gpu: Option<GpuKind>,
    /// How many GPUs an empty node offers.
    pub gpus: u16,
}

impl NodeShape {
    /// GPUs of such a node, in thousandths of a device.
    pub fn gpu_milli(&self) -> u64 {
        u64::from(self.gpus) * u64::from(WHOLE)
    }
}

/// A node in the World.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its name.
    pub name: Arc<str>,
    /// Its class.
    pub class: ClassIdx,
    /// Where it is in the topology tree.
    pub leaf: DomainIdx,
    /// The claim it fulfils.
    pub claim: Option<ClaimId>,
    /// Whether members can run on it: the host reports it ready and everything its offering promises has appeared.
    pub usable: bool,
    /// Being released; nothing new is placed here.
    pub releasing: bool,
    /// When it will be gone, if that is known; nothing new is placed here.
    pub notice: Option<Time>,
    /// Until when it is quarantined: it failed too often under gangs.
    pub quarantined: Option<Time>,
    /// Seats taken, by running members and by reservations alike.
    pub seats: u32,
    /// Whether pods unknown to the World run on it.
    pub others: bool,
    /// Since when it is unused.
    pub idle_since: Time,
}

impl Node {
    /// Whether it is in use: by seats, or by pods unknown to the World.
    pub fn is_used(&self) -> bool {
        self.seats > 0 || self.others
    }
    /// Whether new members may be placed on it.
    pub fn takes_more(&self) -> bool {
        self.stays() && self.quarantined.is_none()
    }
    /// Whether it will take new members: now, or after its quarantine.
    pub fn stays(&self) -> bool {
        self.usable && !self.releasing && self.notice.is_none()
    }
}
