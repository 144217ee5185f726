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

use crate::api::retry::ApiError;
use crate::api::writer::ApiWriter;
use crate::cache::kinds::KindRole;
use crate::cache::store::ObjectChange;
use crate::effects::outcome::{Outcome, RETRY_PAUSE};
use crate::host::Host;
use crate::provision::karpenter::{node_claim, node_claim_name};
use crate::provision::node_claim_create;
use crate::provision::node_claim_create::NodeClaimRequest;
use crate::provision::order_object::{order_manifest, order_name};
use crate::provision::requests_issued::create::{IssuedRequestWrite, create_issued_requests};

impl Host {
    /// Creates the Order object, and then requests all its claims together.
    pub(crate) fn create_order(&mut self, id: OrderId, gang: GangId) {
        let Some(order) = self.world.orders().get(&id) else { return };
        let Some(spec) = order_manifest(&self.world, &order.spec, order.top_ups) else { return };
        let claims: Vec<ClaimId> = order.spec.claims.iter().map(|(claim, _)| *claim).collect();
        if !order.after.is_empty() {
            self.orders_not_written.insert(id);
        }
        let requests = self.claim_requests(&claims, Some(id));
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
                Ok(_) | Err(ApiError::AlreadyExists) => {
                    let _ = outcomes.send(Outcome::OrderWritten(id));
                    // The order may be closed while its claims are still requested.
                    tokio::spawn(async move { requests.send(&writer, &outcomes).await });
                }
                Err(ApiError::NotLeader) => {}
                Err(error) => {
                    // Retries are not faster than this.
                    tokio::time::sleep(RETRY_PAUSE).await;
                    let (claims, why) = (requests.claims(), error.to_string());
                    let _ = outcomes.send(Outcome::OrderNotWritten { order: id, claims, why });
                }
            }
        });
    }

    /// Rolls back an order that the API server refused: nothing was requested, and no victim was stopped. The gang tries again
    /// as after any order that failed.
    pub(crate) fn handle_order_not_written(&mut self, id: OrderId, claims: &[ClaimId], why: &str) {
        self.orders_not_written.remove(&id);
        let reason = RollbackReason::NotWritten;
        if self.apply_event(&Event::Decided(Action::RollBack { order: id, reason })) {
            self.record_rollback(id, reason, why);
            self.close_order(id, "RolledBack");
        }
        let known = self.world.claims();
        let is_unowned =
            |id: &&ClaimId| known.get(id).is_some_and(|one| one.order.is_none() && !one.releasing);
        for id in claims.iter().filter(is_unowned).copied().collect::<Vec<_>>() {
            self.apply_event(&Event::ClaimGone(id));
        }
    }

    /// Updates the Order object when its claims have changed, and then requests the new claims.
    pub(crate) fn update_order(&mut self, id: OrderId) {
        let Some(order) = self.world.orders().get(&id) else { return };
        let Some(spec) = order_manifest(&self.world, &order.spec, order.top_ups) else { return };
        let claims: Vec<ClaimId> = order.spec.claims.iter().map(|(claim, _)| *claim).collect();
        let requests = self.claim_requests(&claims, Some(id));
        let Some(orders) = self.api(KindRole::Order) else { return };
        let (writer, outcomes) = (self.writer.clone(), self.outcomes.clone());
        let name = order_name(id);
        self.ordered_writes.write(&name.as_str().into(), async move {
            match writer.patch(&orders, &name, &json!({"spec": spec})).await {
                Ok(_) => drop(tokio::spawn(async move { requests.send(&writer, &outcomes).await })),
                Err(ApiError::NotLeader) => {}
                // Claims that no stored order lists are not requested: no leader could tell which order they belong to.
                Err(error) => {
                    tracing::warn!(order = name, %error, "not rewritten");
                    for claim in requests.claims() {
                        let _ = outcomes
                            .send(Outcome::ClaimRefused(claim, format!("its order: {error}")));
                    }
                }
            }
        });
    }

    /// Closes an order that the World does not know: the previous leader wrote it too late.
    pub(crate) fn observe_order(&mut self, moved: &ObjectChange<DynamicObject>) {
        let number = |object: &DynamicObject| object.data.pointer("/spec/number")?.as_u64();
        let number = moved.is.as_deref().and_then(number).and_then(|id| u32::try_from(id).ok());
        let Some(id) = number.map(OrderId) else { return };
        if !self.world.orders().contains_key(&id) && !self.ordered_writes.is_busy(&order_name(id)) {
            self.close_order(id, "Unknown");
        }
    }

    /// Deletes the Order object; the gang's status has the result.
    pub(crate) fn close_order(&mut self, id: OrderId, how: &'static str) {
        // A gang that is being removed waits until its order is gone.
        let dirty = &mut self.dirty.gangs;
        self.order_by_gang.retain(|gang, order| {
            if *order == id {
                dirty.insert(gang.clone());
            }
            *order != id
        });
        if self.world.is_synced() {
            // Requests issued to an autoscaler for it are dropped. During a rebuild another gang may still use them.
            self.clean_up_issued_requests();
        }
        let Some(orders) = self.api(KindRole::Order) else { return };
        let (writer, name) = (self.writer.clone(), order_name(id));
        self.supply_status.forget_order(&name);
        self.ordered_writes.write(&name.as_str().into(), async move {
            if writer.delete_until_gone(&orders, &name).await.is_ok() {
                tracing::debug!(order = name, how, "closed");
            }
        });
    }

    /// Records why an order was rolled back, since its object is deleted, with the API server's message if there is one.
    pub(crate) fn record_rollback(
        &mut self,
        order: OrderId,
        reason: RollbackReason,
        message: &str,
    ) {
        let entry = self.order_by_gang.iter().find(|(_, of)| **of == order);
        let Some(name) = entry.map(|(name, _)| name.clone()) else { return };
        let mut why = words::rollback(&self.world, reason);
        if !message.is_empty() {
            why = format!("{why}: {message}");
        }
        let action = format!("RollBack{}", order.0);
        self.record_event(&name, EventType::Warning, ("OrderRolledBack", &action), &why);
    }

    /// Requests claims that belong to no order.
    pub(crate) fn request_claims(&mut self, claims: &[ClaimId]) {
        let requests = self.claim_requests(claims, None);
        let (writer, outcomes) = (self.writer.clone(), self.outcomes.clone());
        tokio::spawn(async move { requests.send(&writer, &outcomes).await });
    }

    /// The requests for those claims that were not requested yet.
    pub(crate) fn claim_requests(
        &mut self,
        claims: &[ClaimId],
        order: Option<OrderId>,
    ) -> ClaimRequests {
        let requests = self.new_issued_requests(claims, order);
        ClaimRequests { claims: self.node_claim_requests(claims), requests }
    }

    /// The NodeClaims of those claims that were not requested yet.
    pub(crate) fn node_claim_requests(&mut self, claims: &[ClaimId]) -> Vec<NodeClaimRequest> {
        let known = self.world.claims();
        self.pending_claims.retain(|id| known.contains_key(id));
        let objects: Vec<(ClaimId, Value)> =
            claims.iter().filter_map(|id| Some((*id, self.node_claim_object(*id)?))).collect();
        let request = |(id, object)| NodeClaimRequest {
            id,
            object,
            pending: self.pending_claims.get_or_insert(id),
        };
        objects.into_iter().map(request).collect()
    }

    /// The NodeClaim of a claim, if none exists yet and its pool is Karpenter's.
    pub(crate) fn node_claim_object(&self, id: ClaimId) -> Option<Value> {
        let claim = self.world.claims().get(&id)?;
        if self.cache.claims.get(&node_claim_name(id)).is_some() {
            return None;
        }
        let pool = &self.world.pools()[claim.offering.pool].spec.name;
        let Provider::Karpenter(karpenter) = &self.pools.get(pool)?.manifest.provider else {
            return None;
        };
        let offering = &self.world.offering(claim.offering).spec;
        Some(node_claim(id, pool, karpenter, offering))
    }

    /// Releases a claim by its own provider: its pool may have another provider by now, or be gone.
    pub(crate) fn release_claim(&mut self, id: ClaimId) {
        if self.is_autoscaler_claim(id) {
            return self.release_autoscaler_node(id);
        }
        let pending = self.pending_claims.cancel(id);
        let (writer, outcomes) = (self.writer.clone(), self.outcomes.clone());
        tokio::spawn(async move {
            node_claim_create::delete_node_claim(&writer, &outcomes, id, &pending).await;
        });
    }
}

/// Claims to request: as NodeClaims, and as requests issued to autoscalers.
pub(crate) struct ClaimRequests {
    claims: Vec<NodeClaimRequest>,
    requests: Vec<IssuedRequestWrite>,
}

impl ClaimRequests {
    fn claims(&self) -> Vec<ClaimId> {
        let requests = self.requests.iter().flat_map(|request| &request.claims);
        self.claims.iter().map(|request| &request.id).chain(requests).copied().collect()
    }

    async fn send(self, writer: &ApiWriter, outcomes: &UnboundedSender<Outcome>) {
        let Self { claims, requests } = self;
        // All of them concurrently.
        let claims = claims.into_iter().map(|request| request.create(writer, outcomes));
        tokio::join!(
            futures::future::join_all(claims),
            create_issued_requests(writer, outcomes, requests)
        );
    }
}
