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

use crate::api::retry::{Backoff, Said};
use crate::api::writer::ApiWriter;
use crate::cache::kinds::KindRole;
use crate::gang::identity::GangSource;
use crate::gang::merged_groups::{GROUPS, listed};
use crate::host::Host;
use crate::objects::pod::Pod;
use crate::provision::karpenter::{MANAGED_BY, MUSTER};
use crate::provision::order_object::parts;

/// What a gang that Muster wrote down was made of.
pub(crate) const SOURCE: &str = "muster.sh/source";

/// What `kubectl apply` leaves on an object.
const APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

impl Host {
    /// Makes the object of a gang that has none.
    pub(crate) fn create_gang_object(&mut self, name: &Arc<str>) {
        let (Some(objects), Some(object)) = (self.gang_api(name), self.gang_object(name)) else {
            return;
        };
        let (writer, gang) = (self.writer.within(parts(name).0), name.clone());
        self.ordered_writes.write(name, async move {
            match writer.create(&objects, &object).await {
                Ok(_) | Err(Said::Exists | Said::NotLeader) => {}
                Err(said) => tracing::warn!(gang = &*gang, %said, "its object was not made"),
            }
        });
    }

    /// Removes the object of a gang that is no more, if it is Muster's.
    pub(crate) fn remove_object(&mut self, name: &Arc<str>) {
        let Some(objects) = self.gang_api(name) else { return };
        let (writer, gang) = (self.writer.within(parts(name).0), name.clone());
        self.ordered_writes.write(name, async move {
            match delete_if_own(&writer, &objects, parts(&gang).1).await {
                Ok(true) => tracing::debug!(gang = &*gang, "its object was removed"),
                Ok(false) => tracing::debug!(gang = &*gang, "its object is somebody's, and stays"),
                Err(Said::Gone | Said::NotLeader) => {}
                Err(said) => tracing::warn!(gang = &*gang, %said, "its object was not removed"),
            }
        });
    }

    pub(crate) fn gang_api(&self, name: &str) -> Option<Api<DynamicObject>> {
        let kind = self.sources.resource(KindRole::Gang)?;
        Some(Api::namespaced_with(self.writer.client.clone(), parts(name).0, kind))
    }

    /// The object that Muster makes for a gang, if it is Muster's to make.
    pub(crate) fn gang_object(&self, name: &str) -> Option<DynamicObject> {
        let record = self.gangs.get(name)?;
        let spec = record.submitted_spec.as_ref()?;
        let is_written =
            matches!(record.source, GangSource::Gang { .. }) && self.source_exists(&record.source);
        if is_written || matches!(record.source, GangSource::Pod { .. }) || self.is_deleted(record)
        {
            return None;
        }
        let mut object = json!({
            "apiVersion": "muster.sh/v1alpha1",
            "kind": "Gang",
            "metadata": {
                "name": parts(name).1,
                "namespace": parts(name).0,
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

    /// What the objects of another dialect are told when their gang has come to its end: some of its pods have, and nobody
    /// is left.
    pub(crate) fn final_group_patches(
        &self,
        name: &Arc<str>,
    ) -> Vec<(Api<DynamicObject>, String, StatusPatch)> {
        let record = self.gangs.get(name).filter(|record| record.submitted_spec.is_none());
        let pods: Vec<&Arc<Pod>> = record
            .into_iter()
            .flat_map(|record| record.pods.iter().filter_map(|key| self.cache.pods.get(key)))
            .collect();
        if !pods.iter().all(|pod| pod.is_over()) {
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

/// The lane of what is told to the objects of other dialects. Whoever keeps those from being written keeps nothing else from
/// it: where a gang goes, and that it goes nowhere any more, is on its own object.
pub(crate) fn group_write_key(name: &str) -> Arc<str> {
    format!("group of {name}").into()
}

/// Tells the object of another dialect how its gang is.
pub(crate) async fn write_group_status(
    writer: &ApiWriter,
    objects: &Api<DynamicObject>,
    object: &str,
    patch: &StatusPatch,
) -> Result<(), Said> {
    let told = match patch.subresource {
        true => writer.patch_status(objects, object, &patch.patch).await,
        false => writer.patch(objects, object, &patch.patch).await,
    };
    told.map(drop)
}

/// A gang as its manifest would say it: what a person looks for.
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
            let mut said = json!({"name": role.name, "min": role.min, "resources": resources});
            if role.max != role.min {
                said["max"] = json!(role.max);
            }
            said
        })
        .collect();
    json!({"queue": spec.queue, "priority": spec.priority, "roles": roles})
}

/// Writes a gang's status, and the gang itself if it is not there.
pub(crate) async fn write_or_create(
    writer: &ApiWriter,
    objects: &Api<DynamicObject>,
    name: &str,
    object: Option<DynamicObject>,
    status: Value,
) -> Result<(), Said> {
    let (_, name) = parts(name);
    let patched = writer.patch_status(objects, name, &status).await;
    match (patched, object) {
        (Ok(_), _) => Ok(()),
        (Err(Said::Gone), Some(object)) => {
            match writer.create(objects, &object).await {
                Ok(_) | Err(Said::Exists) => {}
                Err(said) => return Err(said),
            }
            writer.patch_status(objects, name, &status).await.map(drop)
        }
        (Err(said), _) => Err(said),
    }
}

/// Removes an object that Muster made, and none that somebody else has written or has applied to since: whatever it says
/// then is theirs. Whether it was removed.
async fn delete_if_own(
    writer: &ApiWriter,
    objects: &Api<DynamicObject>,
    name: &str,
) -> Result<bool, Said> {
    let mut pauses = Backoff::new();
    loop {
        let seen = writer.ask(|| objects.get(name)).await?;
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
            // Somebody has written to it at the same time: look what.
            Err(Said::Conflict(_)) => tokio::time::sleep(pauses.next(None)).await,
            removed => return removed.map(|()| true),
        }
    }
}

/// Whether an object is Muster's, and nobody else has said what it should be.
fn is_own(object: &DynamicObject) -> bool {
    let is_marked = object.labels().get(MANAGED_BY).is_some_and(|by| by == MUSTER);
    let fields = object.metadata.managed_fields.iter().flatten();
    let is_applied = object.annotations().contains_key(APPLIED)
        || fields.into_iter().any(|field| field.operation.as_deref() == Some("Apply"));
    is_marked && !is_applied
}
