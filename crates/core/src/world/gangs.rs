//! Gangs are submitted, admitted as a whole, stopped as a whole, and end.

use super::World;
use crate::event::{Refusal, Stale};
use crate::gang::{Closeness, Gang, GangSpec, Phase, RoleSpec, Seat, members_of};
use crate::history::Run;
use crate::id::{GangId, SigIdx};
use crate::signature::{Signature, SignatureKey};

impl World {
    pub(super) fn submit(&mut self, spec: &GangSpec) -> Result<(), Refusal> {
        let Some(queue) = self.queue_by_name.get(&spec.queue).copied() else {
            return Err(Refusal::UnknownQueue(spec.queue.clone()));
        };
        if self.gang_by_name.contains_key(&spec.name) {
            return Err(Refusal::DuplicateGang(spec.name.clone()));
        }
        if spec.roles.is_empty()
            || spec.roles.iter().any(|role| role.min == 0 || role.min > role.max)
        {
            return Err(Refusal::EmptyGang(spec.name.clone()));
        }
        let level = match &spec.closeness {
            None => None,
            Some(Closeness::Required(name) | Closeness::Preferred(name)) => {
                let level = self.topology.levels().find(name);
                Some(level.ok_or_else(|| Refusal::UnknownLevel(name.clone()))?)
            }
        };
        let sigs = spec.roles.iter().map(|role| self.signature_of(role)).collect();
        let gang = Gang {
            spec: spec.clone(),
            queue,
            sigs,
            level,
            submitted: self.now,
            phase: Phase::Waiting,
            seats: Vec::new(),
            failed_orders: 0,
            last_failure: None,
            restarts: 0,
            recent: self.history.recent(&spec.user, self.now),
        };
        let id = self.gangs.push(Some(Box::new(gang)));
        self.gang_by_name.insert(spec.name.clone(), id);
        self.live.insert(id);
        self.pending.insert(id);
        Ok(())
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
            // Admitting again into the same seats is the same decision seen twice.
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
                self.check_quota(gang.queue, &self.wants(gang, seats))?;
                self.charge_seats(id, seats, true);
                self.sit(id, seats);
            }
        }
        let at = self.now;
        let gang = self.gang_mut(id);
        gang.seats = seats.to_vec();
        gang.phase = Phase::Admitted { at };
        gang.failed_orders = 0;
        gang.last_failure = None;
        self.pending.remove(&id);
        Ok(())
    }

    pub(super) fn start(&mut self, id: GangId) -> Result<(), Refusal> {
        let at = self.now;
        match self.gang(id).ok_or(Refusal::UnknownGang(id))?.phase {
            Phase::Admitted { .. } => self.gang_mut(id).phase = Phase::Running { at },
            Phase::Running { .. } | Phase::Stopping => {}
            Phase::Waiting | Phase::Assembling(_) => return Err(Stale::Gang.into()),
        }
        Ok(())
    }

    pub(super) fn stop(&mut self, id: GangId) -> Result<(), Refusal> {
        match self.gang(id).ok_or(Refusal::UnknownGang(id))?.phase {
            Phase::Admitted { .. } | Phase::Running { .. } => {
                self.gang_mut(id).phase = Phase::Stopping;
            }
            Phase::Stopping => {}
            Phase::Waiting | Phase::Assembling(_) => return Err(Stale::Gang.into()),
        }
        Ok(())
    }

    /// Every member has stopped: the gang goes back to its place in the queue, or away if cancelled.
    pub(super) fn stopped(&mut self, id: GangId) -> Result<(), Refusal> {
        if self.gang(id).ok_or(Refusal::UnknownGang(id))?.phase != Phase::Stopping {
            return Err(Stale::Gang.into());
        }
        self.leave_seats(id);
        if self.cancelled.contains(&id) {
            self.forget_gang(id);
            return Ok(());
        }
        let gang = self.gang_mut(id);
        gang.phase = Phase::Waiting;
        gang.restarts += 1;
        self.pending.insert(id);
        Ok(())
    }

    pub(super) fn end(&mut self, id: GangId) -> Result<(), Refusal> {
        match self.gang(id).ok_or(Refusal::UnknownGang(id))?.phase {
            Phase::Admitted { .. } | Phase::Running { .. } | Phase::Stopping => {}
            Phase::Waiting | Phase::Assembling(_) => return Err(Stale::Gang.into()),
        }
        self.remember_run(id);
        self.leave_seats(id);
        self.forget_gang(id);
        Ok(())
    }

    /// Notes how long a gang ran, for guesses about its user's next ones.
    fn remember_run(&mut self, id: GangId) {
        let gang = self.gangs[id].as_deref().expect("a gang that is not over");
        let Phase::Running { at } = gang.phase else { return };
        if gang.spec.user.is_empty() {
            return;
        }
        let run = Run {
            ended: self.now,
            lasted: self.now.since(at),
            estimate: gang.spec.expected_duration,
            members: members_of(&gang.seats),
        };
        self.history.note(&gang.spec.user, run);
    }

    pub(super) fn forget_gang(&mut self, id: GangId) {
        let gang = self.gangs[id].take().expect("a gang that is not over");
        self.gang_by_name.remove(&gang.spec.name);
        self.live.remove(&id);
        self.pending.remove(&id);
        self.broken.remove(&id);
        self.cancelled.remove(&id);
    }

    /// Adds what these seats take to the gang's queue, or takes it off again.
    pub(super) fn charge_seats(&mut self, id: GangId, seats: &[Seat], add: bool) {
        let gang = self.gang(id).expect("a gang that is not over");
        let queue = gang.queue;
        let wants = self.wants(gang, seats);
        for (sig, count) in wants {
            let amounts = self.sigs[sig].key.amounts.clone();
            let gpu_milli = self.sigs[sig].gpu_milli();
            self.charge(queue, &amounts, gpu_milli, count, add);
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
        let enough = |(role, count): (&RoleSpec, u32)| role.min <= count && count <= role.max;
        if gang.spec.roles.iter().zip(counts).all(enough) {
            Ok(())
        } else {
            Err(Stale::BelowMin.into())
        }
    }

    /// Whether the queue and everything above it stays within its limit.
    pub(super) fn check_quota(
        &self,
        queue: crate::id::QueueIdx,
        wants: &[(SigIdx, u32)],
    ) -> Result<(), Refusal> {
        for queue in self.queue_path(queue) {
            let queue = &self.queues[queue];
            let mut amounts = crate::resource::Amounts::default();
            let mut gpu_milli = 0;
            for (sig, count) in wants {
                amounts.add(&self.sigs[*sig].key.amounts, *count);
                gpu_milli += self.sigs[*sig].gpu_milli() * u64::from(*count);
            }
            // Whoever wants none of a resource is not kept out by a queue that holds too much of it.
            let over = |held: u64, wants: u64, limit: u64| wants > 0 && held + wants > limit;
            let limit = queue.spec.limit.gpu_milli;
            let usage = &queue.usage;
            if limit.is_some_and(|limit| over(usage.gpu_milli, gpu_milli, limit))
                || queue.limit.iter().any(|(resource, limit)| {
                    over(usage.amounts.get(*resource), amounts.get(*resource), *limit)
                })
            {
                return Err(Stale::Queue.into());
            }
        }
        Ok(())
    }

    fn leave_seats(&mut self, id: GangId) {
        let seats = std::mem::take(&mut self.gang_mut(id).seats);
        self.charge_seats(id, &seats, false);
        self.rise(id, &seats);
        self.broken.remove(&id);
    }

    fn signature_of(&mut self, role: &RoleSpec) -> SigIdx {
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
