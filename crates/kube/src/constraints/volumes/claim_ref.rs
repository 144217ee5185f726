//! Volumes that are there are kept for claims, as kube-scheduler does it: the claim is written on the volume, and the
//! controller of volumes does the rest. And let go again, as long as it has not.
//!
//! Each write names the version of the volume that was looked at: somebody else may give it away at the same time.

use std::sync::Arc;

use kube::api::{Api, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};

use crate::api::retry::{Backoff, Said};
use crate::api::writer::ApiWriter;
use crate::cache::kinds::KindRole;
use crate::constraints::volumes::claims::{annotation, text};
use crate::effects::outcome::Outcome;
use crate::host::Host;
use crate::provision::order_object::parts;
use crate::schedule::placement::AGAIN;

/// On volumes that nobody has bound to their claim by hand: who binds them may also undo it.
const BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";

/// A claim that a volume is kept for.
struct ClaimRefWriter {
    claim: String,
    uid: String,
    version: String,
}

impl ClaimRefWriter {
    fn reference(&self) -> Value {
        let (namespace, name) = parts(&self.claim);
        json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "namespace": namespace, "name": name,
            "uid": self.uid, "resourceVersion": self.version,
        })
    }

    fn has(&self, volume: &DynamicObject) -> bool {
        text(&volume.data, "/spec/claimRef/uid") == Some(&self.uid)
    }
}

impl Host {
    /// Has a volume kept for a claim of a gang.
    pub(crate) fn keep(&self, gang: &Arc<str>, claim: String, volume: &Arc<str>) {
        let Some((volumes, seen, keeper)) = self.keeper(claim.clone(), volume) else { return };
        let (hands, told) = (self.writer.within(parts(&claim).0), self.outcomes.clone());
        let (gang, volume) = (gang.clone(), volume.clone());
        tokio::spawn(async move {
            match keep(&hands, &volumes, seen, &keeper).await {
                Ok(()) | Err(Said::NotLeader) => {}
                Err(said) => {
                    tracing::info!(claim, volume = &*volume, %said, "not kept for it");
                    // Who has it will be seen; what will not be seen must not be tried in a loop.
                    tokio::time::sleep(AGAIN).await;
                    let _ = told.send(Outcome::ClaimRefFailed { gang, claim });
                }
            }
        });
    }

    /// Lets a volume go that is kept for a claim, unless the claim has it by now or somebody bound it by hand.
    pub(crate) fn release_claim_ref(&self, claim: String, volume: &Arc<str>) {
        let Some((volumes, seen, keeper)) = self.keeper(claim, volume) else { return };
        let hands = self.writer.within(parts(&keeper.claim).0);
        tokio::spawn(async move {
            match remove_gate(&hands, &volumes, seen, &keeper).await {
                Ok(()) | Err(Said::Gone | Said::NotLeader) => {}
                Err(said) => {
                    tracing::warn!(claim = keeper.claim, %said, "its volume is not let go");
                }
            }
        });
    }

    fn keeper(
        &self,
        claim: String,
        volume: &str,
    ) -> Option<(Api<DynamicObject>, DynamicObject, ClaimRefWriter)> {
        let seen = self.object_named(KindRole::Volume, volume)?;
        let meta = &self.object_named(KindRole::VolumeClaim, &claim)?.metadata;
        let (uid, version) = (meta.uid.clone()?, meta.resource_version.clone().unwrap_or_default());
        Some((
            self.api(KindRole::Volume)?,
            (**seen).clone(),
            ClaimRefWriter { claim, uid, version },
        ))
    }

    /// A volume could not be kept for a claim: another is looked for.
    pub(crate) fn was_not_kept(&mut self, gang: Arc<str>, claim: &str) {
        if let Some(group) = self.gangs.get_mut(&gang) {
            if let Some(choosing) = &mut group.volume_binding {
                choosing.chosen.remove(claim);
            }
            self.dirty.gangs.insert(gang);
        }
    }
}

async fn keep(
    hands: &ApiWriter,
    volumes: &Api<DynamicObject>,
    mut seen: DynamicObject,
    keeper: &ClaimRefWriter,
) -> Result<(), Said> {
    let patch = json!({
        "metadata": {"annotations": {BY_CONTROLLER: "yes"}},
        "spec": {"claimRef": keeper.reference()},
    });
    let mut pauses = Backoff::new();
    loop {
        if keeper.has(&seen) {
            return Ok(());
        }
        if seen.data.pointer("/spec/claimRef").is_some_and(|of| !of.is_null()) {
            return Err(Said::Conflict("another claim has it".to_owned()));
        }
        match write(hands, volumes, &seen, &patch).await {
            Err(Said::Conflict(_)) => {}
            written => return written,
        }
        tokio::time::sleep(pauses.next(None)).await;
        seen = look(hands, volumes, &seen).await?;
    }
}

async fn remove_gate(
    hands: &ApiWriter,
    volumes: &Api<DynamicObject>,
    mut seen: DynamicObject,
    keeper: &ClaimRefWriter,
) -> Result<(), Said> {
    let patch = json!({
        "metadata": {"annotations": {BY_CONTROLLER: null}},
        "spec": {"claimRef": null},
    });
    let mut pauses = Backoff::new();
    loop {
        // The controller calls a volume bound before its claim, so that what is not called so is nobody's yet.
        let is_bound = text(&seen.data, "/status/phase") == Some("Bound");
        let is_by_hand = annotation(&seen, BY_CONTROLLER).is_none();
        if !keeper.has(&seen) || is_bound || is_by_hand {
            return Ok(());
        }
        match write(hands, volumes, &seen, &patch).await {
            Err(Said::Conflict(_)) => {}
            written => return written,
        }
        tokio::time::sleep(pauses.next(None)).await;
        seen = look(hands, volumes, &seen).await?;
    }
}

/// Merges something into a volume as it was seen.
async fn write(
    hands: &ApiWriter,
    volumes: &Api<DynamicObject>,
    seen: &DynamicObject,
    patch: &Value,
) -> Result<(), Said> {
    let mut patch = patch.clone();
    patch["metadata"]["resourceVersion"] = json!(seen.metadata.resource_version);
    let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
    let name = seen.metadata.name.as_deref().unwrap_or_default();
    hands.ask(|| volumes.patch(name, &params, &patch)).await.map(drop)
}

async fn look(
    hands: &ApiWriter,
    volumes: &Api<DynamicObject>,
    seen: &DynamicObject,
) -> Result<DynamicObject, Said> {
    let name = seen.metadata.name.as_deref().unwrap_or_default();
    hands.ask(|| volumes.get(name)).await
}
