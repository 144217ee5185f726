//! How many members fit: per state computed once, per domain summed.

use muster_core::id::{ClassIdx, DomainIdx, Id, NodeIdx, SigIdx, StateIdx};
use muster_core::signature::Reach;
use muster_core::topology::ROOT;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::by_name::ByName;
use super::fragments::Fragments;
use super::gang::Ask;
use super::spread_counts::SpreadGroup;
use crate::scratch::Scratch;

/// A kind of member, how well a node must suit it, and how many may be there.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Want {
    /// What the member is like.
    pub sig: SigIdx,
    /// The lowest score a node may have; preferences are tried from the best score down.
    pub floor: i32,
    /// How many may share a node, where members should be spread.
    pub(super) share: Option<Share>,
}

/// How many members of a spread group may share a node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Share {
    pub(super) group: SpreadGroup,
    /// Including members that are there already.
    pub(super) most: u32,
}

impl Want {
    /// Any node that satisfies the hard constraints.
    pub fn any(sig: SigIdx) -> Self {
        Self::from(sig, i32::MIN)
    }

    /// A node of at least this score.
    fn from(sig: SigIdx, floor: i32) -> Self {
        Self { sig, floor, share: None }
    }

    /// What must be looked at to say whether a node suits. Any score suits the lowest floor, so preferences are not
    /// looked at.
    pub(crate) fn reach(self, scratch: &Scratch<'_>) -> Reach {
        let signature = scratch.world.signature(self.sig);
        if self.floor == i32::MIN { signature.must } else { signature.reach }
    }

    /// How many may be on a node that has no member of their spread group.
    fn most(self) -> u32 {
        self.share.map_or(u32::MAX, |share| share.most)
    }

    /// How many more may be on a node.
    fn most_on(self, scratch: &Scratch<'_>, leaf: DomainIdx, node: NodeIdx) -> u32 {
        let Some(share) = self.share else { return u32::MAX };
        let there = scratch.node_counts(share.group).get(&leaf).and_then(|here| here.get(&node));
        share.most.saturating_sub(there.copied().unwrap_or(0))
    }
}

/// Not computed yet.
const UNKNOWN: u32 = u32::MAX;
/// A member that asks for nothing fits this often; sums of it stay far from overflowing.
const PLENTY: u32 = 1 << 20;

/// Answers to "how many fit", kept for one cycle.
#[derive(Debug, Default)]
pub struct Fits {
    rows: Vec<Vec<u32>>,
    /// By the lowest score a node may have; none for what there is room for, whether the node suits or not.
    row_of: FxHashMap<(SigIdx, Option<i32>), usize>,
    scores: FxHashMap<(SigIdx, ClassIdx, DomainIdx), Option<i32>>,
    /// Of signatures whose constraints look at names.
    by_name: ByName,
    floors: FxHashMap<SigIdx, SmallVec<[i32; 2]>>,
    choosers: FxHashMap<SigIdx, bool>,
    pub(super) fragments: Fragments,
}

impl Fits {
    /// How well a class of nodes, standing in `leaf`, suits a signature; `None` when it does not at all.
    pub fn score(
        &mut self,
        scratch: &Scratch<'_>,
        sig: SigIdx,
        class: ClassIdx,
        leaf: DomainIdx,
    ) -> Option<i32> {
        let world = scratch.world;
        let signature = world.signature(sig);
        let leaf = if signature.but_for_names == Reach::Class { ROOT } else { leaf };
        *self
            .scores
            .entry((sig, class, leaf))
            .or_insert_with(|| signature.score(world.class(class), world.topology(), leaf, None))
    }

    /// Members that fit on one node of `leaf` in `state`.
    pub fn on_state(
        &mut self,
        scratch: &Scratch<'_>,
        state: StateIdx,
        want: Want,
        leaf: DomainIdx,
    ) -> u32 {
        if want.reach(scratch) == Reach::Class {
            let row = self.row(want.sig, Some(want.floor));
            return self.anywhere(scratch, row, state, want).min(want.most());
        }
        self.compute(scratch, state, want, leaf).min(want.most())
    }

    /// Members that fit on a node that exists on paper only. Bars are for nodes that are here.
    pub(crate) fn on_paper(
        &mut self,
        scratch: &Scratch<'_>,
        state: StateIdx,
        sig: SigIdx,
        leaf: DomainIdx,
    ) -> u32 {
        self.regardless_of_bars(scratch, state, Want::any(sig), leaf)
    }

    /// Members that fit in a domain as it is now, without nodes kept for gangs ahead.
    pub fn in_domain(&mut self, scratch: &Scratch<'_>, domain: DomainIdx, want: Want) -> u64 {
        match want.reach(scratch) {
            Reach::Class => {
                let (row, most) = (self.row(want.sig, Some(want.floor)), want.most());
                let mut total = 0;
                for (state, nodes) in scratch.tally(domain) {
                    let each = self.anywhere(scratch, row, *state, want).min(most);
                    total += u64::from(each) * u64::from(*nodes);
                }
                total - self.shared(scratch, domain, want)
            }
            Reach::Place | Reach::Name if !scratch.world.topology().is_leaf(domain) => {
                let children = &scratch.world.topology().domain(domain).children;
                children.iter().map(|child| self.in_domain(scratch, *child, want)).sum()
            }
            Reach::Place => {
                let mut total = 0;
                for (state, nodes) in scratch.tally(domain) {
                    let each = self.on_state(scratch, *state, want, domain);
                    total += u64::from(each) * u64::from(*nodes);
                }
                total - self.shared(scratch, domain, want)
            }
            Reach::Name => self.by_name(scratch, domain, want),
        }
    }

    /// Members that fit on all nodes of a leaf, their names looked at too.
    fn by_name(&mut self, scratch: &Scratch<'_>, leaf: DomainIdx, want: Want) -> u64 {
        let (row, most) = (self.row(want.sig, None), want.most());
        let is_shared = |share: Share| scratch.node_counts(share.group).contains_key(&leaf);
        let one_by_one = scratch.has_ghosts() || want.share.is_some_and(is_shared);
        let set = self.by_name.set(scratch.world, want.sig, want.floor);
        let mut total = 0;
        for (state, _) in scratch.tally(leaf) {
            let each = self.room(scratch, row, *state, want.sig).min(most);
            if each > 0 && one_by_one {
                let slots = scratch.groups(leaf).slots_in(*state);
                let on = |slot| u64::from(self.on_slot(scratch, leaf, slot, *state, want));
                total += slots.map(on).sum::<u64>();
            } else if each > 0 {
                let here = scratch.groups(leaf).words_in(*state);
                let both = here.iter().zip(self.by_name.slots(set, leaf)).map(|(a, b)| a & b);
                total += u64::from(each) * u64::from(both.map(usize::count_ones).sum::<u32>());
            }
        }
        total
    }

    /// Members that fit on one node in this state, wherever it stands.
    #[inline]
    fn anywhere(&mut self, scratch: &Scratch<'_>, row: usize, state: StateIdx, want: Want) -> u32 {
        self.cell(scratch, row, state, |fits| fits.regardless_of_bars(scratch, state, want, ROOT))
    }

    /// Members that there is room for on a node in this state, whether it suits them or not; none if it is kept for
    /// gangs ahead.
    fn room(&mut self, scratch: &Scratch<'_>, row: usize, state: StateIdx, sig: SigIdx) -> u32 {
        self.cell(scratch, row, state, |_| {
            scratch.world.signature(sig).times_fits(scratch.state(state)).min(PLENTY)
        })
    }

    /// Members that fit on the node in one slot, its name looked at too.
    pub(crate) fn on_slot(
        &mut self,
        scratch: &Scratch<'_>,
        leaf: DomainIdx,
        slot: u32,
        state: StateIdx,
        want: Want,
    ) -> u32 {
        let (world, node) = (scratch.world, scratch.node_in(leaf, slot));
        let row = self.row(want.sig, None);
        let room = self.room(scratch, row, state, want.sig);
        if room == 0 {
            return 0;
        }
        // Nodes of a what-if have no names.
        let by_name = want.reach(scratch) == Reach::Name && node.index() < world.node_slots();
        let suits = if by_name {
            let set = self.by_name.set(world, want.sig, want.floor);
            self.by_name.has(set, leaf, slot)
        } else {
            let score = self.score(scratch, want.sig, scratch.state(state).class, leaf);
            score.is_some_and(|score| score >= want.floor)
        };
        if suits { room.min(want.most_on(scratch, leaf, node)) } else { 0 }
    }

    /// By how many fewer members fit in a domain because members of their spread group are there.
    fn shared(&mut self, scratch: &Scratch<'_>, domain: DomainIdx, want: Want) -> u64 {
        let Some(share) = want.share else { return 0 };
        let topology = scratch.world.topology();
        let mut fewer = 0;
        for (leaf, there) in scratch.node_counts(share.group) {
            if !topology.contains(domain, *leaf) {
                continue;
            }
            for node in there.keys() {
                let Some((.., state)) = scratch.current(*node) else { continue };
                let alone = self.on_state(scratch, state, want, *leaf);
                fewer += u64::from(alone - alone.min(want.most_on(scratch, *leaf, *node)));
            }
        }
        fewer
    }

    /// Ways to want what is asked, from the best score any node has down to any node that will do.
    ///
    /// Without preferences there is one way. With several roles the steps are taken together.
    pub(crate) fn floors(
        &mut self,
        scratch: &Scratch<'_>,
        asks: &[Ask],
    ) -> Vec<SmallVec<[Want; 2]>> {
        let steps: SmallVec<[SmallVec<[i32; 2]>; 2]> =
            asks.iter().map(|ask| self.floors_of(scratch, ask.sig)).collect();
        let longest = steps.iter().map(SmallVec::len).max().unwrap_or(0).max(1);
        let want = |(ask, floors): (&Ask, &SmallVec<[i32; 2]>), step: usize| match floors.get(step)
        {
            Some(floor) if step + 1 < floors.len() => Want::from(ask.sig, *floor),
            _ => Want::any(ask.sig),
        };
        (0..longest)
            .map(|step| asks.iter().zip(&steps).map(|pair| want(pair, step)).collect())
            .collect()
    }

    /// How much a domain's nodes are wanted by other gangs: the least of those that this kind of member can use.
    pub(crate) fn scarcity(&mut self, scratch: &Scratch<'_>, domain: DomainIdx, want: Want) -> u64 {
        let leaf = if scratch.world.topology().is_leaf(domain) { domain } else { ROOT };
        let mut least = u64::MAX;
        for (state, _) in scratch.tally(domain) {
            if self.on_state(scratch, *state, want, leaf) > 0 {
                least = least.min(self.fragments.wanted(scratch, scratch.state(*state).class));
            }
        }
        least
    }

    /// Whether a kind of member can choose between classes of which some are wanted more than others.
    pub(crate) fn is_chooser(&mut self, scratch: &Scratch<'_>, sig: SigIdx) -> bool {
        if let Some(chooser) = self.choosers.get(&sig) {
            return *chooser;
        }
        let world = scratch.world;
        let (signature, levels) = (world.signature(sig), world.topology().levels());
        let classes = (0..world.class_count()).map(ClassIdx::from_index);
        let mut usable = classes.filter(|class| signature.suits(world.class(*class), levels));
        let first = usable.next().map(|class| self.fragments.wanted(scratch, class));
        let chooser = usable.any(|class| Some(self.fragments.wanted(scratch, class)) != first);
        self.choosers.insert(sig, chooser);
        chooser
    }

    fn floors_of(&mut self, scratch: &Scratch<'_>, sig: SigIdx) -> SmallVec<[i32; 2]> {
        if let Some(floors) = self.floors.get(&sig) {
            return floors.clone();
        }
        let world = scratch.world;
        let topology = world.topology();
        let signature = world.signature(sig);
        let mut floors: SmallVec<[i32; 2]> = SmallVec::new();
        match signature.reach {
            Reach::Class => self.scores_in(scratch, sig, ROOT, &mut floors),
            Reach::Place => {
                let domains = (0..topology.len()).map(DomainIdx::from_index);
                for leaf in domains.filter(|domain| topology.is_leaf(*domain)) {
                    self.scores_in(scratch, sig, leaf, &mut floors);
                }
            }
            Reach::Name => floors.extend(self.by_name.scores(world, sig)),
        }
        floors.sort_unstable_by(|a, b| b.cmp(a));
        floors.dedup();
        self.floors.insert(sig, floors.clone());
        floors
    }

    /// How well each class of usable nodes in a domain suits a signature.
    fn scores_in(
        &mut self,
        scratch: &Scratch<'_>,
        sig: SigIdx,
        domain: DomainIdx,
        scores: &mut SmallVec<[i32; 2]>,
    ) {
        for (state, _) in scratch.world.capacity().tally(domain).entries() {
            let class = scratch.world.states().get(*state).class;
            scores.extend(self.score(scratch, sig, class, domain));
        }
    }

    fn row(&mut self, sig: SigIdx, floor: Option<i32>) -> usize {
        let rows = &mut self.rows;
        *self.row_of.entry((sig, floor)).or_insert_with(|| {
            rows.push(Vec::new());
            rows.len() - 1
        })
    }

    #[inline]
    fn cell(
        &mut self,
        scratch: &Scratch<'_>,
        row: usize,
        state: StateIdx,
        times: impl FnOnce(&mut Self) -> u32,
    ) -> u32 {
        let times = match self.rows[row].get(state.index()) {
            Some(times) if *times != UNKNOWN => *times,
            _ => {
                let times = times(self);
                let cells = &mut self.rows[row];
                if cells.len() <= state.index() {
                    cells.resize(scratch.state_count(), UNKNOWN);
                }
                cells[state.index()] = times;
                times
            }
        };
        if times > 0 && scratch.is_barred(scratch.state(state).class) { 0 } else { times }
    }

    fn compute(
        &mut self,
        scratch: &Scratch<'_>,
        state: StateIdx,
        want: Want,
        leaf: DomainIdx,
    ) -> u32 {
        if scratch.is_barred(scratch.state(state).class) {
            return 0;
        }
        self.regardless_of_bars(scratch, state, want, leaf)
    }

    fn regardless_of_bars(
        &mut self,
        scratch: &Scratch<'_>,
        state: StateIdx,
        want: Want,
        leaf: DomainIdx,
    ) -> u32 {
        let content = scratch.state(state);
        match self.score(scratch, want.sig, content.class, leaf) {
            Some(score) if score >= want.floor => {
                scratch.world.signature(want.sig).times_fits(content).min(PLENTY)
            }
            _ => 0,
        }
    }
}
