//! Runs the planner, and commits its decisions before they are executed.

use muster_core::plan::{Action, ActionGroup};
use muster_core::{Event, Fact};
use muster_plan::{Policy, plan};

use crate::daemon::state::Daemon;
use crate::daemon::timers::Timer;

/// Planning rounds in one turn before it counts as an endless loop.
const ROUNDS_MAX: u32 = 1_000;

impl Daemon {
    /// Plans and applies the plan, until the planner has nothing left to do at this instant.
    pub(crate) fn decide(&mut self) {
        let quiet = Policy { explain: false, ..self.policy.clone() };
        for round in 0.. {
            let began = std::time::Instant::now();
            self.plan = plan(&self.world, self.now, &quiet);
            self.counts.plan_us += began.elapsed().as_micros() as u64;
            if self.plan.groups.is_empty() {
                break;
            }
            self.mark_stale();
            for group in std::mem::take(&mut self.plan.groups) {
                self.apply_group(&group);
            }
            if round == ROUNDS_MAX {
                tracing::error!("the planner does not come to rest");
                break;
            }
        }
        self.targets = self.plan.targets.iter().copied().collect();
        if let Some(wake) =
            self.plan.wake.filter(|wake| self.wake.is_none_or(|known| *wake < known))
        {
            self.wake = Some(wake);
            self.timers.add(wake, Timer::Wake);
        }
    }

    fn apply_group(&mut self, group: &ActionGroup) {
        for action in &group.actions {
            // The gang of a rolled-back order is looked up before: a cancelled gang is deleted with its order.
            let gang_of_order = match action {
                Action::RollBack { order, .. } => self.gang_of_order(*order),
                _ => None,
            };
            if !self.commit_action(action) {
                return;
            }
            if let Some(name) = gang_of_order {
                self.finish_cancelled(&name);
            }
            self.execute(action);
        }
    }

    fn gang_of_order(&self, order: muster_core::id::OrderId) -> Option<std::sync::Arc<str>> {
        let gang = self.world.orders().get(&order)?.spec.gang;
        self.names.get(&gang).cloned()
    }

    /// Records a decision. `false` if the World refuses it, which must not happen with a fresh plan.
    fn commit_action(&mut self, action: &Action) -> bool {
        let fact = Fact::of_decision(&self.world, action);
        if !self.apply_or_log(&Event::Decided(action.clone())) {
            return false;
        }
        match &fact {
            Some(Fact::OrderPlaced { .. }) => self.counts.orders += 1,
            Some(Fact::OrderRolledBack { .. }) => self.counts.rolled_back += 1,
            _ => {}
        }
        if let Some(fact) = fact {
            self.fact(&fact);
        }
        true
    }

    fn execute(&mut self, action: &Action) {
        match action {
            Action::Admit { gang, seats } => self.start(*gang, seats),
            Action::Order(spec) => {
                for (claim, offering) in &spec.claims {
                    self.request(*claim, *offering);
                }
            }
            Action::TopUp { claim, offering, .. } => self.request(*claim, *offering),
            Action::Stock { claims } => {
                for (claim, offering) in claims {
                    self.request(*claim, *offering);
                }
            }
            Action::Retry { claim, .. } => {
                if let Some(offering) = self.world.claims().get(claim).map(|claim| claim.offering) {
                    self.request(*claim, offering);
                }
            }
            Action::Park { claim } => self.park(*claim),
            Action::Release { claim } => self.release(*claim),
            Action::Resize { gang, seats } => self.resize(*gang, seats),
            Action::Stop { gang, reason } => self.stop(*gang, *reason),
            Action::Retire { claim } => self.fact(&Fact::ClaimRetired { claim: *claim }),
            Action::RollBack { .. } | Action::Exchange { .. } => {}
        }
    }
}
