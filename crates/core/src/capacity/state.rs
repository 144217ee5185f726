//! Node states: a class together with what is free. Nodes in the same state are interchangeable.
//!
//! A cluster of ten thousand nodes has a handful of states, so "how many members fit here" is answered once per state
//! and never once per node.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::capacity::signature::Signature;
use crate::hardware::device::{DeviceSet, Devices};
use crate::hardware::resource::Amounts;
use crate::id::{ClassIdx, IndexVec, StateIdx};
use crate::objects::gang::Seat;

/// What is free on a node of some class.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeState {
    /// The class.
    pub class: ClassIdx,
    /// Free devices, device by device.
    pub devices: Devices,
    /// Everything else that is free.
    pub free: Amounts,
}

impl NodeState {
    /// Allocates a seat.
    ///
    /// # Panics
    ///
    /// When the seat is not free: callers have asked [`NodeState::has_free`].
    pub fn sit(&mut self, signature: &Signature, seat: &Seat) {
        self.free.take(&signature.key.amounts, u32::from(seat.members));
        let taken = self.devices.take_exactly(seat.devices, signature.gpu().1);
        assert!(taken, "a seat on devices that are taken");
    }
    /// Allocates a seat that victims have not left yet: the part of it that they do not hold. Never allocates too
    /// little.
    pub fn sit_over(&mut self, signature: &Signature, seat: &Seat) {
        let members = u32::from(seat.members);
        if self.free.times_fits(&signature.key.amounts) >= members {
            self.free.take(&signature.key.amounts, members);
        } else {
            self.free = Amounts::default();
        }
        self.devices.take_available(seat.devices, signature.gpu().1);
    }
    /// Allocates `count` members and returns the devices of each; empty when they get none.
    ///
    /// # Panics
    ///
    /// When that many do not fit.
    pub fn fill(&mut self, signature: &Signature, count: u32) -> SmallVec<[DeviceSet; 8]> {
        let (gpus, share) = signature.gpu();
        self.free.take(&signature.key.amounts, count);
        let takers = if gpus == 0 { 0 } else { count };
        (0..takers)
            .map(|_| self.devices.take(gpus, share).expect("counted before it is taken"))
            .collect()
    }
    /// Frees what [`NodeState::sit`] allocated.
    pub fn rise(&mut self, signature: &Signature, seat: &Seat) {
        self.free.add(&signature.key.amounts, u32::from(seat.members));
        self.devices.give_back(seat.devices, signature.gpu().1);
    }
    /// Whether [`NodeState::sit`] would find the seat free.
    pub fn has_free(&self, signature: &Signature, seat: &Seat) -> bool {
        let (gpus, share) = signature.gpu();
        seat.is_sound()
            && seat.devices.len() == u32::from(gpus)
            && self.free.times_fits(&signature.key.amounts) >= u32::from(seat.members)
            && self.devices.clone().take_exactly(seat.devices, share)
    }
    /// Whether all of these seats are free together, of members with these signatures.
    pub fn has_free_all<'s>(&self, seats: &[Seat], sig: impl Fn(&Seat) -> &'s Signature) -> bool {
        let mut left = self.clone();
        seats.iter().all(|seat| {
            let free = left.has_free(sig(seat), seat);
            if free {
                left.sit(sig(seat), seat);
            }
            free
        })
    }
    /// What is free in both: resource by resource, device by device.
    pub fn common(&self, other: &NodeState) -> NodeState {
        debug_assert_eq!(self.class, other.class, "one node, at two times");
        NodeState {
            class: self.class,
            devices: self.devices.common(&other.devices),
            free: self.free.common(&other.free),
        }
    }
}

/// States in use, each stored once however many nodes are in it.
#[derive(Clone, Debug, Default)]
pub struct StateTable {
    rows: IndexVec<StateIdx, (NodeState, u32)>,
    by_content: FxHashMap<NodeState, StateIdx>,
    vacant: Vec<StateIdx>,
}

impl StateTable {
    /// One state.
    #[inline]
    pub fn get(&self, idx: StateIdx) -> &NodeState {
        &self.rows[idx].0
    }
    /// The number of a state that is in use.
    pub fn find(&self, state: &NodeState) -> Option<StateIdx> {
        self.by_content.get(state).copied()
    }
    /// Upper bound of state numbers.
    pub fn len(&self) -> usize {
        self.rows.len()
    }
    /// Whether no state was ever used.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
    /// States with at least one node.
    pub fn in_use(&self) -> usize {
        self.by_content.len()
    }
    /// Counts one more node in this state.
    pub(crate) fn enter(&mut self, state: NodeState) -> StateIdx {
        if let Some(idx) = self.by_content.get(&state) {
            self.rows[*idx].1 += 1;
            return *idx;
        }
        let idx = match self.vacant.pop() {
            Some(idx) => {
                self.rows[idx] = (state.clone(), 1);
                idx
            }
            None => self.rows.push((state.clone(), 1)),
        };
        self.by_content.insert(state, idx);
        idx
    }
    /// Counts one node less; a state without nodes is dropped and its number reused.
    pub(crate) fn leave(&mut self, idx: StateIdx) {
        let (state, nodes) = &mut self.rows[idx];
        *nodes -= 1;
        if *nodes == 0 {
            self.by_content.remove(state);
            self.vacant.push(idx);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::capacity::signature::SignatureKey;
    use crate::hardware::constraint::Constraints;
    use crate::hardware::device::GpuRequest;
    use crate::hardware::topology::{Levels, Topology};
    use crate::id::ResourceIdx;

    fn signature(count: u16, share: u16, cpu: u64) -> Signature {
        let mut amounts = Amounts::default();
        amounts.set(ResourceIdx(0), cpu);
        let gpu = (count > 0).then(|| GpuRequest { resource: "gpu".into(), count, share });
        let key = SignatureKey { amounts, gpu, constraints: Constraints::default() };
        Signature::new(key, &Topology::new(Levels::default()))
    }

    proptest! {
        #[test]
        fn fill_allocates_as_many_as_times_fits_counts(
            before in prop::collection::vec((0u16..=2, 50u16..=1000, 0u64..20), 0..6),
            count in 0u16..=3,
            share in prop::sample::select(vec![190u16, 250, 470, 500, 810, 1000]),
            cpu in 0u64..30,
        ) {
            let mut free = Amounts::default();
            free.set(ResourceIdx(0), 96);
            let mut node = NodeState { class: ClassIdx(0), devices: Devices::free(8), free };
            for (count, share, cpu) in before {
                let member = signature(count, share, cpu);
                if member.times_fits(&node) > 0 {
                    node.fill(&member, 1);
                }
            }
            let member = signature(count, share, cpu);
            let counted = member.times_fits(&node).min(1_000);
            let mut after = node.clone();
            let devices = after.fill(&member, counted);
            prop_assert_eq!(devices.len(), if count == 0 { 0 } else { counted as usize });
            if counted < 1_000 {
                prop_assert_eq!(member.times_fits(&after), 0);
            }
        }
    }
}
