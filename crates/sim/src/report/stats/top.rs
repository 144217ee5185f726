//! Many queues or users: the largest by name, the others together.

use std::sync::Arc;

/// The largest of many by name, and the others as one.
#[derive(Clone, PartialEq, Debug)]
pub struct Top {
    /// Those with a place of their own, the largest first.
    pub named: Vec<Arc<str>>,
    /// How many share the place after those.
    pub others: usize,
    place: Vec<usize>,
}

impl Top {
    /// The `most` largest of those that have any jobs.
    pub(crate) fn new(names: &[Arc<str>], loads: &[Load], most: usize) -> Self {
        let mut ranked: Vec<usize> = (0..names.len()).filter(|i| loads[*i].jobs > 0).collect();
        ranked.sort_by_key(|i| std::cmp::Reverse(loads[*i].work));
        let mut place = vec![most; names.len()];
        for (rank, i) in ranked.iter().enumerate() {
            place[*i] = rank.min(most);
        }
        let named = ranked.iter().take(most).map(|i| names[*i].clone()).collect();
        Self { named, others: ranked.len().saturating_sub(most), place }
    }

    /// How many places there are.
    pub fn places(&self) -> usize {
        self.named.len() + usize::from(self.others > 0)
    }

    /// How many there are in all.
    pub fn among(&self) -> usize {
        self.named.len() + self.others
    }

    /// The place of the one with this number.
    pub(crate) fn place(&self, number: usize) -> usize {
        self.place[number]
    }
}

/// The demand of a queue or a user.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Load {
    pub(crate) jobs: usize,
    /// Capacity times milliseconds.
    pub(crate) work: u128,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn largest_come_first_and_the_others_share_a_place() {
        let names: Vec<Arc<str>> = ["a", "b", "idle", "c", "d"].map(Into::into).to_vec();
        let load = |work| Load { jobs: 1, work };
        let loads = [load(1), load(9), Load::default(), load(5), load(2)];
        let top = Top::new(&names, &loads, 2);
        assert_eq!(top.named, ["b", "c"].map(Into::into));
        assert_eq!((top.others, top.places(), top.among()), (2, 3, 4));
        assert_eq!([0, 1, 3, 4].map(|i| top.place(i)), [2, 0, 1, 2]);
    }
}
