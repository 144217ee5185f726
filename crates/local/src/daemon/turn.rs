//! One turn of the control plane, and the loop of turns.

use std::time::{Duration, Instant};

use muster_core::Event;
use muster_core::event::Refusal;
use serde_json::json;
use tokio::sync::mpsc::UnboundedReceiver;

use crate::daemon::inputs::Input;
use crate::daemon::state::{Daemon, Ended};
use crate::daemon::timers::Timer;
use crate::store::database::StoreError;
use crate::system::clock::follow_wall;

/// Inputs in one turn, at most, so that a flood of requests does not delay all answers.
const INPUTS_PER_TURN: usize = 1_024;
/// Maximum time between two turns.
const IDLE_MAX: Duration = Duration::from_secs(60);
/// How often disk space is checked.
const DISK_CHECK_EVERY: Duration = Duration::from_secs(2);
/// Minimum interval between board refreshes when the board is large.
pub(crate) const PAUSE: Duration = Duration::from_millis(250);
/// The pause after a refresh, in multiples of the time it took.
const REFRESH_REST: u32 = 9;

impl Daemon {
    /// Takes turns until told to quit, or until the database cannot be written.
    pub(crate) fn run(mut self, inputs: &mut UnboundedReceiver<Input>) -> Ended {
        let runtime = self.runtime.clone();
        let mut received: Vec<Input> = Vec::new();
        loop {
            let quits = received.iter().position(|input| matches!(input, Input::Quit(_)));
            let quit = quits.map(|at| received.remove(at));
            self.check_disk();
            if let Err(error) = self.turn(&mut received) {
                if let Some(Input::Quit(done)) = quit {
                    let _ = done.send(());
                    return Ended::Quit;
                }
                // Set before waiting clients are dropped, so that they are told the reason.
                if error.may_pass() {
                    self.disk.report_full(&error);
                }
                return Ended::Failed { error, watchers: std::mem::take(&mut self.watchers) };
            }
            if let Some(Input::Quit(done)) = quit {
                let _ = done.send(());
                return Ended::Quit;
            }
            let wait = self.idle_for();
            let first = runtime.block_on(async { tokio::time::timeout(wait, inputs.recv()).await });
            match first {
                Ok(Some(input)) => received.push(input),
                Ok(None) => return Ended::Quit,
                Err(_) => {}
            }
            while received.len() < INPUTS_PER_TURN
                && let Ok(input) = inputs.try_recv()
            {
                received.push(input);
            }
        }
    }

    fn turn(&mut self, received: &mut Vec<Input>) -> Result<(), StoreError> {
        let set = follow_wall();
        if let Some((was, is)) = set {
            self.clock.wall_was_set(was, is);
        }
        self.now = self.clock.now().max(self.now);
        self.counts.turns += 1;
        self.store.begin()?;
        if set.is_some() {
            let written = self.store.set_fact("clock", &json!(self.clock.parts()).to_string());
            self.check_store(written);
        }
        for input in received.drain(..) {
            self.handle_input(input);
        }
        self.pass_time();
        self.delete_expired();
        self.measure_output();
        self.decide();
        self.refresh_board();
        if let Some(error) = self.unwritten.take() {
            return Err(error);
        }
        self.store.commit()?;
        self.flush_outbox();
        self.run_effects();
        Ok(())
    }

    fn check_disk(&mut self) {
        if self.disk_checked.is_none_or(|looked| looked.elapsed() >= DISK_CHECK_EVERY) {
            self.disk_checked = Some(Instant::now());
            self.disk.check();
        }
    }

    /// How long until the next timer, check or refresh.
    fn idle_for(&self) -> Duration {
        let mut wait = IDLE_MAX.min(self.retention.check_every());
        if self.disk.trouble.why().is_some() {
            wait = wait.min(DISK_CHECK_EVERY);
        }
        if let Some(at) = self.timers.next() {
            let left = at.since(self.clock.now());
            wait = wait.min(Duration::from_millis(self.clock.wall_ms(left) + 1));
        }
        if self.stale {
            let pause = self.pause();
            let since = self.refreshed.map_or(pause, |shown| shown.elapsed());
            wait = wait.min(pause.saturating_sub(since));
        }
        wait
    }

    /// Fires all due timers.
    fn pass_time(&mut self) {
        while let Some(timer) = self.timers.due(self.now) {
            match timer {
                Timer::Wake => {
                    self.wake = None;
                    self.apply_or_log(&Event::Tick);
                }
                Timer::Submit(name, uid) => {
                    if self.gangs.get(&name).is_some_and(|gang| gang.uid == uid) {
                        self.submit(&name);
                    }
                }
                Timer::Stage(claim, stage) => self.machine(claim, stage),
                Timer::Gone(claim) => self.machine_gone(claim),
                Timer::Stopped(claim) => self.machine_stopped(claim),
                Timer::Fails(claim) => self.machine_fails(claim),
                Timer::Forecast => self.forecast(),
            }
        }
    }

    fn forecast(&mut self) {
        for said in self.forecaster.forecast(&self.world, self.now) {
            self.apply_or_log(&said);
        }
        self.expect_forecast();
    }

    pub(crate) fn expect_forecast(&mut self) {
        if let Some(due) = self.forecaster.due(&self.world, self.now) {
            self.timers.add(due, Timer::Forecast);
        }
    }

    /// Applies an event to the World, and records it if it is accepted.
    pub(crate) fn apply_event(&mut self, event: &Event) -> Result<(), Refusal> {
        self.snapshot = None;
        self.world.apply(self.now, event)?;
        let written = self.store.told(self.now, event);
        self.check_store(written);
        Ok(())
    }

    /// Applies an event that the World cannot refuse. A refusal would be a bug, and is logged.
    pub(crate) fn apply_or_log(&mut self, event: &Event) -> bool {
        match self.apply_event(event) {
            Ok(()) => true,
            Err(refusal) => {
                tracing::error!(%refusal, ?event, "the World refused what happened");
                false
            }
        }
    }

    /// Notes the first failed write; the effects of the turn are then dropped.
    pub(crate) fn check_store<T>(&mut self, written: Result<T, StoreError>) -> Option<T> {
        match written {
            Ok(value) => Some(value),
            Err(error) => {
                self.unwritten.get_or_insert(error);
                None
            }
        }
    }

    pub(crate) fn mark_stale(&mut self) {
        self.stale = true;
    }

    /// Whether a board refresh is due.
    pub(crate) fn is_refresh_due(&self) -> bool {
        const FEW: usize = 256;
        self.stale
            && (self.world.pending().len() < FEW
                || self.refreshed.is_none_or(|shown: Instant| shown.elapsed() >= self.pause()))
    }

    fn pause(&self) -> Duration {
        PAUSE.max(self.refresh_took * REFRESH_REST)
    }
}
