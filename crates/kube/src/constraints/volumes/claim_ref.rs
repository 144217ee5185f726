//! Writes and clears the claim ref of static PersistentVolumes, as kube-scheduler does: the claim ref names the claim,
//! and the PersistentVolume controller completes the binding. Until it has, the claim ref can be cleared again.
//!
//! Each write carries the resource version of the volume as read: another writer may bind it at the same time.

use std::sync::Arc;

use kube::api::{Api, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};

use crate::api::retry::{ApiError, Backoff};
use crate::api::writer::ApiWriter;
use crate::cache::kinds::KindRole;
use crate::cache::store::split_key;
use crate::constraints::volumes::claims::{annotation, text};
use crate::effects::outcome::{Outcome, RETRY_PAUSE};
use crate::host::Host;

/// On volumes that were bound by a controller and not by a user: then a controller may also unbind them.
const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";

/// The claim that a claim ref names.
struct ClaimReference {
    claim: String,
    uid: String,
    version: String,
}

impl ClaimReference {
    fn to_json(&self) -> Value {
        let (namespace, name) = split_key(&self.claim);
        json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "namespace": namespace, "name": name,
            "uid": self.uid, "resourceVersion": self.version,
        })
    }

    fn is_on(&self, volume: &DynamicObject) -> bool {
        text(&volume.data, "/spec/claimRef/uid") == Some(&self.uid)
    }
}

impl Host {
    /// Writes the claim ref of a volume for a claim of a gang.
    pub(crate) fn set_claim_ref(&self, gang: &Arc<str>, claim: String, volume: &Arc<str>) {
        let Some((volumes, seen, reference)) = self.claim_reference(claim.clone(), volume) else {
            return;
        };
        let (writer, outcomes) =
            (self.writer.for_namespace(split_key(&claim).0), self.outcomes.clone());
        let (gang, volume) = (gang.clone(), volume.clone());
        tokio::spawn(async move {
            match set_claim_ref(&writer, &volumes, seen, &reference).await {
                Ok(()) | Err(ApiError::NotLeader) => {}
                Err(said) => {
                    tracing::info!(claim, volume = &*volume, %said, "failed to write the claim ref");
                    // If another claim has it, the watch will show that; other failures must not be retried in a tight
                    // loop.
                    tokio::time::sleep(RETRY_PAUSE).await;
                    let _ = outcomes.send(Outcome::ClaimRefFailed { gang, claim });
                }
            }
        });
    }

    /// Clears the claim ref of a volume, unless the claim is bound to it by now or a user wrote it.
    pub(crate) fn release_claim_ref(&self, claim: String, volume: &Arc<str>) {
        let Some((volumes, seen, reference)) = self.claim_reference(claim, volume) else { return };
        let writer = self.writer.for_namespace(split_key(&reference.claim).0);
        tokio::spawn(async move {
            match clear_claim_ref(&writer, &volumes, seen, &reference).await {
                Ok(()) | Err(ApiError::NotFound | ApiError::NotLeader) => {}
                Err(said) => {
                    tracing::warn!(claim = reference.claim, %said, "failed to clear the claim ref");
                }
            }
        });
    }

    fn claim_reference(
        &self,
        claim: String,
        volume: &str,
    ) -> Option<(Api<DynamicObject>, DynamicObject, ClaimReference)> {
        let seen = self.object_named(KindRole::Volume, volume)?;
        let meta = &self.object_named(KindRole::VolumeClaim, &claim)?.metadata;
        let (uid, version) = (meta.uid.clone()?, meta.resource_version.clone().unwrap_or_default());
        Some((
            self.api(KindRole::Volume)?,
            (**seen).clone(),
            ClaimReference { claim, uid, version },
        ))
    }

    /// The claim ref of a volume could not be written: another volume is chosen.
    pub(crate) fn claim_ref_failed(&mut self, gang: Arc<str>, claim: &str) {
        if let Some(record) = self.gangs.get_mut(&gang) {
            if let Some(binding) = &mut record.volume_binding {
                binding.chosen.remove(claim);
            }
            self.dirty.gangs.insert(gang);
        }
    }
}

async fn set_claim_ref(
    writer: &ApiWriter,
    volumes: &Api<DynamicObject>,
    mut seen: DynamicObject,
    reference: &ClaimReference,
) -> Result<(), ApiError> {
    let patch = json!({
        "metadata": {"annotations": {BOUND_BY_CONTROLLER: "yes"}},
        "spec": {"claimRef": reference.to_json()},
    });
    let mut backoff = Backoff::new();
    loop {
        if reference.is_on(&seen) {
            return Ok(());
        }
        if seen.data.pointer("/spec/claimRef").is_some_and(|of| !of.is_null()) {
            return Err(ApiError::Conflict("another claim has it".to_owned()));
        }
        match write(writer, volumes, &seen, &patch).await {
            Err(ApiError::Conflict(_)) => {}
            written => return written,
        }
        tokio::time::sleep(backoff.next(None)).await;
        seen = get(writer, volumes, &seen).await?;
    }
}

async fn clear_claim_ref(
    writer: &ApiWriter,
    volumes: &Api<DynamicObject>,
    mut seen: DynamicObject,
    reference: &ClaimReference,
) -> Result<(), ApiError> {
    let patch = json!({
        "metadata": {"annotations": {BOUND_BY_CONTROLLER: null}},
        "spec": {"claimRef": null},
    });
    let mut backoff = Backoff::new();
    loop {
        // The controller sets the volume's phase to `Bound` before it binds the claim, so a volume in another phase is
        // not bound yet.
        let is_bound = text(&seen.data, "/status/phase") == Some("Bound");
        let is_by_user = annotation(&seen, BOUND_BY_CONTROLLER).is_none();
        if !reference.is_on(&seen) || is_bound || is_by_user {
            return Ok(());
        }
        match write(writer, volumes, &seen, &patch).await {
            Err(ApiError::Conflict(_)) => {}
            written => return written,
        }
        tokio::time::sleep(backoff.next(None)).await;
        seen = get(writer, volumes, &seen).await?;
    }
}

/// Patches a volume at the resource version that was read.
async fn write(
    writer: &ApiWriter,
    volumes: &Api<DynamicObject>,
    seen: &DynamicObject,
    patch: &Value,
) -> Result<(), ApiError> {
    let mut patch = patch.clone();
    patch["metadata"]["resourceVersion"] = json!(seen.metadata.resource_version);
    let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
    let name = seen.metadata.name.as_deref().unwrap_or_default();
    writer.request(|| volumes.patch(name, &params, &patch)).await.map(drop)
}

async fn get(
    writer: &ApiWriter,
    volumes: &Api<DynamicObject>,
    seen: &DynamicObject,
) -> Result<DynamicObject, ApiError> {
    let name = seen.metadata.name.as_deref().unwrap_or_default();
    writer.request(|| volumes.get(name)).await
}
