//! Nodes by name: which of them suit a signature whose constraints look at names.
//!
//! Every node is scored once per signature, nodes that are mentioned alike together. The nodes of at least a given
//! score are a set of slots, so that a leaf counts its nodes of each state without looking at single nodes.

use std::collections::BTreeMap;

use muster_core::World;
use muster_core::id::{ClassIdx, DomainIdx, Id, NodeIdx, SigIdx};
use muster_core::named_nodes::NameClass;
use muster_core::signature::{Reach, Signature};
use muster_core::topology::ROOT;

/// Slots in a word of a set.
const WORD: u32 = usize::BITS;

/// Where a node stands and what it is.
#[derive(Clone, Copy, Debug)]
struct Spot {
    leaf: DomainIdx,
    class: ClassIdx,
    slot: u32,
}

/// What is known of signatures that look at names, kept for one cycle.
#[derive(Debug, Default)]
pub(super) struct ByName {
    /// Of each node that is here.
    spots: Vec<Option<Spot>>,
    /// The word at which each domain's slots begin, and the one after the last of them.
    starts: Vec<u32>,
    suited: Vec<Option<Suited>>,
}

/// The number of a set of nodes.
#[derive(Clone, Copy, Debug)]
pub(super) struct SetIdx {
    sig: SigIdx,
    at: usize,
}

/// How well nodes suit one signature.
#[derive(Debug)]
struct Suited {
    scores: Vec<Option<i32>>,
    /// For each floor that was asked for, the slots of nodes that score as high.
    open: Vec<(i32, Vec<usize>)>,
}

impl ByName {
    /// The score of each node that will do at all.
    pub(super) fn scores(
        &mut self,
        world: &World,
        sig: SigIdx,
    ) -> impl Iterator<Item = i32> + use<'_> {
        self.suited(world, sig).scores.iter().flatten().copied()
    }

    /// The set of nodes that score at least as high. Nodes of a what-if are in none.
    pub(super) fn set(&mut self, world: &World, sig: SigIdx, floor: i32) -> SetIdx {
        let known = self.suited(world, sig).open.iter().position(|(of, _)| *of == floor);
        SetIdx { sig, at: known.unwrap_or_else(|| self.add_floor(sig, floor)) }
    }

    /// Slots of a leaf that are in a set, as words.
    pub(super) fn slots(&self, set: SetIdx, leaf: DomainIdx) -> &[usize] {
        let words = self.starts[leaf.index()] as usize..self.starts[leaf.index() + 1] as usize;
        let suited = self.suited[set.sig.index()].as_ref().expect("a set of it is known");
        &suited.open[set.at].1[words]
    }

    /// Whether one slot is in a set.
    pub(super) fn has(&self, set: SetIdx, leaf: DomainIdx, slot: u32) -> bool {
        self.slots(set, leaf)[(slot / WORD) as usize] >> (slot % WORD) & 1 == 1
    }

    fn add_floor(&mut self, sig: SigIdx, floor: i32) -> usize {
        let suited = self.suited[sig.index()].as_mut().expect("scored before");
        let mut open = vec![0; self.starts.last().map_or(0, |words| *words as usize)];
        for (spot, score) in self.spots.iter().zip(&suited.scores) {
            if let (Some(spot), Some(score)) = (spot, score)
                && *score >= floor
            {
                let word = self.starts[spot.leaf.index()] + spot.slot / WORD;
                open[word as usize] |= 1 << (spot.slot % WORD);
            }
        }
        suited.open.push((floor, open));
        suited.open.len() - 1
    }

    fn suited(&mut self, world: &World, sig: SigIdx) -> &Suited {
        if self.starts.is_empty() {
            self.measure(world);
        }
        if self.suited.len() <= sig.index() {
            self.suited.resize_with(world.signature_count(), || None);
        }
        let spots = &self.spots;
        self.suited[sig.index()].get_or_insert_with(|| Suited {
            scores: scores(world, world.signature(sig), spots),
            open: Vec::new(),
        })
    }

    fn measure(&mut self, world: &World) {
        let (capacity, domains) = (world.capacity(), world.topology().len());
        let mut words = 0;
        self.starts.push(words);
        for domain in (0..domains).map(DomainIdx::from_index) {
            words += capacity.leaf(domain).slots().div_ceil(WORD);
            self.starts.push(words);
        }
        self.spots = vec![None; world.node_slots()];
        for (idx, node) in world.nodes() {
            let spot = |slot| Spot { leaf: node.leaf, class: node.class, slot };
            self.spots[idx.index()] = world.node_slot(idx).map(spot);
        }
    }
}

/// How well each node suits a signature.
fn scores(world: &World, signature: &Signature, spots: &[Option<Spot>]) -> Vec<Option<i32>> {
    let Some(mentioned) = signature.mentioned() else {
        let each = |at| world.node(NodeIdx::from_index(at));
        let score = |at| {
            let node = each(at)?;
            let class = world.class(node.class);
            signature.score(class, world.topology(), node.leaf, Some(&node.name))
        };
        return (0..spots.len()).map(score).collect();
    };
    let mut known = Known { world, signature, scores: BTreeMap::new() };
    // Neighbours are mostly of one class, and one of a few.
    let mut latest: [Option<(ClassIdx, DomainIdx, Option<i32>)>; 2] = [None; 2];
    let mut scores: Vec<Option<i32>> = spots
        .iter()
        .map(|spot| {
            let spot = (*spot)?;
            let (class, leaf) = known.alike(spot);
            let same = latest.iter().flatten().find(|one| (one.0, one.1) == (class, leaf));
            if let Some((.., score)) = same {
                return *score;
            }
            let score = known.score(spot, NameClass::UNLISTED);
            latest = [Some((class, leaf, score)), latest[0]];
            score
        })
        .collect();
    for (name, mention) in mentioned {
        let node = world.node_named(name).map(Id::index);
        if let Some((at, spot)) = node.and_then(|at| Some((at, spots[at]?))) {
            scores[at] = known.score(spot, *mention);
        }
    }
    scores
}

/// Scores of nodes that are alike, each of them computed once.
struct Known<'w> {
    world: &'w World,
    signature: &'w Signature,
    scores: BTreeMap<(ClassIdx, DomainIdx, NameClass), Option<i32>>,
}

impl Known<'_> {
    /// What nodes have in common that differ in nothing but their names.
    fn alike(&self, spot: Spot) -> (ClassIdx, DomainIdx) {
        let by_class = self.signature.but_for_names == Reach::Class;
        (spot.class, if by_class { ROOT } else { spot.leaf })
    }

    fn score(&mut self, spot: Spot, mention: NameClass) -> Option<i32> {
        let (class, leaf) = self.alike(spot);
        let (world, signature) = (self.world, self.signature);
        *self.scores.entry((class, leaf, mention)).or_insert_with(|| {
            signature.score_mentioned(world.class(class), world.topology(), leaf, mention)
        })
    }
}
