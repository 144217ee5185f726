//! What members were like that were asked for lately: the mix that placement keeps room for.
//!
//! Only members with GPUs count, because what is kept whole are GPUs. Reading the mix costs nothing: it is worked
//! out anew only when it has grown by a quarter, and between two such moments it stays as it is.

use crate::id::{Id, IndexVec, SigIdx};

/// Kinds of members the mix names; the rest is rare. So many are one machine word as a set, and on published lists of
/// up to 500 kinds the GPUs allocated were the same with all of them within 0.1 points of a hundred.
pub const KINDS_MAX: usize = 64;
/// Members after which old ones begin to count less: the mix of last month is not that of today.
const REMEMBERED: u64 = 16_384;

/// One kind of member in the mix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Kind {
    /// What it is like.
    pub sig: SigIdx,
    /// How many were asked for.
    pub members: u32,
}

/// How many members of each kind were asked for.
#[derive(Clone, Debug, Default)]
pub struct Shapes {
    asked: IndexVec<SigIdx, u32>,
    total: u64,
    /// The total at which the mix is worked out anew.
    due: u64,
    kinds: Vec<Kind>,
}

impl Shapes {
    /// The kinds most asked for, most of them first.
    pub fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    /// Notes members that are asked for.
    pub(crate) fn note(&mut self, sig: SigIdx, members: u32) {
        // One enormous gang is not the mix: it counts as much as everything that is remembered, and no more.
        let members = members.min(REMEMBERED as u32);
        self.asked.grow(sig.index() + 1, 0);
        self.asked[sig] += members;
        self.total += u64::from(members);
        if self.total > REMEMBERED {
            self.age();
        }
        if self.total >= self.due {
            self.due = self.total + self.total / 4 + 1;
            self.rank();
        }
    }

    /// Everything counts half as much from here on.
    fn age(&mut self) {
        self.total = 0;
        for sig in (0..self.asked.len()).map(SigIdx::from_index) {
            self.asked[sig] /= 2;
            self.total += u64::from(self.asked[sig]);
        }
        self.due = self.total;
    }

    fn rank(&mut self) {
        let asked = self.asked.iter().filter(|(_, members)| **members > 0);
        self.kinds = asked.map(|(sig, members)| Kind { sig, members: *members }).collect();
        self.kinds.sort_unstable_by_key(|kind| (std::cmp::Reverse(kind.members), kind.sig));
        self.kinds.truncate(KINDS_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mix(asked: impl IntoIterator<Item = (u32, u32)>) -> Vec<(u32, u32)> {
        let mut shapes = Shapes::default();
        for (sig, members) in asked {
            shapes.note(SigIdx(sig), members);
        }
        shapes.kinds().iter().map(|kind| (kind.sig.0, kind.members)).collect()
    }

    #[test]
    fn the_first_member_is_the_whole_mix() {
        assert_eq!(mix([(3, 1)]), [(3, 1)]);
    }

    #[test]
    fn what_is_asked_for_most_comes_first() {
        assert_eq!(mix([(0, 1), (1, 4), (2, 100)]), [(2, 100), (1, 4), (0, 1)]);
    }

    #[test]
    fn a_few_more_members_change_nothing_yet() {
        assert_eq!(mix([(0, 100), (1, 10)]), [(0, 100)]);
        assert_eq!(mix([(0, 100), (1, 10), (1, 20)]), [(0, 100), (1, 30)]);
    }

    #[test]
    fn rare_kinds_are_left_out() {
        let asked = (0..100).map(|sig| (sig, 100 - sig)).chain([(0, 2_000)]);
        let mix = mix(asked);
        assert_eq!(mix.len(), KINDS_MAX);
        assert!(mix.iter().all(|(sig, _)| *sig < KINDS_MAX as u32), "{mix:?}");
    }

    #[test]
    fn what_nobody_asks_for_any_more_is_forgotten() {
        let old = std::iter::once((0, 1_000));
        let mix = mix(old.chain((0..400).map(|_| (1, 1_000))));
        assert_eq!(mix.iter().map(|(sig, _)| *sig).collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn a_gang_of_any_size_is_counted_without_overflow() {
        let asked = (0..64).map(|_| (0, u32::MAX));
        assert_eq!(mix(asked).len(), 1);
    }
}
