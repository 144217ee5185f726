//! Resources by name, in whole base units.
//!
//! CPU is counted in thousandths of a core, everything else in its own unit (bytes for memory). GPUs are not
//! here: they are individual devices, see [`crate::device`].

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::id::{Id, IndexVec, ResourceIdx};
use crate::units::quantity::Quantity;

/// The resource counted in thousandths.
pub const CPU: &str = "cpu";
/// Main memory, in bytes.
pub const MEMORY: &str = "memory";

/// Prefix of token names: resources that only encode which pods may share a node, and cost nothing.
pub const TOKEN: &str = "token.muster.sh/";

/// GPUs of a node that pods of other schedulers hold. The node shows as many as it was requested with, and members get
/// the rest.
pub const TAKEN_GPUS: &str = "token.muster.sh/gpus-of-others";

/// Prefix of tokens for amounts of a node's extended resource that pods of other schedulers hold.
const OF_OTHERS: &str = "of-others/";

/// The domain of resources that every node has by itself, or that some component counts on it from time to time.
const NATIVE: &str = "kubernetes.io/";

/// Resource amounts by name, in base units, as a spec carries them.
pub type NamedAmounts = BTreeMap<Arc<str>, u64>;

/// Whether a resource name stands for GPU devices, of any vendor.
pub fn is_gpu(name: &str) -> bool {
    name.ends_with("/gpu")
}

/// Whether a resource is an extended one, by the rule of Kubernetes: it has a domain, and that is not Kubernetes' own.
/// A device plugin shows it, some time after the node has joined. GPUs are handled apart and are not asked about here.
pub fn is_extended(name: &str) -> bool {
    name.contains('/') && !name.contains(NATIVE) && !name.starts_with(TOKEN)
}

/// The token for what pods of other schedulers hold of a node's extended resource: it is present, although members
/// cannot have it.
pub fn of_others(name: &str) -> Arc<str> {
    format!("{TOKEN}{OF_OTHERS}{name}").into()
}

/// A quantity in the resource's base unit, rounded up; `None` below zero or when it does not fit.
pub fn base_units(name: &str, quantity: Quantity) -> Option<u64> {
    if name == CPU { quantity.ceil_milli() } else { quantity.ceil_units() }
}

/// An amount in base units as Kubernetes prints it. Sums above what Kubernetes can represent are shown as its maximum.
pub fn display_amount(name: &str, amount: u64) -> Quantity {
    let whole = i64::try_from(amount).unwrap_or(i64::MAX);
    match name {
        CPU => Quantity::milli(amount),
        MEMORY => Quantity::bytes(whole),
        _ => Quantity::whole(whole),
    }
}

/// Names of resources and the small numbers that stand for them.
#[derive(Clone, Debug)]
pub struct ResourceNames {
    names: IndexVec<ResourceIdx, Arc<str>>,
    by_name: BTreeMap<Arc<str>, ResourceIdx>,
}

impl Default for ResourceNames {
    /// CPU and memory come first, so that nearly every vector is two long.
    fn default() -> Self {
        let mut names = Self { names: IndexVec::new(), by_name: BTreeMap::new() };
        names.intern(CPU);
        names.intern(MEMORY);
        names
    }
}

impl ResourceNames {
    /// The number for a name, assigned when the name is first seen.
    pub fn intern(&mut self, name: &str) -> ResourceIdx {
        if let Some(idx) = self.by_name.get(name) {
            return *idx;
        }
        let name: Arc<str> = name.into();
        let idx = self.names.push(name.clone());
        self.by_name.insert(name, idx);
        idx
    }
    /// How many names there are.
    pub fn len(&self) -> usize {
        self.names.len()
    }
    /// Whether there are none, which never happens: CPU and memory are always there.
    pub fn is_empty(&self) -> bool {
        self.names.len() == 0
    }
    /// The name behind a number.
    pub fn name(&self, idx: ResourceIdx) -> &str {
        &self.names[idx]
    }
    /// Named amounts as a vector.
    pub fn amounts(&mut self, named: &NamedAmounts) -> Amounts {
        let mut amounts = Amounts::default();
        for (name, amount) in named {
            amounts.set(self.intern(name), *amount);
        }
        amounts
    }
}

/// Amounts of all resources but GPUs; what lies beyond the end is zero.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Amounts(SmallVec<[u64; 4]>);

impl Amounts {
    /// The amount of one resource.
    #[inline]
    pub fn get(&self, idx: ResourceIdx) -> u64 {
        self.0.get(idx.index()).copied().unwrap_or(0)
    }
    /// Sets one amount. Trailing zeros are dropped so that equal amounts are equal vectors.
    pub fn set(&mut self, idx: ResourceIdx, amount: u64) {
        if self.0.len() <= idx.index() {
            self.0.resize(idx.index() + 1, 0);
        }
        self.0[idx.index()] = amount;
        self.trim();
    }
    /// One more than the highest number of a resource with an amount above zero.
    pub fn len(&self) -> usize {
        self.0.len()
    }
    /// Whether every amount is zero.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// Resources with an amount above zero.
    pub fn iter(&self) -> impl Iterator<Item = (ResourceIdx, u64)> + '_ {
        self.0
            .iter()
            .enumerate()
            .filter(|(_, amount)| **amount > 0)
            .map(|(i, amount)| (ResourceIdx::from_index(i), *amount))
    }
    /// How many times `demand` fits here; `u32::MAX` when it asks for nothing.
    pub fn times_fits(&self, demand: &Amounts) -> u32 {
        let mut times = u32::MAX;
        for (i, want) in demand.0.iter().enumerate() {
            if *want > 0 {
                let have = self.0.get(i).copied().unwrap_or(0);
                times = times.min(u32::try_from(have / want).unwrap_or(u32::MAX));
            }
        }
        times
    }
    /// Adds `count` times `other`, saturating: demands are what tenants declare.
    pub fn add(&mut self, other: &Amounts, count: u32) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (have, more) in self.0.iter_mut().zip(&other.0) {
            *have = have.saturating_add(more.saturating_mul(u64::from(count)));
        }
    }
    /// Takes `count` times `other` away.
    ///
    /// # Panics
    /// When there is less than that: callers have checked with [`Amounts::times_fits`].
    pub fn take(&mut self, other: &Amounts, count: u32) {
        for (i, less) in other.0.iter().enumerate().filter(|(_, less)| **less > 0) {
            let have = self.0.get_mut(i).expect("taking a resource that is not there");
            *have = have
                .checked_sub(less.saturating_mul(u64::from(count)))
                .expect("taking more than is there");
        }
        self.trim();
    }

    /// What is in both, resource by resource.
    pub fn common(&self, other: &Amounts) -> Amounts {
        let mut common = Self(self.0.iter().zip(&other.0).map(|(a, b)| *a.min(b)).collect());
        common.trim();
        common
    }

    fn trim(&mut self) {
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_how_often_a_demand_fits() {
        let mut names = ResourceNames::default();
        let node = names.amounts(&BTreeMap::from([(CPU.into(), 190_000), (MEMORY.into(), 100)]));
        let demand = names.amounts(&BTreeMap::from([(CPU.into(), 60_000), (MEMORY.into(), 40)]));
        assert_eq!(node.times_fits(&demand), 2);
        assert_eq!(node.times_fits(&Amounts::default()), u32::MAX);
        let absent = names.amounts(&BTreeMap::from([("rdma/hca".into(), 1)]));
        assert_eq!(node.times_fits(&absent), 0);
    }

    #[test]
    fn extended_resources_have_a_domain_of_their_own() {
        for name in ["vpc.amazonaws.com/efa", "rdma/hca", "nvidia.com/mig-1g.10gb"] {
            assert!(is_extended(name), "{name}");
        }
        let taken = of_others("rdma/hca");
        for name in ["cpu", "pods", "hugepages-2Mi", "kubernetes.io/batch-cpu", TAKEN_GPUS, &taken]
        {
            assert!(!is_extended(name), "{name}");
        }
    }

    #[test]
    fn equal_amounts_are_equal_vectors_after_any_history() {
        let mut names = ResourceNames::default();
        let all = names.amounts(&BTreeMap::from([(CPU.into(), 10), ("x".into(), 3)]));
        let mut left = all.clone();
        left.take(&all, 1);
        assert_eq!(left, Amounts::default());
        left.add(&all, 1);
        assert_eq!(left, all);
    }
}
