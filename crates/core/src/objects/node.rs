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
    /// Whether the host says it can run members.
    pub ready: bool,
    /// The claim it answers, when Muster asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<ClaimId>,
    /// Whether somebody is on it whom the World knows nothing of, and who is not there only because the node is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub others: bool,
}

/// What makes two nodes interchangeable while both are empty.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeShape {
    /// Labels, without those that only say where the node stands or what it is called.
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
    /// Where it stands in the topology tree.
    pub leaf: DomainIdx,
    /// The claim it answers.
    pub claim: Option<ClaimId>,
    /// Whether members can run on it: the host calls it ready and all that was promised has appeared.
    pub usable: bool,
    /// Being given back; nothing new is placed here.
    pub releasing: bool,
    /// When it will be gone, if that is known; nothing new is placed here.
    pub notice: Option<Time>,
    /// Until when it is not trusted: it failed too often under those who used it.
    pub quarantined: Option<Time>,
    /// Seats taken, by running members and by reservations alike.
    pub seats: u32,
    /// Whether others are on it, of whom nothing else is known.
    pub others: bool,
    /// Since when nobody has used it.
    pub idle_since: Time,
}

impl Node {
    /// Whether anybody would miss it: those who have seats there, or others.
    pub fn is_used(&self) -> bool {
        self.seats > 0 || self.others
    }
    /// Whether somebody new may be placed on it.
    pub fn takes_more(&self) -> bool {
        self.stays() && self.quarantined.is_none()
    }
    /// Whether it will take somebody: at once, or when it is trusted again.
    pub fn stays(&self) -> bool {
        self.usable && !self.releasing && self.notice.is_none()
    }
}
