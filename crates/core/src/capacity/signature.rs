//! Signatures: roles with the same request under the same constraints are one signature.
//!
//! Whether a signature can use a class of nodes is computed once, when the first of the two appears.

use std::sync::Arc;

use crate::capacity::named_nodes::{Checks, NameClass, Seen};
use crate::capacity::state::NodeState;
use crate::hardware::constraint::{Constraints, Requirement};
use crate::hardware::device::{GpuRequest, WHOLE};
use crate::hardware::resource::Amounts;
use crate::hardware::topology::{HOSTNAME, Levels, Topology};
use crate::id::DomainIdx;
use crate::objects::node::NodeShape;

/// Penalty for a node whose GPUs would be blocked by a member without GPUs: more than all preferences together, so
/// that such a node is only used when no other will do.
const GPUS_LEFT_UNUSED: i32 = 100_000;

/// What a signature's constraints depend on, from cheap to expensive.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Reach {
    /// Only on the node's class; every node of a class is alike.
    Class,
    /// Also on where the node is; every node of a class in one leaf is alike.
    Place,
    /// Also on the node's name.
    Name,
}

/// One kind of member.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SignatureKey {
    /// What it takes, without GPUs.
    pub amounts: Amounts,
    /// The GPUs it takes.
    pub gpu: Option<GpuRequest>,
    /// Where it may run.
    pub constraints: Constraints,
}

/// One kind of member, and what its constraints depend on.
#[derive(Clone, Debug)]
pub struct Signature {
    /// The key that tells it from others.
    pub key: SignatureKey,
    /// What its constraints depend on, preferences included.
    pub reach: Reach,
    /// What its required constraints depend on.
    pub must: Reach,
    /// What its constraints depend on besides names.
    pub but_for_names: Reach,
    checks: Checks,
}

impl Signature {
    /// A signature under a tree of these levels.
    pub fn new(key: SignatureKey, topology: &Topology) -> Self {
        let looks_at = |requirement: &Requirement| match &*requirement.key {
            HOSTNAME => Reach::Name,
            key if topology.levels().is_place(key) => Reach::Place,
            _ => Reach::Class,
        };
        let furthest = |reach: Option<Reach>| reach.unwrap_or(Reach::Class);
        let reach = furthest(key.constraints.requirements().map(looks_at).max());
        let must = furthest(key.constraints.required().map(looks_at).max());
        let others = key.constraints.requirements().map(looks_at);
        let but_for_names = furthest(others.filter(|reach| *reach != Reach::Name).max());
        let checks = Checks::of(&key.constraints);
        Self { key, reach, must, but_for_names, checks }
    }
    /// Devices per member and the share of each.
    pub fn gpu(&self) -> (u16, u16) {
        self.key.gpu.as_ref().map_or((0, WHOLE), |gpu| (gpu.count, gpu.share))
    }
    /// GPUs one member takes, in thousandths of a device.
    pub fn gpu_milli(&self) -> u64 {
        let (count, share) = self.gpu();
        u64::from(count) * u64::from(share)
    }
    /// How many members fit on a node in this state, wherever it is.
    pub fn times_fits(&self, state: &NodeState) -> u32 {
        let (count, share) = self.gpu();
        let devices = state.devices.times_fits(count, share);
        devices.min(state.free.times_fits(&self.key.amounts))
    }
    /// How well a node suits the signature, by its class, its place and its name.
    ///
    /// `None` when a required constraint fails. `name` may be left out for signatures that do not depend on it.
    pub fn score(
        &self,
        shape: &NodeShape,
        topology: &Topology,
        leaf: DomainIdx,
        name: Option<&Arc<str>>,
    ) -> Option<i32> {
        self.score_of(shape, topology, leaf, self.checks.mention(name), name)
    }

    /// The same for all nodes of one name class; see [`Signature::mentioned`].
    pub fn score_mentioned(
        &self,
        shape: &NodeShape,
        topology: &Topology,
        leaf: DomainIdx,
        mention: NameClass,
    ) -> Option<i32> {
        self.score_of(shape, topology, leaf, mention, None)
    }

    /// Nodes that its constraints name, sorted by name; all others are alike. None when every name is a case of its
    /// own.
    pub fn mentioned(&self) -> Option<&[(Arc<str>, NameClass)]> {
        self.checks.mentioned()
    }

    fn score_of(
        &self,
        shape: &NodeShape,
        topology: &Topology,
        leaf: DomainIdx,
        mention: NameClass,
        name: Option<&Arc<str>>,
    ) -> Option<i32> {
        let constraints = &self.key.constraints;
        if !self.gpu_suits(shape) || !constraints.tolerates(&shape.taints) {
            return None;
        }
        let value_of = |key: &str| -> Option<Arc<str>> {
            if key == HOSTNAME {
                return name.cloned();
            }
            topology.label_at(leaf, key).or_else(|| shape.labels.get(key).cloned())
        };
        let seen = Seen { mention, value_of: &value_of };
        if !self.checks.hold(&seen) {
            return None;
        }
        let soft_taints =
            i32::try_from(constraints.untolerated_soft_taints(&shape.taints)).unwrap_or(i32::MAX);
        let wasted = if self.key.gpu.is_none() && shape.gpus > 0 { GPUS_LEFT_UNUSED } else { 0 };
        Some(self.checks.weight(&seen) - soft_taints - wasted)
    }

    /// Whether such a node would do in some place, under some name: labels of its place are not checked.
    pub fn suits(&self, shape: &NodeShape, levels: &Levels) -> bool {
        let constraints = &self.key.constraints;
        let holds = |term: &[Requirement]| {
            term.iter().all(|requirement| {
                let value = shape.labels.get(&requirement.key);
                levels.is_place(&requirement.key) || requirement.holds(value.map(|value| &**value))
            })
        };
        self.gpu_suits(shape)
            && constraints.tolerates(&shape.taints)
            && holds(&constraints.all)
            && (constraints.any.is_empty() || constraints.any.iter().any(|term| holds(term)))
    }

    fn gpu_suits(&self, shape: &NodeShape) -> bool {
        let Some(want) = &self.key.gpu else { return true };
        let Some(have) = &shape.gpu else { return false };
        let constraints = &self.key.constraints;
        want.resource == have.resource
            && (constraints.gpu_models.is_empty() || constraints.gpu_models.contains(&have.model))
            && have.memory >= constraints.gpu_memory
    }
}
