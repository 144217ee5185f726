//! Executes plans: every decision is logged first, then executed.

use muster_core::plan::{Action, ActionGroup, Plan};
use muster_core::{Event, Fact};
use muster_testkit::promises::Promise;

use crate::host::sim::Sim;

impl Sim {
    /// Executes a plan, group by group. `false` when a crash cuts it short.
    pub(crate) fn execute(&mut self, plan: &Plan) -> bool {
        plan.groups.iter().all(|group| self.execute_group(group))
    }

    fn execute_group(&mut self, group: &ActionGroup) -> bool {
        let rolls_back = |action: &Action| matches!(action, Action::RollBack { .. });
        if self.sabotages(Promise::AtomicRollback) && group.actions.iter().any(rolls_back) {
            return true;
        }
        for action in &group.actions {
            let action = match self.sabotaged_action(action) {
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
            if !self.log_decision(&action) {
                return true;
            }
            self.execute_action(&action);
        }
        true
    }

    /// Applies a decision to the World and the log. `false` when the World refuses it, which a plan just made must not cause.
    pub(crate) fn log_decision(&mut self, action: &Action) -> bool {
        let fact = Fact::of_decision(&self.world, action);
        if let Err(refusal) = self.apply(Event::Decided(action.clone())) {
            let what =
                format!("a decision was refused the moment it was taken: {refusal} ({action:?})");
            self.break_promise(Promise::NoOvercommit, what);
            return false;
        }
        if let Some(fact) = fact {
            self.note_fact(&fact);
            if let Fact::OrderRolledBack { gang, .. } = fact
                && self.world.gang(gang).is_none()
            {
                self.unfinished -= 1; // it was cancelled
            }
        }
        true
    }

    /// Executes a logged decision; idempotent.
    pub(crate) fn execute_action(&mut self, action: &Action) {
        match action {
            Action::Admit { gang, seats } => self.start(*gang, seats),
            Action::Order(spec) => {
                for (claim, offering) in &spec.claims {
                    self.request(*claim, *offering);
                }
            }
            Action::RollBack { .. } | Action::Exchange { .. } => {}
            Action::Retire { claim } => self.note_fact(&Fact::ClaimRetired { claim: *claim }),
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
}
