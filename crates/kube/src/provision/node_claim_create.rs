//! Creates and deletes NodeClaims (the launch stage of a claim: `Requested`).
//!
//! Rule: the create is retried as long as the API server does not answer definitely, for example while a webhook is missing.
//! A definite refusal fails the claim. If the claim is released while the create is still retried, the NodeClaim must not be
//! created after the API server recovers, and must not be deleted before it is created: a release first cancels the create,
//! waits for the attempt in flight, and then deletes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kube::api::{Api, DynamicObject, PostParams};
use kube::core::Status;
use muster_core::id::ClaimId;
use rustc_hash::FxHashMap;
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::sync::mpsc::UnboundedSender;

use crate::api::retry::ApiError;
use crate::api::writer::ApiWriter;
use crate::cache::watched_objects::NODE_CLAIMS;
use crate::effects::outcome::Outcome;
use crate::objects::node_claim::NodeClaim;
use crate::provision::karpenter::node_claim_name;

/// The create of one NodeClaim, in progress or finished.
#[derive(Debug, Default)]
pub(crate) struct PendingClaim {
    is_cancelled: AtomicBool,
    /// Held while the NodeClaim is created or deleted.
    write_lock: Mutex<()>,
}

/// All NodeClaims that this process has requested, by claim.
#[derive(Debug, Default)]
pub(crate) struct PendingClaims(FxHashMap<ClaimId, Arc<PendingClaim>>);

impl PendingClaims {
    /// The state of a claim that is about to be requested.
    pub(crate) fn get_or_insert(&mut self, id: ClaimId) -> Arc<PendingClaim> {
        self.0.entry(id).or_default().clone()
    }

    /// Whether this process has requested a claim as a NodeClaim.
    pub(crate) fn contains(&self, id: ClaimId) -> bool {
        self.0.contains_key(&id)
    }

    /// Cancels the create of a claim: no attempt starts after this.
    pub(crate) fn cancel(&mut self, id: ClaimId) -> Arc<PendingClaim> {
        let pending = self.0.remove(&id).unwrap_or_default();
        pending.is_cancelled.store(true, Ordering::Relaxed);
        pending
    }

    /// Forgets all claims except these.
    pub(crate) fn retain(&mut self, is_known: impl Fn(&ClaimId) -> bool) {
        self.0.retain(|id, _| is_known(id));
    }
}

/// A NodeClaim to create.
#[derive(Debug)]
pub(crate) struct NodeClaimRequest {
    pub(crate) id: ClaimId,
    pub(crate) object: Value,
    pub(crate) pending: Arc<PendingClaim>,
}

impl NodeClaimRequest {
    /// Creates the NodeClaim, unless it is cancelled before. One that exists was created by an earlier attempt.
    pub(crate) async fn create(self, writer: &ApiWriter, outcomes: &UnboundedSender<Outcome>) {
        let Self { id, object, pending } = self;
        let writer = writer.for_purchases();
        let claims: Api<DynamicObject> =
            Api::all_with(writer.client.clone(), &NODE_CLAIMS.resource());
        let object: DynamicObject = serde_json::from_value(object).expect("an object");
        let _write = pending.write_lock.lock().await;
        let params = PostParams::default();
        // Checked before each attempt, and never during one: the result of an attempt must be known.
        let created = writer
            .retry_conflicts(|| async {
                match pending.is_cancelled.load(Ordering::Relaxed) {
                    true => Err(cancelled_error()),
                    false => claims.create(&params, &object).await,
                }
            })
            .await;
        match created {
            Ok(_) | Err(ApiError::AlreadyExists) => {}
            Err(_) if pending.is_cancelled.load(Ordering::Relaxed) => {
                tracing::debug!(claim = id.0, "cancelled before it was created");
            }
            Err(error) => drop(outcomes.send(Outcome::ClaimRefused(id, error.to_string()))),
        }
    }
}

/// Deletes the NodeClaim of a cancelled claim, after any attempt to create it has ended.
pub(crate) async fn delete_node_claim(
    writer: &ApiWriter,
    outcomes: &UnboundedSender<Outcome>,
    id: ClaimId,
    pending: &PendingClaim,
) {
    let _write = pending.write_lock.lock().await;
    let writer = writer.for_purchases();
    let claims: Api<NodeClaim> = Api::all(writer.client.clone());
    if let Ok(false) = writer.delete_until_gone(&claims, &node_claim_name(id)).await {
        let _ = outcomes.send(Outcome::ClaimGone(id));
    }
}

/// Ends the attempts: an error that is not retried.
fn cancelled_error() -> kube::Error {
    kube::Error::Api(Box::new(Status::failure("cancelled", "Gone").with_code(410)))
}

#[cfg(test)]
mod tests {
    use crate::provision::node_claim_create::*;

    #[test]
    fn cancelled_claim_is_cancelled_for_the_create_in_progress() {
        let mut pending = PendingClaims::default();
        let requested = pending.get_or_insert(ClaimId(1));
        let is_cancelled = || requested.is_cancelled.load(Ordering::Relaxed);
        assert!(pending.contains(ClaimId(1)) && !is_cancelled());
        let cancelled = pending.cancel(ClaimId(1));
        assert!(Arc::ptr_eq(&requested, &cancelled) && is_cancelled());
        assert!(!pending.contains(ClaimId(1)));
        pending.get_or_insert(ClaimId(2));
        pending.retain(|id| *id == ClaimId(1));
        assert!(!pending.contains(ClaimId(2)));
    }
}
