//! Runs of gangs: turns decisions into orders for keepers, and records of keepers into events for the World.

use std::sync::Arc;
use std::time::Duration;

use muster_core::gang::{Phase, Seat, Signal, members_of};
use muster_core::id::GangId;
use muster_core::money::Money;
use muster_core::plan::StopReason;
use muster_core::resource::CPU;
use muster_core::time::Time;
use muster_core::{Event, Fact};

use crate::daemon::effects::Effect;
use crate::daemon::gangs::gang::{Gang, Over, Run};
use crate::daemon::gangs::seats;
use crate::daemon::inputs::Input;
use crate::daemon::state::Daemon;
use crate::keeper::journal::{Ending, Record};
use crate::keeper::run_plan::RunPlan;
use crate::keeper::socket::client::Order;
use crate::store::runs::RunRow;
use crate::system::clock::{anchor, wall_now};

/// Keepers that may exit before opening the gate, before a run fails.
const TRIES: u32 = 3;
/// The number of latest runs that a gang's status names.
pub(crate) const RUNS_SHOWN: usize = 10;
/// First and longest backoff of a run that could not be started because the system was out of a resource.
const BACK_OFF_LEAST: Duration = Duration::from_secs(1);
const BACK_OFF_MOST: Duration = Duration::from_secs(30);

impl Daemon {
    /// Starts every member of a gang in its seat, all together.
    pub(crate) fn start(&mut self, id: GangId, seats: &[Seat]) {
        let Some(name) = self.names.get(&id).cloned() else { return };
        let Some(gang) = self.gangs.get(&name) else { return };
        if gang.run.is_some() {
            return; // the same decision seen twice
        }
        let waited = self.world.gang(id).map_or(0, |gang| self.now.since(gang.waits_since).0);
        self.start_run(&name, seats, waited);
    }

    /// Records a run, and has its keeper started.
    fn start_run(&mut self, name: &Arc<str>, seats: &[Seat], waited: u64) {
        let row = self.row(name, seats, waited);
        let added = self.store.add_run(&row);
        let Some(number) = self.check_store(added) else { return };
        let directory = self.run_directory(number);
        let gang = &self.gangs[name];
        let plan = self.run_plan(gang, seats, number);
        let written = self.store.add_members(number, &plan.members);
        self.check_store(written);
        self.runs.insert(number, name.clone());
        let gang = self.gangs.get_mut(name).expect("just seen");
        gang.runs.push(number);
        gang.runs.drain(..gang.runs.len().saturating_sub(RUNS_SHOWN));
        gang.run = Some(Run::new(number, seats.to_vec()));
        gang.started = None;
        self.effects.push(Effect::StartKeeper(Box::new(plan), directory));
    }

    /// The plan for the keeper of a run.
    fn run_plan(&self, gang: &Gang, seats: &[Seat], number: u64) -> RunPlan {
        let directory = self.run_directory(number);
        let mut plan = seats::plan(&self.seat_context(), gang, seats, (number, &directory));
        plan.group = self.trees.run(&self.owner, number);
        plan.clock = Some(anchor());
        plan
    }

    /// The database row of a run with these seats.
    pub(crate) fn row<'a>(&'a self, name: &'a str, seats: &[Seat], waited: u64) -> RunRow<'a> {
        let gang = &self.gangs[name];
        let roles = &gang.record.spec.roles;
        let (mut gpu_milli, mut cpu_milli) = (0, 0);
        for seat in seats {
            let request = &roles[usize::from(seat.role)].request;
            gpu_milli += request.gpu_milli() * u64::from(seat.members);
            let cpu = request.amounts.get(CPU).copied().unwrap_or_default();
            cpu_milli += cpu * u64::from(seat.members);
        }
        RunRow {
            gang: gang.uid,
            name,
            queue: &gang.record.spec.queue,
            user: &gang.record.spec.user,
            gpu_milli,
            cpu_milli,
            hourly: self.hourly(roles, seats).0,
            waited_ms: self.clock.wall_ms(muster_core::time::Span(waited)),
            decided: wall_now(),
            members: members_of(seats),
        }
    }

    pub(crate) fn seat_context(&self) -> seats::SeatContext<'_> {
        let machine = self.machine.as_ref();
        seats::SeatContext { world: &self.world, clock: &self.clock, machine }
    }

    /// The hourly price of these seats: their share of every node, by GPUs, or by CPU where the node has none. So gangs
    /// that share a node together pay its price, and the unused share is charged to no gang.
    fn hourly(&self, roles: &[muster_core::gang::RoleSpec], seats: &[Seat]) -> Money {
        let share = |seat: &Seat| {
            let node = self.world.node(seat.node)?;
            let offering = self.world.claims().get(&node.claim?)?.offering;
            let spec = &self.world.offering(offering).spec;
            let request = &roles[usize::from(seat.role)].request;
            let cpu = |amounts: &muster_core::resource::NamedAmounts| {
                amounts.get(CPU).copied().unwrap_or_default()
            };
            let (mine, all) = match self.world.class(node.class).gpus {
                0 => (cpu(&request.amounts), cpu(&spec.allocatable)),
                gpus => (request.gpu_milli(), u64::from(gpus) * 1_000),
            };
            let mine = (mine * u64::from(seat.members)).min(all);
            let part = i128::from(spec.price.0) * i128::from(mine) / i128::from(all.max(1));
            Some(Money(i64::try_from(part).unwrap_or(i64::MAX)))
        };
        seats.iter().filter_map(share).fold(Money::ZERO, |sum, part| sum + part)
    }

    /// Stops every member of a gang; with its grace period, where there is time for it.
    pub(crate) fn stop(&mut self, id: GangId, reason: StopReason) {
        let Some(name) = self.names.get(&id).cloned() else { return };
        let told = reason.is_told() && !self.world.broken().contains_key(&id);
        let why = self.stop_message(reason);
        self.fact(&Fact::GangStopping { gang: id, reason });
        self.record_event(&name, "Stopping", why.clone(), false);
        let Some(gang) = self.gangs.get_mut(&name) else { return };
        gang.resizes = None;
        let disruption = &gang.record.spec.disruption;
        let (signal, grace_ms) = match told {
            true => (seats::stop_signal(disruption), seats::grace_ms(&self.clock, disruption)),
            false => (9, 0),
        };
        match &mut gang.run {
            // It has no keeper to send an order to, and no member.
            Some(run) if run.delayed => {
                run.told_to_stop = true;
                self.on_run_ended(&name, wall_now(), &Ending::Stopped);
            }
            Some(run) => {
                run.told_to_stop = true;
                self.effects.extend(send_order(run, Order::Stop { signal, grace_ms, why }));
            }
            None => self.on_stopped(&name, id, reason),
        }
    }

    /// Handles a record of a keeper. Known records come again after a restart.
    pub(crate) fn keeper_record(&mut self, number: u64, record: Record) {
        let Some(name) = self.runs.get(&number).cloned() else { return };
        let Some(gang) = self.gangs.get_mut(&name) else { return };
        let Some(run) = gang.run.as_mut().filter(|run| run.number == number) else { return };
        match record {
            Record::Begun { resizes, .. } => run.can_change = resizes,
            Record::Ready { .. } | Record::Beat => {}
            Record::Later { why, .. } => run.shortage = Some(why),
            Record::Opened { at } if !run.opened => {
                run.opened = true;
                let written = self.store.run_started(number, at);
                self.check_store(written);
                self.on_started(&name);
            }
            Record::Opened { .. } => {}
            Record::Started { at, spread_us } => {
                let at = self.clock.world_at(at);
                gang.started = Some((at, Some(spread_us)));
                self.publish_start(&name, spread_us);
                self.mark_stale();
            }
            Record::Stopping { .. } => run.broken = true,
            Record::Warned { what, .. } => self.record_event(&name, "Warned", what, true),
            Record::Resized { at, members, next } if at > run.changed_at => {
                self.on_members_changed(&name, at, &members.into_iter().collect(), next);
            }
            Record::Resized { .. } => {}
            Record::Exited(exit) => {
                run.broken |= !exit.is_good() && !exit.leaving;
                if run.exited.insert(exit.rank) {
                    let written = self.store.member_ended(number, &exit);
                    self.check_store(written);
                }
            }
            Record::Ended { at, ending } => self.on_run_ended(&name, at, &ending),
        }
    }

    /// Every member has passed the gate.
    fn on_started(&mut self, name: &Arc<str>) {
        let Some(gang) = self.gangs.get_mut(name) else { return };
        gang.started = Some((self.now, None));
        let Some(id) = gang.id else { return };
        let resized = gang.resizes.take().is_some();
        if let Some(run) = &mut gang.run {
            run.resized = resized;
        }
        self.counts.started += 1;
        self.mark_stale();
        match self.world.gang(id).map(|gang| gang.phase.clone()) {
            Some(Phase::Running { .. }) if resized => {
                self.apply_or_log(&Event::GangResized(id));
            }
            Some(Phase::Admitted { .. }) => {
                self.apply_or_log(&Event::GangStarted(id));
            }
            _ => {}
        }
        self.settle_bounds(name);
    }

    /// Publishes that members have started, and their spread: once, when the spread is known or the run has ended.
    fn publish_start(&mut self, name: &Arc<str>, spread_us: u64) {
        let Some(gang) = self.gangs.get_mut(name) else { return };
        let (Some(id), Some(run)) = (gang.id, &mut gang.run) else { return };
        if std::mem::replace(&mut run.start_published, true) {
            return;
        }
        let (taken, resized) = (run.seats.clone(), run.resized);
        let spread = self.clock.world_span(spread_us);
        let mut at = Time(self.now.0 - spread.0 as i64);
        // The first member passed the gate that much earlier than the last.
        for seat in seats::per_member(&taken) {
            self.fact_at(at, &Fact::members_started(id, &seat));
            at = self.now;
        }
        self.fact(&match resized {
            true => Fact::GangResized { gang: id },
            false => Fact::GangStarted { gang: id },
        });
        let members = muster_api::figures::count(members_of(&taken) as usize, "member");
        let spread = spread_us as f64 / 1_000.0;
        let what = format!("{members} started together (spread {spread:.1} ms)");
        self.record_event(name, "Started", what, false);
    }

    /// A run has ended; none of its processes is left.
    fn on_run_ended(&mut self, name: &Arc<str>, at: i64, ending: &Ending) {
        if self.gangs.get(name).and_then(|gang| gang.run.as_ref()).is_some_and(|run| run.opened) {
            self.publish_start(name, 0);
        }
        let Some(gang) = self.gangs.get_mut(name) else { return };
        let Some(run) = gang.run.take() else { return };
        self.runs.remove(&run.number);
        gang.members = run.members.len() as u32;
        let words = match ending {
            Ending::Succeeded => "succeeded".to_owned(),
            Ending::Failed(why) => why.clone(),
            Ending::Stopped => "stopped".to_owned(),
            Ending::TimedOut => "took longer than it may".to_owned(),
        };
        let written = self.store.run_ended(run.number, at, &words);
        self.check_store(written);
        self.mark_stale();
        let gang = self.gangs.get_mut(name).expect("just seen");
        let Some(id) = gang.id else { return };
        if run.opened {
            for seat in seats::per_member(&run.seats) {
                self.fact(&Fact::members_stopped(id, &seat));
            }
        }
        let phase = self.world.gang(id).map(|gang| gang.phase.clone());
        let resizes = self.gangs[name].resizes.clone();
        match (ending, phase) {
            (Ending::Succeeded, _) => {
                self.end_gang(name, true, "Succeeded", "its work is done".to_owned());
            }
            (_, Some(Phase::Stopping)) => {
                let reason = self.world.gang(id).and_then(|gang| gang.stop);
                self.on_stopped(name, id, reason.unwrap_or(StopReason::Moved));
            }
            (Ending::Stopped, Some(Phase::Running { .. })) if resizes.is_some() => {
                self.start_run(name, &resizes.expect("just seen"), 0);
            }
            (Ending::TimedOut, _) => {
                let why = "it took longer than its time limit".to_owned();
                self.end_gang(name, false, "TimeLimit", why);
            }
            (_, _) => self.on_failed(name, words),
        }
    }

    /// A keeper is gone, and so are all processes of its run. If the keeper did not record how its members ended, they
    /// ended with it, when it was last known to be alive.
    pub(crate) fn keeper_gone(
        &mut self,
        number: u64,
        alive_until: i64,
        why: Option<String>,
        later: bool,
    ) {
        let Some(name) = self.runs.get(&number).cloned() else { return };
        let Some(gang) = self.gangs.get_mut(&name) else { return };
        let Some(run) = gang.run.as_mut().filter(|run| run.number == number) else { return };
        run.orders = None;
        if run.is_done() {
            return self.on_run_ended(&name, alive_until.min(wall_now()), &Ending::Succeeded);
        }
        if run.opened {
            let gone = || "the process that kept its members is gone, and they with it".to_owned();
            let why = why.unwrap_or_else(gone);
            let at = alive_until.min(wall_now());
            return self.on_run_ended(&name, at, &Ending::Failed(why));
        }
        if run.told_to_stop {
            return self.on_run_ended(&name, wall_now(), &Ending::Stopped);
        }
        let shortage = run.shortage.take();
        if later || shortage.is_some() {
            let why =
                shortage.or(why).unwrap_or_else(|| last_error_line(&self.run_directory(number)));
            return self.defer_start(&name, number, &why);
        }
        // No member has run. The keeper is started again; should the first keeper begin after all, one of them finds
        // the lock taken.
        run.failed_starts += 1;
        let tries = run.failed_starts;
        let directory = self.run_directory(number);
        if tries > TRIES {
            let why = why.unwrap_or_else(|| last_error_line(&directory));
            let why = format!("its members could not be started in {TRIES} tries: {why}");
            return self.on_run_ended(&name, wall_now(), &Ending::Failed(why));
        }
        self.restart_keeper(&name, number);
    }

    /// Defers the start of a run because the system is out of a resource. This does not count as a failed start; it is
    /// retried with exponential backoff.
    fn defer_start(&mut self, name: &Arc<str>, number: u64, why: &str) {
        let Some(run) = self.gangs.get_mut(name).and_then(|gang| gang.run.as_mut()) else { return };
        run.delayed = true;
        run.why_delayed = Some(why.to_owned());
        let first = run.deferrals == 0;
        let wait = BACK_OFF_LEAST * 2u32.pow(run.deferrals.min(5));
        run.deferrals += 1;
        let wait = wait.min(BACK_OFF_MOST);
        self.mark_stale();
        if first {
            let what = format!("its members cannot be started now and are tried again: {why}");
            self.record_event(name, "Delayed", what, true);
        }
        tracing::warn!(gang = &**name, why, ?wait, "members cannot be started now");
        let inputs = self.inputs.clone();
        self.runtime.spawn(async move {
            tokio::time::sleep(wait).await;
            let _ = inputs.send(Input::RetryStart { run: number });
        });
    }

    /// Retries a deferred run.
    pub(crate) fn retry_start(&mut self, number: u64) {
        let Some(name) = self.runs.get(&number).cloned() else { return };
        let Some(gang) = self.gangs.get_mut(&name) else { return };
        let Some(run) = gang.run.as_mut().filter(|run| run.number == number && run.delayed) else {
            return;
        };
        run.delayed = false;
        self.restart_keeper(&name, number);
    }

    fn restart_keeper(&mut self, name: &Arc<str>, number: u64) {
        let gang = &self.gangs[name];
        let Some(run) = &gang.run else { return };
        let directory = self.run_directory(number);
        let known = RunPlan::read(&directory).ok().filter(|plan| plan.uid == gang.uid);
        let plan = known.unwrap_or_else(|| self.run_plan(gang, &run.seats, number));
        self.effects.push(Effect::StartKeeper(Box::new(plan), directory));
    }

    /// Every member of a gang that was told to stop has stopped.
    fn on_stopped(&mut self, name: &Arc<str>, id: GangId, reason: StopReason) {
        self.counts.stopped += 1;
        if !self.apply_or_log(&Event::GangStopped(id)) {
            return;
        }
        self.fact(&Fact::GangStopped { gang: id, reason });
        self.settle_bounds(name);
        if self.world.gang(id).is_none() {
            self.names.remove(&id);
            self.finish(name, false, "Cancelled", "it was cancelled".to_owned());
        }
    }

    /// A member failed, and the others were stopped: the whole gang is retried, or it has failed for good.
    fn on_failed(&mut self, name: &Arc<str>, why: String) {
        let gang = self.gangs.get_mut(name).expect("just seen");
        let (retried, retries) = (gang.record.retried, gang.record.run_policy.retries);
        if gang.record.cancelled || retried >= retries {
            return self.end_gang(name, false, "Failed", why);
        }
        gang.record.retried += 1;
        let (id, uid, retry) = (gang.id.take(), gang.uid, gang.record.retried);
        let record = serde_json::to_value(&gang.record).unwrap_or_default();
        let written = self.store.set_gang_record(uid, &record);
        self.check_store(written);
        if let Some(id) = id {
            let (why, retry) = (why.as_str().into(), Some((retry, retries)));
            self.fact(&Fact::GangFailed { gang: id, why, retry });
            self.apply_or_log(&Event::GangEnded(id));
            self.fact(&Fact::GangEnded { gang: id });
            self.names.remove(&id);
        }
        self.record_event(
            name,
            "Retried",
            format!("failed, retry {retry} of {retries}: {why}"),
            true,
        );
        self.submit(name);
    }

    /// A gang in the World has finished.
    fn end_gang(&mut self, name: &Arc<str>, good: bool, reason: &'static str, message: String) {
        let gang = self.gangs.get_mut(name).expect("just seen");
        if let Some(id) = gang.id {
            if !good {
                let why = message.as_str().into();
                self.fact(&Fact::GangFailed { gang: id, why, retry: None });
            }
            self.apply_or_log(&Event::GangEnded(id));
            self.fact(&Fact::GangEnded { gang: id });
            self.names.remove(&id);
        }
        self.finish(name, good, reason, message);
    }

    /// Records the end of a gang.
    pub(crate) fn finish(
        &mut self,
        name: &Arc<str>,
        good: bool,
        reason: &'static str,
        message: String,
    ) {
        self.counts.ended += 1;
        self.counts.failed += u64::from(!good);
        self.record_event(name, reason, message.clone(), !good);
        let Some(gang) = self.gangs.get_mut(name) else { return };
        (gang.id, gang.resizes) = (None, None);
        gang.over = Some(Over { at: wall_now(), good, reason, message });
        if gang.record.forget {
            self.forget(name);
        } else {
            self.publish_gang(name, None);
        }
    }
}

/// Sends an order to a keeper, now or once it is supervised.
pub(crate) fn send_order(run: &mut Run, order: Order) -> Option<Effect> {
    match &run.orders {
        Some(to) => Some(Effect::SendOrder(to.clone(), order)),
        None => {
            run.pending.push(order);
            None
        }
    }
}

/// The last line on the keeper's standard error.
fn last_error_line(directory: &std::path::Path) -> String {
    let said = std::fs::read_to_string(directory.join("keeper.err")).unwrap_or_default();
    let last = said.lines().rev().find(|line| !line.trim().is_empty());
    last.unwrap_or("their keeper was gone without a word").to_owned()
}

pub(crate) fn signal_number(signal: Signal) -> i32 {
    use rustix::process::Signal as System;
    match signal {
        Signal::SigUsr1 => System::USR1,
        Signal::SigUsr2 => System::USR2,
        Signal::SigTerm => System::TERM,
        Signal::SigInt => System::INT,
        Signal::SigHup => System::HUP,
        Signal::SigQuit => System::QUIT,
        Signal::SigAlrm => System::ALARM,
        Signal::SigCont => System::CONT,
        Signal::SigWinch => System::WINCH,
    }
    .as_raw()
}
