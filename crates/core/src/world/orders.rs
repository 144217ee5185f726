//! Orders: placed, assembling, completed or rolled back.

use crate::id::{ClaimId, NodeIdx, OfferingRef, OrderId, SigIdx};
use crate::messages::event::{Refusal, Stale};
use crate::objects::gang::{Gang, Phase, Seat, members_of, without};
use crate::objects::node::NodeSpec;
use crate::objects::order::{
    ClaimFailure, ClaimState, Order, OrderSpec, Place, Reservation, RollbackReason, VictimSeats,
};
use crate::units::time::Time;
use crate::world::World;

impl World {
    /// Places an order with everything it reserves, or changes nothing.
    pub(super) fn place_order(&mut self, spec: &OrderSpec) -> Result<(), Refusal> {
        if self.orders.get(&spec.id).is_some_and(|order| order.spec == *spec) {
            return Ok(()); // the same decision seen twice
        }
        let gang = self.gang(spec.gang).ok_or(Refusal::UnknownGang(spec.gang))?;
        if gang.phase != Phase::Waiting || spec.id.0 < self.next_order {
            return Err(Stale::Gang.into());
        }
        self.check_room(&spec.claims)?;
        let here: Vec<Seat> = present(&spec.reservations).collect();
        self.enter_order(spec, here, self.now, 0)
    }

    /// Enters an order whose claims are available and whose gang waits, with its seats on nodes that are here, or
    /// changes nothing.
    pub(super) fn enter_order(
        &mut self,
        spec: &OrderSpec,
        here: Vec<Seat>,
        placed: Time,
        top_ups: u32,
    ) -> Result<(), Refusal> {
        let gang = self.gang(spec.gang).ok_or(Refusal::UnknownGang(spec.gang))?;
        // Seats of every member, whether its node is here or not, so that members and quota can be checked.
        let all = reserved_seats(spec);
        self.check_members(gang, &all)?;
        let (over, free): (Vec<Seat>, Vec<Seat>) =
            here.iter().partition(|seat| has_victims(&spec.after, seat.node));
        if !self.are_free(gang, &free) || !self.become_free(gang, &over, &spec.after) {
            return Err(Stale::Seat.into());
        }
        self.check_quota(gang, &self.wants(gang, &all), &spec.after)?;

        let base = format!("{}-{}", gang.spec.name.replace('/', "-"), spec.id.0);
        self.charge_seats(spec.gang, &all, true);
        self.sit(spec.gang, &free);
        for seat in &over {
            self.take_seats(seat.node, spec.gang, u32::from(seat.members));
        }
        for (i, (claim, offering)) in spec.claims.iter().enumerate() {
            self.enter_claim(*claim, *offering, Some(spec.id), || format!("{base}-{i}"));
        }
        self.next_order = spec.id.0 + 1;
        let after = spec.after.clone();
        self.making_way.extend(after.iter().map(|way| (way.gang, spec.id)));
        let order = Order { spec: spec.clone(), placed, top_ups, held: here, after };
        self.orders.insert(spec.id, order);
        self.dequeue(spec.gang);
        self.enter(spec.gang, Phase::Assembling(spec.id));
        let mut nodes: Vec<NodeIdx> = over.iter().map(|seat| seat.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes.into_iter().for_each(|node| self.recount(node));
        Ok(())
    }

    /// Whether seats that victims leave in part will be free then, and those gangs can be victims.
    fn become_free(&self, gang: &Gang, over: &[Seat], after: &[VictimSeats]) -> bool {
        let can = |way: &VictimSeats| {
            self.gang(way.gang).is_some_and(|other| {
                let left = without(&other.seats, &way.seats);
                let has_them = left.len() + way.seats.len() == other.seats.len();
                let enough = match way.stop {
                    Some(_) => left.is_empty(),
                    None => self.check_members(other, &left).is_ok() && other.is_steady(),
                };
                let runs = matches!(other.phase, Phase::Admitted { .. } | Phase::Running { .. });
                runs && has_them && enough && !self.making_way.contains_key(&way.gang)
            })
        };
        if !after.iter().all(can) {
            return false;
        }
        let mut nodes: Vec<NodeIdx> = over.iter().map(|seat| seat.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes.into_iter().all(|node| {
            if self.node(node).is_none_or(|here| !here.takes_more()) {
                return false;
            }
            let leavers: Vec<(SigIdx, Seat)> = after
                .iter()
                .flat_map(|way| way.seats.iter().map(|seat| (way.gang, *seat)))
                .filter(|(_, seat)| seat.node == node)
                .map(|(other, seat)| {
                    let other = self.gang(other).expect("just seen");
                    (other.sigs[usize::from(seat.role)], seat)
                })
                .collect();
            let mut state = self.state_without(node, &leavers);
            over.iter().filter(|seat| seat.node == node).all(|seat| {
                let signature = self.signature(gang.sigs[usize::from(seat.role)]);
                let free = state.has_free(signature, seat);
                if free {
                    state.sit(signature, seat);
                }
                free
            })
        })
    }

    /// Ends an order without success: everything reserved is free again, the gang is back at its place.
    pub(super) fn roll_back(&mut self, id: OrderId, reason: RollbackReason) -> Result<(), Refusal> {
        let Some(order) = self.orders.get(&id) else { return Err(Stale::Order.into()) };
        let (gang, spec) = (order.spec.gang, order.spec.clone());
        self.record_failure(&spec, reason);
        let held = std::mem::take(&mut self.orders.get_mut(&id).expect("checked above").held);
        self.rise(gang, &held);
        let all = reserved_seats(&spec);
        self.charge_seats(gang, &all, false);
        self.close_order(id);
        if self.cancelled.contains(&gang) {
            self.forget_gang(gang);
            return Ok(());
        }
        let now = self.now;
        // A stock-out is answered at once and costs nothing: the gang goes on to the next offering as long as there is
        // one. Only failures that took time count towards the pause.
        let cheap = matches!(
            reason,
            RollbackReason::NotNeeded
                | RollbackReason::WayClosed
                | RollbackReason::ClaimFailed(_, ClaimFailure::StockOut)
        );
        let row = self.gang_mut(gang);
        if !cheap {
            row.failed_orders += 1;
            row.last_failure = Some(now);
        }
        self.enter(gang, Phase::Waiting);
        self.enqueue(gang);
        Ok(())
    }

    /// A claim's node was observed; `ready` when it can take members and shows everything its offering promises.
    pub(super) fn claim_has_node(&mut self, id: ClaimId, node: NodeIdx, ready: bool) {
        let claim = self.claims.get_mut(&id).expect("checked by update_node");
        let was_ready = claim.is_ready();
        claim.joined = Some(node);
        if matches!(claim.state, ClaimState::Failed(_) | ClaimState::Stopping | ClaimState::Stopped)
        {
            return;
        }
        let state = if ready { ClaimState::Ready(node) } else { ClaimState::Registered(node) };
        if claim.state != state {
            (claim.state, claim.since) = (state, self.now);
        }
        if !ready || was_ready {
            return;
        }
        let (offering, order, requested) = (claim.offering, claim.order, claim.requested);
        let health = &mut self.offering_mut(offering).health;
        // Only a node requested after the failure shows that the trouble is over.
        if health.last_failure.is_none_or(|failed| failed < requested) {
            health.streak = 0;
        }
        let Some(order) = order else { return };
        if self.orders[&order].held.iter().any(|seat| seat.node == node) {
            return; // it was ready before, and kept its seats while it was not
        }
        let spec = self.orders[&order].spec.clone();
        let mine = seats_on_claim(&spec, id, node);
        let gang = self.gang(spec.gang).expect("it has an order");
        if self.are_free(gang, &mine) {
            self.sit(spec.gang, &mine);
            self.orders.get_mut(&order).expect("it is assembling").held.extend(mine);
        } else {
            // It has everything that is waited for, and is smaller than the offering says: the claim has failed.
            self.close_node(node);
            self.claims.get_mut(&id).expect("still there").state =
                ClaimState::Failed(ClaimFailure::TooSmall);
        }
    }

    /// One order gives its seats on a ready node to another, and waits for that order's claim instead.
    pub(super) fn exchange(
        &mut self,
        gets: OrderId,
        coming: ClaimId,
        gives: OrderId,
        ready: ClaimId,
    ) -> Result<(), Refusal> {
        let has = |order: OrderId, claim: ClaimId| {
            let order = self.orders.get(&order);
            order.is_some_and(|order| order.spec.claims.iter().any(|(id, _)| *id == claim))
        };
        if has(gets, ready) && has(gives, coming) {
            return Ok(()); // the same decision seen twice
        }
        let node = match self.claims.get(&ready).map(|claim| claim.state) {
            Some(ClaimState::Ready(node)) if has(gives, ready) && has(gets, coming) => node,
            _ => return Err(Stale::Order.into()),
        };
        if self.claims[&coming].stage().is_none() || gets == gives {
            return Err(Stale::Order.into());
        }
        let here = |order: &Order| -> Vec<Seat> {
            order.held.iter().filter(|seat| seat.node == node).copied().collect()
        };
        let leaving = here(&self.orders[&gives]);
        let arriving: Vec<Seat> = seats_on_claim(&self.orders[&gets].spec, coming, node);
        let (giver, taker) = (self.orders[&gives].spec.gang, self.orders[&gets].spec.gang);
        self.rise(giver, &leaving);
        if !self.are_free(self.gang(taker).expect("it has an order"), &arriving) {
            self.sit(giver, &leaving);
            return Err(Stale::Seat.into());
        }
        self.sit(taker, &arriving);
        let offerings = (self.claims[&coming].offering, self.claims[&ready].offering);
        for (id, old, new) in
            [(gives, ready, (coming, offerings.0)), (gets, coming, (ready, offerings.1))]
        {
            let order = self.orders.get_mut(&id).expect("just found");
            order.spec.claims.iter_mut().filter(|(id, _)| *id == old).for_each(|c| *c = new);
            let places = order.spec.reservations.iter_mut();
            places
                .filter(|reservation| reservation.place == Place::Claim(old))
                .for_each(|reservation| reservation.place = Place::Claim(new.0));
            self.claims.get_mut(&new.0).expect("just found").order = Some(id);
        }
        self.orders.get_mut(&gives).expect("just found").held.retain(|seat| seat.node != node);
        self.orders.get_mut(&gets).expect("just found").held.extend(arriving);
        Ok(())
    }

    /// Whether a claim has not failed and its node shows what its offering promises.
    pub(super) fn is_good(&self, claim: ClaimId, node: &NodeSpec) -> bool {
        let claim = &self.claims[&claim];
        let promised = &self.offering(claim.offering).spec;
        !matches!(claim.state, ClaimState::Failed(_))
            && promised.lacks(&node.allocatable, node.gpus).is_none()
    }

    /// Whether these seats are exactly those the order reserved, all of them on usable nodes.
    pub(super) fn order_becomes(&self, id: OrderId, seats: &[Seat]) -> bool {
        let order = &self.orders[&id];
        let reserved: u32 = order.spec.reservations.iter().map(|r| u32::from(r.members)).sum();
        let mut held = order.held.clone();
        let usable = held.iter().all(|seat| self.node(seat.node).is_some_and(|node| node.usable));
        let mut wanted = seats.to_vec();
        held.sort_unstable();
        wanted.sort_unstable();
        let left =
            order.after.is_empty() && held.iter().all(|seat| !self.is_too_small(seat.node, order));
        usable && left && members_of(&held) == reserved && held == wanted
    }

    /// Ends an order; its claims become unassigned.
    pub(super) fn close_order(&mut self, id: OrderId) {
        let order = self.orders.remove(&id).expect("it is assembling");
        for way in &order.after {
            self.making_way.remove(&way.gang);
        }
        for (claim, _) in &order.spec.claims {
            if let Some(claim) = self.claims.get_mut(claim) {
                claim.order = None;
            }
        }
    }

    /// Records the failure of an order against the offering that caused it.
    fn record_failure(&mut self, spec: &OrderSpec, reason: RollbackReason) {
        let mut blamed: Vec<OfferingRef> = match reason {
            RollbackReason::ClaimFailed(claim, _) | RollbackReason::Overdue(claim, _) => spec
                .claims
                .iter()
                .filter(|(id, _)| *id == claim)
                .map(|(_, offering)| *offering)
                .collect(),
            RollbackReason::DeadlinePassed => {
                let late = |id: &ClaimId| self.claims.get(id).is_none_or(|claim| !claim.is_ready());
                spec.claims
                    .iter()
                    .filter(|(id, _)| late(id))
                    .map(|(_, offering)| *offering)
                    .collect()
            }
            RollbackReason::NodeUnsuitable(node) => {
                let claim = self.node(node).and_then(|node| node.claim);
                spec.claims.iter().filter(|(id, _)| claim == Some(*id)).map(|(_, at)| *at).collect()
            }
            RollbackReason::NodeLost(_)
            | RollbackReason::GangGone
            | RollbackReason::WayClosed
            | RollbackReason::NotWritten
            | RollbackReason::NotNeeded => Vec::new(),
        };
        blamed.sort_unstable();
        blamed.dedup();
        for offering in blamed {
            self.record_offering_failure(offering);
        }
    }

    /// Records that an offering failed an order.
    pub(super) fn record_offering_failure(&mut self, offering: OfferingRef) {
        let now = self.now;
        self.offering_mut(offering).health.failed(now);
    }

    pub(super) fn offering_mut(
        &mut self,
        offering: OfferingRef,
    ) -> &mut crate::objects::pool::Offering {
        &mut self.pools[offering.pool].offerings[usize::from(offering.slot)]
    }
}

/// A seat for every member of an order, whether its node is here or not; good for counting only.
pub(super) fn reserved_seats(spec: &OrderSpec) -> Vec<Seat> {
    spec.reservations.iter().map(|r| seat_on(r, NodeIdx(u32::MAX))).collect()
}

/// The seats an order has reserved on the node of a claim.
pub(super) fn seats_on_claim(spec: &OrderSpec, claim: ClaimId, node: NodeIdx) -> Vec<Seat> {
    let mine =
        spec.reservations.iter().filter(|reservation| reservation.place == Place::Claim(claim));
    mine.map(|reservation| seat_on(reservation, node)).collect()
}

pub(super) fn seat_on(reservation: &Reservation, node: NodeIdx) -> Seat {
    let Reservation { devices, role, members, .. } = *reservation;
    Seat { role, node, devices, members }
}

/// Whether any victim leaves seats on a node.
pub(super) fn has_victims(after: &[VictimSeats], node: NodeIdx) -> bool {
    after.iter().any(|way| way.seats.iter().any(|seat| seat.node == node))
}

pub(super) fn present(reservations: &[Reservation]) -> impl Iterator<Item = Seat> + '_ {
    reservations.iter().filter_map(|reservation| match reservation.place {
        Place::Node(node) => Some(seat_on(reservation, node)),
        Place::Claim(_) => None,
    })
}

impl Gang {
    /// Whether this is the gang's order.
    pub fn has_order(&self, order: OrderId) -> bool {
        self.phase == Phase::Assembling(order)
    }
}
