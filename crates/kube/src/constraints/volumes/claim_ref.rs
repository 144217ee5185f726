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
use crate::effects::outcome::{Outcome, RETRY_PAUSE};
use crate::host::Host;
use crate::provision::order_object::parts;

/// On volumes that nobody has bound to their claim by hand: who binds them may also undo it.
const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";

/// A claim that a volume is kept for.
struct ClaimReference {
    claim: String,
    uid: String,
    version: String,
}

impl ClaimReference {
    fn to_json(&self) -> Value {
        let (namespace, name) = parts(&self.claim);
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
    /// Has a volume kept for a claim of a gang.
    pub(crate) fn set_claim_ref(&self, gang: &Arc<str>, claim: String, volume: &Arc<str>) {
        let Some((volumes, seen, reference)) = self.claim_reference(claim.clone(), volume) else {
            return;
        };
        let (writer, outcomes) = (self.writer.within(parts(&claim).0), self.outcomes.clone());
        let (gang, volume) = (gang.clone(), volume.clone());
        tokio::spawn(async move {
            match set_claim_ref(&writer, &volumes, seen, &reference).await {
                Ok(()) | Err(Said::NotLeader) => {}
                Err(said) => {
                    tracing::info!(claim, volume = &*volume, %said, "not kept for it");
                    // Who has it will be seen; what will not be seen must not be tried in a loop.
                    tokio::time::sleep(RETRY_PAUSE).await;
                    let _ = outcomes.send(Outcome::ClaimRefFailed { gang, claim });
                }
            }
        });
    }

    /// Lets a volume go that is kept for a claim, unless the claim has it by now or somebody bound it by hand.
    pub(crate) fn release_claim_ref(&self, claim: String, volume: &Arc<str>) {
        let Some((volumes, seen, reference)) = self.claim_reference(claim, volume) else { return };
        let writer = self.writer.within(parts(&reference.claim).0);
        tokio::spawn(async move {
            match clear_claim_ref(&writer, &volumes, seen, &reference).await {
                Ok(()) | Err(Said::Gone | Said::NotLeader) => {}
                Err(said) => {
                    tracing::warn!(claim = reference.claim, %said, "its volume is not let go");
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

    /// A volume could not be kept for a claim: another is looked for.
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
) -> Result<(), Said> {
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
            return Err(Said::Conflict("another claim has it".to_owned()));
        }
        match write(writer, volumes, &seen, &patch).await {
            Err(Said::Conflict(_)) => {}
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
) -> Result<(), Said> {
    let patch = json!({
        "metadata": {"annotations": {BOUND_BY_CONTROLLER: null}},
        "spec": {"claimRef": null},
    });
    let mut backoff = Backoff::new();
    loop {
        // The controller calls a volume bound before its claim, so that what is not called so is nobody's yet.
        let is_bound = text(&seen.data, "/status/phase") == Some("Bound");
        let is_static = annotation(&seen, BOUND_BY_CONTROLLER).is_none();
        if !reference.is_on(&seen) || is_bound || is_static {
            return Ok(());
        }
        match write(writer, volumes, &seen, &patch).await {
            Err(Said::Conflict(_)) => {}
            written => return written,
        }
        tokio::time::sleep(backoff.next(None)).await;
        seen = get(writer, volumes, &seen).await?;
    }
}

/// Merges something into a volume as it was seen.
async fn write(
    writer: &ApiWriter,
    volumes: &Api<DynamicObject>,
    seen: &DynamicObject,
    patch: &Value,
) -> Result<(), Said> {
    let mut patch = patch.clone();
    patch["metadata"]["resourceVersion"] = json!(seen.metadata.resource_version);
    let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
    let name = seen.metadata.name.as_deref().unwrap_or_default();
    writer.ask(|| volumes.patch(name, &params, &patch)).await.map(drop)
}

async fn get(
    writer: &ApiWriter,
    volumes: &Api<DynamicObject>,
    seen: &DynamicObject,
) -> Result<DynamicObject, Said> {
    let name = seen.metadata.name.as_deref().unwrap_or_default();
    writer.ask(|| volumes.get(name)).await
}
