//! Asking the planner, and handing out what it says.

use kube::api::{Api, DeleteParams, DynamicObject};
use muster_api::Provider;
use muster_core::Event;
use muster_core::gang::Phase;
use muster_core::id::{ClaimId, GangId, OrderId};
use muster_core::plan::{Action, ActionGroup, Plan};
use muster_plan::plan;
use serde_json::{Value, json};

use super::gangs::is_single;
use super::objects::CLAIMS;
use super::orders::{order_name, written};
use super::{Host, Told};
use crate::hands::{Hands, Said};
use crate::intake::Interest;
use crate::karpenter::{claim_name, node_claim};
use crate::objects::NodeClaim;

/// Rounds of planning at one instant. Each decides something, and real instants need a handful; whatever is left after
/// these comes with the next change.
const ROUNDS: u32 = 100;

impl Host {
    /// Asks the planner and does what it says, until it has nothing to say.
    pub(super) fn decide(&mut self) {
        for _ in 0..ROUNDS {
            self.changed = false;
            let decided = plan(&self.world, self.now(), &self.policy);
            self.wake = decided.wake;
            let acts = !decided.groups.is_empty();
            for group in &decided.groups {
                self.carry_out(group);
            }
            self.tell(&decided);
            if !acts {
                return;
            }
        }
    }

    fn tell(&mut self, plan: &Plan) {
        self.verdicts.clone_from(&plan.verdicts);
    }

    /// Does everything in a group, or nothing of it.
    fn carry_out(&mut self, group: &ActionGroup) {
        if !group.actions.iter().all(|action| self.can(action)) {
            return;
        }
        for action in &group.actions {
            if !self.happened(&Event::Decided(action.clone())) {
                return;
            }
            self.hand_out(action);
        }
    }

    /// Whether what is seen allows an action. A gang whose pods went away meanwhile is not started with fewer.
    fn can(&mut self, action: &Action) -> bool {
        let Action::Admit { gang: id, .. } = action else { return true };
        let Some(gang) = self.world.gang(*id) else { return false };
        let name = gang.spec.name.clone();
        let Some(group) = self.groups.get(&name) else { return false };
        let standing = self.standing(group);
        let is_there = |at: usize, min: u32| {
            let all = standing.free.iter().chain(standing.bound.iter().map(|(key, _)| key));
            let mine =
                all.filter(|key| group.roles.get(*key).is_some_and(|of| usize::from(*of) == at));
            mine.count() >= min as usize
        };
        let whole = gang.spec.roles.iter().enumerate().all(|(at, role)| is_there(at, role.min));
        if !whole {
            tracing::info!(gang = &*name, "its pods went away before it could start");
            if gang.phase == Phase::Waiting {
                self.happened(&Event::GangCancelled(*id));
                self.groups.get_mut(&name).expect("just seen").spec = None;
                self.dirty.gangs.insert(name);
            }
        }
        whole
    }

    fn hand_out(&mut self, action: &Action) {
        match action {
            Action::Admit { gang, .. } => self.admit(*gang),
            Action::Order(spec) => self.place(spec.id, spec.gang),
            Action::RollBack { order, .. } => self.close(*order, "RolledBack"),
            Action::TopUp { order, .. } => self.rewrite(*order),
            Action::Exchange { gets, gives, .. } => {
                self.rewrite(*gets);
                self.rewrite(*gives);
            }
            Action::Stock { claims } => {
                let claims: Vec<ClaimId> = claims.iter().map(|(claim, _)| *claim).collect();
                let asked = self.claims_to_ask(&claims);
                let (hands, told) = (self.hands.clone(), self.told.clone());
                tokio::spawn(async move { ask_for(&hands, &told, asked).await });
            }
            Action::Retry { claim, .. } => {
                let asked = self.claims_to_ask(&[*claim]);
                let (hands, told) = (self.hands.clone(), self.told.clone());
                tokio::spawn(async move { ask_for(&hands, &told, asked).await });
            }
            Action::Release { claim } => self.release(*claim),
            Action::Resize { gang, .. } | Action::Stop { gang, .. } => {
                let name = self.world.gang(*gang).map(|gang| gang.spec.name.clone());
                self.dirty.gangs.extend(name);
            }
            // Nobody new is put there; that is all.
            Action::Retire { .. } | Action::Park { .. } => {}
        }
    }

    /// A gang's seats are written down; then its pods are bound.
    fn admit(&mut self, id: GangId) {
        let Some(gang) = self.world.gang(id) else { return };
        let name = gang.spec.name.clone();
        let single =
            self.groups.get(&name).is_some_and(|group| is_single(&gang.spec, &group.origin));
        if single {
            // One binding is whole by itself.
            self.groups.get_mut(&name).expect("just seen").recorded = true;
            self.follow(&name);
        } else {
            self.record(&name, id);
        }
        if let Some(order) = self.orders_of.remove(&name) {
            self.close(order, "Complete");
        }
    }

    /// An order is written down, and then its claims are asked for, all of them together.
    fn place(&mut self, id: OrderId, gang: GangId) {
        let Some(order) = self.world.orders().get(&id) else { return };
        let Some(spec) = written(&self.world, &order.spec, order.top_ups) else { return };
        let claims: Vec<ClaimId> = order.spec.claims.iter().map(|(claim, _)| *claim).collect();
        let asked = self.claims_to_ask(&claims);
        if let Some(gang) = self.world.gang(gang) {
            self.orders_of.insert(gang.spec.name.clone(), id);
        }
        let Some(orders) = self.api(Interest::Order) else { return };
        let object = json!({
            "apiVersion": "muster.sh/v1alpha1",
            "kind": "Order",
            "metadata": {"name": order_name(id)},
            "spec": spec,
        });
        let (hands, told) = (self.hands.clone(), self.told.clone());
        tokio::spawn(async move {
            let object: DynamicObject = serde_json::from_value(object).expect("an object");
            let written = hands.create(&orders, &object).await;
            match written {
                Ok(_) | Err(Said::Conflict(_)) => ask_for(&hands, &told, asked).await,
                Err(said) => {
                    for (claim, _) in asked {
                        let _ = told.send(Told::ClaimRefused(claim, format!("its order: {said}")));
                    }
                }
            }
        });
    }

    /// An order's claims have changed: written down, and what is new is asked for.
    pub(super) fn rewrite(&mut self, id: OrderId) {
        let Some(order) = self.world.orders().get(&id) else { return };
        let Some(spec) = written(&self.world, &order.spec, order.top_ups) else { return };
        let claims: Vec<ClaimId> = order.spec.claims.iter().map(|(claim, _)| *claim).collect();
        let asked = self.claims_to_ask(&claims);
        let Some(orders) = self.api(Interest::Order) else { return };
        let (hands, told) = (self.hands.clone(), self.told.clone());
        tokio::spawn(async move {
            let name = order_name(id);
            if let Err(said) = hands.patch(&orders, &name, &json!({"spec": spec})).await {
                tracing::warn!(order = name, %said, "not rewritten");
            }
            ask_for(&hands, &told, asked).await;
        });
    }

    /// Nothing is left of an order; what became of it is on its gang.
    pub(super) fn close(&mut self, id: OrderId, how: &'static str) {
        self.orders_of.retain(|_, order| *order != id);
        let Some(orders) = self.api(Interest::Order) else { return };
        let hands = self.hands.clone();
        tokio::spawn(async move {
            let name = order_name(id);
            match hands.delete(&orders, &name, &DeleteParams::default()).await {
                Ok(_) | Err(Said::Gone) => tracing::debug!(order = name, how, "closed"),
                Err(said) => tracing::warn!(order = name, %said, "not closed"),
            }
        });
    }

    /// The NodeClaims of those claims that nobody has asked for yet.
    fn claims_to_ask(&self, claims: &[ClaimId]) -> Vec<(ClaimId, Value)> {
        let object = |id: &ClaimId| {
            let claim = self.world.claims().get(id)?;
            if self.mirror.claims.get(&claim_name(*id)).is_some() {
                return None;
            }
            let pool = &self.world.pools()[claim.offering.pool].spec.name;
            let known = self.pools.get(pool)?;
            let Provider::Karpenter { node_class_ref } = &known.manifest.provider else {
                return None;
            };
            let offering = &self.world.offering(claim.offering).spec;
            let owner = known.owner.clone();
            let object = node_claim(*id, pool, owner, node_class_ref, offering);
            Some((*id, object))
        };
        claims.iter().filter_map(object).collect()
    }

    fn release(&mut self, id: ClaimId) {
        let name = claim_name(id);
        let (hands, told) = (self.hands.clone(), self.told.clone());
        tokio::spawn(async move {
            let claims: Api<NodeClaim> = Api::all(hands.client.clone());
            match hands.delete(&claims, &name, &DeleteParams::default()).await {
                Ok(_) => {}
                Err(Said::Gone) => drop(told.send(Told::ClaimGone(id))),
                Err(said) => tracing::warn!(claim = name, %said, "not released"),
            }
        });
    }

    /// Where objects of a kind are, if the server has any.
    pub(super) fn api(&self, interest: Interest) -> Option<Api<DynamicObject>> {
        let kind = self.sources.resource(interest)?;
        Some(Api::all_with(self.hands.client.clone(), kind))
    }

    /// Takes in what a task has to say.
    pub(super) fn hear(&mut self, told: Told) {
        match told {
            Told::Recorded(gang) => {
                if let Some(group) = self.groups.get_mut(&gang) {
                    group.recorded = true;
                    self.follow(&gang);
                }
            }
            Told::NotBound { gang, pod } => {
                if let Some(group) = self.groups.get_mut(&gang) {
                    group.assigned.remove(&pod);
                    self.dirty.gangs.insert(gang);
                }
            }
            Told::ClaimRefused(claim, why) => {
                tracing::warn!(claim = claim.0, why, "a claim was refused");
                self.end_claim(claim, true);
            }
            Told::Written(gang) => self.has_written(&gang),
            Told::ClaimGone(claim) => self.end_claim(claim, true),
        }
    }
}

/// Asks for machines, all of them at once. One that is there already was asked for before.
async fn ask_for(
    hands: &Hands,
    told: &tokio::sync::mpsc::UnboundedSender<Told>,
    asked: Vec<(ClaimId, Value)>,
) {
    let claims: Api<DynamicObject> = Api::all_with(hands.client.clone(), &CLAIMS.resource());
    let all = asked.into_iter().map(|(id, object)| {
        let claims = claims.clone();
        let object: DynamicObject = serde_json::from_value(object).expect("an object");
        async move {
            match hands.create(&claims, &object).await {
                Ok(_) | Err(Said::Conflict(_)) => {}
                Err(said) => drop(told.send(Told::ClaimRefused(id, said.to_string()))),
            }
        }
    });
    futures::future::join_all(all).await;
}
