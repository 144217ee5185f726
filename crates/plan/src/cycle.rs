//! One cycle, step by step.

use std::collections::{BTreeMap, VecDeque};

use muster_core::World;
use muster_core::gang::{Gang, Seat};
use muster_core::id::{GangId, PoolIdx, QueueIdx, SigIdx};
use muster_core::plan::{Action, ActionGroup, Plan};
use muster_core::time::{Span, Time};
use muster_core::topology::Level;
use muster_core::verdict::{Blocker, Verdict};
use smallvec::SmallVec;

use crate::backfill::Holes;
use crate::place::{Fits, asks, place};
use crate::policy::{Behind, Policy};
use crate::provision::{Blockers, may_order, offerings_for, provision};
use crate::reserve::reserve;
use crate::scratch::Scratch;
use crate::{explain, order, quota, settle, supply};

/// What one cycle works with.
pub(crate) struct Cycle<'w> {
    pub(crate) scratch: Scratch<'w>,
    pub(crate) fits: Fits,
    pub(crate) now: Time,
    pub(crate) policy: &'w Policy,
    /// Who keeps whom waiting: the first gang that waits for these classes, pools or this queue.
    ahead: Vec<GangId>,
    pub(crate) barred_pools: Vec<PoolIdx>,
    barred_queues: Vec<(QueueIdx, GangId)>,
    /// Gangs admitted in this cycle and their seats.
    pub(crate) admitted: Vec<(GangId, Vec<Seat>)>,
    /// How many members of a kind could ever run at once, by signature, closeness, queue and patience.
    pub(crate) most_ever: BTreeMap<(SigIdx, Option<Level>, QueueIdx, Span), u64>,
    pub(crate) orders_given: u32,
    pub(crate) claims_given: u32,
    pub(crate) wake: Option<Time>,
}

/// Decides everything that can be decided now.
///
/// The World is only read. Before the host's first full report nothing is decided at all.
pub fn plan(world: &World, now: Time, policy: &Policy) -> Plan {
    let mut plan = Plan::default();
    if !world.is_synced() {
        return plan;
    }
    settle::settle(world, now, &mut plan);
    if plan.actions().any(|action| matches!(action, Action::RollBack { .. })) {
        // Who was rolled back has his place in the queue again, and the offering is known to fail, only when
        // the World has been told. Until then nobody is served past him.
        put_off(world, now, policy, &mut plan);
        return plan;
    }

    let mut cycle = Cycle {
        scratch: Scratch::new(world),
        fits: Fits::default(),
        now,
        policy,
        ahead: Vec::new(),
        barred_pools: Vec::new(),
        barred_queues: Vec::new(),
        admitted: Vec::new(),
        most_ever: BTreeMap::new(),
        orders_given: 0,
        claims_given: 0,
        wake: plan.wake,
    };
    let queue = order::order(world, now, policy);
    let mut verdicts = serve_all(&mut cycle, queue, &mut plan);
    number(&mut verdicts);
    plan.verdicts.extend(verdicts);
    supply::supply(&mut cycle, &mut plan);
    plan.wake = cycle.wake;
    plan.verdicts.sort_unstable_by_key(|(id, _)| *id);
    plan
}

/// Serves the queue in order. Under a discipline with reservations, the first gang that must wait gets a
/// start time, and those behind it are served in the holes beside it.
fn serve_all(cycle: &mut Cycle<'_>, queue: Vec<GangId>, plan: &mut Plan) -> Vec<(GangId, Verdict)> {
    let world = cycle.scratch.world;
    let mut verdicts = Vec::with_capacity(queue.len());
    let mut holes: Option<Holes<'_>> = None;
    let mut rest: VecDeque<GangId> = queue.into();
    while let Some(id) = rest.pop_front() {
        if verdicts.len() >= cycle.policy.trials as usize {
            verdicts.push((id, waiting([Blocker::NotConsidered])));
            continue;
        }
        let gang = world.gang(id).expect("it waits");
        let verdict = serve(cycle, id, gang, holes.as_mut(), plan);
        let must_wait = matches!(verdict, Verdict::Waiting { .. });
        verdicts.push((id, verdict));
        let reserves = match cycle.policy.order.discipline().behind() {
            Behind::Backfill => true,
            Behind::BackfillOldest => verdicts.len() == 1,
            Behind::Barred | Behind::Free => false,
        };
        if must_wait && holes.is_none() && reserves {
            match reserve(cycle, id, gang) {
                Some(reservation) => {
                    plan.reservations.push((id, reservation.start));
                    holes = Some(Holes::beside(cycle, reservation));
                    order::order_backfill(world, cycle.now, cycle.policy, rest.make_contiguous());
                }
                // Waiting alone does not help it; those behind must not take what it waits for.
                None => cycle.bar(id, gang),
            }
        }
    }
    verdicts
}

/// Puts everybody who waits off to the next cycle.
fn put_off(world: &World, now: Time, policy: &Policy, plan: &mut Plan) {
    let queue = order::order(world, now, policy).into_iter();
    let mut verdicts = queue.map(|id| (id, waiting([Blocker::NotConsidered]))).collect::<Vec<_>>();
    number(&mut verdicts);
    plan.verdicts.extend(verdicts);
    plan.verdicts.sort_unstable_by_key(|(id, _)| *id);
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

/// Starts one gang in the cheapest way there is, or says why it waits.
fn serve<'w>(
    cycle: &mut Cycle<'w>,
    id: GangId,
    gang: &Gang,
    mut holes: Option<&mut Holes<'w>>,
    plan: &mut Plan,
) -> Verdict {
    if let Some(ahead) = cycle.barred_by(gang) {
        return waiting([Blocker::Behind(ahead)]);
    }
    if let Some(over) = quota::over_limit(&cycle.scratch, gang) {
        if let Blocker::QueueLimit { queue, wants, limit, .. } = over {
            if wants > limit {
                return Verdict::Impossible { blockers: SmallVec::from_elem(over, 1) };
            }
            cycle.bar_queue(id, queue);
        }
        return waiting([over]);
    }
    let ahead = holes.as_ref().map(|holes| holes.ahead());
    let placed = match &mut holes {
        Some(holes) => holes.place(cycle, gang),
        None => place(&mut cycle.scratch, &mut cycle.fits, gang).map_err(Some),
    };
    let misfit = match placed {
        Ok(seats) => {
            quota::charge(&mut cycle.scratch, gang);
            cycle.admitted.push((id, seats.clone()));
            let actions = vec![Action::Admit { gang: id, seats }];
            plan.groups.push(ActionGroup { gang: Some(id), actions });
            return Verdict::Admitted;
        }
        Err(misfit) => misfit,
    };
    let provided = match holes.filter(|_| may_order(cycle.scratch.world, gang)) {
        Some(holes) => holes.provide(cycle, |cycle| provision(cycle, id, gang), gang),
        None => provision(cycle, id, gang),
    };
    match provided {
        Ok(spec) => {
            quota::charge(&mut cycle.scratch, gang);
            let (order, total, deadline) = (spec.id, spec.claims.len() as u32, spec.deadline);
            cycle.wake = earliest(cycle.wake, Some(deadline));
            plan.groups.push(ActionGroup { gang: Some(id), actions: vec![Action::Order(spec)] });
            Verdict::Provisioning { order, ready: 0, total, deadline }
        }
        Err(blockers) => match misfit {
            Some(misfit) => refuse(cycle, id, gang, misfit, blockers),
            None => waiting([Blocker::Behind(ahead.expect("it would delay somebody"))]),
        },
    }
}

/// A gang that neither fits nor can be provided for: it waits, unless it could never run.
fn refuse(
    cycle: &mut Cycle<'_>,
    id: GangId,
    gang: &Gang,
    misfit: crate::place::Misfit,
    blockers: Blockers,
) -> Verdict {
    if let Some(why) = explain::impossible(cycle, gang) {
        return Verdict::Impossible { blockers: SmallVec::from_elem(why, 1) };
    }
    let behind = cycle.ahead.first().map(|ahead| Blocker::Behind(*ahead));
    if cycle.policy.order.discipline().behind() == Behind::Barred {
        cycle.bar(id, gang);
    }
    let mut all: Blockers = SmallVec::from_elem(explain::blocker(misfit), 1);
    all.extend(blockers);
    all.extend(behind);
    Verdict::Waiting { position: 0, blockers: all }
}

fn waiting(blockers: [Blocker; 1]) -> Verdict {
    Verdict::Waiting { position: 0, blockers: SmallVec::from(blockers) }
}

impl Cycle<'_> {
    /// The gang ahead in the same queue that waits for room under a limit they share.
    fn barred_by(&self, gang: &Gang) -> Option<GangId> {
        let path: SmallVec<[QueueIdx; 4]> = self.scratch.world.queue_path(gang.queue).collect();
        self.barred_queues.iter().find(|(queue, _)| path.contains(queue)).map(|(_, ahead)| *ahead)
    }

    /// Those behind a gang that waits for room under a queue's limit, and share that limit, do not slip past it.
    fn bar_queue(&mut self, id: GangId, queue: QueueIdx) {
        if self.policy.order.discipline().behind() != Behind::Free {
            self.barred_queues.push((queue, id));
        }
    }

    /// Those behind a waiting gang stay off the nodes and pools it waits for.
    fn bar(&mut self, id: GangId, gang: &Gang) {
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
    fn could_use(&mut self, ask: &crate::place::Ask, class: muster_core::id::ClassIdx) -> bool {
        let world = self.scratch.world;
        let signature = world.signature(ask.sig);
        signature.times_fits(&world.empty_state(class)) > 0
            && (signature.reach != muster_core::signature::Reach::Class
                || self
                    .fits
                    .score(&self.scratch, ask.sig, class, muster_core::topology::ROOT)
                    .is_some())
    }
}

/// The earlier of two instants that may not come.
pub(crate) fn earliest(a: Option<Time>, b: Option<Time>) -> Option<Time> {
    a.into_iter().chain(b).min()
}
