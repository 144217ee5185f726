//! GPUs as individual devices, each with a share in thousandths.
//!
//! A request for eight whole GPUs is eight devices at 1000; a request for half a GPU is one device at 500.
//! Which devices a member gets is decided here, so that two members never share a device by accident.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

/// All of one device, in thousandths.
pub const WHOLE: u16 = 1_000;
/// Devices one node can have: a set of them is one machine word.
pub const MAX_DEVICES: usize = 64;

/// What one member requests of GPUs.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct GpuRequest {
    /// The vendor's resource name, such as `nvidia.com/gpu`.
    pub resource: Arc<str>,
    /// How many devices.
    pub count: u16,
    /// How much of each, in thousandths; [`WHOLE`] for all of it.
    pub share: u16,
}

/// The devices of one kind of node.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct GpuKind {
    /// The vendor's resource name, such as `nvidia.com/gpu`.
    pub resource: Arc<str>,
    /// The model, such as `H100`; empty when unknown.
    pub model: Arc<str>,
    /// Memory of each device in bytes; 0 when unknown.
    pub memory: u64,
}

/// A set of a node's devices, one bit each.
#[derive(
    Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct DeviceSet(pub u64);

impl DeviceSet {
    /// Device numbers, ascending.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        (0..MAX_DEVICES).filter(move |i| self.0 >> i & 1 == 1)
    }
    /// How many devices.
    pub fn len(self) -> u32 {
        self.0.count_ones()
    }
    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// What is free of each device of a node, in thousandths.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Devices(SmallVec<[u16; 8]>);

impl Devices {
    /// `count` devices, all of them free.
    ///
    /// # Panics
    /// Beyond [`MAX_DEVICES`]: specs are checked for that before they get here.
    pub fn free(count: u16) -> Self {
        assert!(usize::from(count) <= MAX_DEVICES, "a node has at most {MAX_DEVICES} devices");
        Self(SmallVec::from_elem(WHOLE, usize::from(count)))
    }
    /// How many devices there are, free or not.
    pub fn len(&self) -> usize {
        self.0.len()
    }
    /// Whether there are no devices.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// Devices that are entirely free.
    #[inline]
    pub fn whole_free(&self) -> u32 {
        self.0.iter().map(|free| u32::from(*free == WHOLE)).sum()
    }
    /// All that is free, in thousandths of a device.
    pub fn free_milli(&self) -> u64 {
        self.0.iter().map(|free| u64::from(*free)).sum()
    }
    /// Devices of which at least `share` is free, and what is free of them together.
    #[inline]
    pub fn with_room(&self, share: u16) -> (u32, u64) {
        let roomy = self.0.iter().filter(|free| **free >= share);
        roomy.fold((0, 0), |(count, milli), free| (count + 1, milli + u64::from(*free)))
    }
    /// How many requests of `count` devices at `share` fit one after the other.
    pub fn times_fits(&self, count: u16, share: u16) -> u32 {
        if count == 0 || share == 0 {
            return u32::MAX;
        }
        if share == WHOLE {
            return self.whole_free() / u32::from(count);
        }
        if count == 1 {
            return self.0.iter().map(|free| u32::from(free / share)).sum();
        }
        // Several shared devices for one member must be different devices: the most members is found by
        // asking whether t fit, and a device serves at most min(t, free/share) of them.
        let serves = |t: u32| -> bool {
            let seats: u64 =
                self.0.iter().map(|free| u64::from(t.min(u32::from(free / share)))).sum();
            seats >= u64::from(t) * u64::from(count)
        };
        let most =
            self.0.iter().map(|free| u32::from(free / share)).sum::<u32>() / u32::from(count);
        (0..=most).rev().find(|t| serves(*t)).unwrap_or(0)
    }
    /// Takes `count` devices at `share` for one member and says which.
    ///
    /// Shares go to the fullest device that still has room, so that whole devices stay whole; within a
    /// member's several shares the roomiest devices are taken, so that the next member still finds room.
    /// `None`, and nothing taken, when it does not fit.
    pub fn take(&mut self, count: u16, share: u16) -> Option<DeviceSet> {
        let mut candidates: SmallVec<[(u16, usize); 8]> = self
            .0
            .iter()
            .enumerate()
            .filter(|(_, free)| **free >= share)
            .map(|(i, free)| (*free, i))
            .collect();
        if candidates.len() < usize::from(count) {
            return None;
        }
        if count == 1 {
            candidates.sort_unstable();
        } else {
            candidates.sort_unstable_by_key(|(free, i)| (std::cmp::Reverse(*free), *i));
        }
        let mut set = DeviceSet::default();
        for (_, i) in &candidates[..usize::from(count)] {
            self.0[*i] -= share;
            set.0 |= 1 << i;
        }
        Some(set)
    }
    /// Gives back what [`Devices::take`] took.
    ///
    /// # Panics
    /// When a device would become more than whole.
    pub fn give_back(&mut self, set: DeviceSet, share: u16) {
        for i in set.iter() {
            self.0[i] += share;
            assert!(self.0[i] <= WHOLE, "device {i} given back twice");
        }
    }
    /// What is free in both, device by device.
    pub fn common(&self, other: &Devices) -> Devices {
        Self(self.0.iter().zip(&other.0).map(|(a, b)| *a.min(b)).collect())
    }
    /// Takes as much of these devices as is free, for members of a node that shrank; whether it was all.
    pub fn take_available(&mut self, set: DeviceSet, share: u16) -> bool {
        let mut all = true;
        for i in set.iter() {
            let free = self.0.get(i).copied().unwrap_or(0);
            all &= free >= share;
            if free > 0 {
                self.0[i] = free.saturating_sub(share);
            }
        }
        all
    }
    /// Takes exactly these devices at `share`; `false`, and nothing taken, when one has too little left.
    #[must_use]
    pub fn take_exactly(&mut self, set: DeviceSet, share: u16) -> bool {
        if set.iter().any(|i| self.0.get(i).is_none_or(|free| *free < share)) {
            return false;
        }
        for i in set.iter() {
            self.0[i] -= share;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn shared_requests_fill_a_partly_used_device_first() {
        let mut devices = Devices::free(2);
        assert_eq!(devices.take(1, 500), Some(DeviceSet(0b01)));
        assert_eq!(devices.take(1, 500), Some(DeviceSet(0b01)));
        assert_eq!(devices.whole_free(), 1);
        assert_eq!(devices.take(1, 300), Some(DeviceSet(0b10)));
        assert_eq!(devices.take(1, WHOLE), None);
        devices.give_back(DeviceSet(0b10), 300);
        assert_eq!(devices.take(1, WHOLE), Some(DeviceSet(0b10)));
    }

    proptest! {
        #[test]
        fn times_fits_equals_the_number_of_successful_takes(
            taken in prop::collection::vec((1u16..=1, 100u16..=1000), 0..8),
            count in 1u16..=4,
            share in prop::sample::select(vec![250u16, 300, 500, 1000]),
        ) {
            let mut devices = Devices::free(8);
            for (n, s) in taken {
                let _ = devices.take(n, s);
            }
            let promised = devices.times_fits(count, share);
            let mut got = 0;
            while devices.take(count, share).is_some() {
                got += 1;
            }
            prop_assert_eq!(promised, got);
        }
    }
}
