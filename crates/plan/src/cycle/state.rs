//! The state that the steps of one cycle share.

use std::collections::BTreeMap;
use std::sync::Arc;

use muster_core::World;
use muster_core::gang::Seat;
use muster_core::id::{ClaimId, GangId, OfferingRef, OrderId, PoolIdx, QueueIdx, SigIdx};
use muster_core::money::Money;
use muster_core::order::ClaimState;
use muster_core::plan::{Action, Plan};
use muster_core::time::{Span, Time};
use muster_core::topology::{Level, ROOT};

use crate::order::{NonPreemptibleUse, QueuedGang};
use crate::place::{Fits, Want};
use crate::policy::{Overtaking, Policy};
use crate::preempt::{Leaving, Searches, Victim, pending_evictions};
use crate::scratch::Scratch;
use crate::settle;

/// The state of one cycle.
pub(crate) struct Cycle<'w> {
    /// The World with everything that this cycle has decided so far.
    pub(crate) scratch: Scratch<'w>,
    pub(crate) fits: Fits,
    pub(crate) now: Time,
    pub(crate) policy: &'w Policy,
    /// When the planner must run again at the latest.
    pub(crate) wake: Option<Time>,
    pub(crate) limits: Limits,
    pub(crate) searches: Searches,
    pub(crate) given: Given,
    pub(crate) memo: Memo<'w>,
}

/// What gangs of this cycle have to keep off, because of gangs ahead of them or limits that they share.
#[derive(Default)]
pub(crate) struct Limits {
    /// Gangs that keep those behind them off the node classes and pools they wait for, in queue order.
    pub(crate) ahead: Vec<GangId>,
    pub(crate) barred_pools: Vec<PoolIdx>,
    pub(super) barred_queues: Vec<BarredQueue>,
    /// Pools in which a gang waits for room.
    pub(crate) contended_pools: Vec<PoolIdx>,
    /// Offerings that had nothing to give when last asked, and are being asked again for one gang.
    pub(crate) probed: Vec<OfferingRef>,
    /// How many gangs of a queue are stopped for the sake of other gangs in this cycle.
    pub(crate) evicted: BTreeMap<QueueIdx, u32>,
    /// What gangs hold that cannot be preempted, computed on first use.
    pub(crate) non_preemptible: NonPreemptibleUse,
}

/// A queue, or one user in it, for which a gang ahead waits for room under a limit.
pub(super) struct BarredQueue {
    pub(super) queue: QueueIdx,
    pub(super) user: Option<Arc<str>>,
    pub(super) ahead: GangId,
}

/// What this cycle has decided, as far as later steps look at it.
#[derive(Default)]
pub(crate) struct Given {
    /// Gangs admitted in this cycle and their seats.
    pub(crate) admitted: Vec<(GangId, Vec<Seat>)>,
    /// Gangs that grow in this cycle, and the seats they add.
    pub(crate) grown: BTreeMap<GangId, Vec<Seat>>,
    /// How many orders and claims were numbered.
    pub(crate) orders: u32,
    pub(crate) claims: u32,
    /// Orders whose gangs start in this cycle on nodes that are free.
    pub(crate) started_early: Vec<OrderId>,
    /// Claims that were reassigned to orders in this cycle.
    pub(crate) reassigned: Vec<ClaimId>,
    /// Gangs that are stopped or resized since this cycle: they are not chosen as victims again.
    pub(crate) disrupted: Vec<GangId>,
    /// What victims are leaving already.
    pub(crate) leaving: Leaving,
}

/// Results that are kept for the rest of the cycle.
#[derive(Default)]
pub(crate) struct Memo<'w> {
    /// Claims whose nodes can be promised to a gang, as of the beginning of the cycle.
    pub(crate) coming: Vec<ClaimId>,
    /// How many members of a kind could ever run at once, by signature, closeness, queue and provisioning timeout.
    pub(crate) most_ever: BTreeMap<(SigIdx, Option<Level>, QueueIdx, Span), u64>,
    /// How many members of a kind fitted when they were last counted, and as of which version of the scratch.
    counted: Option<(SigIdx, u64, u64)>,
    /// All gangs that run and could be preempted, computed on first use.
    pub(crate) victims: Option<Vec<Victim<'w>>>,
    /// What a GPU costs for an hour, computed on first use.
    pub(crate) gpu_hour: Option<Money>,
    /// Gangs that buy and whose wait was computed only to be reported.
    pub(crate) waits_reported: u32,
}

impl<'w> Cycle<'w> {
    /// A cycle that begins after what is under way was settled.
    pub(super) fn new(world: &'w World, now: Time, policy: &'w Policy, settled: &Plan) -> Self {
        Self {
            scratch: Scratch::new(world),
            fits: Fits::default(),
            now,
            policy,
            wake: earliest(settled.wake, world.next_trusted()),
            limits: Limits { evicted: pending_evictions(world), ..Limits::default() },
            searches: Searches::default(),
            given: Given {
                disrupted: settled.actions().filter_map(disrupts).collect(),
                leaving: Leaving::of(world),
                ..Given::default()
            },
            memo: Memo { coming: coming(world, now), ..Memo::default() },
        }
    }

    /// The retry of a claim that the provider put off, or when it is due.
    pub(crate) fn retry(&self, claim: ClaimId) -> Option<Result<Action, Time>> {
        settle::retry(self.scratch.world, self.now, self.policy, claim)
    }

    /// Whether counting alone shows that a gang does not start, and nothing can be bought for it.
    pub(super) fn cannot_fit(&mut self, queued: &QueuedGang) -> bool {
        if self.scratch.world.has_possible_victims() {
            return false;
        }
        let Some((sig, needs)) = queued.simple.filter(|_| self.scratch.world.pools().is_empty())
        else {
            return false;
        };
        let version = self.scratch.version();
        let free = match self.memo.counted {
            Some((of, at, free)) if (of, at) == (sig, version) => free,
            _ => self.fits.in_domain(&self.scratch, ROOT, Want::any(sig)),
        };
        self.memo.counted = Some((sig, version, free));
        free < u64::from(needs) && self.policy.order.discipline().overtaking() != Overtaking::Barred
    }
}

/// The gang that an action stops or resizes.
fn disrupts(action: &Action) -> Option<GangId> {
    match action {
        Action::Stop { gang, .. } | Action::Resize { gang, .. } => Some(*gang),
        _ => None,
    }
}

/// Claims whose nodes a gang may be promised.
fn coming(world: &World, now: Time) -> Vec<ClaimId> {
    world.claims().keys().filter(|id| can_be_promised(world, now, **id)).copied().collect()
}

/// Whether the node of a claim can be promised to a gang: it belongs to no order, and will come. An overdue claim will
/// not come, and neither will one that was only requested from an offering that is out of stock.
pub(crate) fn can_be_promised(world: &World, now: Time, id: ClaimId) -> bool {
    let claim = &world.claims()[&id];
    let in_time = world.claim_due(id).is_none_or(|(_, due)| now < due);
    let requested = claim.state == ClaimState::Requested;
    let out_of_stock = requested && world.offering(claim.offering).health.is_out();
    world.is_unassigned(id) && in_time && !out_of_stock
}

/// The earlier of two instants that may not come.
pub(crate) fn earliest(a: Option<Time>, b: Option<Time>) -> Option<Time> {
    a.into_iter().chain(b).min()
}
