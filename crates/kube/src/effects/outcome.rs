//! Outcomes of writes: what a task reports to the host that no watch would show.

use std::sync::Arc;
use std::time::Duration;

use muster_core::gang::Phase;
use muster_core::id::{ClaimId, OrderId};

use crate::cache::store::Key;
use crate::host::Host;

/// How long a task waits before it reports a failed write, and so until the write is retried.
pub(crate) const RETRY_PAUSE: Duration = Duration::from_secs(5);

/// What a task reports of a write, or of a timer.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// A gang's placement is in its status.
    PlacementWritten(Arc<str>),
    /// A gang's placement could not be written; the API server's reason, if it refused.
    PlacementNotWritten { gang: Arc<str>, why: Option<String> },
    /// A timer of a gang has expired: it is reconciled again.
    Requeue(Arc<str>),
    /// A gang that was reconciled too often in one cycle may be reconciled again.
    RequeueAfterLimit(Arc<str>),
    /// A gang's status could not be written.
    StatusNotWritten(Arc<str>),
    /// A pod could not be bound or ungated; the API server's reason, if it refused.
    BindFailed { gang: Arc<str>, pod: Key, uid: String, why: Option<String> },
    /// The claim ref of a volume could not be set for a claim of a gang.
    ClaimRefFailed { gang: Arc<str>, claim: String },
    /// A pod's `PodScheduled` condition could not be written.
    PodConditionNotWritten(Key),
    /// A member of a Gang with templates could not be created.
    PodCreateFailed { gang: Arc<str>, pod: Key, why: String },
    /// A pod could not be evicted or deleted.
    DeleteFailed { gang: Arc<str>, pod: Key, uid: String },
    /// A Job's `suspend` could not be set.
    JobPatchFailed(Arc<str>),
    /// An order is stored: its victims may be stopped.
    OrderWritten(OrderId),
    /// An order could not be stored, so these claims of it were not requested.
    OrderNotWritten { order: OrderId, claims: Vec<ClaimId>, why: String },
    /// A claim was refused, or is gone already.
    ClaimRefused(ClaimId, String),
    /// A claim to be released no longer exists.
    ClaimGone(ClaimId),
    /// A node could not be marked with the claim it belongs to.
    NodeMarkFailed(Arc<str>),
    /// The conditions of a ProvisioningRequest could not be written.
    RequestConditionNotWritten(Arc<str>),
}

impl Host {
    /// Updates the host by the outcome of a write.
    pub(crate) fn handle_outcome(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::PlacementWritten(gang) => {
                let id = self.world.gang_named(&gang);
                let phase = id.and_then(|id| self.world.gang(id)).map(|gang| &gang.phase);
                // A placement of seats that the gang gave up since does not count for its next seats.
                let has_seats =
                    matches!(phase, Some(Phase::Admitted { .. } | Phase::Running { .. }));
                if let Some(record) = self.gangs.get_mut(&gang) {
                    record.placement_writes_pending =
                        record.placement_writes_pending.saturating_sub(1);
                    record.placement_written |= record.placement_writes_pending == 0 && has_seats;
                    record.binding_since = None;
                    self.ask_owner_for_members(&gang);
                    self.reconcile_phase(&gang);
                }
            }
            Outcome::PlacementNotWritten { gang, why } => {
                self.handle_api_refusal(&gang, why);
                if let Some(record) = self.gangs.get_mut(&gang) {
                    record.placement_writes_pending =
                        record.placement_writes_pending.saturating_sub(1);
                }
                if let Some(id) = self.world.gang_named(&gang) {
                    match self.world.gang(id).expect("the World has the gang").phase {
                        Phase::Admitted { .. } | Phase::Running { .. } => {
                            self.write_placement(&gang, id);
                        }
                        Phase::Waiting | Phase::Assembling(_) | Phase::Stopping => {}
                    }
                }
            }
            Outcome::Requeue(gang) => drop(self.dirty.gangs.insert(gang)),
            Outcome::RequeueAfterLimit(gang) => {
                self.requeued.remove(&gang);
                self.dirty.gangs.insert(gang);
            }
            Outcome::StatusNotWritten(gang) => self.forget_status(&gang),
            Outcome::PodConditionNotWritten(pod) => {
                self.forget_pod_status(&pod);
                if let Some(gang) = self.gangs.gang_of(&pod).map(|(gang, _)| gang.clone()) {
                    self.written_status.rewrite_pods(&gang);
                    self.has_deferred_writes = true;
                }
            }
            Outcome::PodCreateFailed { gang, pod, why } => {
                self.handle_create_failed(&gang, &pod, why);
            }
            // A later pod of the same name is another pod.
            Outcome::DeleteFailed { gang, pod, uid } => {
                let record = self.gangs.get_mut(&gang).filter(|_| self.cache.is_pod(&pod, &uid));
                if let Some(record) = record {
                    record.deleting_pods.remove(&pod);
                    self.dirty.gangs.insert(gang);
                }
            }
            Outcome::BindFailed { gang, pod, uid, why } => {
                self.handle_api_refusal(&gang, why);
                let record = self.gangs.get_mut(&gang).filter(|_| self.cache.is_pod(&pod, &uid));
                if let Some(record) = record {
                    record.assigned_nodes.remove(&pod);
                    self.dirty.gangs.insert(gang);
                }
            }
            Outcome::ClaimRefFailed { gang, claim } => self.claim_ref_failed(gang, &claim),
            Outcome::JobPatchFailed(gang) => {
                if let Some(record) = self.gangs.get_mut(&gang) {
                    record.requested_suspend = None;
                    self.dirty.gangs.insert(gang);
                }
            }
            Outcome::OrderWritten(order) => {
                // Its victims may be stopped now.
                self.world_changed |= self.orders_not_written.remove(&order);
            }
            Outcome::OrderNotWritten { order, claims, why } => {
                self.handle_order_not_written(order, &claims, &why);
            }
            Outcome::ClaimRefused(claim, why) => {
                tracing::warn!(claim = claim.0, why, "a claim was refused");
                // The offering is backed off for a while: what is refused now cannot be had now.
                self.close_claim(claim, false);
            }
            Outcome::ClaimGone(claim) => self.close_claim(claim, true),
            Outcome::NodeMarkFailed(node) => self.retry_node_annotations(node),
            Outcome::RequestConditionNotWritten(gang) => self.write_request_conditions(&gang),
        }
    }
}
