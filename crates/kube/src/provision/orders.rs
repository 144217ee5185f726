//! Writes the orders that the planner decides on, and requests their claims once an order is stored.
//!
//! An order is created before any of its claims, updated when its claims change, and deleted when it is complete or rolled
//! back. Stock claims and retries need no order. Not here: the Order object's fields, which are in `order_object`, and the
//! NodeClaim itself, which is in `node_claim_create`.

use kube::api::DynamicObject;
use kube::runtime::events::EventType;
use muster_api::{Provider, words};
use muster_core::Event;
use muster_core::id::{ClaimId, GangId, OrderId};
use muster_core::order::RollbackReason;
use muster_core::plan::Action;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedSender;

use crate::api::retry::Said;
use crate::api::writer::ApiWriter;
use crate::cache::kinds::KindRole;
use crate::cache::store::Moved;
use crate::effects::outcome::Outcome;
use crate::host::Host;
use crate::provision::karpenter::{claim_name, node_claim};
use crate::provision::node_claim_create;
use crate::provision::node_claim_create::Asking;
use crate::provision::order_object::{order_name, written};
use crate::provision::requests_issued::create::{Writing, ask_autoscaler};
use crate::schedule::placement::AGAIN;

impl Host {
    /// An order is written down, and then its claims are asked for, all of them together.
    pub(crate) fn create_order(&mut self, id: OrderId, gang: GangId) {
        let Some(order) = self.world.orders().get(&id) else { return };
        let Some(spec) = written(&self.world, &order.spec, order.top_ups) else { return };
        let claims: Vec<ClaimId> = order.spec.claims.iter().map(|(claim, _)| *claim).collect();
        if !order.after.is_empty() {
            self.orders_not_written.insert(id);
        }
        let asked = self.claim_requests(&claims, Some(id));
        if let Some(gang) = self.world.gang(gang) {
            self.order_by_gang.insert(gang.spec.name.clone(), id);
        }
        let Some(orders) = self.api(KindRole::Order) else { return };
        let object = json!({
            "apiVersion": "muster.sh/v1alpha1",
            "kind": "Order",
            "metadata": {"name": order_name(id)},
            "spec": spec,
        });
        let (writer, outcomes) = (self.writer.clone(), self.outcomes.clone());
        self.ordered_writes.write(&order_name(id).into(), async move {
            let object: DynamicObject = serde_json::from_value(object).expect("an object");
            let written = writer.create(&orders, &object).await;
            match written {
                Ok(_) | Err(Said::Exists) => {
                    let _ = outcomes.send(Outcome::OrderWritten(id));
                    // The order may be closed however long its claims take.
                    tokio::spawn(async move { asked.ask(&writer, &outcomes).await });
                }
                Err(Said::NotLeader) => {}
                Err(said) => {
                    // However often it is tried, it is not tried faster.
                    tokio::time::sleep(AGAIN).await;
                    let (claims, why) = (asked.claims(), said.to_string());
                    let _ = outcomes.send(Outcome::OrderNotWritten { order: id, claims, why });
                }
            }
        });
    }

    /// An order that the server does not take is none: nothing was asked for, and nobody was told to make way. The gang
    /// tries again as after any order that failed.
    pub(crate) fn handle_order_not_written(&mut self, id: OrderId, claims: &[ClaimId], why: &str) {
        self.orders_not_written.remove(&id);
        let reason = RollbackReason::NotWritten;
        if self.apply_event(&Event::Decided(Action::RollBack { order: id, reason })) {
            self.record_rollback(id, reason, why);
            self.close_order(id, "RolledBack");
        }
        let known = self.world.claims();
        let is_nobodys =
            |id: &&ClaimId| known.get(id).is_some_and(|one| one.order.is_none() && !one.releasing);
        for id in claims.iter().filter(is_nobodys).copied().collect::<Vec<_>>() {
            self.apply_event(&Event::ClaimGone(id));
        }
    }

    /// An order's claims have changed: written down, and what is new is asked for.
    pub(crate) fn update_order(&mut self, id: OrderId) {
        let Some(order) = self.world.orders().get(&id) else { return };
        let Some(spec) = written(&self.world, &order.spec, order.top_ups) else { return };
        let claims: Vec<ClaimId> = order.spec.claims.iter().map(|(claim, _)| *claim).collect();
        let asked = self.claim_requests(&claims, Some(id));
        let Some(orders) = self.api(KindRole::Order) else { return };
        let (writer, outcomes) = (self.writer.clone(), self.outcomes.clone());
        let name = order_name(id);
        self.ordered_writes.write(&name.as_str().into(), async move {
            match writer.patch(&orders, &name, &json!({"spec": spec})).await {
                Ok(_) => drop(tokio::spawn(async move { asked.ask(&writer, &outcomes).await })),
                Err(Said::NotLeader) => {}
                // What is not written down is not asked for: nobody would know whose it is.
                Err(said) => {
                    tracing::warn!(order = name, %said, "not rewritten");
                    for claim in asked.claims() {
                        let _ = outcomes
                            .send(Outcome::ClaimRefused(claim, format!("its order: {said}")));
                    }
                }
            }
        });
    }

    /// An order is seen that is not known: whoever led before wrote it too late, and nobody goes on with it.
    pub(crate) fn observe_order(&mut self, moved: &Moved<DynamicObject>) {
        let number = |object: &DynamicObject| object.data.pointer("/spec/number")?.as_u64();
        let number = moved.is.as_deref().and_then(number).and_then(|id| u32::try_from(id).ok());
        let Some(id) = number.map(OrderId) else { return };
        if !self.world.orders().contains_key(&id) && !self.ordered_writes.is_busy(&order_name(id)) {
            self.close_order(id, "Unknown");
        }
    }

    /// Nothing is left of an order; what became of it is on its gang.
    pub(crate) fn close_order(&mut self, id: OrderId, how: &'static str) {
        // Who is not wanted any more waits for this to be gone.
        let looked_at = &mut self.dirty.gangs;
        self.order_by_gang.retain(|gang, order| {
            if *order == id {
                looked_at.insert(gang.clone());
            }
            *order != id
        });
        if self.world.is_synced() {
            // What was asked of an autoscaler for it is not waited for. At a start it may still be of use to somebody.
            self.clean_up_issued_requests();
        }
        let Some(orders) = self.api(KindRole::Order) else { return };
        let (writer, name) = (self.writer.clone(), order_name(id));
        self.supply_status.forget_order(&name);
        self.ordered_writes.write(&name.as_str().into(), async move {
            if writer.remove(&orders, &name).await.is_ok() {
                tracing::debug!(order = name, how, "closed");
            }
        });
    }

    /// Why an order was given up, which its object does not live to say, and what the server said of it if it did.
    pub(crate) fn record_rollback(&mut self, order: OrderId, reason: RollbackReason, said: &str) {
        let whose = self.order_by_gang.iter().find(|(_, of)| **of == order);
        let Some(name) = whose.map(|(name, _)| name.clone()) else { return };
        let mut why = words::rollback(&self.world, reason);
        if !said.is_empty() {
            why = format!("{why}: {said}");
        }
        let action = format!("RollBack{}", order.0);
        self.record_event(&name, EventType::Warning, ("OrderRolledBack", &action), &why);
    }

    /// Asks for claims that need not be written down before.
    pub(crate) fn request_claims(&mut self, claims: &[ClaimId]) {
        let asked = self.claim_requests(claims, None);
        let (writer, outcomes) = (self.writer.clone(), self.outcomes.clone());
        tokio::spawn(async move { asked.ask(&writer, &outcomes).await });
    }

    /// How those claims are asked for that nobody has asked for yet.
    pub(crate) fn claim_requests(
        &mut self,
        claims: &[ClaimId],
        order: Option<OrderId>,
    ) -> ClaimRequests {
        let requests = self.requests_to_write(claims, order);
        ClaimRequests { claims: self.node_claim_requests(claims), requests }
    }

    /// The NodeClaims of those claims that nobody has asked for yet.
    pub(crate) fn node_claim_requests(&mut self, claims: &[ClaimId]) -> Vec<Asking> {
        let known = self.world.claims();
        self.pending_claims.keep(|id| known.contains_key(id));
        let objects: Vec<(ClaimId, Value)> =
            claims.iter().filter_map(|id| Some((*id, self.node_claim_object(*id)?))).collect();
        let asking = |(id, object)| Asking { id, object, errand: self.pending_claims.of(id) };
        objects.into_iter().map(asking).collect()
    }

    /// The NodeClaim of a claim, if it is one that nobody has made yet.
    pub(crate) fn node_claim_object(&self, id: ClaimId) -> Option<Value> {
        let claim = self.world.claims().get(&id)?;
        if self.cache.claims.get(&claim_name(id)).is_some() {
            return None;
        }
        let pool = &self.world.pools()[claim.offering.pool].spec.name;
        let Provider::Karpenter(karpenter) = &self.pools.get(pool)?.manifest.provider else {
            return None;
        };
        let offering = &self.world.offering(claim.offering).spec;
        Some(node_claim(id, pool, karpenter, offering))
    }

    /// Gives a claim back, as what it is: its pool may be of another provider by now, or be gone.
    pub(crate) fn release_claim(&mut self, id: ClaimId) {
        if self.is_of_autoscaler(id) {
            return self.give_up_node(id);
        }
        let errand = self.pending_claims.call_off(id);
        let (writer, outcomes) = (self.writer.clone(), self.outcomes.clone());
        tokio::spawn(
            async move { node_claim_create::remove(&writer, &outcomes, id, &errand).await },
        );
    }
}

/// Nodes that are to be asked for: as NodeClaims, and of autoscalers.
pub(crate) struct ClaimRequests {
    claims: Vec<Asking>,
    requests: Vec<Writing>,
}

impl ClaimRequests {
    fn claims(&self) -> Vec<ClaimId> {
        let requests = self.requests.iter().flat_map(|request| &request.claims);
        self.claims.iter().map(|asking| &asking.id).chain(requests).copied().collect()
    }

    async fn ask(self, writer: &ApiWriter, outcomes: &UnboundedSender<Outcome>) {
        let Self { claims, requests } = self;
        // All of them at once.
        let claims = claims.into_iter().map(|asking| asking.ask(writer, outcomes));
        tokio::join!(futures::future::join_all(claims), ask_autoscaler(writer, outcomes, requests));
    }
}
