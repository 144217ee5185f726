//! Claims: requested, fulfilled by nodes or failed, stopped and started again, released.

use std::collections::BTreeMap;

use crate::hardware::resource::NamedAmounts;
use crate::id::{ClaimId, OfferingRef, OrderId};
use crate::messages::event::{Refusal, Stale};
use crate::objects::order::{Claim, ClaimFailure, ClaimStage, ClaimState, Order, Place};
use crate::objects::pool::Lack;
use crate::units::time::Time;
use crate::world::World;

impl World {
    /// Enters a claim for an order, or an unassigned one: a new one, or one that is in progress or stopped already.
    /// The caller has called [`World::check_room`].
    pub(super) fn enter_claim(
        &mut self,
        id: ClaimId,
        offering: OfferingRef,
        order: Option<OrderId>,
        name: impl FnOnce() -> String,
    ) {
        let now = self.now;
        if let Some(known) = self.claims.get_mut(&id) {
            known.order = order;
            if known.state == ClaimState::Stopped {
                (known.state, known.since) = (ClaimState::Requested, now);
            }
            return;
        }
        let claim = Claim {
            name: name().into(),
            offering,
            order,
            state: ClaimState::Requested,
            joined: None,
            requested: now,
            since: now,
            retries: 0,
            retiring: false,
            releasing: false,
        };
        self.claims.insert(id, claim);
        self.count_claim(offering, true);
        self.next_claim = self.next_claim.max(id.0 + 1);
    }

    /// Orders nodes ahead of need.
    pub(super) fn stock(&mut self, claims: &[(ClaimId, OfferingRef)]) -> Result<(), Refusal> {
        let done = |(id, offering): &(ClaimId, OfferingRef)| {
            self.claims.get(id).is_some_and(|claim| {
                claim.offering == *offering && claim.state != ClaimState::Stopped
            })
        };
        if claims.iter().all(done) {
            return Ok(()); // the same decision seen twice
        }
        self.check_room(claims)?;
        for (claim, offering) in claims {
            let pool = self.pools[offering.pool].spec.name.clone();
            self.enter_claim(*claim, *offering, None, || format!("{pool}-{}", claim.0));
        }
        Ok(())
    }

    /// Requests a claim again after the provider asked to retry later.
    pub(super) fn retry(&mut self, id: ClaimId, attempt: u32) -> Result<(), Refusal> {
        let now = self.now;
        let claim = self.claims.get_mut(&id).ok_or(Refusal::UnknownClaim(id))?;
        match claim.state {
            _ if claim.retries == attempt => Ok(()), // the same decision seen twice
            ClaimState::Failed(failure)
                if failure.is_transient() && !claim.releasing && attempt == claim.retries + 1 =>
            {
                claim.retries = attempt;
                (claim.state, claim.since) = (ClaimState::Requested, now);
                Ok(())
            }
            _ => Err(Stale::Order.into()),
        }
    }

    /// Whether every seat that an order holds is on a usable node, and none on the node of this claim.
    pub fn is_sound_without(&self, order: &Order, lost: ClaimId) -> bool {
        let lost = self.claims.get(&lost).and_then(|claim| claim.joined);
        let usable = |node| self.node(node).is_some_and(|here| here.usable);
        order.held.iter().all(|seat| Some(seat.node) != lost && usable(seat.node))
    }

    /// Replaces one claim of an order by another. Only for a claim that never held a seat: a ready node that is lost
    /// rolls back its order.
    pub(super) fn top_up(
        &mut self,
        id: OrderId,
        lost: ClaimId,
        claim: ClaimId,
        offering: OfferingRef,
    ) -> Result<(), Refusal> {
        let order = self.orders.get(&id).ok_or(Stale::Order)?;
        if order.spec.claims.contains(&(claim, offering)) {
            return Ok(()); // the same decision seen twice
        }
        let place = order.spec.claims.iter().position(|(id, _)| *id == lost).ok_or(Stale::Order)?;
        if !self.is_sound_without(order, lost) {
            return Err(Stale::Seat.into());
        }
        self.check_room(&[(claim, offering)])?;
        // A claim replaced because another node comes sooner is no failure, and does not count.
        let failed = self.claims.get(&lost).is_none_or(|claim| claim.stage().is_none())
            || self.claim_due(lost).is_some_and(|(_, due)| due <= self.now);
        if let Some(gone) = self.claims.get_mut(&lost) {
            gone.order = None;
            if gone.state == ClaimState::Failed(ClaimFailure::StockOut) {
                let failed = gone.offering;
                self.record_offering_failure(failed);
            }
        }
        let order = self.orders.get_mut(&id).expect("just found");
        order.spec.claims[place] = (claim, offering);
        for reservation in &mut order.spec.reservations {
            if reservation.place == Place::Claim(lost) {
                reservation.place = Place::Claim(claim);
            }
        }
        order.top_ups += u32::from(failed);
        let (gang, top_ups) = (order.spec.gang, order.top_ups);
        let gang = self.gang(gang).expect("it has an order").spec.name.replace('/', "-");
        let name = || format!("{gang}-{}-{place}-{top_ups}", id.0);
        self.enter_claim(claim, offering, Some(id), name);
        Ok(())
    }

    /// What a claim in progress waits for, and when that times out. However short the pool's timeouts, no stage gets
    /// less time than its offering's whole boot time.
    pub fn claim_due(&self, id: ClaimId) -> Option<(ClaimStage, Time)> {
        let claim = self.claims.get(&id)?;
        let stage = claim.stage()?;
        let patience = &self.pools[claim.offering.pool].spec.patience;
        let patience = match stage {
            ClaimStage::Launch => patience.launch,
            ClaimStage::Register => patience.register,
            ClaimStage::Gpus => patience.gpus,
        };
        let boot = self.offering(claim.offering).spec.boot_time;
        Some((stage, claim.since + patience.max(boot)))
    }

    /// What the node of a claim lacks of what its offering promises; nothing where there is no node.
    pub fn lacks(&self, id: ClaimId) -> Option<Lack<'_>> {
        let claim = self.claims.get(&id)?;
        let shape = self.class(self.node(claim.joined?)?.class);
        let named = |(resource, amount)| (self.names.name(resource).into(), amount);
        let shown: NamedAmounts = shape.allocatable.iter().map(named).collect();
        self.offering(claim.offering).spec.lacks(&shown, shape.gpus)
    }

    /// Stops an idle node. It takes no members, and keeps its place in its pool.
    pub(super) fn park(&mut self, id: ClaimId) -> Result<(), Refusal> {
        let claim = self.claims.get(&id).ok_or(Refusal::UnknownClaim(id))?;
        let node = match claim.state {
            ClaimState::Stopping | ClaimState::Stopped => return Ok(()),
            ClaimState::Ready(node) if !claim.releasing && claim.order.is_none() => node,
            _ => return Err(Stale::InUse.into()),
        };
        let can_stop = self.offering(claim.offering).spec.start_time.is_some();
        if !can_stop || self.row(node).node.is_used() {
            return Err(Stale::InUse.into());
        }
        let now = self.now;
        let claim = self.claims.get_mut(&id).expect("just found");
        (claim.state, claim.since) = (ClaimState::Stopping, now);
        self.cordon_node(node);
        Ok(())
    }

    /// The machine of a claim is stopped.
    pub(super) fn claim_stopped(&mut self, id: ClaimId) -> Result<(), Refusal> {
        let now = self.now;
        let claim = self.claims.get_mut(&id).ok_or(Refusal::UnknownClaim(id))?;
        if claim.state != ClaimState::Stopping {
            return Ok(());
        }
        (claim.state, claim.since) = (ClaimState::Stopped, now);
        // Its node is gone with it, whether or not that was reported.
        let node = claim.joined.and_then(|node| Some(self.node(node)?.name.clone()));
        node.map_or(Ok(()), |name| self.remove_node(&name))
    }

    /// Cordons a node until its last member has left.
    pub(super) fn retire(&mut self, id: ClaimId) -> Result<(), Refusal> {
        let claim = self.claims.get_mut(&id).ok_or(Refusal::UnknownClaim(id))?;
        if claim.order.is_some() {
            return Err(Stale::InUse.into());
        }
        claim.retiring = true;
        if let Some(node) = claim.joined.filter(|node| self.node(*node).is_some()) {
            self.cordon_node(node);
        }
        Ok(())
    }

    /// Releases a claim. Its node, if there is one, takes no new members.
    pub(super) fn release(&mut self, id: ClaimId) -> Result<(), Refusal> {
        let claim = self.claims.get(&id).ok_or(Refusal::UnknownClaim(id))?;
        if claim.releasing {
            return Ok(());
        }
        // For an unassigned claim the failure is recorded here: a timeout, or too many retries.
        let overdue = self.claim_due(id).is_some_and(|(_, due)| due <= self.now);
        let put_off = claim.retries > 0
            && matches!(claim.state, ClaimState::Failed(failure) if failure.is_transient());
        let let_down = (overdue || put_off).then_some(claim.offering);
        let node = claim.joined.filter(|node| self.node(*node).is_some());
        if claim.order.is_some() || node.is_some_and(|node| self.row(node).node.seats > 0) {
            return Err(Stale::InUse.into());
        }
        self.claims.get_mut(&id).expect("checked above").releasing = true;
        if let Some(node) = node {
            self.cordon_node(node);
        }
        if let Some(offering) = let_down {
            self.record_offering_failure(offering);
        }
        Ok(())
    }

    pub(super) fn launch_claim(&mut self, id: ClaimId) -> Result<(), Refusal> {
        let claim = self.claims.get_mut(&id).ok_or(Refusal::UnknownClaim(id))?;
        if claim.state == ClaimState::Requested {
            (claim.state, claim.since) = (ClaimState::Launched, self.now);
            let (offering, now) = (claim.offering, self.now);
            self.offering_mut(offering).health.answered(now, false);
        }
        Ok(())
    }

    pub(super) fn fail_claim(&mut self, id: ClaimId, failure: ClaimFailure) -> Result<(), Refusal> {
        let claim = self.claims.get_mut(&id).ok_or(Refusal::UnknownClaim(id))?;
        if claim.state == ClaimState::Failed(failure) {
            return Ok(()); // a failure told twice is one failure
        }
        (claim.state, claim.since) = (ClaimState::Failed(failure), self.now);
        let (offering, node, now) = (claim.offering, claim.joined, self.now);
        let for_nobody = claim.order.is_none() && !claim.releasing;
        // For a claim of an order the rollback records the failure; for an unassigned claim it is recorded here.
        if for_nobody && !failure.is_transient() && failure != ClaimFailure::Vanished {
            self.record_offering_failure(offering);
        }
        if failure == ClaimFailure::StockOut {
            self.offering_mut(offering).health.answered(now, true);
        }
        // Its node, if it has one, is not as requested: its members stay, no new ones are placed.
        if let Some(node) = node {
            self.close_node(node);
        }
        Ok(())
    }

    pub(super) fn forget_claim(&mut self, id: ClaimId) -> Result<(), Refusal> {
        let claim = self.claims.get(&id).ok_or(Refusal::UnknownClaim(id))?;
        if claim.order.is_some() {
            // It is gone without being released: a failed claim of its order, until the planner rolls back.
            return self.fail_claim(id, ClaimFailure::Vanished);
        }
        let offering = claim.offering;
        self.claims.remove(&id);
        self.count_claim(offering, false);
        Ok(())
    }

    /// Whether a gang may be promised the node of this claim: it is unassigned and is coming or can be started again,
    /// and holds no members. A node in use that is not ready for a moment looks as if it were coming.
    pub fn is_unassigned(&self, id: ClaimId) -> bool {
        let unused = |claim: &Claim| {
            let node = claim.joined.and_then(|node| self.node(node));
            node.is_none_or(|node| !node.is_used())
        };
        self.claims.get(&id).is_some_and(|claim| claim.is_unassigned() && unused(claim))
    }

    /// Whether these claims are available: in progress and unassigned, or new with room for them in their pools.
    pub(super) fn check_room(&self, claims: &[(ClaimId, OfferingRef)]) -> Result<(), Refusal> {
        let mut new: Vec<OfferingRef> = Vec::new();
        for (claim, offering) in claims {
            match self.claims.get(claim) {
                Some(known) if known.offering == *offering && self.is_unassigned(*claim) => {}
                None if claim.0 >= self.next_claim => new.push(*offering),
                _ => return Err(Stale::Order.into()),
            }
        }
        self.check_pools(&new)
    }

    /// Whether pools have room for so many more of these.
    pub(super) fn check_pools(&self, new: &[OfferingRef]) -> Result<(), Refusal> {
        let mut wanted: BTreeMap<OfferingRef, u32> = BTreeMap::new();
        new.iter().for_each(|offering| *wanted.entry(*offering).or_default() += 1);
        let mut usages: BTreeMap<_, _> = BTreeMap::new();
        for (offering, count) in wanted {
            let pool = self.pools.get(offering.pool).ok_or(Stale::Pool)?;
            let usage = usages.entry(offering.pool).or_insert(pool.usage);
            let slot = usize::from(offering.slot);
            let listed = pool.offerings.get(slot).ok_or(Stale::Pool)?;
            if pool.room_beside(slot, usage, listed.nodes) < count {
                return Err(Stale::Pool.into());
            }
            usage.nodes += count;
            usage.gpus += count * u32::from(listed.spec.gpus);
            usage.hourly += listed.spec.price.times(count);
        }
        Ok(())
    }
}
