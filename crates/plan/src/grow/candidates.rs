//! Gangs that could have more members, and what they would gain.
//!
//! A gang that runs stands still for a while when it is resized; it grows only if it is done sooner all the same. A
//! gang that runs with fewer members than its owner now asks for gets all that it lacks as soon as there is room for
//! all of them, and no part of that before.

use muster_core::World;
use muster_core::gang::{Closeness, Gang, Phase, Seat, members_of};
use muster_core::id::{DomainIdx, GangId};
use muster_core::progress::stretched;
use muster_core::time::{Span, Time};
use muster_core::topology::{Level, ROOT};
use smallvec::SmallVec;

use super::progress::{behind, left};
use crate::cycle::{Cycle, earliest};
use crate::order::quota;
use crate::scratch::Scratch;

/// A pause must bring this many times what it costs.
const WORTH: u64 = 2;
/// A gang that declined to grow is left alone this many times as long as one that was resized.
const DECLINED: u64 = 12;

/// A gang that could have more members.
pub(super) struct GrowthCandidate<'w> {
    pub(super) id: GangId,
    pub(super) gang: &'w Gang,
    /// It starts in this cycle, and with more members if there is room.
    pub(super) starts: bool,
    /// Where more members may be.
    pub(super) domain: DomainIdx,
    /// What is left to do, with every role at its `max`.
    left: Span,
    /// What earlier pauses have cost it beyond what they gained.
    behind: Span,
    /// Members in each role, those added included.
    members: SmallVec<[u32; 2]>,
    pub(super) added: Vec<Seat>,
    /// What it could get was too little; it gets nothing in this cycle.
    pub(super) is_out: bool,
}

impl GrowthCandidate<'_> {
    /// Members in roles with a choice.
    fn elastic(&self) -> u32 {
        let roles = self.gang.spec.roles.iter().zip(&self.members);
        roles.filter(|(role, _)| role.min < role.max).map(|(_, members)| *members).sum()
    }

    /// The role that has least of what it can have.
    pub(super) fn next_role(&self) -> Option<u16> {
        let roles = self.members.iter().enumerate();
        let roles = roles.map(|(at, members)| (at as u16, *members, self.gang.most_in(at as u16)));
        let room = roles.filter(|(_, members, most)| members < most);
        let (role, ..) = room.min_by_key(|(at, members, most)| {
            let lacks = *members < self.gang.needs_in(*at);
            (!lacks, u64::from(*members) * 1_000 / u64::from(*most), *at)
        })?;
        Some(role)
    }

    /// Whether it has all members that its owner now asks for.
    fn meets_request(&self) -> bool {
        let mut roles = self.members.iter().enumerate();
        roles.all(|(at, members)| *members >= self.gang.needs_in(at as u16))
    }

    /// Speed gained by one more member, for each GPU it takes and each second left; only the order matters. A gang
    /// that is done sooner frees its nodes for the others sooner.
    pub(super) fn gain(&self, world: &World, role: u16) -> f64 {
        if self.gang.is_short() {
            return if self.meets_request() { 0.0 } else { f64::MAX };
        }
        let now = self.elastic();
        let more = self.gang.speed_with(now + 1) - self.gang.speed_with(now);
        let signature = world.signature(self.gang.sigs[usize::from(role)]);
        more / signature.gpu_milli().max(100) as f64 / self.left.as_secs_f64().max(1.0)
    }

    /// Has one more member.
    pub(super) fn add(&mut self, role: u16, seats: Vec<Seat>) {
        self.members[usize::from(role)] += 1;
        self.added.extend(seats);
    }

    /// Whether what was added, if anything was, makes up for standing still.
    pub(super) fn pays(&self) -> bool {
        if self.gang.is_short() {
            return self.added.is_empty() || self.meets_request();
        }
        self.added.is_empty()
            || self.is_worth(self.elastic() - members_of(&self.added), self.elastic())
    }

    /// Whether a change of members makes up for standing still.
    fn is_worth(&self, before: u32, after: u32) -> bool {
        let takes = |members| stretched(self.left, self.gang.speed_with(members)).0;
        let won = takes(before).saturating_sub(takes(after));
        let costs = self.gang.spec.scaling.resize.saturating_mul(WORTH) + self.behind;
        self.starts || won > costs.0
    }

    /// Whether all it could have would be worth a pause.
    fn is_worth_asking(&self) -> bool {
        self.gang.is_short() || self.is_worth(self.elastic(), self.gang.spec.most_elastic())
    }

    /// Gives up the seats it was to get, for other gangs.
    pub(super) fn give_back(&mut self, free: &mut Scratch<'_>, books: &mut Scratch<'_>) {
        free.rise(self.gang, &self.added);
        quota::refund_seats(books, self.gang, &self.added);
        for seat in self.added.drain(..) {
            self.members[usize::from(seat.role)] -= u32::from(seat.members);
        }
        self.is_out = true;
    }
}

/// All gangs that could have more members now.
pub(super) fn growable<'w>(cycle: &mut Cycle<'w>) -> Vec<GrowthCandidate<'w>> {
    let world = cycle.scratch.world;
    let mut growing = Vec::new();
    for (id, seats) in &cycle.given.admitted {
        let gang = world.gang(*id).expect("it was just admitted");
        // An order completes with exactly what it reserved.
        if !gang.spec.is_rigid() && gang.phase == Phase::Waiting {
            growing.extend(one(world, cycle.now, *id, gang, seats, true));
        }
    }
    let mut wake = None;
    for (id, gang) in world.gangs() {
        let left_alone = world.broken().contains_key(&id) || world.cancelled().contains(&id);
        let has_choice = !gang.spec.is_rigid() || gang.is_short();
        if !has_choice || !gang.is_steady() || left_alone || cycle.is_disrupted(id) {
            continue;
        }
        let Some(one) = one(world, cycle.now, id, gang, &gang.seats, false) else { continue };
        match settles(cycle, gang).filter(|_| !gang.is_short()) {
            Some(until) => wake = earliest(wake, Some(until)),
            None => growing.push(one),
        }
    }
    cycle.wake = earliest(cycle.wake, wake);
    growing
}

/// Gangs that would have more members if there were room for them, in which role, and how many: as many as limits
/// allow, of gangs that have use for them and have not declined a while ago. A gang that is being resized, or just
/// was, grows later.
pub(crate) fn below_maximum<'w>(cycle: &Cycle<'w>) -> Vec<(&'w Gang, u16, u32)> {
    let (world, now) = (cycle.scratch.world, cycle.now);
    let mut lacking = Vec::new();
    for (id, gang) in world.gangs() {
        let left_alone = world.broken().contains_key(&id) || world.cancelled().contains(&id);
        let runs = matches!(gang.phase, Phase::Running { .. });
        if gang.spec.is_rigid() || !runs || left_alone || cycle.is_disrupted(id) {
            continue;
        }
        let declines = gang.declined.map(|at| at + cycle.policy.settle_in.saturating_mul(DECLINED));
        if declines.is_some_and(|until| until > now) {
            continue;
        }
        let mut seats = gang.resize.as_ref().map_or(&gang.seats, |resize| &resize.to).clone();
        seats.extend(cycle.given.grown.get(&id).into_iter().flatten());
        let Some(one) = one(world, now, id, gang, &seats, false) else { continue };
        for (role, (spec, members)) in gang.spec.roles.iter().zip(&one.members).enumerate() {
            let more = spec.max.saturating_sub(*members);
            let allows = |count: u32| quota::allows(&cycle.scratch, gang, gang.sigs[role], count);
            let most = most_allowed(more, allows);
            if most > 0 {
                lacking.push((gang, role as u16, most));
            }
        }
    }
    lacking
}

/// The most of so many that is allowed, where fewer are allowed whenever more are.
fn most_allowed(most: u32, allows: impl Fn(u32) -> bool) -> u32 {
    let (mut least, mut above) = (0, most + 1);
    while above - least > 1 {
        let middle = least + (above - least) / 2;
        if allows(middle) {
            least = middle;
        } else {
            above = middle;
        }
    }
    least
}

/// Until when a gang that was resized, or declined to be, is left as it is.
fn settles(cycle: &Cycle<'_>, gang: &Gang) -> Option<Time> {
    let settle_in = cycle.policy.settle_in;
    let until = |at: Option<Time>, times: u64| Some(at? + settle_in.saturating_mul(times));
    let until = until(gang.resized, 1).max(until(gang.declined, DECLINED));
    until.filter(|until| *until > cycle.now)
}

/// A gang as a candidate, if it may have more members and would gain by them.
fn one<'w>(
    world: &World,
    now: Time,
    id: GangId,
    gang: &'w Gang,
    seats: &[Seat],
    starts: bool,
) -> Option<GrowthCandidate<'w>> {
    let mut members: SmallVec<[u32; 2]> = gang.spec.roles.iter().map(|_| 0).collect();
    for seat in seats {
        members[usize::from(seat.role)] += u32::from(seat.members);
    }
    let (domain, left) = (home(world, gang, seats)?, left(gang, now));
    let (behind, added) = (behind(gang, now), Vec::new());
    let one =
        GrowthCandidate { id, gang, starts, domain, left, behind, members, added, is_out: false };
    (one.next_role().is_some() && one.is_worth_asking()).then_some(one)
}

/// Where more members may be: where the others are if they must stay together.
fn home(world: &World, gang: &Gang, seats: &[Seat]) -> Option<DomainIdx> {
    match (&gang.spec.closeness, gang.level) {
        (Some(Closeness::Required(_)), Some(Level::Domain(level))) => {
            let leaf = world.node(seats.first()?.node)?.leaf;
            world.topology().around(leaf, level)
        }
        // All on one node: there is no room for more elsewhere.
        (Some(Closeness::Required(_)), Some(Level::Node)) => None,
        _ => Some(ROOT),
    }
}
