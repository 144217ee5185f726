//! The meter: updates all accounts by fact.

use std::collections::BTreeMap;
use std::sync::Arc;

use muster_core::Fact;
use muster_core::id::GangId;
use muster_core::money::Money;
use muster_core::order::ClaimFailure;
use muster_core::plan::StopReason;
use muster_core::pool::PoolSpec;
use muster_core::time::{Span, Time};

use crate::accounts::disruptions::Disruptions;
use crate::accounts::fleet::{Fleet, Tally};
use crate::accounts::gangs::{Gangs, Hits, Start, Work};
use crate::accounts::machine::{Machine, Phase};
use crate::accounts::orders::{Orders, RolledBack};

/// Sums over all facts.
#[derive(Clone, Debug)]
pub struct Meter {
    fleet: Fleet,
    orders: Orders,
    gangs: Gangs,
    disruptions: Disruptions,
    claims: u64,
}

impl Meter {
    /// Nothing measured yet; `pools` in order of declaration, to know what a complete node is and what it costs.
    pub fn new(pools: Vec<PoolSpec>) -> Self {
        let (fleet, orders, gangs) = (Fleet::new(pools), Orders::default(), Gangs::default());
        Self { fleet, orders, gangs, disruptions: Disruptions::default(), claims: 0 }
    }

    /// Takes a fact; returns the start of a gang where it is one.
    pub fn note(&mut self, now: Time, fact: &Fact) -> Option<Start> {
        let Self { fleet, orders, gangs, disruptions, claims } = self;
        disruptions.note(fact);
        match fact {
            Fact::GangSubmitted { gang, spec } => gangs.submitted(now, *gang, spec),
            Fact::MembersStarted { gang, role, node, members, .. } => {
                gangs.member_started(now, *gang, *role, *node, *members);
                if let Some(claim) = fleet.claim_at(*node)
                    && let Some((queue, gpu_milli)) = gangs.ask_of(*gang, *role, *members)
                {
                    let spent = fleet.change(now, claim, |machine| {
                        machine.seat(queue, gpu_milli, u32::from(*members));
                        machine.spent
                    });
                    orders.discharge(fleet, claim, spent);
                }
            }
            Fact::MembersStopped { gang, role, node, members, .. } => {
                gangs.member_stopped(now, *gang, *role, *node, *members);
                if let Some(claim) = fleet.claim_at(*node)
                    && let Some((queue, gpu_milli)) = gangs.ask_of(*gang, *role, *members)
                {
                    fleet.change(now, claim, |machine| {
                        machine.unseat(queue, gpu_milli, u32::from(*members));
                    });
                }
            }
            Fact::GangStarted { gang } => return gangs.started(now, *gang),
            Fact::GangStopped { gang, .. } => gangs.stopped(now, *gang),
            Fact::GangEnded { gang } => gangs.ended(now, *gang),
            Fact::OrderPlaced { order, gang, claims, holds, .. } => {
                gangs.ordered(now, *gang);
                if let Some(queue) = gangs.queue_of(*gang) {
                    // Once per node, however many members will run there.
                    let mut held: Vec<_> =
                        holds.iter().filter_map(|node| fleet.claim_at(*node)).collect();
                    held.sort_unstable();
                    held.dedup();
                    orders.placed(now, fleet, (*order, queue), claims, held);
                }
            }
            Fact::OrderToppedUp { order, lost, claim, offering } => {
                orders.topped_up(now, fleet, *order, *lost, (*claim, *offering));
            }
            Fact::OrdersExchanged { gets, coming, gives, ready } => {
                if let (Some(comes), Some(is_ready)) =
                    (fleet.offering_of(*coming), fleet.offering_of(*ready))
                {
                    orders.replace(now, fleet, *gets, *coming, (*ready, is_ready));
                    orders.replace(now, fleet, *gives, *ready, (*coming, comes));
                }
            }
            Fact::OrderCompleted { order, .. } => orders.completed(now, fleet, *order),
            Fact::OrderRolledBack { order, reason, .. } => {
                orders.rolled_back(now, fleet, *order, *reason);
            }
            Fact::ClaimRequested { claim, offering } => {
                *claims += 1;
                fleet.ask(now, *claim, *offering);
            }
            Fact::ClaimRetried { .. } => orders.retries += 1,
            Fact::ClaimLaunched { claim } => {
                fleet.change(now, *claim, |machine| machine.launch(now));
            }
            Fact::ClaimFailed { claim, failure } => {
                *orders.failures.entry(*failure).or_default() += 1;
                fleet.change(now, *claim, Machine::fail);
            }
            Fact::NodeSeen { node, claim: Some(claim), allocatable, gpus, ready, .. } => {
                fleet.seen(now, *claim, *node, ready.then_some((allocatable, *gpus)));
            }
            // A node that was not bought, perhaps in the slot of one that was.
            Fact::NodeSeen { node, claim: None, .. } => fleet.forget_node(*node),
            Fact::NodeLost { node, .. } => {
                if let Some(claim) = fleet.claim_at(*node) {
                    fleet.change(now, claim, Machine::fail);
                }
            }
            Fact::ClaimParked { claim } => {
                let spent = fleet.change(now, *claim, |machine| {
                    machine.phase = Phase::Stopped;
                    machine.spent
                });
                orders.discharge(fleet, *claim, spent);
            }
            Fact::ClaimReleased { claim } => {
                if let Some(machine) = fleet.release(now, *claim) {
                    orders.released(*claim, &machine);
                }
            }
            // A machine is no longer billed when its stop begins, and billed again when it is launched again.
            // The other facts say nothing about supply.
            Fact::GangRefused { .. }
            | Fact::GangCancelled { .. }
            | Fact::ClaimStopped { .. }
            | Fact::ClaimWoken { .. }
            | Fact::ClaimRetired { .. }
            | Fact::ClaimGone { .. }
            | Fact::GangStopping { .. }
            | Fact::GangResizing { .. }
            | Fact::GangChanged { .. }
            | Fact::GangResized { .. }
            | Fact::ResizeDeclined { .. }
            | Fact::NodeNoticed { .. }
            | Fact::GangFailed { .. }
            | Fact::Crashed => {}
        }
        None
    }

    /// A gang paused for so long, with its present members, after a restart from a checkpoint or a resize.
    pub fn paused(&mut self, gang: GangId, span: Span) {
        self.disruptions.paused_gpu_ms += self.gangs.gpu_ms(gang, span);
    }
    /// The last `worked` of a gang is lost, and no other work. Called before the fact that it stopped; without this call
    /// all of its work is lost.
    pub fn lost(&mut self, gang: GangId, worked: Span, why: Option<StopReason>) {
        let lost = self.gangs.lost(gang, worked);
        if why.is_some_and(StopReason::is_eviction) {
            self.disruptions.evicted_gpu_ms += lost;
        }
    }

    /// Counts all that still runs until now. More facts may follow.
    pub fn count_until(&mut self, now: Time) {
        self.fleet.count_all(now);
        self.orders.settle_all(&mut self.fleet);
        self.gangs.count_all(now);
    }

    /// Totals of every pool, in order of declaration.
    pub fn pools(&self) -> impl Iterator<Item = (&PoolSpec, &Tally)> {
        self.fleet.pools().iter().zip(self.fleet.tallies())
    }
    /// Totals of all machines.
    pub fn bought(&self) -> Tally {
        let mut all = Tally::default();
        self.fleet.tallies().iter().for_each(|tally| all += tally);
        all
    }
    /// The cost of each queue: GPUs that its gangs used, and nodes held by its orders. In the order in which queues were
    /// first seen.
    pub fn money_by_queue(&self) -> impl Iterator<Item = (&Arc<str>, Money)> {
        (0..).zip(self.gangs.queues()).map(|(number, name)| (name, self.fleet.owed_by(number)))
    }
    /// The cost that no single queue pays. With the costs of queues, it is the whole bill.
    pub fn shared_money(&self) -> Money {
        self.fleet.shared()
    }
    /// Use of GPUs by gangs.
    pub fn work(&self) -> Work {
        self.gangs.work
    }
    /// Disruptions of gangs, and their cost.
    pub fn disruptions(&self) -> &Disruptions {
        &self.disruptions
    }
    /// Gangs that started at the instant of their submission.
    pub fn hits(&self) -> Hits {
        self.gangs.hits
    }
    /// From the first order for a gang to its start, for every start that needed an order.
    pub fn times_to_ready(&self) -> &[Span] {
        &self.gangs.gathered
    }
    /// Orders rolled back, and the cost of each.
    pub fn rolled_back(&self) -> &[RolledBack] {
        &self.orders.rolled_back
    }
    /// Failed claims that were replaced within their order.
    pub fn top_ups(&self) -> u64 {
        self.orders.top_ups
    }
    /// Machines requested.
    pub fn claims(&self) -> u64 {
        self.claims
    }
    /// Claims that an order adopted while they booted, or were stopped.
    pub fn adopted(&self) -> u64 {
        self.orders.adopted
    }
    /// Claims that were retried because the provider throttled them.
    pub fn retries(&self) -> u64 {
        self.orders.retries
    }
    /// Machines that failed, before or in service, by failure.
    pub fn failures(&self) -> &BTreeMap<ClaimFailure, u64> {
        &self.orders.failures
    }
    /// Machines that failed, before or in service.
    pub fn failed_claims(&self) -> u64 {
        self.orders.failures.values().sum()
    }
}
