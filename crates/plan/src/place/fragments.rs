//! Fragmentation: how many of a node's free GPUs are of no use to gangs that are likely to come.
//!
//! The mix of members asked for lately says which gangs are likely to come. For each kind in it, what is free on a
//! node is *lost* when it lies on devices with too little left for the kind, or all of it when the kind cannot run
//! there at all: too few devices, too little CPU or memory, the wrong model. This is the fragmentation measure of FGD
//! (USENIX ATC 2023). It sees only whether one more member fits; a node whose CPU is enough for one and has eight
//! GPUs free looks as good as new. So a second term counts how far CPU and memory go if the kind were to fill the
//! node, at half the weight: a node is seldom filled by one kind. Sums of whole numbers, weighted by how often a kind
//! was asked for: ties are exact.

use muster_core::demand_mix::KINDS_MAX;
use muster_core::id::{ClassIdx, Id, ResourceIdx, SigIdx, StateIdx};
use muster_core::state::NodeState;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::scratch::Scratch;

/// The weights of whether one more member could use what is free, and of how far it would go if many did.
const ONE_MORE: u64 = 2;
const FILLED: u64 = 1;

/// One kind of the mix, as far as it says what is lost.
#[derive(Debug)]
struct Likely {
    weight: u64,
    devices: u32,
    share: u16,
    /// Thousandths of a GPU one member takes.
    milli: u64,
    takes: SmallVec<[(ResourceIdx, u64); 2]>,
}

/// Answers to "what is lost", kept for one cycle.
#[derive(Debug, Default)]
pub(super) struct Fragments {
    mix: Option<Vec<Likely>>,
    /// Per class, the kinds of the mix that can use it, one bit each.
    users: Vec<Option<u64>>,
    lost: Vec<Option<i64>>,
    added: FxHashMap<(SigIdx, u32), Vec<Option<i64>>>,
}

// A set of kinds is one machine word.
const _: () = assert!(KINDS_MAX <= 64);

impl Fragments {
    /// What is lost of a node in `state`, beyond what is lost already, when `members` of `sig` take seats there.
    ///
    /// # Panics
    /// When that many do not fit.
    pub(super) fn added(
        &mut self,
        scratch: &Scratch<'_>,
        state: StateIdx,
        sig: SigIdx,
        members: u32,
    ) -> i64 {
        if self.mix(scratch).is_empty() {
            return 0;
        }
        let row = self.added.get(&(sig, members));
        if let Some(Some(added)) = row.and_then(|row| row.get(state.index())) {
            return *added;
        }
        let mut after = scratch.state(state).clone();
        after.fill(scratch.world.signature(sig), members);
        let added = self.lost_of(scratch, &after) - self.lost(scratch, state);
        remember(self.added.entry((sig, members)).or_default(), scratch, state, added);
        added
    }

    /// What of a node in this state is lost.
    pub(super) fn lost(&mut self, scratch: &Scratch<'_>, state: StateIdx) -> i64 {
        if let Some(Some(lost)) = self.lost.get(state.index()) {
            return *lost;
        }
        let lost = self.lost_of(scratch, scratch.state(state));
        remember(&mut self.lost, scratch, state, lost);
        lost
    }

    /// How many members of the mix could use nodes of a class.
    pub(super) fn wanted(&mut self, scratch: &Scratch<'_>, class: ClassIdx) -> u64 {
        let users = self.users(scratch, class);
        let mix = self.mix(scratch).iter().enumerate();
        mix.filter(|(at, _)| users >> at & 1 == 1).map(|(_, kind)| kind.weight).sum()
    }

    fn lost_of(&mut self, scratch: &Scratch<'_>, node: &NodeState) -> i64 {
        let free = node.devices.free_milli();
        if free == 0 {
            return 0;
        }
        let users = self.users(scratch, node.class);
        let kinds = self.mix(scratch).iter().enumerate();
        let lost: u64 = kinds
            .map(|(at, kind)| {
                let usable = if users >> at & 1 == 1 { kind.usable(node) } else { 0 };
                kind.weight * ((ONE_MORE + FILLED) * free - usable)
            })
            .sum();
        lost as i64
    }

    fn mix(&mut self, scratch: &Scratch<'_>) -> &[Likely] {
        self.mix.get_or_insert_with(|| {
            let kinds = scratch.world.shapes().kinds().iter();
            kinds.map(|kind| Likely::new(scratch, kind.sig, kind.members)).collect()
        })
    }

    fn users(&mut self, scratch: &Scratch<'_>, class: ClassIdx) -> u64 {
        if let Some(Some(users)) = self.users.get(class.index()) {
            return *users;
        }
        let world = scratch.world;
        let (shape, levels) = (world.class(class), world.topology().levels());
        let kinds = world.shapes().kinds().iter().enumerate();
        let users = kinds
            .filter(|(_, kind)| world.signature(kind.sig).suits(shape, levels))
            .fold(0, |users, (at, _)| users | 1 << at);
        self.users.resize(world.class_count(), None);
        self.users[class.index()] = Some(users);
        users
    }
}

impl Likely {
    fn new(scratch: &Scratch<'_>, sig: SigIdx, members: u32) -> Self {
        let signature = scratch.world.signature(sig);
        let (devices, share) = signature.gpu();
        Self {
            weight: u64::from(members),
            devices: u32::from(devices),
            share,
            milli: signature.gpu_milli(),
            takes: signature.key.amounts.iter().collect(),
        }
    }

    /// What a node has for this kind, in thousandths of a GPU: by its devices, and by how far everything else goes;
    /// the weighted sum of both.
    #[inline]
    fn usable(&self, node: &NodeState) -> u64 {
        let (devices, on_devices) = node.devices.with_room(self.share);
        if devices < self.devices {
            return 0;
        }
        let mut goes_for = on_devices;
        for (resource, want) in &self.takes {
            let have = node.free.get(*resource);
            if have < *want {
                return 0;
            }
            // Enough for all devices in most cases, which is found without a division.
            let needed = u128::from(*want) * u128::from(goes_for);
            let there = u128::from(have) * u128::from(self.milli);
            if there < needed {
                goes_for = (there / u128::from(*want)) as u64;
            }
        }
        ONE_MORE * on_devices + FILLED * goes_for
    }
}

fn remember(row: &mut Vec<Option<i64>>, scratch: &Scratch<'_>, state: StateIdx, value: i64) {
    if row.len() <= state.index() {
        row.resize(scratch.state_count(), None);
    }
    row[state.index()] = Some(value);
}
