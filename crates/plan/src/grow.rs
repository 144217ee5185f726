//! Step 5: let elastic gangs grow into what is left.
//!
//! A member at a time goes to the queue that has least for its weight, and there to the gang that wins most by it:
//! speed for each GPU, and more so the less it has left to do. A gang that runs stands still for a while when it is
//! resized; it grows only if it is done sooner all the same. Nobody who holds a start time is delayed, and nodes
//! that cost money are neither bought nor kept for it, unless their pool says so.

use muster_core::World;
use muster_core::gang::{Gang, Phase, Seat};
use muster_core::id::{DomainIdx, GangId};
use muster_core::order::ClaimState;
use muster_core::plan::{Action, ActionGroup, Plan};
use muster_core::time::Span;
use muster_core::topology::{Level, ROOT};
use muster_core::work::stretched;

use crate::backfill::Holes;
use crate::cycle::{Cycle, earliest};
use crate::place::{Ask, Fits, Want, fill_domain};
use crate::quota;
use crate::scratch::Scratch;

/// Members added in one cycle, at most.
const STEPS: usize = 4_096;
/// A pause must bring this many times what it costs.
const WORTH: u64 = 2;

/// A gang that could have more members.
struct Growing<'w> {
    id: GangId,
    gang: &'w Gang,
    /// It starts in this cycle, and with more members if there is room.
    starts: bool,
    domain: DomainIdx,
    /// Members in each role, those added included.
    members: Vec<u32>,
    added: Vec<Seat>,
    full: bool,
}

impl Growing<'_> {
    fn elastic(&self) -> u32 {
        let roles = self.gang.spec.roles.iter().zip(&self.members);
        roles.filter(|(role, _)| role.min < role.max).map(|(_, members)| *members).sum()
    }
    /// The role that has least of what it can have.
    fn next_role(&self) -> Option<u16> {
        let roles = self.gang.spec.roles.iter().zip(&self.members).enumerate();
        let room = roles.filter(|(_, (role, members))| **members < role.max);
        room.min_by_key(|(at, (role, members))| {
            (u64::from(**members) * 1_000 / u64::from(role.max), *at)
        })
        .map(|(at, _)| at as u16)
    }
    /// What is left to do, with every role at its `max`, if its submitter is right.
    fn left(&self, cycle: &Cycle<'_>) -> Span {
        let work = self.gang.work;
        let done = if self.starts { work.done } else { work.done_by(cycle.now, self.gang.speed()) };
        let said = self.gang.spec.said_duration();
        // Who has outlived what was said is taken to have a tenth of it left.
        Span(said.0.saturating_sub(done.0).max(said.0 / 10))
    }
    /// Speed won by one more member, for each GPU it takes and each second left; what counts is the order.
    fn gain(&self, cycle: &Cycle<'_>, role: u16) -> f64 {
        let now = self.elastic();
        let more = self.gang.speed_with(now + 1) - self.gang.speed_with(now);
        let signature = cycle.scratch.world.signature(self.gang.sigs[usize::from(role)]);
        let gpus = signature.gpu_milli().max(100) as f64;
        more / gpus / self.left(cycle).as_secs_f64().max(1.0)
    }
    /// Whether what was added makes up for standing still.
    fn pays(&self, cycle: &Cycle<'_>) -> bool {
        let added: u32 = self.added.iter().map(|seat| u32::from(seat.members)).sum();
        let (before, after) = (self.elastic() - added, self.elastic());
        let left = self.left(cycle);
        let takes = |members| stretched(left, self.gang.speed_with(members)).0;
        let won = takes(before).saturating_sub(takes(after));
        self.starts || won > self.gang.spec.scaling.resize.0.saturating_mul(WORTH)
    }
}

/// Gives what is left to gangs that can use it.
pub(crate) fn grow<'w>(cycle: &mut Cycle<'w>, holes: &mut Holes<'w>, plan: &mut Plan) {
    if !cycle.scratch.world.has_disruptable() {
        return;
    }
    let mut growing = who_can(cycle);
    if growing.is_empty() {
        return;
    }
    if let Some((mut apart, mut fits)) = holes.apart(cycle) {
        hand_out(cycle, &mut apart, &mut fits, &mut growing);
    } else {
        let mut fits = std::mem::take(&mut cycle.fits);
        let mut scratch = cycle.scratch.later();
        hand_out(cycle, &mut scratch, &mut fits, &mut growing);
    }
    // What was counted belongs to another scratch.
    cycle.fits = Fits::default();
    for one in growing {
        if one.added.is_empty() || !one.pays(cycle) {
            continue;
        }
        cycle.scratch.sit(one.gang, &one.added);
        quota::charge_seats(&mut cycle.scratch, one.gang, &one.added);
        tell(one, plan);
    }
}

fn tell(one: Growing<'_>, plan: &mut Plan) {
    if !one.starts {
        let mut seats = one.gang.seats.clone();
        seats.extend(one.added);
        let actions = vec![Action::Resize { gang: one.id, seats }];
        plan.groups.push(ActionGroup { gang: Some(one.id), actions });
        return;
    }
    let actions = plan.groups.iter_mut().flat_map(|group| &mut group.actions);
    for action in actions {
        if let Action::Admit { gang, seats } = action
            && *gang == one.id
        {
            seats.extend(&one.added);
            seats.sort_by_key(|seat| seat.role);
        }
    }
}

/// Everybody who could have more members now.
fn who_can<'w>(cycle: &mut Cycle<'w>) -> Vec<Growing<'w>> {
    let world = cycle.scratch.world;
    let mut growing = Vec::new();
    for (id, seats) in &cycle.admitted {
        let gang = world.gang(*id).expect("it was just admitted");
        // What an order completes with is what it reserved.
        if !gang.spec.is_rigid() && gang.phase == Phase::Waiting {
            growing.extend(one(world, *id, gang, seats, true));
        }
    }
    let mut wake = None;
    for (id, gang) in world.gangs() {
        let left_alone = world.broken().contains_key(&id) || world.cancelled().contains(&id);
        if gang.spec.is_rigid() || !gang.is_steady() || left_alone || cycle.is_making_way(id) {
            continue;
        }
        let settled = |at: Option<muster_core::time::Time>, times: u64| {
            let until = at? + cycle.policy.settle_in.saturating_mul(times);
            (until > cycle.now).then_some(until)
        };
        let until = settled(gang.resized, 1).max(settled(gang.declined, 12));
        match until {
            Some(until) => wake = earliest(wake, Some(until)),
            None => growing.extend(one(world, id, gang, &gang.seats, false)),
        }
    }
    cycle.wake = earliest(cycle.wake, wake);
    growing
}

fn one<'w>(
    world: &World,
    id: GangId,
    gang: &'w Gang,
    seats: &[Seat],
    starts: bool,
) -> Option<Growing<'w>> {
    let members: Vec<u32> = (0..gang.spec.roles.len())
        .map(|role| {
            let mine = seats.iter().filter(|seat| usize::from(seat.role) == role);
            mine.map(|seat| u32::from(seat.members)).sum()
        })
        .collect();
    let domain = home(world, gang, seats)?;
    let growing = Growing { id, gang, starts, domain, members, added: Vec::new(), full: false };
    growing.next_role().is_some().then_some(growing)
}

/// Where more members may be: where the others are if they must stay together.
fn home(world: &World, gang: &Gang, seats: &[Seat]) -> Option<DomainIdx> {
    use muster_core::gang::Closeness;
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

/// Hands out members one at a time.
fn hand_out<'w>(
    cycle: &Cycle<'w>,
    scratch: &mut Scratch<'w>,
    fits: &mut Fits,
    growing: &mut [Growing<'w>],
) {
    close_what_costs(cycle.scratch.world, scratch);
    // What is free throughout says nothing of what counts for limits now.
    let mut books = cycle.scratch.later();
    for _ in 0..STEPS {
        let open = growing.iter().enumerate().filter(|(_, one)| !one.full);
        let best = open
            .filter_map(|(at, one)| {
                let role = one.next_role()?;
                let gain = one.gain(cycle, role);
                // Who is no faster for it has no use for more.
                (gain > 0.0).then(|| (share(&books, one.gang), -gain, at, role))
            })
            .min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.cmp(&b.2)));
        let Some((_, _, at, role)) = best else { return };
        let one = &mut growing[at];
        let sig = one.gang.sigs[usize::from(role)];
        let ask = Ask { role, sig, count: 1 };
        let want = Want::any(sig);
        let allowed = quota::allows(&books, one.gang, sig, 1);
        let mut seats = Vec::new();
        if !allowed || fill_domain(scratch, fits, one.domain, &ask, want, 1, &mut seats) == 0 {
            one.full = true;
            continue;
        }
        books.charge(one.gang, sig, 1);
        one.members[usize::from(role)] += 1;
        one.added.extend(seats);
    }
}

/// What a gang's queue holds for its weight.
fn share(scratch: &Scratch<'_>, gang: &Gang) -> f64 {
    let queue = scratch.world.queue(gang.queue);
    let held = scratch.queue_usage(gang.queue).gpu_milli as f64;
    held / f64::from(queue.spec.weight).max(f64::MIN_POSITIVE)
}

/// Nodes that cost money are not kept for growth, unless their pool says so.
fn close_what_costs(world: &World, scratch: &mut Scratch<'_>) {
    for claim in world.claims().values() {
        let ClaimState::Ready(node) = claim.state else { continue };
        let pool = &world.pools()[claim.offering.pool].spec;
        let costs = world.offering(claim.offering).spec.marginal_price().0 > 0;
        if costs && !pool.grow {
            scratch.close(node);
        }
    }
}
