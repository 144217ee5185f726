//! Asking the planner, and handing out what it says.

use std::sync::Arc;

use muster_core::Event;
use muster_core::gang::Phase;
use muster_core::id::{ClaimId, GangId};
use muster_core::order::RollbackReason;
use muster_core::plan::{Action, ActionGroup, Plan, StopReason};
use muster_core::verdict::Verdict;
use muster_plan::plan;

use crate::gang::identity::GangSource;
use crate::host::Host;
use crate::recover::quarantine::Subject;
use crate::schedule::reconcile::is_single_pod;

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
            self.inject_planner_fault();
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
                acts |= self.apply_group(group);
            }
            self.subject = None;
            self.keep_verdicts(&decided);
            // What was seen to stand in the way of an action is news to the planner.
            if !acts && !self.world_changed {
                return;
            }
        }
    }

    /// Panics as a planner would that cannot stand the sight of a gang.
    #[cfg(any(test, feature = "cluster"))]
    fn inject_planner_fault(&self) {
        for name in crate::recover::injected_faults::of_planner(&self.config.faults) {
            assert!(self.world.gang_named(name).is_none(), "a fault was injected at {name}");
        }
    }

    fn keep_verdicts(&mut self, plan: &Plan) {
        self.verdicts.clone_from(&plan.verdicts);
        for action in plan.groups.iter().flat_map(|group| &group.actions) {
            // Who is not told to go yet goes on.
            if let Action::Stop { gang, .. } = action
                && self.awaits_order_write(action)
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
    fn apply_group(&mut self, group: &ActionGroup) -> bool {
        if !group.actions.iter().all(|action| self.can_apply(action)) {
            return false;
        }
        let mut done = false;
        for action in &group.actions {
            self.subject = self.subject_of(action);
            if self.awaits_order_write(action) {
                continue;
            }
            if !self.apply_event(&Event::Decided(action.clone())) {
                return done;
            }
            done = true;
            self.execute(action);
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
    fn can_apply(&mut self, action: &Action) -> bool {
        let Action::Admit { gang: id, seats } = action else { return true };
        let Some(gang) = self.world.gang(*id) else { return false };
        let name = gang.spec.name.clone();
        let Some(record) = self.gangs.get(&name) else { return false };
        if self.may_have_missing_members(record)
            || matches!(record.source, GangSource::Request { .. })
        {
            return true; // its members are nobody yet, or never
        }
        let by_state = self.pods_by_state(record);
        let is_there = |at: usize, min: u32| {
            let all = by_state.unbound.iter().chain(by_state.bound.iter().map(|(key, _)| key));
            let mine = all
                .filter(|key| record.pod_roles.get(*key).is_some_and(|of| usize::from(*of) == at));
            mine.count() >= min as usize
        };
        let to_come = record.planned_from_template && self.awaits_unsuspend(record);
        let mut roles = gang.spec.roles.iter().enumerate();
        let whole = to_come || roles.all(|(at, role)| is_there(at, role.min));
        if !whole {
            self.withhold_admission(&name, *id);
            return false;
        }
        let nodes = seats.iter().filter_map(|seat| self.world.node_name(seat.node).cloned());
        let nodes: Vec<Arc<str>> = nodes.collect();
        let minds = self.minds(record);
        let wishes =
            || !record.preferences_refreshed && gang.phase == Phase::Waiting && self.wishes(record);
        if !minds && !wishes() {
            return true;
        }
        self.constraints_still_hold(&name, *id) && (!minds || self.volumes_are_left(&name, &nodes))
    }

    /// Whether somebody is told to make way for an order that is not written down yet. Nobody is disturbed for one that the
    /// server then refuses.
    fn awaits_order_write(&self, action: &Action) -> bool {
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
    fn constraints_still_hold(&mut self, name: &Arc<str>, id: GangId) -> bool {
        let Ok(built) = self.build_for_submit(name) else {
            self.dirty.gangs.insert(name.clone());
            return false;
        };
        let gang = self.world.gang(id).expect("just seen");
        if built.spec == gang.spec {
            return true;
        }
        let record = self.gangs.get_mut(name).expect("just seen");
        let was_heard = std::mem::replace(&mut record.preferences_refreshed, true);
        if (was_heard || gang.phase != Phase::Waiting)
            && Self::only_wishes_differ(&gang.spec, &built.spec)
        {
            return true;
        }
        tracing::debug!(gang = &**name, "what it is tied to has changed");
        self.roll_back_order(id);
        self.submit_or_update(name, built);
        self.settle_tokens();
        false
    }

    /// An order that assembles for what a gang no longer is ends. What it has brought so far is anybody's, most likely
    /// the same gang's as soon as it is planned anew.
    pub(crate) fn roll_back_order(&mut self, id: GangId) {
        let Some(Phase::Assembling(order)) = self.world.gang(id).map(|gang| gang.phase.clone())
        else {
            return;
        };
        let reason = RollbackReason::NotNeeded;
        if self.apply_event(&Event::Decided(Action::RollBack { order, reason })) {
            self.close_order(order, "RolledBack");
        }
    }

    fn execute(&mut self, action: &Action) {
        match action {
            Action::Admit { gang, .. } => self.admit(*gang),
            Action::Order(spec) => self.create_order(spec.id, spec.gang),
            Action::RollBack { order, reason } => {
                self.record_rollback(*order, *reason, "");
                self.close_order(*order, "RolledBack");
            }
            Action::TopUp { order, .. } => self.update_order(*order),
            Action::Exchange { gets, gives, .. } => {
                self.update_order(*gets);
                self.update_order(*gives);
            }
            Action::Stock { claims } => {
                let claims: Vec<ClaimId> = claims.iter().map(|(claim, _)| *claim).collect();
                self.request_claims(&claims);
            }
            Action::Retry { claim, .. } => self.request_claims(&[*claim]),
            Action::Release { claim } => self.release_claim(*claim),
            Action::Resize { gang, .. } => self.begin_resize(*gang),
            Action::Stop { gang, .. } => self.begin_stopping(*gang),
            // Nobody new is put there; that is all.
            Action::Retire { .. } | Action::Park { .. } => {}
        }
    }

    /// A gang's seats are written down; then its pods are bound.
    pub(crate) fn admit(&mut self, id: GangId) {
        let Some(gang) = self.world.gang(id) else { return };
        let name = gang.spec.name.clone();
        let single =
            self.gangs.get(&name).is_some_and(|record| is_single_pod(&gang.spec, &record.source));
        if single {
            // One binding is whole by itself.
            self.gangs.get_mut(&name).expect("just seen").placement_written = true;
            self.reconcile_phase(&name);
        } else {
            self.write_placement(&name, id);
        }
        if let Some(order) = self.order_by_gang.remove(&name) {
            self.close_order(order, "Complete");
        }
    }
}
