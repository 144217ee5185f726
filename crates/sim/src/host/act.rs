//! Doing what was decided: write it down first, then do it.

use muster_core::order::{OrderSpec, Place};
use muster_core::plan::{Action, ActionGroup, Plan};
use muster_core::{Event, Fact};
use muster_testkit::promises::Promise;

use super::Sim;

impl Sim {
    /// Carries out a plan, group by group. `false` when a crash cuts it short.
    pub(super) fn act(&mut self, plan: &Plan) -> bool {
        plan.groups.iter().all(|group| self.act_group(group))
    }

    fn act_group(&mut self, group: &ActionGroup) -> bool {
        let rolls_back = |action: &Action| matches!(action, Action::RollBack { .. });
        if self.sabotages(Promise::AtomicRollback) && group.actions.iter().any(rolls_back) {
            return true;
        }
        for action in &group.actions {
            let action = match self.tamper(action) {
                Some(action) => action,
                None => continue,
            };
            match self.crash_after {
                Some(0) => {
                    self.crash_before(action);
                    return false;
                }
                Some(left) => self.crash_after = Some(left - 1),
                None => {}
            }
            if !self.intend(&action) {
                return true;
            }
            self.carry_out(&action);
        }
        true
    }

    /// Writes a decision down. `false` when the World refuses it, which a plan just made must not cause.
    pub(super) fn intend(&mut self, action: &Action) -> bool {
        let completes = match action {
            Action::Admit { gang, .. } => {
                self.world.gang(*gang).and_then(|gang| match gang.phase {
                    muster_core::gang::Phase::Assembling(order) => Some(order),
                    _ => None,
                })
            }
            _ => None,
        };
        let rolled_back = match action {
            Action::RollBack { order, .. } => {
                self.world.orders().get(order).map(|order| order.spec.gang)
            }
            _ => None,
        };
        if let Err(refusal) = self.tell(Event::Decided(action.clone())) {
            let what =
                format!("a decision was refused the moment it was taken: {refusal} ({action:?})");
            self.break_promise(Promise::NoOvercommit, what);
            return false;
        }
        match action {
            Action::Admit { gang, .. } => {
                if let Some(order) = completes {
                    self.fact(&Fact::OrderCompleted { order, gang: *gang });
                }
            }
            Action::Order(spec) => self.order_placed(spec),
            Action::RollBack { order, reason } => {
                let gang = rolled_back.expect("the World accepted it");
                self.fact(&Fact::OrderRolledBack { order: *order, gang, reason: *reason });
                if self.world.gang(gang).is_none() {
                    self.unfinished -= 1; // it was cancelled
                }
            }
            Action::TopUp { order, lost, claim, offering } => self.fact(&Fact::OrderToppedUp {
                order: *order,
                lost: *lost,
                claim: *claim,
                offering: *offering,
            }),
            Action::Exchange { gets, coming, gives, ready } => self.fact(&Fact::OrdersExchanged {
                gets: *gets,
                coming: *coming,
                gives: *gives,
                ready: *ready,
            }),
            Action::Stop { .. }
            | Action::Resize { .. }
            | Action::Release { .. }
            | Action::Stock { .. }
            | Action::Retry { .. }
            | Action::Park { .. }
            | Action::Retire { .. } => {}
        }
        true
    }

    /// Does what was written down. Doing it again changes nothing.
    pub(super) fn carry_out(&mut self, action: &Action) {
        match action {
            Action::Admit { gang, seats } => self.start(*gang, seats),
            Action::Order(spec) => {
                for (claim, offering) in &spec.claims {
                    self.request(*claim, *offering);
                }
            }
            Action::RollBack { .. } | Action::Exchange { .. } => {}
            Action::Retire { claim } => self.fact(&Fact::ClaimRetired { claim: *claim }),
            Action::TopUp { claim, offering, .. } => self.request(*claim, *offering),
            Action::Stock { claims } => {
                for (claim, offering) in claims {
                    self.request(*claim, *offering);
                }
            }
            Action::Retry { claim, .. } => {
                let offering = self.world.claims()[claim].offering;
                self.request(*claim, offering);
            }
            Action::Park { claim } => self.park(*claim),
            Action::Resize { gang, seats } => self.resize(*gang, seats),
            Action::Stop { gang, reason } => self.stop(*gang, *reason),
            Action::Release { claim } => self.release(*claim),
        }
    }

    fn order_placed(&mut self, spec: &OrderSpec) {
        let present = spec.reservations.iter().filter_map(|reservation| match reservation.place {
            Place::Node(node) => Some(node),
            Place::Claim(_) => None,
        });
        let holds = present.collect();
        let (order, gang, deadline, claims) =
            (spec.id, spec.gang, spec.deadline, spec.claims.clone());
        let after = spec.after.iter().map(|way| way.gang).collect();
        self.fact(&Fact::OrderPlaced { order, gang, claims, holds, after, deadline });
    }
}
