//! Crash and restart of the planner's process. The cluster and the clouds go on without it.

use muster_core::Fact;
use muster_core::gang::Phase;
use muster_core::order::ClaimState;
use muster_core::plan::{Action, StopReason};
use muster_plan::world_for;
use muster_testkit::promises::{Promise, Said};

use crate::host::sim::Sim;

impl Sim {
    /// Crashes at the worst moment for this action: after logging it and before executing it, or before either.
    pub(crate) fn crash_before(&mut self, action: Action) {
        self.crash_after = None;
        // The step count decides whether it is logged, so that both cases occur and a seed repeats them.
        if self.steps.is_multiple_of(2) {
            self.log_decision(&action);
        }
        self.note_fact(&Fact::Crashed);
        self.restart();
        drop(action);
    }

    /// Rebuilds the World from the log, and completes what was left half done before anything else.
    pub(crate) fn restart(&mut self) {
        if self.log.is_none() {
            return;
        }
        if self.sabotages(Promise::CrashSafety) {
            // As if the last writes had never reached the disk.
            let log = self.log.as_mut().expect("kept where it may crash");
            log.truncate(log.len().saturating_sub(12));
        }
        let log = self.log.as_ref().expect("kept where it may crash");
        let mut world = world_for(&self.policy, self.levels.clone());
        for (at, event) in log {
            let read = world.apply(*at, event);
            debug_assert!(read.is_ok(), "what was accepted once is accepted again: {event:?}");
        }
        self.world = world;
        self.forecaster = Default::default();
        self.redo_logged_actions();
        self.audit();
    }

    /// Executes every logged decision again; all of them are idempotent.
    fn redo_logged_actions(&mut self) {
        let mut requests = Vec::new();
        let (mut releases, mut parks) = (Vec::new(), Vec::new());
        for (id, claim) in self.world.claims() {
            if claim.releasing {
                releases.push(*id);
            } else if claim.state == ClaimState::Requested {
                requests.push((*id, claim.offering));
            } else if claim.state == ClaimState::Stopping {
                parks.push(*id);
            }
        }
        for (claim, offering) in requests {
            self.request(claim, offering);
        }
        for claim in parks {
            self.park(claim);
        }
        for claim in releases {
            self.release(claim);
        }
        let mut starts = Vec::new();
        let (mut stops, mut resizes) = (Vec::new(), Vec::new());
        for (id, gang) in self.world.gangs() {
            match gang.phase {
                Phase::Admitted { .. } => starts.push((id, gang.seats.clone())),
                Phase::Stopping => stops.push((id, gang.stop.unwrap_or(StopReason::Moved))),
                Phase::Running { .. } => {
                    resizes.extend(gang.resize.as_ref().map(|resize| (id, resize.to.clone())));
                }
                Phase::Waiting | Phase::Assembling(_) => {}
            }
        }
        for (gang, seats) in starts {
            self.start(gang, &seats);
        }
        for (gang, seats) in resizes {
            self.resize(gang, &seats);
        }
        for (gang, reason) in stops {
            self.stop(gang, reason);
        }
    }

    /// Lets the ledger compare the World with the facts it has seen.
    pub(crate) fn audit(&mut self) {
        let said = Said {
            gangs: self.world.gangs().map(|(id, gang)| (id, gang.submitted)).collect(),
            claims: self.world.claims().keys().copied().collect(),
            machines: self.cloud.machines.keys().copied().collect(),
            running: self
                .world
                .gangs()
                .filter(|(_, gang)| matches!(gang.phase, Phase::Running { .. } | Phase::Stopping))
                .map(|(id, _)| id)
                .collect(),
        };
        let now = self.now;
        if let Some(ledger) = &mut self.ledger {
            ledger.audit(now, &said);
        }
    }
}
