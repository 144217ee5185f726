//! The Gang object of a gang: what users see of it, and the metadata that Muster keeps for it.
//!
//! A gang that a user wrote as a Gang has its object already. For every other gang Muster creates one, owned by the object
//! that the gang was built from; a single pod needs none. The status of the object has the placement, which
//! `schedule::placement` writes.

use std::sync::Arc;

use kube::ResourceExt;
use kube::api::{Api, DeleteParams, DynamicObject, Preconditions};
use muster_api::dialects::{State, StatusPatch};
use muster_core::gang::GangSpec;
use muster_core::resource::{TOKEN, display_amount};
use serde_json::{Value, json};

use crate::api::retry::{ApiError, Backoff};
use crate::api::writer::ApiWriter;
use crate::cache::kinds::KindRole;
use crate::cache::store::split_key;
use crate::gang::identity::GangSource;
use crate::gang::merged_groups::{GROUPS, listed};
use crate::host::Host;
use crate::objects::pod::Pod;
use crate::provision::karpenter::{MANAGED_BY, MUSTER};

/// The annotation with the source of a gang, on objects that Muster creates.
pub(crate) const SOURCE: &str = "muster.sh/source";

/// The annotation that `kubectl apply` leaves on an object.
const APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

impl Host {
    /// Creates the Gang object of a gang that has none.
    pub(crate) fn create_gang_object(&mut self, name: &Arc<str>) {
        let (Some(objects), Some(object)) = (self.gang_api(name), self.generated_gang_object(name))
        else {
            return;
        };
        let (writer, gang) = (self.writer.for_namespace(split_key(name).0), name.clone());
        self.ordered_writes.write(name, async move {
            match writer.create(&objects, &object).await {
                Ok(_) | Err(ApiError::AlreadyExists | ApiError::NotLeader) => {}
                Err(error) => tracing::warn!(gang = &*gang, %error, "its object was not created"),
            }
        });
    }

    /// Removes the Gang object of a gang that no longer exists, if Muster created it.
    pub(crate) fn remove_object(&mut self, name: &Arc<str>) {
        let Some(objects) = self.gang_api(name) else { return };
        let (writer, gang) = (self.writer.for_namespace(split_key(name).0), name.clone());
        self.ordered_writes.write(name, async move {
            match delete_if_own(&writer, &objects, split_key(&gang).1).await {
                Ok(true) => tracing::debug!(gang = &*gang, "its object was removed"),
                Ok(false) => {
                    tracing::debug!(gang = &*gang, "its object was written by a user, and stays");
                }
                Err(ApiError::NotFound | ApiError::NotLeader) => {}
                Err(error) => tracing::warn!(gang = &*gang, %error, "its object was not removed"),
            }
        });
    }

    /// The API of Gang objects in a gang's namespace.
    pub(crate) fn gang_api(&self, name: &str) -> Option<Api<DynamicObject>> {
        let kind = self.sources.resource(KindRole::Gang)?;
        Some(Api::namespaced_with(self.writer.client.clone(), split_key(name).0, kind))
    }

    /// The Gang object that Muster creates for a gang; none where a user wrote one, or for a single pod.
    pub(crate) fn generated_gang_object(&self, name: &str) -> Option<DynamicObject> {
        let record = self.gangs.get(name)?;
        let spec = record.submitted_spec.as_ref()?;
        let has_user_object =
            matches!(record.source, GangSource::Gang { .. }) && self.source_exists(&record.source);
        if has_user_object
            || matches!(record.source, GangSource::Pod { .. })
            || self.is_deleted(record)
        {
            return None;
        }
        let mut object = json!({
            "apiVersion": "muster.sh/v1alpha1",
            "kind": "Gang",
            "metadata": {
                "name": split_key(name).1,
                "namespace": split_key(name).0,
                "labels": {MANAGED_BY: MUSTER},
                "annotations": {SOURCE: record.source.to_string()},
                "ownerReferences": self.owner_reference(&record.source).into_iter().collect::<Vec<_>>(),
            },
            "spec": manifest_spec(spec),
        });
        if let GangSource::Merged(groups) = &record.source {
            object["metadata"]["annotations"][GROUPS] = json!(listed(groups));
        }
        serde_json::from_value(object).ok()
    }

    /// The final status of foreign group objects, when their gang has ended: some of its pods are over, and none runs.
    pub(crate) fn final_group_patches(
        &self,
        name: &Arc<str>,
    ) -> Vec<(Api<DynamicObject>, String, StatusPatch)> {
        let record = self.gangs.get(name).filter(|record| record.submitted_spec.is_none());
        let pods: Vec<&Arc<Pod>> = record
            .into_iter()
            .flat_map(|record| record.pods.iter().filter_map(|key| self.cache.pods.get(key)))
            .collect();
        if !pods.iter().all(|pod| pod.is_finished()) {
            return Vec::new();
        }
        self.group_patches(name, |of| {
            let mine = pods.iter().filter(|pod| self.names_group(pod, of));
            let count =
                |phase: &str| mine.clone().filter(|pod| pod.status.phase == phase).count() as u32;
            let (succeeded, failed) = (count("Succeeded"), count("Failed"));
            (succeeded + failed > 0).then_some(State::Finished { succeeded, failed })
        })
    }
}

/// The write key for foreign group objects. A refusal to write those must not hold up the placement of the gang, which is on
/// its own object.
pub(crate) fn group_write_key(name: &str) -> Arc<str> {
    format!("group of {name}").into()
}

/// Writes the status of a foreign group object.
pub(crate) async fn write_group_status(
    writer: &ApiWriter,
    objects: &Api<DynamicObject>,
    object: &str,
    patch: &StatusPatch,
) -> Result<(), ApiError> {
    let written = match patch.subresource {
        true => writer.patch_status(objects, object, &patch.patch).await,
        false => writer.patch(objects, object, &patch.patch).await,
    };
    written.map(drop)
}

/// The spec of a gang in the words of its manifest, for users.
fn manifest_spec(spec: &GangSpec) -> Value {
    let roles: Vec<Value> = spec
        .roles
        .iter()
        .map(|role| {
            let amounts = role.request.amounts.iter();
            let amounts = amounts.filter(|(name, _)| !name.starts_with(TOKEN));
            let mut resources: serde_json::Map<String, Value> = amounts
                .map(|(name, amount)| {
                    (name.to_string(), json!(display_amount(name, *amount).to_string()))
                })
                .collect();
            if let Some(gpu) = &role.request.gpu {
                let milli = u64::from(gpu.count) * u64::from(gpu.share);
                let text = if milli % 1_000 == 0 {
                    (milli / 1_000).to_string()
                } else {
                    format!("{milli}m")
                };
                resources.insert(gpu.resource.to_string(), json!(text));
            }
            let mut manifest = json!({"name": role.name, "min": role.min, "resources": resources});
            if role.max != role.min {
                manifest["max"] = json!(role.max);
            }
            manifest
        })
        .collect();
    json!({"queue": spec.queue, "priority": spec.priority, "roles": roles})
}

/// Writes the status of a Gang object, and creates the object if it does not exist.
pub(crate) async fn write_or_create(
    writer: &ApiWriter,
    objects: &Api<DynamicObject>,
    name: &str,
    object: Option<DynamicObject>,
    status: Value,
) -> Result<(), ApiError> {
    let (_, name) = split_key(name);
    let patched = writer.patch_status(objects, name, &status).await;
    match (patched, object) {
        (Ok(_), _) => Ok(()),
        (Err(ApiError::NotFound), Some(object)) => {
            match writer.create(objects, &object).await {
                Ok(_) | Err(ApiError::AlreadyExists) => {}
                Err(error) => return Err(error),
            }
            writer.patch_status(objects, name, &status).await.map(drop)
        }
        (Err(error), _) => Err(error),
    }
}

/// Deletes an object that Muster created, and none that a user wrote or applied to since. Returns whether it was deleted.
async fn delete_if_own(
    writer: &ApiWriter,
    objects: &Api<DynamicObject>,
    name: &str,
) -> Result<bool, ApiError> {
    let mut pauses = Backoff::new();
    loop {
        let seen = writer.request(|| objects.get(name)).await?;
        if !is_own(&seen) {
            return Ok(false);
        }
        let how = DeleteParams {
            preconditions: Some(Preconditions {
                uid: seen.metadata.uid,
                resource_version: seen.metadata.resource_version,
            }),
            ..DeleteParams::default()
        };
        match writer.delete(objects, name, &how).await {
            // It was written at the same time: read it again.
            Err(ApiError::Conflict(_)) => tokio::time::sleep(pauses.next(None)).await,
            removed => return removed.map(|()| true),
        }
    }
}

/// Whether Muster created an object and no user has applied to it.
fn is_own(object: &DynamicObject) -> bool {
    let is_marked = object.labels().get(MANAGED_BY).is_some_and(|by| by == MUSTER);
    let fields = object.metadata.managed_fields.iter().flatten();
    let is_applied = object.annotations().contains_key(APPLIED)
        || fields.into_iter().any(|field| field.operation.as_deref() == Some("Apply"));
    is_marked && !is_applied
}
