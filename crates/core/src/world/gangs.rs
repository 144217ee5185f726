//! Gangs: submitted, admitted as a whole, stopped as a whole, ended.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::capacity::signature::{Signature, SignatureKey};
use crate::hardware::topology::Level;
use crate::history::Run;
use crate::history::baseline::Baseline;
use crate::id::{GangId, QueueIdx, SigIdx};
use crate::messages::event::{Refusal, Stale};
use crate::messages::plan::StopReason;
use crate::objects::gang::{Closeness, Gang, GangSpec, Phase, RoleSpec, Seat, members_of};
use crate::objects::order::VictimSeats;
use crate::objects::progress::Progress;
use crate::objects::queue::Usage;
use crate::units::time::{Span, Time};
use crate::world::World;

impl World {
    pub(super) fn submit(&mut self, spec: &GangSpec) -> Result<(), Refusal> {
        if self.gang_by_name.contains_key(&spec.name) {
            return Err(Refusal::DuplicateGang(spec.name.clone()));
        }
        let (queue, level) = self.check_spec(spec)?;
        let sigs: Vec<SigIdx> = spec.roles.iter().map(|role| self.signature_of(role)).collect();
        let wants = self.wanted_at_least(spec, &sigs);
        for (role, sig) in spec.roles.iter().zip(&sigs) {
            if self.sigs[*sig].key.gpu.is_some() {
                self.shapes.record(*sig, role.min);
            }
        }
        let gang = Gang {
            spec: spec.clone(),
            next: None,
            queue,
            sigs,
            wants,
            level,
            submitted: self.now,
            waits_since: self.now,
            phase: Phase::Waiting,
            seats: Vec::new(),
            spare: Vec::new(),
            resize: None,
            resized: None,
            declined: None,
            work: Progress::new(spec.estimated_duration()),
            measured: None,
            stop: None,
            evictions: 0,
            failed_orders: 0,
            last_failure: None,
            restarts: 0,
            recent: self.history.recent(&spec.user, self.now),
        };
        if self.synced {
            // A gang that exists before the first sync arrived earlier: a later event says when.
            self.record_demand(&gang, self.now);
        }
        let wants = gang.wants.clone();
        let id = self.gangs.push(Some(Box::new(gang)));
        let now = self.now;
        let said = spec.estimated_with_min();
        self.update_baseline(|baseline| baseline.submitted(now, id, wants, said));
        self.gang_by_name.insert(spec.name.clone(), id);
        *self.estimates.entry(said).or_default() += 1;
        self.live.insert(id);
        self.disruptable += u32::from(spec.may_be_victim());
        self.enqueue(id);
        Ok(())
    }

    /// Whether a gang could be submitted, and why not. Nothing is changed.
    ///
    /// # Errors
    ///
    /// With the reason for which its submission would be refused, apart from its name.
    pub fn check_submission(&self, spec: &GangSpec) -> Result<(), Refusal> {
        self.check_spec(spec).map(drop)
    }

    /// The queue and the topology level that a gang names, if its spec is valid.
    pub(super) fn check_spec(&self, spec: &GangSpec) -> Result<(QueueIdx, Option<Level>), Refusal> {
        // A gang stays in its queue, even when that is no longer declared.
        let known = self.gang_named(&spec.name).and_then(|id| self.gang(id));
        let queue = match known.filter(|gang| gang.spec.queue == spec.queue) {
            Some(gang) => gang.queue,
            None => self.declared_queue(&spec.queue)?,
        };
        if spec.roles.is_empty()
            || spec.roles.iter().any(|role| role.min == 0 || role.min > role.max)
        {
            return Err(Refusal::EmptyGang(spec.name.clone()));
        }
        if let Some(resource) = uncountable(spec) {
            return Err(Refusal::TooMuch(spec.name.clone(), resource));
        }
        let level = match &spec.closeness {
            None => None,
            Some(Closeness::Required(name) | Closeness::Preferred(name)) => {
                let level = self.topology.levels().find(name);
                Some(level.ok_or_else(|| Refusal::UnknownLevel(name.clone()))?)
            }
        };
        Ok((queue, level))
    }

    /// The usage of a gang with the minimum of every role.
    pub(super) fn wanted_at_least(&self, spec: &GangSpec, sigs: &[SigIdx]) -> Usage {
        let mut wants = Usage::default();
        for (role, sig) in spec.roles.iter().zip(sigs) {
            wants.add(&self.sigs[*sig].key.amounts, self.sigs[*sig].gpu_milli(), role.min);
        }
        wants
    }

    /// Drops one gang's estimate.
    pub(super) fn drop_estimate(&mut self, said: Span) {
        let others = self.estimates.get_mut(&said).expect("counted when it was submitted");
        *others -= 1;
        if *others == 0 {
            self.estimates.remove(&said);
        }
    }

    pub(super) fn cancel(&mut self, id: GangId) -> Result<(), Refusal> {
        let gang = self.gang(id).ok_or(Refusal::UnknownGang(id))?;
        if gang.phase == Phase::Waiting {
            self.forget_gang(id);
        } else {
            self.cancelled.insert(id);
        }
        Ok(())
    }

    /// Gives every member its seat, or changes nothing.
    pub(super) fn admit(&mut self, id: GangId, seats: &[Seat]) -> Result<(), Refusal> {
        let gang = self.gang(id).ok_or(Refusal::UnknownGang(id))?;
        let own_order = match gang.phase {
            Phase::Waiting => None,
            Phase::Assembling(order) => Some(order),
            // A repeated admission into the same seats is the same decision.
            Phase::Admitted { .. } | Phase::Running { .. } if gang.seats == seats => return Ok(()),
            Phase::Admitted { .. } | Phase::Running { .. } | Phase::Stopping => {
                return Err(Stale::Gang.into());
            }
        };
        self.check_members(gang, seats)?;
        match own_order {
            Some(order) => {
                if !self.order_becomes(order, seats) {
                    return Err(Stale::Order.into());
                }
                self.close_order(order);
            }
            None => {
                if !self.are_free(gang, seats) {
                    return Err(Stale::Seat.into());
                }
                self.check_quota(gang, &self.wants(gang, seats), &[])?;
                self.charge_seats(id, seats, true);
                self.sit(id, seats);
            }
        }
        let at = self.now;
        self.dequeue(id);
        self.pending.remove(&id);
        self.repairs.remove(&id);
        let gang = self.gang_mut(id);
        gang.seats = seats.to_vec();
        gang.failed_orders = 0;
        gang.last_failure = None;
        gang.stop = None;
        gang.work.since = at + gang.pause_at_start();
        self.enter(id, Phase::Admitted { at });
        Ok(())
    }

    pub(super) fn start(&mut self, id: GangId) -> Result<(), Refusal> {
        let at = self.now;
        match self.gang(id).ok_or(Refusal::UnknownGang(id))?.phase {
            Phase::Admitted { .. } => {
                self.unindex_end(id);
                let gang = self.gang_mut(id);
                gang.work.since = at + gang.pause_at_start();
                self.index_end(id);
                self.enter(id, Phase::Running { at });
            }
            Phase::Running { .. } | Phase::Stopping => {}
            Phase::Waiting | Phase::Assembling(_) => return Err(Stale::Gang.into()),
        }
        Ok(())
    }

    pub(super) fn stop(&mut self, id: GangId, reason: StopReason) -> Result<(), Refusal> {
        match self.gang(id).ok_or(Refusal::UnknownGang(id))?.phase {
            Phase::Admitted { .. } | Phase::Running { .. } => {
                self.enter(id, Phase::Stopping);
                let gang = self.gang_mut(id);
                gang.stop = Some(reason);
                if reason.is_eviction() {
                    gang.evictions += 1;
                    let queue = gang.queue;
                    // A reclaim of lent capacity does not count against the queue's eviction budget.
                    if !matches!(reason, StopReason::Reclaimed(_)) {
                        self.note_eviction(queue);
                    }
                }
            }
            Phase::Stopping => {}
            Phase::Waiting | Phase::Assembling(_) => return Err(Stale::Gang.into()),
        }
        Ok(())
    }

    /// Every member has stopped: the gang is requeued at its place, or removed if cancelled.
    pub(super) fn stopped(&mut self, id: GangId) -> Result<(), Refusal> {
        if self.gang(id).ok_or(Refusal::UnknownGang(id))?.phase != Phase::Stopping {
            return Err(Stale::Gang.into());
        }
        let now = self.now;
        let lost = self.broken.contains_key(&id);
        let gang = self.gang_mut(id);
        let (speed, disruption) = (gang.speed(), gang.spec.disruption);
        let told = !lost && gang.stop.is_none_or(StopReason::is_told);
        gang.work.stop(now, speed, |did| disruption.saved(did, told));
        self.leave_seats(id);
        if self.cancelled.contains(&id) {
            self.forget_gang(id);
            return Ok(());
        }
        let gang = self.gang_mut(id);
        gang.restarts += 1;
        if matches!(gang.stop, Some(StopReason::Rotated(_))) {
            gang.waits_since = now;
        }
        let failed =
            matches!(gang.stop, Some(StopReason::NodeLost(_) | StopReason::NodeFailing(_)));
        if failed || lost {
            self.repairs.insert(id);
        }
        self.enter(id, Phase::Waiting);
        self.enqueue(id);
        if let Some(next) = self.gang_mut(id).next.take() {
            // What it names may be gone by now: then it keeps its old spec.
            let _ = self.change_gang(&next);
        }
        Ok(())
    }

    fn note_eviction(&mut self, queue: QueueIdx) {
        let now = self.now;
        let evicted = &mut self.queues[queue].evicted;
        while evicted.front().is_some_and(|at| now.since(*at) >= Span::hours(1)) {
            evicted.pop_front();
        }
        evicted.push_back(now);
    }

    pub(super) fn end(&mut self, id: GangId) -> Result<(), Refusal> {
        match self.gang(id).ok_or(Refusal::UnknownGang(id))?.phase {
            Phase::Admitted { .. } | Phase::Running { .. } | Phase::Stopping => {}
            Phase::Waiting | Phase::Assembling(_) => return Err(Stale::Gang.into()),
        }
        self.record_run(id);
        self.leave_seats(id);
        self.forget_gang(id);
        Ok(())
    }

    /// Updates the baseline, where it is kept.
    fn update_baseline(&mut self, tell: impl FnOnce(&mut Baseline)) {
        if let Some(baseline) = &mut self.baseline {
            tell(baseline);
            baseline.advance(self.now, &self.total);
        }
    }

    /// Records how long a gang ran, for estimates of its user's next gangs.
    fn record_run(&mut self, id: GangId) {
        let gang = self.gangs[id].as_deref().expect("a gang that is not over");
        let Phase::Running { .. } = gang.phase else {
            return self.update_baseline(|baseline| baseline.really_gone(id));
        };
        // With every role at its `max`, and over all of its runs: the meaning of submitters' estimates.
        let lasted = gang.work.done_by(self.now, gang.speed());
        // Gangs do not grow in the baseline.
        let with_least = gang.with_least(lasted);
        self.update_baseline(|baseline| baseline.really_ended(id, with_least));
        let gang = self.gangs[id].as_deref().expect("a gang that is not over");
        if gang.spec.user.is_empty() {
            return;
        }
        let run = Run {
            ended: self.now,
            lasted,
            estimate: gang.spec.expected_duration,
            members: members_of(&gang.seats),
        };
        self.history.record(&gang.spec.user, run);
    }

    pub(super) fn forget_gang(&mut self, id: GangId) {
        self.dequeue(id);
        self.unindex_end(id);
        let gang = self.gangs[id].take().expect("a gang that is not over");
        if self.cancelled.contains(&id) || gang.phase == Phase::Waiting {
            self.update_baseline(|baseline| baseline.really_gone(id));
        }
        self.gang_by_name.remove(&gang.spec.name);
        self.disruptable -= u32::from(gang.spec.may_be_victim());
        self.drop_estimate(gang.spec.estimated_with_min());
        self.live.remove(&id);
        self.pending.remove(&id);
        self.broken.remove(&id);
        self.cancelled.remove(&id);
        self.repairs.remove(&id);
    }

    /// Changes the phase of a gang, and its entry in the index of estimated ends.
    pub(super) fn enter(&mut self, id: GangId, phase: Phase) {
        self.unindex_end(id);
        match phase {
            Phase::Running { at } => self.update_baseline(|b| b.really_started(at, id)),
            Phase::Waiting => self.update_baseline(|b| b.really_requeued(id)),
            Phase::Assembling(_) | Phase::Admitted { .. } | Phase::Stopping => {}
        }
        self.gang_mut(id).phase = phase;
        self.index_end(id);
    }

    pub(super) fn index_end(&mut self, id: GangId) {
        let end: Option<Time> = self.gang(id).and_then(Gang::estimated_end);
        self.estimated_ends.extend(end.map(|end| (end, id)));
    }

    pub(super) fn unindex_end(&mut self, id: GangId) {
        if let Some(end) = self.gang(id).and_then(Gang::estimated_end) {
            self.estimated_ends.remove(&(end, id));
        }
    }

    /// Enqueues a gang without an order.
    pub(super) fn enqueue(&mut self, id: GangId) {
        self.pending.insert(id);
        let gang = self.gangs[id].as_deref().expect("a gang that is not over");
        self.wait_queue.join(id, gang);
    }

    /// Dequeues a gang.
    pub(super) fn dequeue(&mut self, id: GangId) {
        let gang = self.gangs[id].as_deref().expect("a gang that is not over");
        self.wait_queue.leave(id, gang);
    }

    /// Charges these seats to the gang's queue, or takes them off again.
    pub(super) fn charge_seats(&mut self, id: GangId, seats: &[Seat], add: bool) {
        let gang = self.gang(id).expect("a gang that is not over");
        let (queue, user) = (gang.queue, gang.spec.user.clone());
        let wants = self.wants(gang, seats);
        for (sig, count) in wants {
            let amounts = self.sigs[sig].key.amounts.clone();
            let gpu_milli = self.sigs[sig].gpu_milli();
            self.charge(Some(queue), &amounts, gpu_milli, count, add);
            self.charge_user(queue, &user, sig, count, add);
        }
    }

    /// Members per signature.
    pub(super) fn wants(&self, gang: &Gang, seats: &[Seat]) -> Vec<(SigIdx, u32)> {
        let mut counts = vec![0u32; gang.sigs.len()];
        for seat in seats {
            counts[usize::from(seat.role)] += u32::from(seat.members);
        }
        gang.sigs.iter().copied().zip(counts).filter(|(_, count)| *count > 0).collect()
    }

    /// Whether every role has at least its minimum and at most its maximum.
    pub(super) fn check_members(&self, gang: &Gang, seats: &[Seat]) -> Result<(), Refusal> {
        let mut counts = vec![0u32; gang.spec.roles.len()];
        for seat in seats {
            *counts.get_mut(usize::from(seat.role)).ok_or(Stale::BelowMin)? +=
                u32::from(seat.members);
        }
        let enough = |(at, (role, count)): (usize, (&RoleSpec, u32))| {
            role.min <= count && count <= gang.most_in(at as u16)
        };
        if gang.spec.roles.iter().zip(counts).enumerate().all(enough) {
            Ok(())
        } else {
            Err(Stale::BelowMin.into())
        }
    }

    /// Whether the queue and everything above it, and the user in each of them, stays within its limit. A gang that
    /// wants none of a resource is not blocked by a queue that exceeds its limit of it. Seats that victims give up for
    /// it do not count.
    pub(super) fn check_quota(
        &self,
        gang: &Gang,
        wants: &[(SigIdx, u32)],
        after: &[VictimSeats],
    ) -> Result<(), Refusal> {
        if !self.has_limits {
            return Ok(());
        }
        let mut sum = Usage::default();
        for (sig, count) in wants {
            sum.add(&self.sigs[*sig].key.amounts, self.sigs[*sig].gpu_milli(), *count);
        }
        self.check_usage(gang, &sum, after)
    }

    /// The same for a total usage.
    pub(super) fn check_usage(
        &self,
        gang: &Gang,
        sum: &Usage,
        after: &[VictimSeats],
    ) -> Result<(), Refusal> {
        for idx in self.queue_path(gang.queue) {
            let queue = &self.queues[idx];
            let mut held = queue.usage.clone();
            let mut own = queue.users.get(&gang.spec.user).cloned().unwrap_or_default();
            for way in after {
                let Some(other) = self.gang(way.gang) else { continue };
                if !self.queue_path(other.queue).any(|queue| queue == idx) {
                    continue;
                }
                let mine = other.spec.user == gang.spec.user && !queue.user_limit.is_empty();
                for (sig, count) in self.wants(other, &way.seats) {
                    let signature = &self.sigs[sig];
                    held.take(&signature.key.amounts, signature.gpu_milli(), count);
                    if mine {
                        own.take(&signature.key.amounts, signature.gpu_milli(), count);
                    }
                }
            }
            if queue.limit.exceeded(&held, sum).is_some()
                || queue.user_limit.exceeded(&own, sum).is_some()
            {
                return Err(Stale::Queue.into());
            }
        }
        Ok(())
    }

    fn leave_seats(&mut self, id: GangId) {
        self.unindex_end(id);
        let gang = self.gang_mut(id);
        let seats = std::mem::take(&mut gang.seats);
        gang.resize = None;
        gang.spare.clear();
        self.charge_seats(id, &seats, false);
        self.rise(id, &seats);
        self.broken.remove(&id);
        self.finish_preemption(id);
    }

    /// The signatures of these roles, whether known before or not.
    pub fn kinds_of(&self, roles: &[RoleSpec]) -> Vec<Signature> {
        let mut names = self.names.clone();
        let mut kind = |role: &RoleSpec| {
            let amounts = names.amounts(&role.request.amounts);
            let (gpu, constraints) = (role.request.gpu.clone(), role.constraints.clone());
            Signature::new(SignatureKey { amounts, gpu, constraints }, &self.topology)
        };
        roles.iter().map(&mut kind).collect()
    }

    pub(super) fn signature_of(&mut self, role: &RoleSpec) -> SigIdx {
        let key = SignatureKey {
            amounts: self.names.amounts(&role.request.amounts),
            gpu: role.request.gpu.clone(),
            constraints: role.constraints.clone(),
        };
        if let Some(sig) = self.sig_by_key.get(&key) {
            return *sig;
        }
        let sig = self.sigs.push(Signature::new(key.clone(), &self.topology));
        self.sig_by_key.insert(key, sig);
        sig
    }
}

/// A resource of which all members together request more than 63 bits can count, so that usage can be added to it.
fn uncountable(spec: &GangSpec) -> Option<Arc<str>> {
    let mut sums: BTreeMap<&Arc<str>, u128> = BTreeMap::new();
    for role in &spec.roles {
        for (name, amount) in &role.request.amounts {
            *sums.entry(name).or_default() += u128::from(*amount) * u128::from(role.max);
        }
    }
    let over = sums.into_iter().find(|(_, sum)| *sum > i64::MAX as u128);
    over.map(|(name, _)| name.clone())
}
