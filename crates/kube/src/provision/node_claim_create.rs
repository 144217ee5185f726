//! Machines that are being asked for, and may not be wanted by the time the server answers.
//!
//! A NodeClaim that the server refuses to take for a while, its webhook being away, is asked for again and again. If it is
//! given up meanwhile it must not be made after all when the server recovers, and must not be removed before it is made:
//! who gives it up says so first, waits for what is under way, and removes it then.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kube::api::{Api, DynamicObject, PostParams};
use kube::core::Status;
use muster_core::id::ClaimId;
use rustc_hash::FxHashMap;
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::sync::mpsc::UnboundedSender;

use crate::api::retry::Said;
use crate::api::writer::ApiWriter;
use crate::cache::watched_objects::CLAIMS;
use crate::effects::outcome::Outcome;
use crate::objects::node_claim::NodeClaim;
use crate::provision::karpenter::claim_name;

/// One NodeClaim that is asked for, or was.
#[derive(Debug, Default)]
pub(crate) struct PendingClaim {
    /// It is not wanted any more.
    off: AtomicBool,
    /// Held by whoever makes or removes it.
    busy: Mutex<()>,
}

/// All of them, by claim.
#[derive(Debug, Default)]
pub(crate) struct PendingClaims(FxHashMap<ClaimId, Arc<PendingClaim>>);

impl PendingClaims {
    /// The errand of a claim that is to be asked for.
    pub(crate) fn of(&mut self, id: ClaimId) -> Arc<PendingClaim> {
        self.0.entry(id).or_default().clone()
    }

    /// Whether a claim was asked for as a NodeClaim, by this process.
    pub(crate) fn knows(&self, id: ClaimId) -> bool {
        self.0.contains_key(&id)
    }

    /// A claim is not wanted any more, from now on.
    pub(crate) fn call_off(&mut self, id: ClaimId) -> Arc<PendingClaim> {
        let errand = self.0.remove(&id).unwrap_or_default();
        errand.off.store(true, Ordering::Relaxed);
        errand
    }

    /// Forgets all but these.
    pub(crate) fn keep(&mut self, is_known: impl Fn(&ClaimId) -> bool) {
        self.0.retain(|id, _| is_known(id));
    }
}

/// A machine that is to be asked for as a NodeClaim.
#[derive(Debug)]
pub(crate) struct Asking {
    pub(crate) id: ClaimId,
    pub(crate) object: Value,
    pub(crate) errand: Arc<PendingClaim>,
}

impl Asking {
    /// Makes the NodeClaim, unless it is called off before. One that is there already was asked for before.
    pub(crate) async fn ask(self, hands: &ApiWriter, told: &UnboundedSender<Outcome>) {
        let Self { id, object, errand } = self;
        let hands = hands.buying();
        let claims: Api<DynamicObject> = Api::all_with(hands.client.clone(), &CLAIMS.resource());
        let object: DynamicObject = serde_json::from_value(object).expect("an object");
        let _busy = errand.busy.lock().await;
        let params = PostParams::default();
        // Looked at before each try, and never while one is under way: what becomes of that must be known.
        let made = hands
            .settle(|| async {
                match errand.off.load(Ordering::Relaxed) {
                    true => Err(called_off()),
                    false => claims.create(&params, &object).await,
                }
            })
            .await;
        match made {
            Ok(_) | Err(Said::Exists) => {}
            Err(_) if errand.off.load(Ordering::Relaxed) => {
                tracing::debug!(claim = id.0, "called off before it was made");
            }
            Err(said) => drop(told.send(Outcome::ClaimRefused(id, said.to_string()))),
        }
    }
}

/// Removes the NodeClaim of a claim that was called off, when nobody is about to make it any more.
pub(crate) async fn remove(
    hands: &ApiWriter,
    told: &UnboundedSender<Outcome>,
    id: ClaimId,
    errand: &PendingClaim,
) {
    let _busy = errand.busy.lock().await;
    let hands = hands.buying();
    let claims: Api<NodeClaim> = Api::all(hands.client.clone());
    if let Ok(false) = hands.remove(&claims, &claim_name(id)).await {
        let _ = told.send(Outcome::ClaimGone(id));
    }
}

/// What ends the tries: an answer that no server has to give.
fn called_off() -> kube::Error {
    kube::Error::Api(Box::new(Status::failure("called off", "Gone").with_code(410)))
}

#[cfg(test)]
mod tests {
    use crate::provision::node_claim_create::*;

    #[test]
    fn who_is_called_off_is_so_for_those_who_are_about_to_ask() {
        let mut errands = PendingClaims::default();
        let asked = errands.of(ClaimId(1));
        assert!(errands.knows(ClaimId(1)) && !asked.off.load(Ordering::Relaxed));
        let given_up = errands.call_off(ClaimId(1));
        assert!(Arc::ptr_eq(&asked, &given_up) && asked.off.load(Ordering::Relaxed));
        assert!(!errands.knows(ClaimId(1)));
        errands.of(ClaimId(2));
        errands.keep(|id| *id == ClaimId(1));
        assert!(!errands.knows(ClaimId(2)));
    }
}
