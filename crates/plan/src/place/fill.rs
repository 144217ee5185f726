//! Seat members in a domain: on as few domains and nodes as possible, and on nodes where the fewest GPUs become
//! unusable for other gangs.

use muster_core::device::DeviceSet;
use muster_core::gang::Seat;
use muster_core::id::{DomainIdx, NodeIdx, SigIdx, StateIdx};
use muster_core::signature::Reach;
use smallvec::SmallVec;

use super::fits::{Fits, Want};
use super::gang::Ask;
use crate::scratch::{Filled, Scratch};

/// Members per node, free GPUs (the fuller node first among equals), state, nodes.
type Candidate = (u32, u64, StateIdx, u32);

/// Members of a role being seated: the overlay, the demand, how well nodes must suit them, and the seats they have so
/// far.
pub(crate) struct Filling<'f, 'w> {
    pub(crate) scratch: &'f mut Scratch<'w>,
    pub(crate) fits: &'f mut Fits,
    pub(crate) ask: &'f Ask,
    pub(crate) want: Want,
    pub(crate) seats: &'f mut Vec<Seat>,
}

impl Filling<'_, '_> {
    /// Seats up to `count` members in a domain and returns how many found a seat.
    pub(crate) fn domain(&mut self, domain: DomainIdx, count: u32) -> u32 {
        if count == 0 {
            return 0;
        }
        let topology = self.scratch.world.topology();
        if topology.is_leaf(domain) {
            return self.leaf(domain, count);
        }
        let mut rooms: SmallVec<[(u64, DomainIdx); 16]> = SmallVec::new();
        for child in &topology.domain(domain).children {
            let room = self.fits.in_domain(self.scratch, *child, self.want);
            if room > 0 {
                rooms.push((room, *child));
            }
        }
        // Roomiest first, so that few domains are used; the last members go to the tightest domain that holds them.
        rooms.sort_unstable_by_key(|(room, child)| (std::cmp::Reverse(*room), *child));
        let mut left = count;
        for at in 0..rooms.len() {
            let enough = rooms[at..].partition_point(|(room, _)| *room >= u64::from(left));
            if enough > 0 {
                left -= self.domain(rooms[at + enough - 1].1, left);
                break;
            }
            left -= self.domain(rooms[at].1, left);
        }
        count - left
    }

    fn leaf(&mut self, leaf: DomainIdx, count: u32) -> u32 {
        let want = self.want;
        if want.reach(self.scratch) == Reach::Name {
            return self.by_name(leaf, count);
        }
        if want.share.is_some_and(|share| self.scratch.node_counts(share.group).contains_key(&leaf))
        {
            return self.beside_spread(leaf, count);
        }
        let mut states: SmallVec<[Candidate; 8]> = SmallVec::new();
        for at in 0..self.scratch.tally(leaf).len() {
            let (state, nodes) = self.scratch.tally(leaf)[at];
            let each = self.fits.on_state(self.scratch, state, want, leaf);
            if each > 0 {
                let free = self.scratch.state(state).devices.free_milli();
                states.push((each, free, state, nodes));
            }
        }
        states.sort_unstable();
        let mut left = count;
        while left > 0 && !states.is_empty() {
            let at = best_node(self.scratch, self.fits, &states, self.ask.sig, left);
            let (each, _, state, nodes) = states[at];
            let each = each.min(left);
            let used = (left / each).min(nodes);
            let slots: SmallVec<[u32; 32]> =
                self.scratch.groups(leaf).slots_in(state).take(used as usize).collect();
            self.sit(leaf, &slots, state, each);
            left -= each * used;
            states[at].3 -= used;
            if states[at].3 == 0 {
                states.remove(at);
            }
        }
        count - left
    }

    /// Constraints that look at names are settled node by node.
    fn by_name(&mut self, leaf: DomainIdx, count: u32) -> u32 {
        let mut left = count;
        for (state, _) in self.scratch.tally(leaf).to_vec() {
            let slots: Vec<u32> = self.scratch.groups(leaf).slots_in(state).collect();
            for slot in slots {
                if left == 0 {
                    return count;
                }
                let fit = self.fits.on_slot(self.scratch, leaf, slot, state, self.want);
                let each = fit.min(left);
                if each > 0 {
                    self.sit(leaf, &[slot], state, each);
                    left -= each;
                }
            }
        }
        count - left
    }

    /// Where some nodes of a leaf have members of the same spread group already, its nodes differ: the emptiest of
    /// them first, then where least is lost, then the fullest.
    fn beside_spread(&mut self, leaf: DomainIdx, count: u32) -> u32 {
        let Self { scratch, fits, ask, want, .. } = self;
        let mut nodes = Vec::new();
        for (state, _) in scratch.tally(leaf) {
            for slot in scratch.groups(leaf).slots_in(*state) {
                let each = fits.on_slot(scratch, leaf, slot, *state, *want).min(count);
                if each > 0 {
                    let lost = fits.fragments.added(scratch, *state, ask.sig, each);
                    let free = scratch.state(*state).devices.free_milli();
                    nodes.push((std::cmp::Reverse(each), lost, free, slot, *state));
                }
            }
        }
        nodes.sort_unstable();
        let mut left = count;
        for (std::cmp::Reverse(each), .., slot, state) in nodes {
            let each = each.min(left);
            if each == 0 {
                break;
            }
            self.sit(leaf, &[slot], state, each);
            left -= each;
        }
        count - left
    }

    fn sit(&mut self, leaf: DomainIdx, slots: &[u32], state: StateIdx, each: u32) {
        seats_on(self.scratch, leaf, slots, state, self.ask, each, self.seats);
    }
}

/// Seats up to `count` members on a node that exists on paper only; returns how many found a seat there.
pub(crate) fn fill_paper(
    scratch: &mut Scratch<'_>,
    fits: &mut Fits,
    paper: usize,
    ask: &Ask,
    count: u32,
    seats: &mut Vec<Seat>,
) -> u32 {
    let (state, offering) = (scratch.paper()[paper].state, scratch.paper()[paper].offering);
    let leaf = scratch.world.offering(offering).leaf;
    let here = fits.on_paper(scratch, state, ask.sig, leaf).min(count);
    if here > 0 {
        let filled = scratch.fill(state, ask.sig, here);
        scratch.set_paper(paper, filled.state);
        let node = paper_node(scratch, paper);
        seat_all(&filled, here, node, ask.role, seats);
    }
    here
}

/// The index of a node on paper in seats: beyond every node of the World.
pub(super) fn paper_node(scratch: &Scratch<'_>, paper: usize) -> NodeIdx {
    NodeIdx((scratch.world.node_slots() + paper) as u32)
}

/// The state in which the next nodes are taken: one that takes all the rest, or else one of the roomiest. Among
/// several the one where least is lost to other gangs; then the tightest if it takes all, and the one with most free
/// if not.
fn best_node(
    scratch: &Scratch<'_>,
    fits: &mut Fits,
    states: &[Candidate],
    sig: SigIdx,
    left: u32,
) -> usize {
    let enough = states.partition_point(|(each, ..)| *each < left);
    let last = states.len() - 1;
    let mut lost = |at: usize| {
        let (each, _, state, _) = states[at];
        fits.fragments.added(scratch, state, sig, each.min(left))
    };
    match enough {
        enough if enough == last => last,
        enough if enough < last => {
            (enough..=last).min_by_key(|at| (lost(*at), *at)).unwrap_or(last)
        }
        _ => {
            let most = states[last].0;
            let roomiest = states.partition_point(|(each, ..)| *each < most);
            if roomiest == last {
                return last;
            }
            (roomiest..=last).rev().min_by_key(|at| lost(*at)).unwrap_or(last)
        }
    }
}

/// Seats `each` members on every one of these nodes, all of them in the same state, and returns their state
/// afterwards.
pub(super) fn seats_on(
    scratch: &mut Scratch<'_>,
    leaf: DomainIdx,
    slots: &[u32],
    state: StateIdx,
    ask: &Ask,
    each: u32,
    seats: &mut Vec<Seat>,
) -> StateIdx {
    let filled = scratch.fill(state, ask.sig, each);
    for slot in slots {
        let node = scratch.node_in(leaf, *slot);
        seat_all(&filled, each, node, ask.role, seats);
    }
    scratch.shift(leaf, slots, state, filled.state);
    filled.state
}

/// Seats for members on a node: one each where they get devices, together where they do not.
fn seat_all(filled: &Filled, members: u32, node: NodeIdx, role: u16, seats: &mut Vec<Seat>) {
    let seat = |devices, members| Seat { devices, node, role, members };
    seats.extend(filled.devices.iter().map(|devices| seat(*devices, 1)));
    let mut left = if filled.devices.is_empty() { members } else { 0 };
    while left > 0 {
        let here = u16::try_from(left).unwrap_or(u16::MAX);
        seats.push(seat(DeviceSet::default(), here));
        left -= u32::from(here);
    }
}
