//! One cycle, step by step.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

use muster_core::World;
use muster_core::gang::{Gang, Seat};
use muster_core::id::{ClaimId, GangId, OfferingRef, OrderId, PoolIdx, QueueIdx, SigIdx};
use muster_core::money::Money;
use muster_core::order::ClaimState;
use muster_core::plan::{Action, ActionGroup, Plan};
use muster_core::time::{Span, Time};
use muster_core::topology::{Level, Levels, ROOT};
use muster_core::verdict::{Blocker, Late, Verdict};

use super::serve::{Looked, serve_one, waiting};
use crate::backfill::Holes;
use crate::explain::{expected_starts, helps, late_by};
use crate::grow::grow;
use crate::order::{Guard, NonPreemptibleUse, Turn, Turns, View, allowed, repairs};
use crate::place::{Ask, Fits, Want, asks};
use crate::policy::{Behind, Policy};
use crate::preempt::{Leaving, MayLook, Prey, Searches, owed};
use crate::provision::offerings_for;
use crate::reassign_nodes::{exchange, hand_over, start_sooner};
use crate::reserve::Bookings;
use crate::scratch::Scratch;
use crate::settle::{self, leave_in_time};
use crate::supply;

/// What one cycle works with.
pub(crate) struct Cycle<'w> {
    pub(crate) scratch: Scratch<'w>,
    pub(crate) fits: Fits,
    pub(crate) now: Time,
    pub(crate) policy: &'w Policy,
    /// Who keeps whom waiting: the first gang that waits for these classes, pools or this queue.
    pub(crate) ahead: Vec<GangId>,
    pub(crate) barred_pools: Vec<PoolIdx>,
    /// Offerings that had nothing to give when last asked, and are being asked again by somebody.
    pub(crate) probed: Vec<OfferingRef>,
    /// Pools in which somebody waits for room.
    pub(crate) cramped_pools: Vec<PoolIdx>,
    /// Orders whose gangs start in this cycle on what is free.
    pub(crate) sooner: Vec<OrderId>,
    /// Claims that were handed to orders in this cycle.
    pub(crate) handed: Vec<ClaimId>,
    /// Claims that are under way for nobody, or stopped.
    pub(crate) coming: Vec<ClaimId>,
    barred_queues: Vec<BarredQueue>,
    /// Gangs admitted in this cycle and their seats.
    pub(crate) admitted: Vec<(GangId, Vec<Seat>)>,
    /// How many members of a kind could ever run at once, by signature, closeness, queue and patience.
    pub(crate) most_ever: BTreeMap<(SigIdx, Option<Level>, QueueIdx, Span), u64>,
    pub(crate) orders_given: u32,
    pub(crate) claims_given: u32,
    /// How many members of a kind fitted when they were last counted, and as of which version of the scratch.
    counted: Option<(SigIdx, u64, u64)>,
    pub(crate) wake: Option<Time>,
    /// Everybody who runs and could make way, once it was asked.
    pub(crate) prey: Option<Vec<Prey<'w>>>,
    /// Gangs that make way for somebody since this cycle, or are told something else in it.
    pub(crate) making_way: Vec<GangId>,
    /// Gangs that grow in this cycle, and the seats they add.
    pub(crate) grown: BTreeMap<GangId, Vec<Seat>>,
    /// What others are leaving already.
    pub(crate) leaving: Leaving,
    /// How many gangs of a queue are stopped for others' sake in this cycle.
    pub(crate) evicted: BTreeMap<QueueIdx, u32>,
    /// For how many gangs it was looked for others that could make way, and for whom in vain.
    pub(crate) searches: Searches,
    /// A search ended at one of its bounds.
    pub(crate) was_cut: Cell<bool>,
    /// What a GPU costs for an hour, once it was asked for.
    pub(crate) gpu_hour: Option<Money>,
    /// Gangs that buy and were told how long they would wait instead.
    pub(crate) told_waits: u32,
    /// What gangs hold that cannot be preempted, once it was asked for.
    pub(crate) non_preemptible: NonPreemptibleUse,
}

/// A queue, or one user in it, for which a gang ahead waits for room under a limit.
struct BarredQueue {
    queue: QueueIdx,
    user: Option<Arc<str>>,
    ahead: GangId,
}

/// An empty World that keeps what this policy looks at.
pub fn world_for(policy: &Policy, levels: Levels) -> World {
    if policy.order.needs_baseline() { World::with_baseline(levels) } else { World::new(levels) }
}

/// Decides everything that can be decided now.
///
/// The World is only read. Before the host's first full report nothing is decided at all.
pub fn plan(world: &World, now: Time, policy: &Policy) -> Plan {
    let mut plan = Plan::default();
    if let Some(Some((mut cycle, mut holes, _))) = serve(world, now, policy, &mut plan) {
        grow(&mut cycle, &mut holes, &mut plan);
        supply::supply(&mut cycle, &mut plan);
        plan.wake = cycle.wake;
    }
    plan.verdicts.sort_unstable_by_key(|(id, _)| *id);
    plan
}

/// The cycle when everybody was served: what is left, who holds a start time, and who waits, in order.
pub(crate) type Served<'w> = (Cycle<'w>, Holes<'w>, Vec<GangId>);

/// Settles what is under way and serves the queue. `None` before the host's first full report; nothing within
/// when the queue has to wait for a rollback. Nobody has grown yet: what is grown into is taken back when it is wanted,
/// so start times are told without it.
pub(crate) fn serve<'w>(
    world: &'w World,
    now: Time,
    policy: &'w Policy,
    plan: &mut Plan,
) -> Option<Option<Served<'w>>> {
    if !world.is_synced() {
        return None;
    }
    if let Some(exchange) = exchange(world) {
        // Who is complete now is another; that is settled when the World has been told.
        plan.groups.push(ActionGroup { gang: None, actions: vec![exchange] });
        tell_all(world, policy, plan);
        put_off(world, policy, plan);
        return Some(None);
    }
    settle::settle(world, now, policy, plan);
    leave_in_time(world, now, plan);
    let changes_supply =
        |action: &Action| matches!(action, Action::RollBack { .. } | Action::TopUp { .. });
    if plan.actions().any(changes_supply) {
        // Who was rolled back has his place in the queue again, and the offering is known to fail, only when
        // the World has been told. Until then nobody is served past him.
        put_off(world, policy, plan);
        return Some(None);
    }
    let mut cycle = Cycle::new(world, now, policy);
    cycle.wake = earliest(plan.wake, world.next_trusted());
    cycle.making_way = plan.actions().filter_map(disturbs).collect();
    let (mut verdicts, mut holes) = serve_all(&mut cycle, plan);
    start_sooner(&mut cycle, &holes, plan);
    hand_over(&mut cycle, plan);
    number(&mut verdicts);
    let must_wait = |(id, verdict): &(GangId, Verdict)| {
        matches!(verdict, Verdict::Waiting { .. }).then_some(*id)
    };
    let waiting: Vec<GangId> = verdicts.iter().filter_map(must_wait).collect();
    let bookings = std::mem::take(&mut holes.bookings);
    holes.bookings = tell_the_late(&mut cycle, bookings, &waiting, &mut verdicts);
    tell_who_stops(plan);
    plan.verdicts.extend(verdicts);
    Some(Some((cycle, holes, waiting)))
}

/// The gang that an action stops or resizes.
fn disturbs(action: &Action) -> Option<GangId> {
    match action {
        Action::Stop { gang, .. } | Action::Resize { gang, .. } => Some(*gang),
        _ => None,
    }
}

/// Says of gangs that are told to stop in this cycle that they do.
fn tell_who_stops(plan: &mut Plan) {
    let Plan { groups, verdicts, .. } = plan;
    for action in groups.iter().flat_map(|group| &group.actions) {
        if let Action::Stop { gang, .. } = action
            && let Some((_, verdict)) = verdicts.iter_mut().find(|(id, _)| id == gang)
        {
            *verdict = Verdict::Stopping;
        }
    }
}

/// Says of gangs that wait and cannot be done by their deadline how late they would be, and what would help.
fn tell_the_late<'w>(
    cycle: &mut Cycle<'w>,
    bookings: Bookings<'w>,
    waiting: &[GangId],
    verdicts: &mut [(GangId, Verdict)],
) -> Bookings<'w> {
    let world = cycle.scratch.world;
    let has_deadline =
        |id: &GangId| world.gang(*id).is_some_and(|gang| gang.spec.deadline.is_some());
    if !waiting.iter().any(has_deadline) {
        return bookings;
    }
    let starts = expected_starts(cycle, bookings.clone(), waiting);
    let mut told = 0;
    for (id, verdict) in verdicts {
        let Verdict::Waiting { late, .. } = verdict else { continue };
        let gang = world.gang(*id).expect("it waits");
        let Some(by) = starts.get(id).and_then(|start| late_by(gang, *start)) else { continue };
        // Starting now must be early enough for anything to help.
        let in_time = late_by(gang, cycle.now).is_none() && told < TOLD;
        told += 1;
        let helps = if in_time { helps(cycle, &bookings, gang) } else { Vec::new() };
        *late = Some(Box::new(Late { by, helps }));
    }
    bookings
}

/// With more gangs due than this only the first holds a start time: promises to a crowd idle the nodes that
/// would make it smaller.
const CROWD: usize = 20;

/// Late gangs that are told what would help in one cycle, at most.
const TOLD: u32 = 16;

/// Serves the queue in order. Under a discipline with reservations, those who must wait and are entitled to it
/// get a start time, and those behind them are served in the holes beside it.
fn serve_all<'w>(cycle: &mut Cycle<'w>, plan: &mut Plan) -> (Vec<(GangId, Verdict)>, Holes<'w>) {
    let world = cycle.scratch.world;
    let discipline = cycle.policy.order.discipline();
    let view = View { world, now: cycle.now, guard: Guard::of(world, cycle.now) };
    let mut turns = Turns::new(&view, discipline);
    let mut holes = Holes::default();
    let mut verdicts = Vec::new();
    let mut tried: u32 = 0;
    // Gangs that are entitled to a start time. Where nobody reads verdicts it is worked out only when somebody
    // comes who could go before.
    let mut owed: Vec<GangId> = Vec::new();
    // Who lost a node keeps what it had, and goes first.
    let mut first = repairs(world);
    let repaired: Vec<GangId> = first.iter().map(|turn| turn.id).collect();
    let mut next = |turns: &mut Turns<'w>, scratch: &Scratch<'_>| {
        first.pop_front().or_else(|| {
            std::iter::from_fn(|| turns.next(scratch)).find(|turn| !repaired.contains(&turn.id))
        })
    };
    while let Some(turn) = next(&mut turns, &cycle.scratch) {
        let entitled = match discipline.behind() {
            Behind::Backfill(most) => holes.len() + owed.len() < most,
            Behind::BackfillDue(most) => {
                let held = holes.len() + owed.len();
                let first = turns.is_shared() && held == 0;
                let most = || if turns.due() > CROWD { 1 } else { most };
                (turn.due || first) && held < most()
            }
            Behind::Barred | Behind::Free => false,
        };
        if tried >= cycle.policy.trials {
            if cycle.policy.explain {
                verdicts.push((turn.id, waiting([Blocker::NotConsidered])));
            }
            continue;
        }
        let hopeless = !cycle.policy.explain && cycle.is_hopeless(&turn);
        if hopeless && !entitled {
            continue;
        }
        if !hopeless {
            for id in owed.drain(..) {
                let gang = world.gang(id).expect("it waits");
                promise(cycle, id, gang, &mut holes, plan);
            }
        }
        let quiet = !cycle.policy.explain && !world.has_disruptable();
        if quiet && !entitled && holes.is_in_the_way(cycle, &turn) {
            continue;
        }
        tried += 1;
        cycle.searches.next_turn();
        let gang = world.gang(turn.id).expect("it waits");
        // Who stands behind another under a limit is not first: nobody knows when it will be.
        let may_start = cycle.barred_by(gang).is_none()
            && cycle.closed_to(gang).is_none()
            && allowed::refused(cycle, gang).is_none();
        let entitled = entitled && may_start;
        let mut verdict = serve_one(cycle, turn.id, gang, &mut holes, plan);
        match &mut verdict {
            Verdict::Admitted | Verdict::Provisioning { .. } => {
                turns.given(world, gang.queue);
                cycle.non_preemptible.start(gang);
            }
            Verdict::Waiting { start, .. } if entitled => {
                let first = holes.is_empty() && owed.is_empty();
                if cycle.policy.explain {
                    *start = promise(cycle, turn.id, gang, &mut holes, plan);
                } else {
                    owed.push(turn.id);
                }
                if first {
                    turns.backfill(&view, discipline);
                }
            }
            _ => {}
        }
        if cycle.policy.explain {
            verdicts.push((turn.id, verdict));
        }
    }
    // Who could grow must keep off what is promised.
    for id in owed.drain(..).filter(|_| world.has_disruptable()) {
        promise(cycle, id, world.gang(id).expect("it waits"), &mut holes, plan);
    }
    (verdicts, holes)
}

/// Gives a gang that must wait a start time, if waiting is enough for it; else those behind it stay off what it
/// waits for.
fn promise<'w>(
    cycle: &mut Cycle<'w>,
    id: GangId,
    gang: &Gang,
    holes: &mut Holes<'w>,
    plan: &mut Plan,
) -> Option<Time> {
    match holes.bookings.earliest(cycle, id, gang) {
        Some(booking) => {
            let start = booking.start;
            plan.reservations.push((id, start));
            holes.keep(gang, booking);
            Some(start)
        }
        None => {
            cycle.bar(id, gang);
            None
        }
    }
}

/// Says of everybody who does not wait where he stands.
fn tell_all(world: &World, policy: &Policy, plan: &mut Plan) {
    if policy.explain {
        let told =
            world.gangs().filter_map(|(id, gang)| Some((id, settle::standing(world, gang)?)));
        plan.verdicts.extend(told);
    }
}

/// Puts everybody who waits off to the next cycle.
fn put_off(world: &World, policy: &Policy, plan: &mut Plan) {
    if policy.explain {
        let waiting = world.waiting().iter().map(|w| (w.id, waiting([Blocker::NotConsidered])));
        let mut verdicts = waiting.collect::<Vec<_>>();
        number(&mut verdicts);
        plan.verdicts.extend(verdicts);
    }
}

/// Numbers those that wait, in the order they were served.
fn number(verdicts: &mut [(GangId, Verdict)]) {
    let mut next = 1;
    for (_, verdict) in verdicts {
        if let Verdict::Waiting { position, .. } = verdict {
            *position = next;
            next += 1;
        }
    }
}

impl<'w> Cycle<'w> {
    fn new(world: &'w World, now: Time, policy: &'w Policy) -> Self {
        Self {
            scratch: Scratch::new(world),
            fits: Fits::default(),
            now,
            policy,
            ahead: Vec::new(),
            barred_pools: Vec::new(),
            cramped_pools: Vec::new(),
            probed: Vec::new(),
            sooner: Vec::new(),
            handed: Vec::new(),
            coming: coming(world, now),
            barred_queues: Vec::new(),
            admitted: Vec::new(),
            most_ever: BTreeMap::new(),
            orders_given: 0,
            claims_given: 0,
            counted: None,
            wake: None,
            prey: None,
            making_way: Vec::new(),
            grown: BTreeMap::new(),
            leaving: Leaving::of(world),
            evicted: owed(world),
            searches: Searches::default(),
            was_cut: Cell::new(false),
            gpu_hour: None,
            told_waits: 0,
            non_preemptible: NonPreemptibleUse::default(),
        }
    }

    /// Somebody waits for room in the pools that could serve him.
    pub(crate) fn cramp(&mut self, gang: &Gang) {
        for ask in asks(&self.scratch, gang) {
            let pools = offerings_for(self, gang, &ask).into_iter().map(|offering| offering.pool);
            self.cramped_pools.extend(pools);
        }
    }

    /// Asking again for a claim that the provider put off, or when to.
    pub(crate) fn retry(&self, claim: ClaimId) -> Option<Result<Action, Time>> {
        settle::retry(self.scratch.world, self.now, self.policy, claim)
    }

    /// Looks for others that could make way, if that has a prospect and was not looked for too often.
    pub(crate) fn look_for_others(
        &mut self,
        id: GangId,
        gang: &Gang,
        holes: &mut Holes<'w>,
    ) -> Looked {
        if !self.scratch.world.has_disruptable() {
            return Looked { offer: None, spent: false };
        }
        if let MayLook::No { spent } = self.may_look(gang) {
            return Looked { offer: None, spent };
        }
        self.was_cut.set(false);
        let offer = holes.ask_others(self, id);
        let spent = offer.is_none() && self.was_cut.get();
        if offer.is_none() {
            self.looked_in_vain(gang, spent);
        }
        Looked { offer, spent }
    }

    /// Whether a look at the numbers shows that a gang does not start, and nothing can be bought for it.
    fn is_hopeless(&mut self, turn: &Turn) -> bool {
        if self.scratch.world.has_disruptable() {
            return false;
        }
        let Some((sig, needs)) = turn.simple.filter(|_| self.scratch.world.pools().is_empty())
        else {
            return false;
        };
        let version = self.scratch.version();
        let free = match self.counted {
            Some((of, at, free)) if (of, at) == (sig, version) => free,
            _ => self.fits.in_domain(&self.scratch, ROOT, Want::any(sig)),
        };
        self.counted = Some((sig, version, free));
        free < u64::from(needs) && self.policy.order.discipline().behind() != Behind::Barred
    }

    /// The gang ahead that waits for room under a limit that holds for this one too.
    pub(crate) fn barred_by(&self, gang: &Gang) -> Option<GangId> {
        let shares = |barred: &&BarredQueue| {
            barred.user.as_ref().is_none_or(|user| *user == gang.spec.user)
                && self.scratch.world.queue_path(gang.queue).any(|queue| queue == barred.queue)
        };
        self.barred_queues.iter().find(shares).map(|barred| barred.ahead)
    }

    /// The queue of a gang, or one above it, that takes nobody.
    pub(crate) fn closed_to(&self, gang: &Gang) -> Option<QueueIdx> {
        let world = self.scratch.world;
        world.queue_path(gang.queue).find(|queue| !world.queue(*queue).is_open())
    }

    /// Those behind a gang that waits for room under a limit, and share that limit, do not slip past it.
    pub(crate) fn bar_queue(&mut self, id: GangId, gang: &Gang, over: &Blocker) {
        if self.policy.order.discipline().behind() == Behind::Free {
            return;
        }
        let (queue, user) = match over {
            Blocker::QueueLimit { queue, .. } => (*queue, None),
            Blocker::UserLimit { queue, .. } => (*queue, Some(gang.spec.user.clone())),
            _ => return,
        };
        self.barred_queues.push(BarredQueue { queue, user, ahead: id });
    }

    /// Those behind a waiting gang stay off the nodes and pools it waits for.
    pub(crate) fn bar(&mut self, id: GangId, gang: &Gang) {
        self.ahead.push(id);
        let world = self.scratch.world;
        for ask in asks(&self.scratch, gang) {
            for (state, _) in world.capacity().tally(muster_core::topology::ROOT).entries() {
                let class = world.states().get(*state).class;
                if !self.scratch.is_barred(class) && self.could_use(&ask, class) {
                    self.scratch.bar(class);
                }
            }
            for offering in offerings_for(self, gang, &ask) {
                if !self.barred_pools.contains(&offering.pool) {
                    self.barred_pools.push(offering.pool);
                }
            }
        }
    }

    /// Whether a class of nodes, when empty, takes members of a role.
    fn could_use(&mut self, ask: &Ask, class: muster_core::id::ClassIdx) -> bool {
        let world = self.scratch.world;
        let signature = world.signature(ask.sig);
        signature.times_fits(&world.empty_state(class)) > 0
            && (signature.must != muster_core::signature::Reach::Class
                || self
                    .fits
                    .score(&self.scratch, ask.sig, class, muster_core::topology::ROOT)
                    .is_some())
    }
}

/// Claims that a gang may be promised the nodes of.
fn coming(world: &World, now: Time) -> Vec<ClaimId> {
    world.claims().keys().filter(|id| can_be_promised(world, now, **id)).copied().collect()
}

/// Whether the node of a claim can be promised to somebody: it is nobody's, and will come. What is overdue will not,
/// and what was only asked for will not either where there is nothing left.
pub(crate) fn can_be_promised(world: &World, now: Time, id: ClaimId) -> bool {
    let claim = &world.claims()[&id];
    let in_time = world.claim_due(id).is_none_or(|(_, due)| now < due);
    let asked = claim.state == ClaimState::Requested;
    let in_vain = asked && world.offering(claim.offering).health.is_out();
    world.is_for_anybody(id) && in_time && !in_vain
}

/// The earlier of two instants that may not come.
pub(crate) fn earliest(a: Option<Time>, b: Option<Time>) -> Option<Time> {
    a.into_iter().chain(b).min()
}
