//! Search for victims: as few as possible, those that lose least, node by node.
//!
//! On every node the cheapest gangs that would have to leave it for one more member are known. The cheapest such step
//! is taken again and again, until the gang fits. Then all gangs that turned out not to be in the way are spared.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use muster_core::gang::{Gang, Seat, without};
use muster_core::id::{DomainIdx, GangId, Id, NodeIdx};
use muster_core::order::VictimSeats;
use muster_core::signature::Reach;
use muster_core::topology::ROOT;
use smallvec::SmallVec;

use super::candidates::Candidate;
use super::eligibility::{Leaving, Reason, is_lent};
use super::victims::VictimSet;
use crate::order::quota;
use crate::place::{Ask, Fits, Misfit, Want, asks, place_together};
use crate::scratch::Scratch;

/// Steps taken in one search, at most.
const STEPS: usize = 4_096;

/// What bounds a search.
#[derive(Clone, Copy)]
pub(super) struct SearchBounds<'c> {
    /// How many more gangs of each queue may be stopped now; any number when absent.
    pub(super) evictions: &'c BTreeMap<muster_core::id::QueueIdx, u32>,
    /// What victims are leaving already.
    pub(super) leaving: &'c Leaving,
    /// Set when a search ends at its bound.
    pub(super) truncated: &'c Cell<bool>,
}

/// The candidates, and the world without those that were chosen so far.
pub(super) struct Search<'c, 's, 'w> {
    pub(super) scratch: &'s mut Scratch<'w>,
    pub(super) fits: &'s mut Fits,
    pub(super) id: GangId,
    pub(super) gang: &'w Gang,
    pub(super) candidates: &'c [Candidate<'w>],
    bounds: SearchBounds<'c>,
    pub(super) chosen: Vec<usize>,
    /// Seats of chosen candidates that they keep, since the gang fits beside them.
    pub(super) kept: Vec<(usize, Seat)>,
    considered: Vec<bool>,
    /// Where the gang is to fit.
    domain: DomainIdx,
    /// Candidates with seats on a node of that domain, those of least weight first.
    on: BTreeMap<NodeIdx, SmallVec<[usize; 4]>>,
    evicted: BTreeMap<muster_core::id::QueueIdx, u32>,
}

/// The next step on a node: its cost for each member that fits more, the highest priority among the candidates that
/// leave, and those candidates.
type Step = (u64, i32, Vec<usize>);

impl<'c, 's, 'w> Search<'c, 's, 'w> {
    pub(super) fn new(
        scratch: &'s mut Scratch<'w>,
        fits: &'s mut Fits,
        (id, gang): (GangId, &'w Gang),
        candidates: &'c [Candidate<'w>],
        bounds: SearchBounds<'c>,
        domain: DomainIdx,
    ) -> Self {
        let world = scratch.world;
        let inside = |node: NodeIdx| {
            domain == ROOT
                || world.node(node).is_some_and(|here| world.topology().contains(domain, here.leaf))
        };
        let mut seated: Vec<(NodeIdx, u64, usize)> = Vec::new();
        for (at, candidate) in candidates.iter().enumerate() {
            for on_node in candidate.seats.chunk_by(|a, b| a.node == b.node) {
                if inside(on_node[0].node) {
                    seated.push((on_node[0].node, candidate.weight, at));
                }
            }
        }
        seated.sort_unstable();
        let on = seated
            .chunk_by(|a, b| a.0 == b.0)
            .map(|here| (here[0].0, here.iter().map(|(_, _, at)| *at).collect()))
            .collect();
        let considered = vec![false; candidates.len()];
        let (chosen, evicted) = (Vec::new(), BTreeMap::new());
        let kept = Vec::new();
        Self {
            scratch,
            fits,
            id,
            gang,
            candidates,
            bounds,
            chosen,
            kept,
            considered,
            domain,
            on,
            evicted,
        }
    }

    /// The victims with which the gang fits. The scratch is a trial's.
    pub(super) fn find(mut self) -> Option<VictimSet> {
        let asks = asks(self.scratch, self.gang);
        for ask in &asks {
            self.make_room(ask)?;
        }
        self.free_quota()?;
        let mut seats = place_together(&mut self.scratch.trial(), self.fits, self.gang);
        // Each role has room, but they share it: the role that lacks some gets more.
        for _ in 0..asks.len() {
            let Err(Misfit::Role { role, fits, needs }) = seats else { break };
            let ask = asks.iter().find(|ask| ask.role == role)?;
            let more = Ask { count: ask.count + needs.saturating_sub(fits), ..*ask };
            self.make_room(&more)?;
            seats = place_together(&mut self.scratch.trial(), self.fits, self.gang);
        }
        if seats.is_err() {
            let rest: Vec<usize> =
                (0..self.candidates.len()).filter(|at| !self.considered[*at]).collect();
            rest.into_iter().for_each(|at| {
                self.choose(at);
            });
            seats = place_together(&mut self.scratch.trial(), self.fits, self.gang);
        }
        let seats = self.shrink_least(seats.ok()?);
        self.scratch.sit(self.gang, &seats);
        Some(self.spare_unneeded(seats))
    }

    /// The victims with which so many members fit, wherever that is.
    pub(super) fn find_for(mut self, ask: &Ask) -> Option<Vec<usize>> {
        self.make_room(ask)?;
        // Candidates that lose most are the first to be spared.
        let mut chosen = self.chosen;
        chosen.sort_unstable_by_key(|at| std::cmp::Reverse((self.candidates[*at].lost, *at)));
        Some(chosen)
    }

    /// Takes steps until so many members fit.
    fn make_room(&mut self, ask: &Ask) -> Option<()> {
        let domain = self.domain;
        let want = Want::any(ask.sig);
        let enough = |search: &mut Self| {
            search.fits.in_domain(search.scratch, domain, want) >= u64::from(ask.count)
        };
        if enough(self) {
            return Some(());
        }
        let mut dirty: BTreeSet<NodeIdx> = self.on.keys().copied().collect();
        let mut steps: BTreeMap<NodeIdx, Step> = BTreeMap::new();
        let mut cheapest: BTreeSet<(u64, i32, NodeIdx)> = BTreeSet::new();
        let mut gains: BTreeMap<usize, u64> = BTreeMap::new();
        for _ in 0..STEPS {
            for node in std::mem::take(&mut dirty) {
                if let Some((cost, priority, _)) = steps.remove(&node) {
                    cheapest.remove(&(cost, priority, node));
                }
                if let Some(step) = self.step(domain, node, ask, &mut gains) {
                    cheapest.insert((step.0, step.1, node));
                    steps.insert(node, step);
                }
            }
            let (.., node) = cheapest.first().copied()?;
            let leaving = steps[&node].2.clone();
            for at in leaving {
                let touched = self.candidates[at].seats.iter().map(|seat| seat.node);
                dirty.extend(touched.filter(|node| self.on.contains_key(node)));
                self.choose(at);
            }
            dirty.insert(node);
            gains.clear();
            if enough(self) {
                return Some(());
            }
        }
        self.bounds.truncated.set(true);
        None
    }

    /// The cheapest gangs that would have to leave a node for one more member to fit there.
    fn step(
        &mut self,
        domain: DomainIdx,
        node: NodeIdx,
        ask: &Ask,
        gains: &mut BTreeMap<usize, u64>,
    ) -> Option<Step> {
        let world = self.scratch.world;
        if !self.suits(domain, node, ask) {
            return None;
        }
        let signature = world.signature(ask.sig);
        let mut state = self.scratch.node_state(node)?;
        let before = signature.times_fits(&state);
        let (mut leaving, mut lost, mut priority) = (Vec::new(), 0u64, i32::MIN);
        for at in self.on[&node].clone() {
            if self.considered[at] {
                continue;
            }
            let candidate = &self.candidates[at];
            for seat in candidate.seats.iter().filter(|seat| seat.node == node) {
                let its = world.signature(candidate.gang.sigs[usize::from(seat.role)]);
                state.rise(its, seat);
            }
            leaving.push(at);
            priority = priority.max(candidate.gang.spec.priority);
            lost = lost.saturating_add(candidate.weight);
            let more = signature.times_fits(&state).saturating_sub(before);
            if more > 0 {
                let gain = match leaving.as_slice() {
                    // A gang that is alone in the way here frees its other nodes as well.
                    [only] => *gains.entry(*only).or_insert_with(|| self.gain(domain, *only, ask)),
                    _ => u64::from(more),
                };
                let cost = lost.saturating_mul(16) / gain.clamp(1, u64::from(ask.count));
                return Some((cost.saturating_add(leaving.len() as u64), priority, leaving));
            }
        }
        None
    }

    /// Whether members may run on a node of a domain, once a victim has left it.
    fn suits(&mut self, domain: DomainIdx, node: NodeIdx, ask: &Ask) -> bool {
        let world = self.scratch.world;
        let Some(here) = world.node(node) else { return false };
        if self.scratch.is_barred(here.class)
            || self.scratch.is_overcommitted(node)
            || !world.topology().contains(domain, here.leaf)
        {
            return false;
        }
        let signature = world.signature(ask.sig);
        let score = match signature.must {
            Reach::Name => {
                let (class, topology) = (world.class(here.class), world.topology());
                signature.score(class, topology, here.leaf, Some(&here.name))
            }
            Reach::Class | Reach::Place => {
                self.fits.score(self.scratch, ask.sig, here.class, here.leaf)
            }
        };
        score.is_some()
    }

    /// How many more members fit if a gang leaves, on all of its nodes.
    fn gain(&mut self, domain: DomainIdx, at: usize, ask: &Ask) -> u64 {
        let candidate = &self.candidates[at];
        let world = self.scratch.world;
        let signature = world.signature(ask.sig);
        let mut gain = 0;
        for on_node in candidate.seats.chunk_by(|a, b| a.node == b.node) {
            let node = on_node[0].node;
            if !self.suits(domain, node, ask) {
                continue;
            }
            let Some(mut state) = self.scratch.node_state(node) else { continue };
            let before = signature.times_fits(&state);
            for seat in on_node {
                state.rise(world.signature(candidate.gang.sigs[usize::from(seat.role)]), seat);
            }
            gain += u64::from(signature.times_fits(&state) - before);
        }
        gain
    }

    /// Chooses a candidate, if it is still eligible. Lent capacity is reclaimed only as far as it was lent.
    fn choose(&mut self, at: usize) -> bool {
        let candidate = &self.candidates[at];
        self.considered[at] = true;
        let queue = candidate.gang.queue;
        match candidate.reason {
            Some(Reason::Reclaim)
                if !is_lent(self.scratch, self.bounds.leaving, self.gang, candidate.gang) =>
            {
                return false;
            }
            Some(Reason::Priority | Reason::TimeSlice | Reason::Move) => {
                let evicted = self.evicted.entry(queue).or_default();
                if self.bounds.evictions.get(&queue).is_some_and(|most| *evicted >= *most) {
                    return false;
                }
                *evicted += 1;
            }
            Some(Reason::Reclaim) | None => {}
        }
        self.scratch.rise(candidate.gang, &candidate.seats);
        quota::refund_seats(self.scratch, candidate.gang, &candidate.seats);
        self.chosen.push(at);
        true
    }

    /// Chooses more candidates until limits leave room, those of least weight first.
    fn free_quota(&mut self) -> Option<()> {
        while let Some(over) = quota::over_limit(self.scratch, self.gang) {
            let helps = |at: &usize| {
                let other = self.candidates[*at].gang;
                quota::counts_for(self.scratch.world, &over, self.gang, other)
            };
            let rest = (0..self.candidates.len()).filter(|at| !self.considered[*at]).filter(helps);
            let next = rest.min_by_key(|at| (self.candidates[*at].weight, *at))?;
            self.choose(next);
        }
        Some(())
    }

    /// Spares candidates, or some of their seats, that are not in the way: those that would lose most first.
    fn spare_unneeded(&mut self, seats: Vec<Seat>) -> VictimSet {
        let mut order = self.chosen.clone();
        order.sort_unstable_by_key(|at| {
            let candidate = &self.candidates[*at];
            (std::cmp::Reverse(candidate.reason), std::cmp::Reverse(candidate.weight), *at)
        });
        let mut victims = VictimSet { seats, ..VictimSet::default() };
        for at in order {
            let candidate = &self.candidates[at];
            let kept: Vec<Seat> =
                self.kept.iter().filter(|(of, _)| *of == at).map(|(_, seat)| *seat).collect();
            let given_up = without(&candidate.seats, &kept);
            let stays = self.stays(candidate, &given_up);
            if !stays.is_empty() {
                self.scratch.sit(candidate.gang, &stays);
                quota::charge_seats(self.scratch, candidate.gang, &stays);
            }
            let leaves = without(&given_up, &stays);
            if leaves.is_empty() {
                continue;
            }
            victims.lost = victims.lost.saturating_add(candidate.lost);
            victims.counted = victims.counted.saturating_add(candidate.counted);
            victims.delay = victims.delay.max(candidate.grace());
            victims.reasons.extend(candidate.reason);
            let stop = candidate.reason.map(|reason| reason.stop_reason(self.id));
            victims.preempts.push(VictimSeats { gang: candidate.id, seats: leaves, stop });
        }
        victims.preempts.sort_by_key(|way| way.gang);
        victims.reasons.sort_unstable();
        victims.reasons.dedup();
        victims
    }

    /// Seats that a candidate can keep: all or none of a gang that is stopped, each by itself of one that goes on,
    /// seats of running members first.
    fn stays(&mut self, candidate: &Candidate<'w>, given_up: &[Seat]) -> Vec<Seat> {
        let world = self.scratch.world;
        let mut trial = self.scratch.trial();
        let mut stays = Vec::new();
        let spare = candidate.gang.spare_seats();
        let mut seats = given_up.to_vec();
        seats.sort_by_key(|seat| spare.contains(seat));
        for seat in &seats {
            let signature = world.signature(candidate.gang.sigs[usize::from(seat.role)]);
            let free = trial.node_state(seat.node).is_some_and(|s| s.has_free(signature, seat));
            if free {
                trial.sit(candidate.gang, &[*seat]);
                stays.push(*seat);
            } else if candidate.reason.is_some() {
                return Vec::new();
            }
        }
        quota::charge_seats(&mut trial, candidate.gang, &stays);
        if quota::over_limit(&trial, self.gang).is_some() { Vec::new() } else { stays }
    }
}

/// All domains in which a gang must fit as a whole, with how many of its first role fit there, those with most room
/// first; the root if it may be anywhere.
pub(super) fn domains(
    scratch: &Scratch<'_>,
    fits: &mut Fits,
    gang: &Gang,
) -> Vec<(u64, DomainIdx)> {
    use muster_core::gang::Closeness;
    use muster_core::topology::Level;
    let (Some(Closeness::Required(_)), Some(Level::Domain(level))) =
        (&gang.spec.closeness, gang.level)
    else {
        return vec![(0, ROOT)];
    };
    let topology = scratch.world.topology();
    let want = Want::any(gang.sigs[0]);
    let named = topology.of_level(level).iter().filter(|domain| topology.is_named(**domain));
    let mut all: Vec<(u64, DomainIdx)> =
        named.map(|domain| (fits.in_domain(scratch, *domain, want), *domain)).collect();
    all.sort_unstable_by_key(|(room, domain)| (std::cmp::Reverse(*room), domain.index()));
    all
}
