//! The planning cycle: plans and executes until the planner has no action left, then checks the promises.

use muster_core::plan::Action;
use muster_plan::plan;
use muster_testkit::promises::{Promise, excused};

use crate::host::events::SimEvent;
use crate::host::options::Step;
use crate::host::sim::Sim;

/// Rounds of planning at one instant before it counts as a loop. Each round admits, orders, rolls back or
/// releases something, so real instants need a handful.
const ROUNDS_MAX: u32 = 1_000;

impl Sim {
    /// Runs the planner once and executes its plan. `false` when the plan is empty.
    pub(crate) fn plan_once(&mut self) -> bool {
        let plan = plan(&self.world, self.now, &self.policy);
        if let Some(recorder) = &mut self.recorder {
            recorder.plan(self.now, &plan);
        }
        if let Some(ledger) = &mut self.ledger {
            ledger.promised(self.now, &plan.reservations);
        }
        let acts = !plan.groups.is_empty();
        let done = self.execute(&plan);
        if let Some(ledger) = self.ledger.as_mut().filter(|_| done) {
            ledger.targets(self.now, &plan.targets);
        }
        self.last_plan = plan;
        acts
    }

    /// Plans and executes until nothing is left to do at this instant.
    pub(crate) fn plan_until_stable(&mut self) {
        for round in 0.. {
            if !self.plan_once() || (!self.policy.explain && self.is_stable()) {
                break;
            }
            if round == ROUNDS_MAX {
                self.break_promise(
                    Promise::NoHoldAndWait,
                    "the planner does not come to rest".to_owned(),
                );
                break;
            }
        }
        if let Some(wake) = self.last_plan.wake
            && self.wake_at != Some(wake)
        {
            self.wake_at = Some(wake);
            self.event_queue.add(wake, SimEvent::Wake);
        }
    }

    /// Whether the planner would have nothing to add at this instant: without pools, gangs to stop and orders that wait for
    /// victims, a round that only started gangs has started all that can start, and free capacity only shrank. A gang that
    /// was stopped or resized may have freed capacity by now.
    fn is_stable(&self) -> bool {
        let starts = |action: &Action| matches!(action, Action::Admit { .. });
        self.world.pools().is_empty()
            && self.world.broken().is_empty()
            && self.world.cancelled().is_empty()
            && self.world.orders().is_empty()
            && self.last_plan.actions().all(starts)
    }

    pub(crate) fn after_step(&mut self) {
        let Some(ledger) = &mut self.ledger else { return };
        ledger.excuse(excused(&self.last_plan));
        ledger.check(self.now);
        if self.policy.explain
            && self.options.step != Step::Pyss
            && self.world.gangs().count() != self.last_plan.verdicts.len()
        {
            let what = "a gang got no verdict".to_owned();
            self.break_promise(Promise::BadInputIsAFinding, what);
        }
    }
}
