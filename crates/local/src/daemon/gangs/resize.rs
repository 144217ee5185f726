//! Resizes running gangs: gangs that declare a resize signal continue with the members that stay; all others save,
//! stop, and restart with the new size.

use std::collections::BTreeMap;
use std::sync::Arc;

use muster_core::gang::{Phase, Seat, Signal, members_of, nodes_of, without};
use muster_core::id::GangId;
use muster_core::{Event, Fact};

use crate::daemon::effects::Effect;
use crate::daemon::gangs::gang::Run;
use crate::daemon::gangs::runs::{send_order, signal_number};
use crate::daemon::gangs::seats;
use crate::daemon::state::Daemon;
use crate::keeper::files::WORLD;
use crate::keeper::run::resize::ResizeOrder;
use crate::keeper::socket::client::Order;

impl Daemon {
    /// Resizes a gang to these seats.
    pub(crate) fn resize(&mut self, id: GangId, seats: &[Seat]) {
        let Some(name) = self.names.get(&id).cloned() else { return };
        let Some(gang) = self.gangs.get_mut(&name) else { return };
        let Some(run) = &gang.run else { return };
        if gang.resizes.as_deref() == Some(seats) || run.seats == seats {
            return;
        }
        let (from, to) = (members_of(&run.seats), members_of(seats));
        let joins = nodes_of(&without(seats, &run.seats));
        gang.resizes = Some(seats.to_vec());
        let why = format!("it goes on with {to} members instead of {from}");
        match gang.record.run_policy.resize_signal {
            Some(signal) if can_resize_in_place(run, seats) => {
                self.replace_some(&name, seats, signal);
            }
            _ => self.start_over(&name, (from, to), &why),
        }
        self.fact(&Fact::GangResizing { gang: id, from, to, joins });
        self.record_event(&name, "Resizing", why, false);
    }

    /// Stops a gang that restarts with another size.
    fn start_over(&mut self, name: &Arc<str>, (from, to): (u32, u32), why: &str) {
        let Some(gang) = self.gangs.get_mut(name) else { return };
        let Some(run) = &mut gang.run else { return };
        let disruption = &gang.record.spec.disruption;
        let resizes = gang.record.run_policy.resize_signal.map(signal_number);
        let signal = resizes.unwrap_or_else(|| seats::stop_signal(disruption));
        let grace_ms = seats::grace_ms(&self.clock, disruption);
        let number = run.number;
        let told = send_order(run, Order::Stop { signal, grace_ms, why: why.to_owned() });
        // Written before the signal: a member that receives the signal finds the coming size.
        let file = self.run_directory(number).join(WORLD);
        self.effects.push(Effect::WriteFile(file, seats::world(from, Some(to))));
        self.effects.extend(told);
    }

    /// Orders the keeper of a gang to replace members. After a restart the same order is sent again, unchanged.
    fn replace_some(&mut self, name: &Arc<str>, seats: &[Seat], signal: Signal) {
        let gang = &self.gangs[name];
        let Some(run) = &gang.run else { return };
        let (members, next) = with(run, seats);
        let (number, directory) = (run.number, self.run_directory(run.number));
        let all = seats::others(&self.seat_context(), gang, &members, (number, &directory));
        let hostfile = seats::hostfile(&all);
        let mut join = all;
        join.retain(|member| !run.members.contains_key(&member.rank));
        let disruption = &gang.record.spec.disruption;
        let written = self.store.add_members(number, &join);
        let change = ResizeOrder {
            world: seats::world_of(&members),
            members: members.into_iter().collect(),
            next,
            join,
            signal: signal_number(signal),
            stop_signal: seats::stop_signal(disruption),
            grace_ms: seats::grace_ms(&self.clock, disruption),
            hostfile,
        };
        self.check_store(written);
        let run = self.gangs.get_mut(name).and_then(|gang| gang.run.as_mut());
        let told = run.and_then(|run| send_order(run, Order::Resize(Box::new(change))));
        self.effects.extend(told);
    }

    /// A gang continues with other members: the leaving ones have exited, and the joining ones may run.
    pub(crate) fn on_members_changed(
        &mut self,
        name: &Arc<str>,
        at: i64,
        members: &BTreeMap<u32, Seat>,
        next: u32,
    ) {
        let Some(gang) = self.gangs.get_mut(name) else { return };
        let (id, Some(run)) = (gang.id, &mut gang.run) else { return };
        let number = run.number;
        let before = std::mem::replace(&mut run.members, members.clone());
        (run.changed_at, run.next) = (at, next);
        run.seats = members.values().copied().collect();
        let of = |all: &BTreeMap<u32, Seat>, others: &BTreeMap<u32, Seat>| -> Vec<Seat> {
            let only = all.iter().filter(|(number, _)| !others.contains_key(number));
            only.map(|(_, seat)| *seat).collect()
        };
        let (gone, come) = (of(&before, members), of(members, &before));
        let mut row = self.row(name, &members.values().copied().collect::<Vec<_>>(), 0);
        row.members = come.len() as u32;
        let written = self.store.run_changed(number, at, &row);
        self.check_store(written);
        self.mark_stale();
        let Some(id) = id else { return };
        gone.iter().for_each(|seat| self.fact(&Fact::members_stopped(id, seat)));
        let wanted = self.world.gang(id).filter(|gang| matches!(gang.phase, Phase::Running { .. }));
        let wanted = wanted.and_then(|gang| gang.resize.as_ref()).map(|resize| resize.to.clone());
        let told = wanted.filter(|to| same(to, members));
        if let Some(to) = &told {
            self.apply_or_log(&Event::GangResized(id));
            let gang = self.gangs.get_mut(name).expect("just seen");
            gang.resizes = None;
            gang.run.iter_mut().for_each(|run| run.seats = to.clone());
            self.settle_bounds(name);
        }
        come.iter().for_each(|seat| self.fact(&Fact::members_started(id, seat)));
        if told.is_some() {
            self.fact(&Fact::GangResized { gang: id });
        }
        let count = |seats: &[Seat]| muster_api::figures::count(seats.len(), "member");
        let what =
            format!("{} joined and {} left while the others went on", count(&come), count(&gone));
        self.record_event(name, "Resized", what, false);
    }
}

/// Whether a run can take these seats while some of its members run on.
fn can_resize_in_place(run: &Run, seats: &[Seat]) -> bool {
    let stays = |number: &u32| run.members.contains_key(number) && !run.exited.contains(number);
    run.can_change && run.opened && !run.told_to_stop && with(run, seats).0.keys().any(stays)
}

/// Assigns members to these seats, with the next free number: a member keeps its seat and number, new members get new
/// numbers.
fn with(run: &Run, seats: &[Seat]) -> (BTreeMap<u32, Seat>, u32) {
    let (mut before, mut members, mut next) = (run.members.clone(), BTreeMap::new(), run.next);
    let mut empty = Vec::new();
    for seat in seats::per_member(seats) {
        let sits = before.iter().find(|(_, taken)| **taken == seat).map(|(number, _)| *number);
        match sits {
            Some(number) => {
                before.remove(&number);
                members.insert(number, seat);
            }
            None => empty.push(seat),
        }
    }
    for seat in empty {
        members.insert(next, seat);
        next += 1;
    }
    (members, next)
}

/// Whether the members occupy exactly these seats.
fn same(seats: &[Seat], members: &BTreeMap<u32, Seat>) -> bool {
    let (mut wanted, mut taken) =
        (seats::per_member(seats), members.values().copied().collect::<Vec<_>>());
    wanted.sort_unstable();
    taken.sort_unstable();
    wanted == taken
}
