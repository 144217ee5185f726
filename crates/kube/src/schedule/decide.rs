//! Asking the planner, and handing out what it says.

use std::sync::Arc;

use kube::api::{Api, DynamicObject};
use kube::runtime::events::EventType;
use muster_api::{Provider, words};
use muster_core::Event;
use muster_core::gang::Phase;
use muster_core::id::{ClaimId, GangId, OrderId};
use muster_core::order::RollbackReason;
use muster_core::plan::{Action, ActionGroup, Plan, StopReason};
use muster_core::verdict::Verdict;
use muster_plan::plan;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedSender;

use crate::api::retry::Said;
use crate::api::writer::ApiWriter;
use crate::cache::kinds::{GangSource, KindRole};
use crate::cache::store::Moved;
use crate::host::{Host, Told};
use crate::provision::karpenter::{claim_name, node_claim};
use crate::provision::node_claim_create;
use crate::provision::node_claim_create::Asking;
use crate::provision::order_object::{order_name, written};
use crate::provision::requests_issued::create::{Writing, ask_autoscaler};
use crate::recover::quarantine::Subject;
use crate::schedule::placement::AGAIN;
use crate::schedule::reconcile::is_single;

/// Rounds of planning at one instant. Each decides something, and real instants need a handful; whatever is left after
/// these comes with the next change.
const ROUNDS: u32 = 100;

impl Host {
    /// Asks the planner and does what it says, until it has nothing to say.
    pub(crate) fn decide(&mut self) {
        for _ in 0..ROUNDS {
            self.world_changed = false;
            self.subject = Some(Subject::Planner);
            #[cfg(any(test, feature = "cluster"))]
            self.strike_planner();
            let decided = plan(&self.world, self.now(), &self.policy);
            self.subject = None;
            self.unplanned.clear();
            if self.dirty.gangs.is_empty() {
                // All that were shown again so far were looked at and planned.
                let shown_next = self.quarantine.plan_succeeded();
                self.dirty.gangs.extend(shown_next);
            }
            self.wake = decided.wake;
            let mut acts = false;
            for group in &decided.groups {
                acts |= self.carry_out(group);
            }
            self.subject = None;
            self.tell(&decided);
            // What was seen to stand in the way of an action is news to the planner.
            if !acts && !self.world_changed {
                return;
            }
        }
    }

    /// Panics as a planner would that cannot stand the sight of a gang.
    #[cfg(any(test, feature = "cluster"))]
    fn strike_planner(&self) {
        for name in crate::recover::injected_faults::of_planner(&self.config.faults) {
            assert!(self.world.gang_named(name).is_none(), "a fault was injected at {name}");
        }
    }

    fn tell(&mut self, plan: &Plan) {
        self.verdicts.clone_from(&plan.verdicts);
        for action in plan.groups.iter().flat_map(|group| &group.actions) {
            // Who is not told to go yet goes on.
            if let Action::Stop { gang, .. } = action
                && self.waits_for_its_order(action)
            {
                let is = match self.world.gang(*gang).map(|gang| &gang.phase) {
                    Some(Phase::Running { .. }) => Verdict::Running,
                    _ => Verdict::Admitted,
                };
                let told = self.verdicts.iter_mut().find(|(id, _)| id == gang);
                told.into_iter().for_each(|(_, verdict)| verdict.clone_from(&is));
            }
        }
        self.expected_starts = plan.reservations.iter().copied().collect();
        self.supply_status.targets = plan.targets.iter().copied().collect();
    }

    /// Does everything in a group, or nothing of it, but for what waits for its order to be written: the planner says that
    /// again. Whether anything was done.
    fn carry_out(&mut self, group: &ActionGroup) -> bool {
        if !group.actions.iter().all(|action| self.can(action)) {
            return false;
        }
        let mut done = false;
        for action in &group.actions {
            self.subject = self.subject_of(action);
            if self.waits_for_its_order(action) {
                continue;
            }
            if !self.apply_event(&Event::Decided(action.clone())) {
                return done;
            }
            done = true;
            self.hand_out(action);
        }
        done
    }

    /// The gang that an action is for, where it is for one.
    fn subject_of(&self, action: &Action) -> Option<Subject> {
        let (Action::Admit { gang, .. } | Action::Stop { gang, .. } | Action::Resize { gang, .. }) =
            action
        else {
            return None;
        };
        self.world.gang(*gang).map(|gang| Subject::Gang(gang.spec.name.clone()))
    }

    /// Whether what is seen allows an action. A gang whose pods went away meanwhile is not started with fewer.
    fn can(&mut self, action: &Action) -> bool {
        let Action::Admit { gang: id, seats } = action else { return true };
        let Some(gang) = self.world.gang(*id) else { return false };
        let name = gang.spec.name.clone();
        let Some(group) = self.gangs.get(&name) else { return false };
        if self.may_be_absent(group) || matches!(group.origin, GangSource::Request { .. }) {
            return true; // its members are nobody yet, or never
        }
        let standing = self.standing(group);
        let is_there = |at: usize, min: u32| {
            let all = standing.free.iter().chain(standing.bound.iter().map(|(key, _)| key));
            let mine =
                all.filter(|key| group.roles.get(*key).is_some_and(|of| usize::from(*of) == at));
            mine.count() >= min as usize
        };
        let to_come = group.imagined && self.is_to_run(group);
        let mut roles = gang.spec.roles.iter().enumerate();
        let whole = to_come || roles.all(|(at, role)| is_there(at, role.min));
        if !whole {
            self.withhold_admission(&name, *id);
            return false;
        }
        let nodes = seats.iter().filter_map(|seat| self.world.node_name(seat.node).cloned());
        let nodes: Vec<Arc<str>> = nodes.collect();
        let minds = self.minds(group);
        let wishes = || !group.wished && gang.phase == Phase::Waiting && self.wishes(group);
        if !minds && !wishes() {
            return true;
        }
        self.ties_hold(&name, *id) && (!minds || self.volumes_are_left(&name, &nodes))
    }

    /// Whether somebody is told to make way for an order that is not written down yet. Nobody is disturbed for one that the
    /// server then refuses.
    fn waits_for_its_order(&self, action: &Action) -> bool {
        use StopReason::{Moved, Preempted, Reclaimed, Rotated};
        let (Action::Resize { gang, .. }
        | Action::Stop { gang, reason: Preempted(_) | Reclaimed(_) | Rotated(_) | Moved }) = action
        else {
            return false;
        };
        let order = self.world.makes_way_for(*gang);
        order.is_some_and(|order| self.orders_not_written.contains(&order))
    }

    /// Whether what a gang is tied to is still as the planner was told. If not it is told now, and decides again: others
    /// may have moved meanwhile, or may have been given seats a moment ago. What is only wished is told once and then let
    /// be, or each that starts would have all others planned anew; and no order is given up for it.
    fn ties_hold(&mut self, name: &Arc<str>, id: GangId) -> bool {
        let Ok(gathered) = self.gather_named(name) else {
            self.dirty.gangs.insert(name.clone());
            return false;
        };
        let gang = self.world.gang(id).expect("just seen");
        if gathered.spec == gang.spec {
            return true;
        }
        let group = self.gangs.get_mut(name).expect("just seen");
        let was_heard = std::mem::replace(&mut group.wished, true);
        if (was_heard || gang.phase != Phase::Waiting)
            && Self::only_wishes_differ(&gang.spec, &gathered.spec)
        {
            return true;
        }
        tracing::debug!(gang = &**name, "what it is tied to has changed");
        self.give_order_up(id);
        self.submit_or_update(name, gathered);
        self.settle_tokens();
        false
    }

    /// An order that assembles for what a gang no longer is ends. What it has brought so far is anybody's, most likely
    /// the same gang's as soon as it is planned anew.
    pub(crate) fn give_order_up(&mut self, id: GangId) {
        let Some(Phase::Assembling(order)) = self.world.gang(id).map(|gang| gang.phase.clone())
        else {
            return;
        };
        let reason = RollbackReason::NotNeeded;
        if self.apply_event(&Event::Decided(Action::RollBack { order, reason })) {
            self.close(order, "RolledBack");
        }
    }

    fn hand_out(&mut self, action: &Action) {
        match action {
            Action::Admit { gang, .. } => self.admit(*gang),
            Action::Order(spec) => self.place(spec.id, spec.gang),
            Action::RollBack { order, reason } => {
                self.tell_of_rollback(*order, *reason, "");
                self.close(*order, "RolledBack");
            }
            Action::TopUp { order, .. } => self.rewrite(*order),
            Action::Exchange { gets, gives, .. } => {
                self.rewrite(*gets);
                self.rewrite(*gives);
            }
            Action::Stock { claims } => {
                let claims: Vec<ClaimId> = claims.iter().map(|(claim, _)| *claim).collect();
                self.ask_at_once(&claims);
            }
            Action::Retry { claim, .. } => self.ask_at_once(&[*claim]),
            Action::Release { claim } => self.release(*claim),
            Action::Resize { gang, .. } => self.begin_resize(*gang),
            Action::Stop { gang, .. } => self.is_stopping(*gang),
            // Nobody new is put there; that is all.
            Action::Retire { .. } | Action::Park { .. } => {}
        }
    }

    /// Why an order was given up, which its object does not live to say, and what the server said of it if it did.
    fn tell_of_rollback(&mut self, order: OrderId, reason: RollbackReason, said: &str) {
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
    fn ask_at_once(&mut self, claims: &[ClaimId]) {
        let asked = self.what_to_ask(claims, None);
        let (hands, told) = (self.writer.clone(), self.outcomes.clone());
        tokio::spawn(async move { asked.ask(&hands, &told).await });
    }

    /// A gang's seats are written down; then its pods are bound.
    pub(crate) fn admit(&mut self, id: GangId) {
        let Some(gang) = self.world.gang(id) else { return };
        let name = gang.spec.name.clone();
        let single =
            self.gangs.get(&name).is_some_and(|group| is_single(&gang.spec, &group.origin));
        if single {
            // One binding is whole by itself.
            self.gangs.get_mut(&name).expect("just seen").recorded = true;
            self.follow(&name);
        } else {
            self.record(&name, id);
        }
        if let Some(order) = self.order_by_gang.remove(&name) {
            self.close(order, "Complete");
        }
    }

    /// An order is written down, and then its claims are asked for, all of them together.
    fn place(&mut self, id: OrderId, gang: GangId) {
        let Some(order) = self.world.orders().get(&id) else { return };
        let Some(spec) = written(&self.world, &order.spec, order.top_ups) else { return };
        let claims: Vec<ClaimId> = order.spec.claims.iter().map(|(claim, _)| *claim).collect();
        if !order.after.is_empty() {
            self.orders_not_written.insert(id);
        }
        let asked = self.what_to_ask(&claims, Some(id));
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
        let (hands, told) = (self.writer.clone(), self.outcomes.clone());
        self.ordered_writes.write(&order_name(id).into(), async move {
            let object: DynamicObject = serde_json::from_value(object).expect("an object");
            let written = hands.create(&orders, &object).await;
            match written {
                Ok(_) | Err(Said::Exists) => {
                    let _ = told.send(Told::OrderWritten(id));
                    // The order may be closed however long its claims take.
                    tokio::spawn(async move { asked.ask(&hands, &told).await });
                }
                Err(Said::NotLeader) => {}
                Err(said) => {
                    // However often it is tried, it is not tried faster.
                    tokio::time::sleep(AGAIN).await;
                    let (claims, why) = (asked.claims(), said.to_string());
                    let _ = told.send(Told::OrderNotWritten { order: id, claims, why });
                }
            }
        });
    }

    /// An order that the server does not take is none: nothing was asked for, and nobody was told to make way. The gang
    /// tries again as after any order that failed.
    fn was_not_written(&mut self, id: OrderId, claims: &[ClaimId], why: &str) {
        self.orders_not_written.remove(&id);
        let reason = RollbackReason::NotWritten;
        if self.apply_event(&Event::Decided(Action::RollBack { order: id, reason })) {
            self.tell_of_rollback(id, reason, why);
            self.close(id, "RolledBack");
        }
        let known = self.world.claims();
        let is_nobodys =
            |id: &&ClaimId| known.get(id).is_some_and(|one| one.order.is_none() && !one.releasing);
        for id in claims.iter().filter(is_nobodys).copied().collect::<Vec<_>>() {
            self.apply_event(&Event::ClaimGone(id));
        }
    }

    /// An order's claims have changed: written down, and what is new is asked for.
    pub(crate) fn rewrite(&mut self, id: OrderId) {
        let Some(order) = self.world.orders().get(&id) else { return };
        let Some(spec) = written(&self.world, &order.spec, order.top_ups) else { return };
        let claims: Vec<ClaimId> = order.spec.claims.iter().map(|(claim, _)| *claim).collect();
        let asked = self.what_to_ask(&claims, Some(id));
        let Some(orders) = self.api(KindRole::Order) else { return };
        let (hands, told) = (self.writer.clone(), self.outcomes.clone());
        let name = order_name(id);
        self.ordered_writes.write(&name.as_str().into(), async move {
            match hands.patch(&orders, &name, &json!({"spec": spec})).await {
                Ok(_) => drop(tokio::spawn(async move { asked.ask(&hands, &told).await })),
                Err(Said::NotLeader) => {}
                // What is not written down is not asked for: nobody would know whose it is.
                Err(said) => {
                    tracing::warn!(order = name, %said, "not rewritten");
                    for claim in asked.claims() {
                        let _ = told.send(Told::ClaimRefused(claim, format!("its order: {said}")));
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
            self.close(id, "Unknown");
        }
    }

    /// Nothing is left of an order; what became of it is on its gang.
    pub(crate) fn close(&mut self, id: OrderId, how: &'static str) {
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
        let (hands, name) = (self.writer.clone(), order_name(id));
        self.supply_status.forget_order(&name);
        self.ordered_writes.write(&name.as_str().into(), async move {
            if hands.remove(&orders, &name).await.is_ok() {
                tracing::debug!(order = name, how, "closed");
            }
        });
    }

    /// How those claims are asked for that nobody has asked for yet.
    fn what_to_ask(&mut self, claims: &[ClaimId], order: Option<OrderId>) -> ToAsk {
        let requests = self.requests_to_write(claims, order);
        ToAsk { claims: self.claims_to_ask(claims), requests }
    }

    /// The NodeClaims of those claims that nobody has asked for yet.
    fn claims_to_ask(&mut self, claims: &[ClaimId]) -> Vec<Asking> {
        let known = self.world.claims();
        self.pending_claims.keep(|id| known.contains_key(id));
        let objects: Vec<(ClaimId, Value)> =
            claims.iter().filter_map(|id| Some((*id, self.claim_object(*id)?))).collect();
        let asking = |(id, object)| Asking { id, object, errand: self.pending_claims.of(id) };
        objects.into_iter().map(asking).collect()
    }

    /// The NodeClaim of a claim, if it is one that nobody has made yet.
    fn claim_object(&self, id: ClaimId) -> Option<Value> {
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
    fn release(&mut self, id: ClaimId) {
        if self.is_of_autoscaler(id) {
            return self.give_up_node(id);
        }
        let errand = self.pending_claims.call_off(id);
        let (hands, told) = (self.writer.clone(), self.outcomes.clone());
        tokio::spawn(async move { node_claim_create::remove(&hands, &told, id, &errand).await });
    }

    /// Where objects of a kind are, if the server has any.
    pub(crate) fn api(&self, interest: KindRole) -> Option<Api<DynamicObject>> {
        let kind = self.sources.resource(interest)?;
        Some(Api::all_with(self.writer.client.clone(), kind))
    }

    /// Takes in what a task has to say.
    pub(crate) fn hear(&mut self, told: Told) {
        match told {
            Told::Recorded(gang) => {
                let id = self.world.gang_named(&gang);
                let phase = id.and_then(|id| self.world.gang(id)).map(|gang| &gang.phase);
                // What was written for seats that are given up since says nothing of those it may get next.
                let has_seats =
                    matches!(phase, Some(Phase::Admitted { .. } | Phase::Running { .. }));
                if let Some(group) = self.gangs.get_mut(&gang) {
                    group.recording = group.recording.saturating_sub(1);
                    group.recorded |= group.recording == 0 && has_seats;
                    group.binding = None;
                    self.ask_owner_for_members(&gang);
                    self.follow(&gang);
                }
            }
            Told::NotRecorded { gang, why } => {
                self.was_refused_by_api(&gang, why);
                if let Some(group) = self.gangs.get_mut(&gang) {
                    group.recording = group.recording.saturating_sub(1);
                }
                if let Some(id) = self.world.gang_named(&gang) {
                    match self.world.gang(id).expect("named").phase {
                        Phase::Admitted { .. } | Phase::Running { .. } => self.record(&gang, id),
                        Phase::Waiting | Phase::Assembling(_) | Phase::Stopping => {}
                    }
                }
            }
            Told::Called(gang) => drop(self.dirty.gangs.insert(gang)),
            Told::Later(gang) => {
                self.requeued.remove(&gang);
                self.dirty.gangs.insert(gang);
            }
            Told::Unwritten(gang) => self.unwrite(&gang),
            Told::PodUntold(pod) => {
                self.unwrite_pod(&pod);
                if let Some(gang) = self.gangs.of(&pod).map(|(gang, _)| gang.clone()) {
                    self.written_status.is_untold(&gang);
                    self.has_deferred_writes = true;
                }
            }
            Told::NotMade { gang, pod, why } => self.was_not_made(&gang, &pod, why),
            // Of one that came later and has its name nothing is known.
            Told::NotSentAway { gang, pod, uid } => {
                let group = self.gangs.get_mut(&gang).filter(|_| self.cache.is_pod(&pod, &uid));
                if let Some(group) = group {
                    group.leaving.remove(&pod);
                    self.dirty.gangs.insert(gang);
                }
            }
            Told::NotBound { gang, pod, uid, why } => {
                self.was_refused_by_api(&gang, why);
                let group = self.gangs.get_mut(&gang).filter(|_| self.cache.is_pod(&pod, &uid));
                if let Some(group) = group {
                    group.assigned.remove(&pod);
                    self.dirty.gangs.insert(gang);
                }
            }
            Told::NotKept { gang, claim } => self.was_not_kept(gang, &claim),
            Told::JobDeaf(gang) => {
                if let Some(group) = self.gangs.get_mut(&gang) {
                    group.told_suspend = None;
                    self.dirty.gangs.insert(gang);
                }
            }
            Told::OrderWritten(order) => {
                // Those who make way for it can be told now.
                self.world_changed |= self.orders_not_written.remove(&order);
            }
            Told::OrderNotWritten { order, claims, why } => {
                self.was_not_written(order, &claims, &why);
            }
            Told::ClaimRefused(claim, why) => {
                tracing::warn!(claim = claim.0, why, "a claim was refused");
                // What is refused today could not be had today: its offering is left alone for a while.
                self.end_claim(claim, false);
            }
            Told::ClaimGone(claim) => self.end_claim(claim, true),
            Told::NotMarked(node) => self.was_not_marked(node),
            Told::RequestUntold(gang) => self.write_request(&gang),
        }
    }
}

/// Nodes that are to be asked for: as NodeClaims, and of autoscalers.
struct ToAsk {
    claims: Vec<Asking>,
    requests: Vec<Writing>,
}

impl ToAsk {
    fn claims(&self) -> Vec<ClaimId> {
        let requests = self.requests.iter().flat_map(|request| &request.claims);
        self.claims.iter().map(|asking| &asking.id).chain(requests).copied().collect()
    }

    async fn ask(self, hands: &ApiWriter, told: &UnboundedSender<Told>) {
        let Self { claims, requests } = self;
        // All of them at once.
        let claims = claims.into_iter().map(|asking| asking.ask(hands, told));
        tokio::join!(futures::future::join_all(claims), ask_autoscaler(hands, told, requests));
    }
}
