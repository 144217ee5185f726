//! Orders that assemble, rollbacks, and the cost of these.

use std::collections::BTreeMap;

use muster_core::id::{ClaimId, OfferingRef, OrderId};
use muster_core::money::Money;
use muster_core::order::{ClaimFailure, RollbackReason};
use muster_core::time::Time;
use rustc_hash::FxHashMap;
use serde::{Serialize, Serializer};

use crate::accounts::fleet::Fleet;
use crate::accounts::machine::{Charge, Machine, Phase};

/// Why orders were rolled back, without the claim or node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Cause {
    /// A claim failed for good.
    ClaimFailed(ClaimFailure),
    /// A claim exceeded the timeout of its stage.
    Overdue,
    /// Not complete in time.
    DeadlinePassed,
    /// A node that it held is gone.
    NodeLost,
    /// A node is not as ordered.
    NodeUnsuitable,
    /// The gang was cancelled.
    GangGone,
    /// The gang fitted on what had become free.
    NotNeeded,
    /// A victim of the order could not be stopped any more.
    WayClosed,
    /// It could not be stored.
    NotWritten,
}

impl Cause {
    /// Its name in figures.
    pub fn name(self) -> &'static str {
        match self {
            Self::ClaimFailed(failure) => failure_name(failure),
            Self::Overdue => "overdue",
            Self::DeadlinePassed => "deadline-passed",
            Self::NodeLost => "node-lost",
            Self::NodeUnsuitable => "node-unsuitable",
            Self::GangGone => "gang-gone",
            Self::NotNeeded => "not-needed",
            Self::WayClosed => "way-closed",
            Self::NotWritten => "not-written",
        }
    }
}

/// By name.
impl Serialize for Cause {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// A failure's name in figures.
pub(crate) fn failure_name(failure: ClaimFailure) -> &'static str {
    match failure {
        ClaimFailure::StockOut => "stock-out",
        ClaimFailure::BootFailed => "boot-failed",
        ClaimFailure::GpusMissing => "gpus-missing",
        ClaimFailure::TooSmall => "too-small",
        ClaimFailure::Vanished => "vanished",
        ClaimFailure::Throttled => "throttled",
    }
}

impl From<RollbackReason> for Cause {
    fn from(reason: RollbackReason) -> Self {
        match reason {
            RollbackReason::ClaimFailed(_, failure) => Self::ClaimFailed(failure),
            RollbackReason::Overdue(..) => Self::Overdue,
            RollbackReason::DeadlinePassed => Self::DeadlinePassed,
            RollbackReason::NodeLost(_) => Self::NodeLost,
            RollbackReason::NodeUnsuitable(_) => Self::NodeUnsuitable,
            RollbackReason::GangGone => Self::GangGone,
            RollbackReason::WayClosed => Self::WayClosed,
            RollbackReason::NotWritten => Self::NotWritten,
            RollbackReason::NotNeeded => Self::NotNeeded,
        }
    }
}

/// One order that was rolled back, and its cost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RolledBack {
    /// The cause.
    pub cause: Cause,
    /// The cost of its claims from launch, or from the order if they were launched before it, until the rollback.
    pub until: Money,
    /// Their cost after that until they were used, held by another order, stopped or released.
    pub after: Money,
}

/// An order that assembles.
#[derive(Clone, Debug)]
struct Order {
    queue: u32,
    /// Its claims, and the cost of each before the order.
    claims: Vec<(ClaimId, Money)>,
    /// Machines that existed already.
    holds: Vec<ClaimId>,
    /// The cost of claims that left it.
    sunk: Money,
}

/// All orders.
#[derive(Clone, Debug, Default)]
pub(crate) struct Orders {
    assembling: FxHashMap<OrderId, Order>,
    pub(crate) rolled_back: Vec<RolledBack>,
    pub(crate) top_ups: u64,
    /// Claims that an order adopted while they booted, or were stopped.
    pub(crate) adopted: u64,
    pub(crate) failures: BTreeMap<ClaimFailure, u64>,
    pub(crate) retries: u64,
}

impl Orders {
    /// An order was placed for a gang of this queue.
    pub(crate) fn placed(
        &mut self,
        now: Time,
        fleet: &mut Fleet,
        (order, queue): (OrderId, u32),
        claims: &[(ClaimId, OfferingRef)],
        holds: Vec<ClaimId>,
    ) {
        let mut own = Vec::with_capacity(claims.len());
        for claim in claims {
            self.adopted += u64::from(!fleet.ask(now, claim.0, claim.1));
            own.push((claim.0, self.take(now, fleet, *claim, (order, queue))));
        }
        for claim in &holds {
            let spent = fleet.change(now, *claim, |machine| {
                machine.holders.push((order, queue));
                machine.spent
            });
            self.discharge(fleet, *claim, spent);
        }
        self.assembling.insert(order, Order { queue, claims: own, holds, sunk: Money::ZERO });
    }

    /// Adds a claim to an order; returns its cost so far.
    fn take(
        &mut self,
        now: Time,
        fleet: &mut Fleet,
        (claim, offering): (ClaimId, OfferingRef),
        holder: (OrderId, u32),
    ) -> Money {
        fleet.ask(now, claim, offering);
        let spent = fleet.change(now, claim, |machine| {
            machine.holders.push(holder);
            machine.spent
        });
        self.discharge(fleet, claim, spent);
        spent.unwrap_or_default()
    }

    /// A claim of an order was replaced, because it had failed or another comes sooner.
    pub(crate) fn topped_up(
        &mut self,
        now: Time,
        fleet: &mut Fleet,
        id: OrderId,
        lost: ClaimId,
        claim: (ClaimId, OfferingRef),
    ) {
        let failed = fleet.change(now, lost, |machine| machine.phase == Phase::Broken);
        self.top_ups += u64::from(failed.unwrap_or(true));
        self.adopted += u64::from(!fleet.ask(now, claim.0, claim.1));
        self.replace(now, fleet, id, lost, claim);
    }

    /// Replaces one claim of an order by another.
    pub(crate) fn replace(
        &mut self,
        now: Time,
        fleet: &mut Fleet,
        id: OrderId,
        lost: ClaimId,
        claim: (ClaimId, OfferingRef),
    ) {
        let Some(queue) = self.assembling.get(&id).map(|order| order.queue) else { return };
        let gone = fleet.change(now, lost, |machine| {
            machine.holders.retain(|(holder, _)| *holder != id);
            machine.spent
        });
        let before = self.take(now, fleet, claim, (id, queue));
        let order = self.assembling.get_mut(&id).expect("just seen");
        order.sink(lost, gone.unwrap_or_default());
        order.claims.push((claim.0, before));
    }

    /// An order is complete: its nodes are about to be used.
    pub(crate) fn completed(&mut self, now: Time, fleet: &mut Fleet, id: OrderId) {
        if let Some(order) = self.assembling.remove(&id) {
            order.let_go(now, fleet, id);
        }
    }

    /// An order was rolled back. From here on the cost of its claims is charged to it until they are used.
    pub(crate) fn rolled_back(
        &mut self,
        now: Time,
        fleet: &mut Fleet,
        id: OrderId,
        reason: RollbackReason,
    ) {
        let rollback = self.rolled_back.len();
        let (cause, mut until) = (Cause::from(reason), Money::ZERO);
        if let Some(order) = self.assembling.remove(&id) {
            order.let_go(now, fleet, id);
            until = order.sunk;
            for (claim, before) in &order.claims {
                let cost = fleet.change(now, *claim, |machine| {
                    machine.charge = Some(Charge { rollback, spent: machine.spent });
                    machine.spent - *before
                });
                until += cost.unwrap_or_default();
            }
        }
        self.rolled_back.push(RolledBack { cause, until, after: Money::ZERO });
    }

    /// A machine is used again, or never will be: it is no longer charged to a rollback.
    pub(crate) fn discharge(&mut self, fleet: &mut Fleet, claim: ClaimId, spent: Option<Money>) {
        let Some(spent) = spent else { return };
        if let Some(charge) = fleet.clear_charge(claim) {
            self.settle(charge, spent);
        }
    }

    fn settle(&mut self, charge: Charge, spent: Money) {
        self.rolled_back[charge.rollback].after += spent - charge.spent;
    }

    /// Charges the cost of unused machines, until they were last counted, to their rollbacks.
    pub(crate) fn settle_all(&mut self, fleet: &mut Fleet) {
        for machine in fleet.machines_mut() {
            if let Some(charge) = machine.charge {
                self.settle(charge, machine.spent);
                machine.charge = Some(Charge { spent: machine.spent, ..charge });
            }
        }
    }

    /// A machine was released.
    pub(crate) fn released(&mut self, claim: ClaimId, machine: &Machine) {
        if let Some(charge) = machine.charge {
            self.settle(charge, machine.spent);
        }
        for (holder, _) in &machine.holders {
            if let Some(order) = self.assembling.get_mut(holder) {
                order.sink(claim, machine.spent);
            }
        }
    }
}

impl Order {
    /// A claim leaves the order; its cost stays.
    fn sink(&mut self, claim: ClaimId, spent: Money) {
        if let Some(at) = self.claims.iter().position(|(known, _)| *known == claim) {
            let (_, before) = self.claims.swap_remove(at);
            self.sunk += spent - before;
        }
    }

    fn let_go(&self, now: Time, fleet: &mut Fleet, id: OrderId) {
        let claims = self.claims.iter().map(|(claim, _)| claim);
        for claim in claims.chain(&self.holds) {
            fleet.change(now, *claim, |machine| {
                machine.holders.retain(|(holder, _)| *holder != id);
            });
        }
    }
}
