//! Restores what a host observes instead of decides: gangs that run already, claims requested before a restart, specs
//! that owners changed.
//!
//! An observation is true whether it fits or not. Nothing here is refused for want of room or quota; excess counts all
//! the same, so that no other member is placed on top of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::capacity::signature::Signature;
use crate::capacity::state::NodeState;
use crate::hardware::constraint::Constraints;
use crate::hardware::device::DeviceSet;
use crate::hardware::resource::TOKEN;
use crate::hardware::topology::Level;
use crate::history::health::Record;
use crate::id::{ClaimId, GangId, NodeIdx, OfferingRef, QueueIdx, ResourceIdx, SigIdx};
use crate::messages::event::{Refusal, RoleSeats, Stale};
use crate::objects::gang::{Gang, GangSpec, Phase, Seat};
use crate::objects::order::{ClaimState, VictimSeats};
use crate::objects::queue::Usage;
use crate::units::time::Time;
use crate::world::World;

impl World {
    /// A gang's members are where the host observes them, since this instant if that was not known.
    pub(in crate::world) fn restore_gang(
        &mut self,
        id: GangId,
        since: Time,
        sitting: &[RoleSeats],
    ) -> Result<(), Refusal> {
        let gang = self.gang(id).ok_or(Refusal::UnknownGang(id))?;
        let known = |sitting: &RoleSeats| {
            usize::from(sitting.role) < gang.sigs.len() && self.node(sitting.node).is_some()
        };
        if matches!(gang.phase, Phase::Assembling(_))
            || gang.resize.is_some()
            || sitting.is_empty()
            || !sitting.iter().all(known)
        {
            return Err(Stale::Gang.into());
        }
        let was_waiting = gang.phase == Phase::Waiting;
        if was_waiting {
            self.dequeue(id);
            self.pending.remove(&id);
            self.repairs.remove(&id);
        }
        self.unindex_end(id);
        self.charge_seats(id, &self.gang(id).expect("just seen").seats.clone(), false);
        let gang = self.gang_mut(id);
        gang.spare.clear();
        let left = std::mem::take(&mut gang.seats);
        self.rise(id, &left);
        for one in sitting {
            let seats = self.seats_for(id, one);
            self.take_seats(one.node, id, u32::from(one.members));
            self.gang_mut(id).seats.extend(seats);
            self.recount(one.node);
        }
        let seats = self.gang(id).expect("just seen").seats.clone();
        self.charge_seats(id, &seats, true);
        self.index_end(id);
        if was_waiting {
            self.gang_mut(id).work.since = since;
            self.enter(id, Phase::Running { at: since });
        }
        self.broken.remove(&id);
        Ok(())
    }

    /// Seats for members that run on a node already: on devices not known to be taken, as far as there are any.
    fn seats_for(&self, id: GangId, sitting: &RoleSeats) -> Vec<Seat> {
        let RoleSeats { role, node, members } = *sitting;
        let sig = self.gang(id).expect("just seen").sigs[usize::from(role)];
        let (gpus, share) = self.signature(sig).gpu();
        if gpus == 0 {
            return vec![Seat { devices: DeviceSet::default(), node, role, members }];
        }
        let mut free = self.states.get(self.row(node).state).devices.clone();
        let one = |_| {
            let devices = free.take(gpus, share).unwrap_or_default();
            Seat { devices, node, role, members: 1 }
        };
        (0..members).map(one).collect()
    }

    /// Members that were found on a node before it showed their devices get some as soon as it does, so that no other
    /// member is placed on top of them.
    pub(in crate::world) fn give_devices(&mut self, node: NodeIdx) {
        let settled = |id: &GangId| {
            let gang = self.gang(*id).filter(|gang| gang.resize.is_none());
            gang.filter(|_| !self.making_way.contains_key(id))
        };
        let mut lack: Vec<(GangId, usize, u16, u16)> = Vec::new();
        for (id, _) in &self.row(node).gangs {
            let Some(gang) = settled(id) else { continue };
            for (at, seat) in gang.seats.iter().enumerate() {
                let (gpus, share) = self.signature(gang.sigs[usize::from(seat.role)]).gpu();
                if seat.node == node && gpus > 0 && seat.devices.is_empty() {
                    lack.push((*id, at, gpus, share));
                }
            }
        }
        if lack.is_empty() {
            return;
        }
        let mut free = self.states.get(self.row(node).state).devices.clone();
        for (id, at, gpus, share) in lack {
            if let Some(devices) = free.take(gpus, share) {
                self.gang_mut(id).seats[at].devices = devices;
            }
        }
        self.recount(node);
    }

    /// A gang has waited for longer than it is known. Clocks of hosts differ, so the wait is never negative.
    pub(in crate::world) fn restore_waiting(
        &mut self,
        id: GangId,
        submitted: Time,
        since: Time,
    ) -> Result<(), Refusal> {
        let waits = self.gang(id).ok_or(Refusal::UnknownGang(id))?.phase == Phase::Waiting;
        if waits {
            self.dequeue(id);
        }
        let now = self.now;
        let gang = self.gang_mut(id);
        (gang.submitted, gang.waits_since) = (submitted.min(now), since.min(now));
        if !self.synced {
            let gang = self.gang(id).expect("just seen").clone();
            self.record_demand(&gang, submitted.min(now));
        }
        if waits {
            self.enqueue(id);
        }
        Ok(())
    }

    /// A claim exists that an earlier process requested, unassigned as far as is known. Its times are those of that
    /// process, and never later than now: clocks of hosts differ.
    pub(in crate::world) fn restore_claim(
        &mut self,
        id: ClaimId,
        offering: OfferingRef,
        asked: Time,
        launched: Option<Time>,
    ) -> Result<(), Refusal> {
        let pool = self.pools.get(offering.pool).ok_or(Refusal::UnknownClaim(id))?;
        if usize::from(offering.slot) >= pool.spec.offerings.len() {
            return Err(Refusal::UnknownClaim(id));
        }
        let name = pool.spec.name.clone();
        let known = self.claims.get(&id).map(|known| known.offering);
        if known != Some(offering) {
            self.enter_claim(id, offering, None, || format!("{name}-{}", id.0));
        }
        if known.is_none() {
            let now = self.now;
            let claim = self.claims.get_mut(&id).expect("just asked for");
            claim.requested = asked.min(now);
            claim.since = launched.unwrap_or(asked).min(now);
            if launched.is_some() {
                claim.state = ClaimState::Launched;
            }
        }
        Ok(())
    }

    /// Restores the stored record of an offering.
    pub(in crate::world) fn restore_offering(
        &mut self,
        offering: OfferingRef,
        was: Record,
    ) -> Result<(), Refusal> {
        let now = self.now;
        let pool = self.pools.get_mut(offering.pool).ok_or(Stale::Pool)?;
        let listed = pool.offerings.get_mut(usize::from(offering.slot)).ok_or(Stale::Pool)?;
        listed.health.restore(now, was);
        Ok(())
    }

    /// Restores the failed orders of a gang: it pauses as it would have.
    pub(in crate::world) fn restore_failed_orders(
        &mut self,
        id: GangId,
        orders: u32,
        last: Time,
    ) -> Result<(), Refusal> {
        let now = self.now;
        let waits = self.gang(id).ok_or(Refusal::UnknownGang(id))?.phase == Phase::Waiting;
        let gang = self.gang_mut(id);
        if waits && gang.failed_orders < orders {
            (gang.failed_orders, gang.last_failure) = (orders, Some(last.min(now)));
        }
        Ok(())
    }

    /// A node has been idle for longer than it is known. One that is in use by now is not idle, whatever was stored.
    pub(in crate::world) fn restore_idle(
        &mut self,
        name: &Arc<str>,
        since: Time,
    ) -> Result<(), Refusal> {
        let idx = self.node_named(name).ok_or_else(|| Refusal::UnknownNode(name.clone()))?;
        let node = &mut self.row_mut(idx).node;
        if !node.is_used() {
            node.idle_since = node.idle_since.min(since);
        }
        Ok(())
    }

    /// A gang's owner changed its spec. It keeps its place; once it has an order or seats, the requests of its members
    /// can no longer change, and it does not lack members it never had: for its minimum, the members it holds count
    /// while it has seats, and the full minimum counts when it starts again.
    pub(in crate::world) fn change_gang(&mut self, spec: &GangSpec) -> Result<(), Refusal> {
        let id = self.gang_by_name.get(&spec.name).copied();
        let id = id.ok_or_else(|| Refusal::NoSuchGang(spec.name.clone()))?;
        let (queue, level) = self.check_spec(spec)?;
        let gang = self.gang(id).expect("named");
        let waits = gang.phase == Phase::Waiting;
        let within = gang.queue == queue
            && gang.resize.is_none()
            && !matches!(gang.phase, Phase::Assembling(_))
            && has_such_members(gang, spec);
        if !waits && !within {
            return Err(Stale::Gang.into());
        }
        let asked = spec;
        let spec = &if waits { spec.clone() } else { as_it_runs(gang, spec) };
        let has_more = spec.most_elastic() > gang.spec.most_elastic();
        if waits {
            self.dequeue(id);
        }
        self.replace_spec(id, spec, (queue, level));
        self.gang_mut(id).next = (spec != asked).then(|| Box::new(asked.clone()));
        if has_more {
            // It can have more members than when it was last resized, or last declined.
            let gang = self.gang_mut(id);
            (gang.resized, gang.declined) = (None, None);
        }
        if waits {
            self.enqueue(id);
        }
        Ok(())
    }

    /// A gang that has seats has other members than they were taken for. The World is unchanged when there is no room
    /// for these on the gang's own seats or on free capacity.
    pub(in crate::world) fn replace_members(
        &mut self,
        spec: &GangSpec,
        sitting: &[RoleSeats],
    ) -> Result<(), Refusal> {
        let id = self.gang_by_name.get(&spec.name).copied();
        let id = id.ok_or_else(|| Refusal::NoSuchGang(spec.name.clone()))?;
        let within = self.check_spec(spec)?;
        let gang = self.gang(id).expect("named");
        let has_seats = matches!(gang.phase, Phase::Admitted { .. } | Phase::Running { .. });
        let is_asked_to_go = gang.resize.is_some() || self.making_way.contains_key(&id);
        if !has_seats || is_asked_to_go || gang.queue != within.0 {
            return Err(Stale::Gang.into());
        }
        let kinds = self.kinds_of(&spec.roles);
        let seats = self.seats_instead(gang, &kinds, sitting).ok_or(Stale::Seat)?;
        if !has_enough(spec, &seats) {
            return Err(Stale::BelowMin.into());
        }
        let mut sum = Usage::default();
        for seat in &seats {
            let kind = &kinds[usize::from(seat.role)];
            sum.add(&kind.key.amounts, kind.gpu_milli(), seat.members.into());
        }
        self.check_usage(
            gang,
            &sum,
            &[VictimSeats { gang: id, seats: gang.seats.clone(), stop: None }],
        )?;
        // Its estimated end depends on its seats.
        self.unindex_end(id);
        let gang = self.gang_mut(id);
        gang.spare.clear();
        let left = std::mem::take(&mut gang.seats);
        self.charge_seats(id, &left, false);
        self.rise(id, &left);
        self.put_spec(id, spec, within);
        self.charge_seats(id, &seats, true);
        self.sit(id, &seats);
        self.gang_mut(id).seats = seats;
        self.index_end(id);
        self.broken.remove(&id);
        Ok(())
    }

    /// Whether the limits of queues and users allow a gang to have its members in these places instead of its present
    /// ones. A change that needs no more of any resource is always allowed: a lowered limit takes nothing from running
    /// gangs.
    pub fn is_within_limits(&self, id: GangId, sitting: &[RoleSeats]) -> bool {
        let Some(gang) = self.gang(id) else { return false };
        let (mut sum, mut has) = (Usage::default(), Usage::default());
        for one in sitting {
            let Some(sig) = gang.sigs.get(usize::from(one.role)) else { return false };
            let kind = self.signature(*sig);
            sum.add(&kind.key.amounts, kind.gpu_milli(), one.members.into());
        }
        for seat in &gang.seats {
            let kind = self.signature(gang.sigs[usize::from(seat.role)]);
            has.add(&kind.key.amounts, kind.gpu_milli(), seat.members.into());
        }
        let covers = |(resource, amount): (ResourceIdx, u64)| amount <= has.amounts.get(resource);
        if sum.gpu_milli <= has.gpu_milli && sum.amounts.iter().all(covers) {
            return true;
        }
        let own = VictimSeats { gang: id, seats: gang.seats.clone(), stop: None };
        self.check_usage(gang, &sum, &[own]).is_ok()
    }

    /// Whether there is room for more members of a gang where they were assigned, beside all members with known
    /// places. Permissions and tokens, which the host counts itself, are not checked.
    pub fn is_room_for(&self, id: GangId, sitting: &[RoleSeats]) -> bool {
        let Some(gang) = self.gang(id) else { return false };
        let mut roles = gang.spec.roles.clone();
        for role in &mut roles {
            role.constraints = Constraints::default();
            role.request.amounts.retain(|name, _| !name.starts_with(TOKEN));
        }
        let kinds = self.kinds_of(&roles);
        let mut states: BTreeMap<NodeIdx, NodeState> = BTreeMap::new();
        sitting.iter().filter(|one| one.members > 0).all(|one| {
            let is_known = self.node(one.node).is_some() && !self.row(one.node).cramped;
            let kind = kinds.get(usize::from(one.role)).filter(|_| is_known);
            kind.is_some_and(|signature| {
                let members = u32::from(one.members);
                let state = states
                    .entry(one.node)
                    .or_insert_with(|| self.states.get(self.row(one.node).state).clone());
                let fits = signature.times_fits(state) >= members;
                if fits {
                    state.fill(signature, members);
                }
                fits
            })
        })
    }

    /// Seats for members of these kinds on a gang's own seats and on free capacity; `None` when there is not enough.
    fn seats_instead(
        &self,
        gang: &Gang,
        kinds: &[Signature],
        sitting: &[RoleSeats],
    ) -> Option<Vec<Seat>> {
        let mut states: BTreeMap<NodeIdx, NodeState> = BTreeMap::new();
        let mut seats: Vec<Seat> = Vec::new();
        for RoleSeats { role, node, members } in sitting.iter().copied() {
            self.node(node).filter(|_| !self.row(node).cramped)?;
            let state = states.entry(node).or_insert_with(|| {
                let mut state = self.states.get(self.row(node).state).clone();
                for seat in gang.seats.iter().filter(|seat| seat.node == node) {
                    state.rise(&self.sigs[gang.sigs[usize::from(seat.role)]], seat);
                }
                state
            });
            let signature = kinds.get(usize::from(role))?;
            if signature.times_fits(state) < u32::from(members) {
                return None;
            }
            let devices = state.fill(signature, members.into());
            if devices.is_empty() {
                seats.push(Seat { devices: DeviceSet::default(), node, role, members });
            }
            let each = |devices| Seat { devices, node, role, members: 1 };
            seats.extend(devices.into_iter().map(each));
        }
        seats.sort_by_key(|seat| seat.role);
        Some(seats)
    }

    /// Replaces the spec of a gang, whatever it holds.
    fn replace_spec(&mut self, id: GangId, spec: &GangSpec, within: (QueueIdx, Option<Level>)) {
        self.unindex_end(id);
        self.put_spec(id, spec, within);
        self.index_end(id);
    }

    /// The same for a gang whose end is not indexed.
    fn put_spec(&mut self, id: GangId, spec: &GangSpec, (queue, level): (QueueIdx, Option<Level>)) {
        let gang = self.gang(id).expect("a gang that is not over");
        let (was_disruptable, said) = (gang.spec.may_be_victim(), gang.spec.estimated_with_min());
        let sigs: Vec<SigIdx> = spec.roles.iter().map(|role| self.signature_of(role)).collect();
        let wants = self.wanted_at_least(spec, &sigs);
        let gang = self.gang_mut(id);
        (gang.sigs, gang.wants, gang.queue, gang.level) = (sigs, wants, queue, level);
        gang.spec = spec.clone();
        gang.next = None;
        self.disruptable += u32::from(spec.may_be_victim());
        self.disruptable -= u32::from(was_disruptable);
        self.drop_estimate(said);
        *self.estimates.entry(spec.estimated_with_min()).or_default() += 1;
    }
}

/// Whether so many seats are at least the gang's minimum and at most its maximum.
fn has_enough(spec: &GangSpec, seats: &[Seat]) -> bool {
    spec.roles.iter().enumerate().all(|(at, role)| {
        let mine = seats.iter().filter(|seat| usize::from(seat.role) == at);
        (role.min..=role.max).contains(&mine.map(|seat| u32::from(seat.members)).sum())
    })
}

/// The part of a new spec that applies to a gang with seats: it needs no more members than it holds. A rigid gang
/// stays rigid.
fn as_it_runs(gang: &Gang, spec: &GangSpec) -> GangSpec {
    let mut spec = spec.clone();
    for (at, (was, is)) in gang.spec.roles.iter().zip(&mut spec.roles).enumerate() {
        let held = gang.members_in(at as u16).max(1);
        if is.min > held && is.min == is.max && was.min == was.max {
            is.max = held;
        }
        is.min = is.min.min(held);
    }
    spec
}

/// Whether the members that a gang has match its new spec.
fn has_such_members(gang: &Gang, spec: &GangSpec) -> bool {
    gang.spec.roles.len() == spec.roles.len()
        && gang.spec.roles.iter().zip(&spec.roles).enumerate().all(|(at, (was, is))| {
            (&was.request, &was.constraints) == (&is.request, &is.constraints)
                && gang.members_in(at as u16) <= is.max
        })
}
