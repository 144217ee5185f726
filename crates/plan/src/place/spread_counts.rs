//! Who sits where among those that should be spread in the same words.
//!
//! Words are numbered, and counts are by leaf and node, since whoever asks wants to know of one place. A gang that
//! should be spread over nodes and over zones in the same words is counted once.

use std::collections::BTreeMap;
use std::sync::Arc;

use muster_core::World;
use muster_core::gang::{RoleSpec, Seat};
use muster_core::id::{DomainIdx, NodeIdx};

/// The number of some words.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct WordIdx(u32);

/// Members on each node, by the leaf it stands in.
pub(crate) type Company = BTreeMap<DomainIdx, BTreeMap<NodeIdx, u32>>;

/// Everybody who should be spread, by words.
#[derive(Clone, Debug, Default)]
pub(crate) struct Companies {
    by_word: BTreeMap<Arc<str>, WordIdx>,
    companies: Vec<Arc<Company>>,
}

/// The words of a role, each of them once.
pub(crate) fn words(role: &RoleSpec) -> impl Iterator<Item = &Arc<str>> {
    let spread = &role.spread;
    let is_first = |at: &usize| spread[..*at].iter().all(|one| one.among != spread[*at].among);
    (0..spread.len()).filter(is_first).map(|at| &spread[at].among)
}

impl Companies {
    /// Those that have seats in the World.
    pub(crate) fn of(world: &World) -> Self {
        let mut all = Self::default();
        for (_, gang) in world.gangs() {
            for seat in &gang.seats {
                for word in words(&gang.spec.roles[usize::from(seat.role)]) {
                    let word = all.word(word);
                    if let Some(node) = world.node(seat.node) {
                        all.count(word, node.leaf, seat, |there, members| there + members);
                    }
                }
            }
        }
        all
    }

    pub(crate) fn word(&mut self, among: &Arc<str>) -> WordIdx {
        if let Some(word) = self.by_word.get(among) {
            return *word;
        }
        let word = WordIdx(self.companies.len() as u32);
        self.by_word.insert(among.clone(), word);
        self.companies.push(Arc::default());
        word
    }

    pub(crate) fn get(&self, word: WordIdx) -> &Company {
        &self.companies[word.0 as usize]
    }

    /// Counts members of a seat.
    pub(crate) fn count(
        &mut self,
        word: WordIdx,
        leaf: DomainIdx,
        seat: &Seat,
        count: fn(u32, u32) -> u32,
    ) {
        let here = Arc::make_mut(&mut self.companies[word.0 as usize]);
        let members = here.entry(leaf).or_default().entry(seat.node).or_default();
        *members = count(*members, u32::from(seat.members));
    }

    /// What there is now, to be put back later.
    pub(crate) fn saved(&self, word: WordIdx) -> Arc<Company> {
        self.companies[word.0 as usize].clone()
    }

    pub(crate) fn restore(&mut self, word: WordIdx, company: Arc<Company>) {
        self.companies[word.0 as usize] = company;
    }
}
