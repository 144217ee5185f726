//! Planted bugs: what a sabotaged host does instead of what was decided, to prove that the checkers detect it.

use muster_core::gang::{Disruption, GangSpec, Phase};
use muster_core::order::{OrderSpec, RollbackReason};
use muster_core::plan::Action;
use muster_core::queue::{Allowed, NonPreemptible, QueueSpec};
use muster_core::time::{Span, Time};
use muster_testkit::promises::Promise;

use crate::faults::Sabotage;
use crate::host::sim::Sim;

impl Sim {
    pub(crate) fn sabotages(&self, promise: Promise) -> bool {
        self.is_planted(Sabotage::Against(promise))
    }

    pub(crate) fn is_planted(&self, bug: Sabotage) -> bool {
        self.options.sabotage == Some(bug)
    }

    /// The action that is executed instead; `None` for none at all.
    pub(crate) fn sabotaged_action(&self, action: &Action) -> Option<Action> {
        let Some(bug) = self.options.sabotage else { return Some(action.clone()) };
        match (bug, action) {
            (Sabotage::Against(Promise::NoLeak), Action::Release { claim }) => {
                let ready = self.world.claims().get(claim)?.node().is_some();
                (!ready).then(|| action.clone())
            }
            (Sabotage::Against(Promise::NoHoldAndWait), Action::Order(spec)) => {
                Some(Action::Order(OrderSpec { deadline: Time::MAX, ..spec.clone() }))
            }
            (Sabotage::ForNobody, Action::Order(spec)) if !spec.after.is_empty() => None,
            (Sabotage::InVain, Action::Admit { gang, .. }) => {
                let order = match self.world.gang(*gang)?.phase {
                    Phase::Assembling(order) => Some(order),
                    _ => None,
                };
                let others_left = |order: &_| !self.world.orders()[order].spec.after.is_empty();
                Some(match order.filter(others_left) {
                    Some(order) => Action::RollBack { order, reason: RollbackReason::NotNeeded },
                    None => action.clone(),
                })
            }
            _ => Some(action.clone()),
        }
    }

    /// The gang as the World sees it.
    pub(crate) fn gang_for_world(&self, gang: &GangSpec) -> GangSpec {
        if !self.is_planted(Sabotage::NoProtection) {
            return gang.clone();
        }
        let disruption =
            Disruption { preemptible: true, min_runtime: Span::ZERO, ..gang.disruption };
        GangSpec { disruption, ..gang.clone() }
    }

    /// The queue as the World sees it.
    pub(crate) fn queue_for_world(&self, queue: QueueSpec) -> QueueSpec {
        if self.sabotages(Promise::Isolation) {
            let allowed = Allowed { non_preemptible: NonPreemptible::Always, ..Allowed::default() };
            QueueSpec { allowed, ..queue }
        } else if self.is_planted(Sabotage::NoBudget) {
            QueueSpec { evictions_per_hour: None, ..queue }
        } else {
            queue
        }
    }
}
