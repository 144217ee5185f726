//! Distribute free nodes to gangs that grow: the queue with the least usage for its weight gets the next member, and
//! there the gang that gains most by it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use muster_core::World;
use muster_core::id::{DomainIdx, QueueIdx, SigIdx};

use super::candidates::GrowthCandidate;
use crate::order::quota;
use crate::place::{Ask, Filling, Fits, Want, add_spread};
use crate::scratch::Scratch;

/// Members added in one cycle, at most.
const STEPS: usize = 4_096;

/// What one more member would bring a gang, by place in the list; the greatest is served first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Next {
    gain: Gain,
    at: Reverse<usize>,
    role: u16,
}

/// A gain that can be compared.
#[derive(Clone, Copy)]
struct Gain(f64);

impl Ord for Gain {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}
impl PartialOrd for Gain {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl PartialEq for Gain {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for Gain {}

/// Distributes members one at a time, until no gang can have more: what is free, as far as the limits of queues and
/// users allow.
pub(super) fn distribute<'w>(
    free: &mut Scratch<'w>,
    books: &mut Scratch<'w>,
    fits: &mut Fits,
    growing: &mut [GrowthCandidate<'w>],
) {
    let mut by_queue: BTreeMap<QueueIdx, BinaryHeap<Next>> = BTreeMap::new();
    for (at, one) in growing.iter().enumerate() {
        by_queue.entry(one.gang.queue).or_default().extend(next(free.world, one, at));
    }
    // Kinds of members for which there is no room left.
    let mut full: Vec<(SigIdx, DomainIdx)> = Vec::new();
    let mut added = 0;
    while added < STEPS {
        let Some((at, role)) = next_gang(books, &mut by_queue) else { return };
        let one = &mut growing[at];
        let sig = one.gang.sigs[usize::from(role)];
        let (ask, want) = (Ask { role, sig, count: 1 }, Want::any(sig));
        if full.contains(&(sig, one.domain)) || !quota::allows(books, one.gang, sig, 1) {
            continue; // it gets no more
        }
        let mut seats = Vec::new();
        let found = match one.gang.spec.roles[usize::from(role)].spread.is_empty() {
            true => {
                let mut filling =
                    Filling { scratch: free, fits, ask: &ask, want, seats: &mut seats };
                filling.domain(one.domain, 1) == 1
            }
            false => add_spread(free, fits, one.gang, one.domain, &ask, &mut seats),
        };
        if !found {
            full.push((sig, one.domain));
            continue;
        }
        books.charge(one.gang, sig, 1);
        one.add(role, seats);
        added += 1;
        let in_queue = by_queue.get_mut(&one.gang.queue).expect("it stood in it");
        in_queue.extend(next(free.world, one, at));
    }
}

/// The gang that gets the next member, taken out of its queue's heap, and for which role.
fn next_gang(
    books: &Scratch<'_>,
    by_queue: &mut BTreeMap<QueueIdx, BinaryHeap<Next>>,
) -> Option<(usize, u16)> {
    let fronts = by_queue.iter().filter_map(|(queue, in_queue)| Some((*queue, in_queue.peek()?)));
    let (queue, _) = fronts.min_by(|(a, first), (b, second)| {
        share(books, *a).total_cmp(&share(books, *b)).then(second.cmp(first))
    })?;
    let Next { at, role, .. } = by_queue.get_mut(&queue)?.pop()?;
    Some((at.0, role))
}

/// The gain of one more member, if the gang can have one and gains by it.
fn next(world: &World, one: &GrowthCandidate<'_>, at: usize) -> Option<Next> {
    let role = one.next_role().filter(|_| !one.is_out)?;
    let gain = one.gain(world, role);
    (gain > 0.0).then_some(Next { gain: Gain(gain), at: Reverse(at), role })
}

/// The usage of a queue divided by its weight.
fn share(books: &Scratch<'_>, queue: QueueIdx) -> f64 {
    let held = books.queue_usage(queue).gpu_milli as f64;
    held / f64::from(books.world.queue(queue).spec.weight).max(f64::MIN_POSITIVE)
}
