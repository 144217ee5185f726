//! Asks the planner and applies its decisions, each group of actions as a whole or not at all.
//!
//! Not here: the writes for orders and claims, which are in `provision::orders`.

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
use crate::recover::quarantine::WorkItem;
use crate::schedule::reconcile::is_single_pod;

/// Rounds of planning at one instant. Each decides something, and real instants need a handful; what is left after these is
/// decided with the next change.
const ROUNDS: u32 = 100;

impl Host {
    /// Plans and applies the plan until it has no more actions.
    pub(crate) fn decide(&mut self) {
        for _ in 0..ROUNDS {
            self.world_changed = false;
            self.current_item = Some(WorkItem::Planner);
            #[cfg(any(test, feature = "cluster"))]
            self.inject_planner_fault();
            let decided = plan(&self.world, self.now(), &self.policy);
            self.current_item = None;
            self.unplanned.clear();
            if self.dirty.gangs.is_empty() {
                // All quarantined gangs that are on trial so far were reconciled and planned.
                let next_on_trial = self.quarantine.plan_succeeded();
                self.dirty.gangs.extend(next_on_trial);
            }
            self.wake = decided.wake;
            let mut acts = false;
            for group in &decided.groups {
                acts |= self.apply_group(group);
            }
            self.current_item = None;
            self.keep_verdicts(&decided);
            // An obstacle found while an action was checked is news to the planner.
            if !acts && !self.world_changed {
                return;
            }
        }
    }

    /// Panics like a planner with a bug that a certain gang triggers.
    #[cfg(any(test, feature = "cluster"))]
    fn inject_planner_fault(&self) {
        for name in crate::recover::injected_faults::of_planner(&self.config.faults) {
            assert!(self.world.gang_named(name).is_none(), "a fault was injected at {name}");
        }
    }

    /// Keeps the verdicts and expected starts of a plan, for statuses.
    fn keep_verdicts(&mut self, plan: &Plan) {
        self.verdicts.clone_from(&plan.verdicts);
        for action in plan.groups.iter().flat_map(|group| &group.actions) {
            // A victim that is not stopped yet goes on.
            if let Action::Stop { gang, .. } = action
                && self.awaits_order_write(action)
            {
                let is = match self.world.gang(*gang).map(|gang| &gang.phase) {
                    Some(Phase::Running { .. }) => Verdict::Running,
                    _ => Verdict::Admitted,
                };
                let kept = self.verdicts.iter_mut().find(|(id, _)| id == gang);
                kept.into_iter().for_each(|(_, verdict)| verdict.clone_from(&is));
            }
        }
        self.expected_starts = plan.reservations.iter().copied().collect();
        self.supply_status.targets = plan.targets.iter().copied().collect();
    }

    /// Applies all actions of a group, or none, except those that wait for their order to be stored: the planner decides them
    /// again. Returns whether anything was done.
    fn apply_group(&mut self, group: &ActionGroup) -> bool {
        if !group.actions.iter().all(|action| self.can_apply(action)) {
            return false;
        }
        let mut done = false;
        for action in &group.actions {
            self.current_item = self.work_item_of(action);
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
    fn work_item_of(&self, action: &Action) -> Option<WorkItem> {
        let (Action::Admit { gang, .. } | Action::Stop { gang, .. } | Action::Resize { gang, .. }) =
            action
        else {
            return None;
        };
        self.world.gang(*gang).map(|gang| WorkItem::Gang(gang.spec.name.clone()))
    }

    /// Whether an action is still possible by what is observed. A gang that lost pods meanwhile is not started with fewer.
    fn can_apply(&mut self, action: &Action) -> bool {
        let Action::Admit { gang: id, seats } = action else { return true };
        let Some(gang) = self.world.gang(*id) else { return false };
        let name = gang.spec.name.clone();
        let Some(record) = self.gangs.get(&name) else { return false };
        if self.may_have_missing_members(record)
            || matches!(record.source, GangSource::Request { .. })
        {
            return true; // its members do not exist yet, or never will
        }
        let by_state = self.pods_by_state(record);
        let exists = |at: usize, min: u32| {
            let all = by_state.unbound.iter().chain(by_state.bound.iter().map(|(key, _)| key));
            let mine = all
                .filter(|key| record.pod_roles.get(*key).is_some_and(|of| usize::from(*of) == at));
            mine.count() >= min as usize
        };
        let to_come = record.planned_from_template && self.awaits_unsuspend(record);
        let mut roles = gang.spec.roles.iter().enumerate();
        let whole = to_come || roles.all(|(at, role)| exists(at, role.min));
        if !whole {
            self.withhold_admission(&name, *id);
            return false;
        }
        let nodes = seats.iter().filter_map(|seat| self.world.node_name(seat.node).cloned());
        let nodes: Vec<Arc<str>> = nodes.collect();
        let is_constrained = self.constraints_may_change(record);
        let has_preferences = || {
            !record.preferences_refreshed
                && gang.phase == Phase::Waiting
                && self.has_preferences(record)
        };
        if !is_constrained && !has_preferences() {
            return true;
        }
        self.constraints_still_hold(&name, *id)
            && (!is_constrained || self.volumes_still_available(&name, &nodes))
    }

    /// Whether an action stops or shrinks a victim for an order that is not stored yet. No gang is preempted for an order that
    /// the API server then refuses.
    fn awaits_order_write(&self, action: &Action) -> bool {
        use StopReason::{Moved, Preempted, Reclaimed, Rotated};
        let (Action::Resize { gang, .. }
        | Action::Stop { gang, reason: Preempted(_) | Reclaimed(_) | Rotated(_) | Moved }) = action
        else {
            return false;
        };
        let order = self.world.preempted_for(*gang);
        order.is_some_and(|order| self.orders_not_written.contains(&order))
    }

    /// Whether the constraints of a gang are still those that the planner has. If not the gang is updated and planned again:
    /// other pods may have moved meanwhile, or got seats a moment ago. Changed preferences are submitted only once, or each
    /// gang that starts would have all others planned again; and no order is rolled back for them.
    fn constraints_still_hold(&mut self, name: &Arc<str>, id: GangId) -> bool {
        let Ok(built) = self.build_for_submit(name) else {
            self.dirty.gangs.insert(name.clone());
            return false;
        };
        let gang = self.world.gang(id).expect("the World has the gang");
        if built.spec == gang.spec {
            return true;
        }
        let record = self.gangs.get_mut(name).expect("the gang has a record");
        let was_refreshed = std::mem::replace(&mut record.preferences_refreshed, true);
        if (was_refreshed || gang.phase != Phase::Waiting)
            && Self::only_preferences_differ(&gang.spec, &built.spec)
        {
            return true;
        }
        tracing::debug!(gang = &**name, "its constraints have changed");
        self.roll_back_order(id);
        self.submit_or_update(name, built);
        self.refresh_node_tokens();
        false
    }

    /// Rolls back the order of a gang whose spec has changed. What it has provisioned so far is free for any gang, most likely
    /// the same one as soon as it is planned again.
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

    /// Starts the effects of an action that the World has applied.
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
            // The planner places no new pod there; nothing else is to do.
            Action::Retire { .. } | Action::Park { .. } => {}
        }
    }

    /// Writes the placement of an admitted gang; its pods are bound after that.
    pub(crate) fn admit(&mut self, id: GangId) {
        let Some(gang) = self.world.gang(id) else { return };
        let name = gang.spec.name.clone();
        let single =
            self.gangs.get(&name).is_some_and(|record| is_single_pod(&gang.spec, &record.source));
        if single {
            // A single binding is all or nothing by itself.
            self.gangs.get_mut(&name).expect("the gang has a record").placement_written = true;
            self.reconcile_phase(&name);
        } else {
            self.write_placement(&name, id);
        }
        if let Some(order) = self.order_by_gang.remove(&name) {
            self.close_order(order, "Complete");
        }
    }
}
