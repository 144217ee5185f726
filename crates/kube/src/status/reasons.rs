//! The status of a gang in words: its phase, reason and message, built from the planner's verdict.
//!
//! Nothing is written here: `status::gang` compares reports and writes those that have changed.

use std::sync::Arc;

use muster_api::crd::{GangPhase, Members, Stamp, gang_conditions};
use muster_api::dialects::State;
use muster_api::words;
use muster_core::World;
use muster_core::allowed::Excess;
use muster_core::gang::{Phase, members_of};
use muster_core::id::GangId;
use muster_core::time::Time;
use muster_core::verdict::{Blocker, Verdict};
use serde_json::{Value, json};

use crate::constraints::pod_constraints::PodConstraints;
use crate::host::Host;
use crate::objects::pod::Pod;
use crate::provision::order_object::order_name;

/// Reason: the pods' constraints cannot be satisfied now.
pub(crate) const CONSTRAINTS_UNSATISFIED: &str = "ConstraintsUnsatisfied";
/// Reason: the API server refused the bindings of the gang.
pub(crate) const BINDING_REFUSED: &str = "BindingRefused";
/// Reason: the gang names a queue that does not exist.
pub(crate) const UNKNOWN_QUEUE: &str = "UnknownQueue";
/// Reason: the queue of the gang is closed.
pub(crate) const QUEUE_CLOSED: &str = "QueueClosed";
/// Reason: handling the gang made the controller panic.
pub(crate) const LEFT_OUT: &str = "LeftOut";
/// Reason: the pods are not a gang yet. Some are missing, or their requests are invalid.
pub(crate) const WAITING_FOR_MEMBERS: &str = "WaitingForMembers";
/// How the message about an infeasible gang begins.
const INFEASIBLE_PREFIX: &str = "can never run: ";
/// The longest message, in bytes.
const MESSAGE_MAX: usize = 1_000;

/// The status of one gang, as reported to users.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StatusReport {
    pub(crate) phase: GangPhase,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    members: Members,
    order: Option<String>,
    position: Option<u32>,
    waits_since: Option<Time>,
    /// Rounded to the minute: the estimate changes a little all the time.
    expected: Option<Time>,
    admitted: Option<Time>,
    runs_since: Option<Time>,
    restarts: u32,
    failed_orders: u32,
    last_failed_order: Option<Time>,
    /// The generation of the Gang object, if a user has changed its spec.
    generation: Option<i64>,
}

impl StatusReport {
    /// The report for pods that are not a gang yet.
    pub(crate) fn not_a_gang(reason: &'static str, message: String) -> Self {
        Self {
            phase: GangPhase::Waiting,
            reason,
            message,
            members: Members { ready: 0, total: 0 },
            order: None,
            position: None,
            waits_since: None,
            expected: None,
            admitted: None,
            runs_since: None,
            restarts: 0,
            failed_orders: 0,
            last_failed_order: None,
            generation: None,
        }
    }

    /// The status patch for the Gang object. A merge patch leaves fields alone that it does not name, and replaces lists as
    /// a whole: so fields that no longer apply are named, and the conditions are always complete.
    pub(crate) fn status_patch(&self, before: Option<&Value>, now: Time) -> Value {
        let conditions = gang_conditions(self.phase, self.reason, &self.message, before, now);
        let mut status = json!({"status": {
            "phase": self.phase,
            "reason": self.reason,
            "message": self.message,
            "members": self.members,
            "progress": self.members.to_string(),
            "order": self.order,
            "position": self.position,
            "waitingSince": self.waits_since.map(Stamp),
            "expectedStart": self.expected.map(Stamp),
            "restarts": self.restarts,
            "failedOrders": self.failed_orders,
            "lastFailedOrder": self.last_failed_order.map(Stamp),
            "conditions": conditions,
        }});
        // A running gang keeps the time of its admission; a gang that waits again loses it.
        if self.phase != GangPhase::Running {
            status["status"]["admittedAt"] = json!(self.admitted.map(Stamp));
        }
        status["status"]["runningSince"] = json!(self.runs_since.map(Stamp));
        status
    }
}

impl Host {
    /// The status of a gang with this verdict.
    pub(crate) fn status_report(&self, id: GangId, verdict: &Verdict) -> StatusReport {
        let gang = self.world.gang(id).expect("it has a verdict");
        let needs: u32 = gang.spec.roles.iter().map(|role| role.min).sum();
        let has = members_of(&gang.seats);
        let (phase, reason, ready, total) = match verdict {
            Verdict::Admitted => (GangPhase::Admitted, "Admitted", 0, needs),
            Verdict::Running => (GangPhase::Running, "Running", has, has),
            Verdict::Stopping => (GangPhase::Stopping, "Stopping", 0, needs),
            Verdict::Provisioning { ready, total, .. } => {
                (GangPhase::Provisioning, "Provisioning", *ready, *total)
            }
            Verdict::Waiting { blockers, .. } => {
                (GangPhase::Waiting, reason(&self.world, blockers), 0, needs)
            }
            Verdict::Impossible { blockers } => {
                let reason = match blockers.first() {
                    Some(Blocker::NotAllowed { .. } | Blocker::BeyondGuarantee { .. }) => {
                        reason(&self.world, blockers)
                    }
                    _ => "Infeasible",
                };
                (GangPhase::Infeasible, reason, 0, needs)
            }
        };
        let position = match verdict {
            Verdict::Waiting { position, .. } => Some(*position),
            _ => None,
        };
        let (phase, reason, mut message) = match self.constraint_message(&gang.spec.name, &phase) {
            Some(message) if is_waiting(&phase) => {
                let is_refused = self.backoff_reason(&gang.spec.name).is_some();
                let reason = if is_refused { BINDING_REFUSED } else { CONSTRAINTS_UNSATISFIED };
                (GangPhase::Waiting, reason, message)
            }
            Some(message) => (GangPhase::Admitted, "WaitingForVolumes", message),
            None => {
                let mut message = words::verdict(&self.world, id, verdict);
                if let (true, Some(needs)) =
                    (is_waiting(&phase), self.constraints.describe(&gang.spec.name))
                {
                    message = format!("{message}; {needs}");
                }
                match self.depends_on_placed_pods(&gang.spec.name) {
                    // Placed pods that rule out every node now may move.
                    true if phase == GangPhase::Infeasible => {
                        let why = message.strip_prefix(INFEASIBLE_PREFIX).unwrap_or(&message);
                        let message = format!("waits until others move: {why}");
                        (GangPhase::Waiting, CONSTRAINTS_UNSATISFIED, message)
                    }
                    _ => (phase, reason, message),
                }
            }
        };
        message.truncate(
            (0..=MESSAGE_MAX.min(message.len()))
                .rev()
                .find(|at| message.is_char_boundary(*at))
                .unwrap_or(0),
        );
        let members = Members {
            ready: i32::try_from(ready).unwrap_or(i32::MAX),
            total: i32::try_from(total).unwrap_or(i32::MAX),
        };
        let order = match verdict {
            Verdict::Provisioning { order, .. } => Some(order_name(*order)),
            _ => None,
        };
        let waits = is_waiting(&phase) || phase == GangPhase::Stopping;
        StatusReport {
            phase,
            reason,
            message,
            members,
            order,
            position,
            waits_since: waits.then_some(gang.waits_since),
            expected: self.expected_starts.get(&id).map(|at| Time(at.0 - at.0 % 60_000)),
            admitted: match gang.phase {
                Phase::Admitted { at } => Some(at),
                _ => None,
            },
            runs_since: match gang.phase {
                Phase::Running { at } => Some(at),
                _ => None,
            },
            restarts: gang.restarts,
            failed_orders: gang.failed_orders,
            last_failed_order: gang.last_failure,
            generation: self.generation_of(&gang.spec.name).filter(|generation| *generation > 1),
        }
    }

    /// The generation of the Gang object.
    pub(crate) fn generation_of(&self, name: &str) -> Option<i64> {
        self.gang_object(name)?.metadata.generation
    }

    /// The status of a gang for group objects of other dialects.
    pub(crate) fn group_state(
        &self,
        name: &Arc<str>,
        verdict: &Verdict,
        report: &StatusReport,
    ) -> State {
        let node_would_help = self.node_would_help(name, verdict, report);
        match verdict {
            Verdict::Waiting { .. } | Verdict::Stopping => {
                State::Waiting { why: report.message.clone(), node_would_help }
            }
            // The gang can never run on the nodes and offerings that exist, but another autoscaler may add a node.
            Verdict::Impossible { .. } if node_would_help => {
                State::Waiting { why: report.message.clone(), node_would_help }
            }
            Verdict::Provisioning { ready, total, .. } => {
                State::Provisioning { ready: *ready, total: *total }
            }
            Verdict::Admitted => State::Admitted,
            Verdict::Running => {
                let pods = self.gangs.get(name).map(|record| &record.pods).into_iter().flatten();
                count_pods(pods.filter_map(|key| self.cache.pods.get(key)))
            }
            Verdict::Impossible { .. } => State::Infeasible { why: report.message.clone() },
        }
    }

    /// Why a gang waits that the planner does not block: unsatisfied constraints, or volumes that are being bound.
    fn constraint_message(&self, name: &str, phase: &GangPhase) -> Option<String> {
        let record = self.gangs.get(name)?;
        match phase {
            phase if is_waiting(phase) => {
                record.wait_reason.as_ref().map(|why| format!("waits: {why}"))
            }
            GangPhase::Admitted | GangPhase::Running => {
                let binding = record.volume_binding.as_ref()?;
                self.pods_by_state(record).bound.is_empty().then(|| binding.describe())
            }
            _ => None,
        }
    }

    /// Whether the nodes that a gang may use depend on where other pods are placed.
    fn depends_on_placed_pods(&self, name: &str) -> bool {
        self.gangs
            .get(name)
            .is_some_and(|record| !record.pod_constraints.values().all(PodConstraints::is_fixed))
    }
}

/// Counts the pods that run, have succeeded and have failed.
pub(crate) fn count_pods<'a>(pods: impl Iterator<Item = &'a Arc<Pod>>) -> State {
    let (mut running, mut succeeded, mut failed) = (0, 0, 0);
    for pod in pods {
        match &*pod.status.phase {
            "Succeeded" => succeeded += 1,
            "Failed" => failed += 1,
            _ if pod.node().is_some() => running += 1,
            _ => {}
        }
    }
    State::Running { running, succeeded, failed }
}

/// Whether the message of a phase says why the gang waits.
fn is_waiting(phase: &GangPhase) -> bool {
    matches!(phase, GangPhase::Waiting | GangPhase::Infeasible | GangPhase::Provisioning)
}

/// The reason of a waiting gang.
fn reason(world: &World, blockers: &[Blocker]) -> &'static str {
    match blockers.first() {
        None => "Waiting",
        Some(Blocker::QueueClosed { queue }) if world.queue(*queue).gone => UNKNOWN_QUEUE,
        Some(Blocker::QueueClosed { .. }) => QUEUE_CLOSED,
        Some(Blocker::Behind(_) | Blocker::NotConsidered | Blocker::SearchSpent) => "QueuedBehind",
        Some(Blocker::QueueLimit { .. }) => "QueueLimit",
        Some(Blocker::UserLimit { .. }) => "UserLimit",
        Some(Blocker::NotAllowed { excess: Excess::Namespace, .. }) => "NamespaceNotAllowed",
        Some(Blocker::NotAllowed { excess: Excess::Priority { .. }, .. }) => "PriorityNotAllowed",
        Some(Blocker::NotAllowed { excess: Excess::NonPreemptible, .. }) => {
            "NonPreemptibleNotAllowed"
        }
        Some(Blocker::NotAllowed { .. }) => "NotAllowed",
        Some(Blocker::BeyondGuarantee { .. }) => "BeyondGuarantee",
        Some(Blocker::PoolsFull { .. }) => "PoolLimitReached",
        Some(Blocker::ProvisioningOff) => "InsufficientCapacity",
        Some(Blocker::CheaperToWait { .. }) => "CheaperToWait",
        Some(_) => "InsufficientCapacity",
    }
}
