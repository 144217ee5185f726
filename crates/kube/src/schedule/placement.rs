//! Gangs as objects: what a person sees of each, and where its members go, written down before the first is bound.
//!
//! A gang that somebody wrote as a Gang has its object already. For every other one Muster makes it, owned by what the
//! gang was made of; a pod that stands for itself needs none.
//!
//! Where the members of a gang go is in its status, which tenants cannot write; nothing else is believed. A status cannot be
//! given to an object that is being created, so a gang that starts as soon as it is seen costs two writes: the object, then
//! its status. No member is bound before the second.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::ResourceExt;
use kube::api::{Api, DeleteParams, DynamicObject, Preconditions};
use muster_api::crd::{GangPhase, Placement};
use muster_api::dialects::{State, StatusPatch};
use muster_core::gang::{Gang, GangSpec, Phase};
use muster_core::id::GangId;
use muster_core::resource::{TOKEN, display_amount};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::api::retry::{Backoff, Said};
use crate::api::writer::ApiWriter;
use crate::cache::kinds::{GangSource, KindRole};
use crate::gang::api_refusal::refusal;
use crate::gang::merged_groups::{GROUPS, listed, names_of};
use crate::host::{Host, Told};
use crate::objects::pod::Pod;
use crate::provision::karpenter::{MANAGED_BY, MUSTER};
use crate::provision::order_object::parts;

/// What a gang that Muster wrote down was made of.
pub(crate) const SOURCE: &str = "muster.sh/source";

/// What `kubectl apply` leaves on an object.
const APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// How long until what was refused is tried again.
pub(crate) const AGAIN: Duration = Duration::from_secs(5);

impl Host {
    /// Writes down where a gang's members go, and has them bound then.
    pub(crate) fn record(&mut self, name: &Arc<str>, id: GangId) {
        let Some(gang) = self.world.gang(id) else { return };
        let placement = self.placement(gang);
        let phase = match gang.phase {
            Phase::Running { .. } => GangPhase::Running,
            _ => GangPhase::Admitted,
        };
        let groups = match self.gangs.get(name).map(|group| &group.origin) {
            Some(GangSource::Joined(groups)) => json!(names_of(groups)),
            _ => Value::Null,
        };
        let status = json!({"status": {
            "phase": phase,
            "nodes": nodes_of(&placement),
            "groups": groups,
            "placement": Placement::folded(placement.clone()),
        }});
        let Some(objects) = self.gang_objects(name) else { return };
        let object = self.gang_object(name);
        let is_new = self.gangs_without_object.remove(name);
        let made_first = object.clone().filter(|_| is_new);
        if let Some(group) = self.gangs.get_mut(name) {
            group.recording += 1;
            // It has so long from here, also if the server never answers.
            group.binding.get_or_insert_with(Instant::now);
        }
        let hands = self.writer.within(parts(name).0);
        let (told, gang) = (self.outcomes.clone(), name.clone());
        self.ordered_writes.write(name, async move {
            let made = match made_first {
                Some(object) => hands.create(&objects, &object).await.map(drop),
                None => Ok(()),
            };
            let recorded = match made {
                Ok(()) | Err(Said::Exists) => write(&hands, &objects, &gang, object, status).await,
                refused => refused,
            };
            match recorded {
                Ok(()) => drop(told.send(Told::Recorded(gang))),
                Err(said) => {
                    tracing::warn!(gang = &*gang, %said, "where it goes was not written");
                    tokio::time::sleep(AGAIN).await;
                    let why = refusal(&said);
                    let _ = told.send(Told::NotRecorded { gang, why });
                }
            }
        });
    }

    pub(crate) fn placement(&self, gang: &Gang) -> Vec<Placement> {
        let mut placement: Vec<Placement> = Vec::new();
        let mut places: BTreeMap<_, usize> = BTreeMap::new();
        for seat in &gang.seats {
            let Some(node) = self.world.node_name(seat.node) else { continue };
            let members = i32::from(seat.members);
            let at = *places.entry((seat.role, seat.node)).or_insert(placement.len());
            match placement.get_mut(at) {
                Some(one) => one.members += members,
                None => placement.push(Placement {
                    role: gang.spec.roles[usize::from(seat.role)].name.to_string(),
                    node: node.to_string(),
                    members,
                    ..Placement::default()
                }),
            }
        }
        placement
    }

    /// Makes the object of a gang that has none.
    pub(crate) fn ensure_object(&mut self, name: &Arc<str>) {
        let (Some(objects), Some(object)) = (self.gang_objects(name), self.gang_object(name))
        else {
            return;
        };
        let (hands, gang) = (self.writer.within(parts(name).0), name.clone());
        self.ordered_writes.write(name, async move {
            match hands.create(&objects, &object).await {
                Ok(_) | Err(Said::Exists | Said::NotLeader) => {}
                Err(said) => tracing::warn!(gang = &*gang, %said, "its object was not made"),
            }
        });
    }

    /// A gang holds nothing any more. Its object goes if Muster made it and nothing is left of the gang.
    pub(crate) fn clear_placement(&mut self, name: &Arc<str>) {
        let Some(group) = self.gangs.get(name) else { return };
        if matches!(group.origin, GangSource::Pod { .. }) {
            return;
        }
        // The object of a Gang that is gone is gone, or was Muster's.
        if group.pods.is_empty() && !self.is_there(&group.origin) {
            return self.remove_object(name);
        }
        let phase = match (group.spec.is_none(), self.has_failed(group)) {
            (false, _) => GangPhase::Waiting,
            (true, false) => GangPhase::Succeeded,
            (true, true) => GangPhase::Failed,
        };
        for (objects, object, patch) in self.over_in_their_words(name) {
            let (hands, gang) = (self.writer.within(parts(name).0), name.clone());
            self.ordered_writes.write(&group_lane(name), async move {
                let said = write_group_status(&hands, &objects, &object, &patch).await.err();
                if let Some(said) =
                    said.filter(|said| !matches!(said, Said::Gone | Said::NotLeader))
                {
                    tracing::warn!(gang = &*gang, %said, "its group was not told that it is over");
                }
            });
        }
        self.write_final_status(name, phase);
    }

    /// What the objects of another dialect are told when their gang has come to its end: some of its pods have, and nobody
    /// is left.
    pub(crate) fn over_in_their_words(
        &self,
        name: &Arc<str>,
    ) -> Vec<(Api<DynamicObject>, String, StatusPatch)> {
        let group = self.gangs.get(name).filter(|group| group.spec.is_none());
        let pods: Vec<&Arc<Pod>> = group
            .into_iter()
            .flat_map(|group| group.pods.iter().filter_map(|key| self.cache.pods.get(key)))
            .collect();
        if !pods.iter().all(|pod| pod.is_over()) {
            return Vec::new();
        }
        self.group_patches(name, |of| {
            let mine = pods.iter().filter(|pod| self.is_of(pod, of));
            let count =
                |phase: &str| mine.clone().filter(|pod| pod.status.phase == phase).count() as u32;
            let (succeeded, failed) = (count("Succeeded"), count("Failed"));
            (succeeded + failed > 0).then_some(State::Finished { succeeded, failed })
        })
    }

    /// Says that a gang holds nothing, and where it stands.
    pub(crate) fn write_final_status(&mut self, name: &Arc<str>, phase: GangPhase) {
        let Some(objects) = self.gang_objects(name) else { return };
        let (hands, gang) = (self.writer.within(parts(name).0), name.clone());
        self.ordered_writes.write(name, async move {
            let (_, object) = parts(&gang);
            let nothing = json!({"phase": phase, "placement": null, "nodes": null, "groups": null});
            let patch = json!({"status": nothing});
            let said = hands.patch_status(&objects, object, &patch).await.err();
            if let Some(said) = said.filter(|said| !matches!(said, Said::Gone | Said::NotLeader)) {
                tracing::warn!(gang = &*gang, %said, "not written off");
            }
        });
    }

    /// Removes the object of a gang that is no more, if it is Muster's.
    pub(crate) fn remove_object(&mut self, name: &Arc<str>) {
        let Some(objects) = self.gang_objects(name) else { return };
        let (hands, gang) = (self.writer.within(parts(name).0), name.clone());
        self.ordered_writes.write(name, async move {
            match remove_own(&hands, &objects, parts(&gang).1).await {
                Ok(true) => tracing::debug!(gang = &*gang, "its object was removed"),
                Ok(false) => tracing::debug!(gang = &*gang, "its object is somebody's, and stays"),
                Err(Said::Gone | Said::NotLeader) => {}
                Err(said) => tracing::warn!(gang = &*gang, %said, "its object was not removed"),
            }
        });
    }

    pub(crate) fn gang_objects(&self, name: &str) -> Option<Api<DynamicObject>> {
        let kind = self.sources.resource(KindRole::Gang)?;
        Some(Api::namespaced_with(self.writer.client.clone(), parts(name).0, kind))
    }

    /// The object that Muster makes for a gang, if it is Muster's to make.
    pub(crate) fn gang_object(&self, name: &str) -> Option<DynamicObject> {
        let group = self.gangs.get(name)?;
        let spec = group.spec.as_ref()?;
        let is_written =
            matches!(group.origin, GangSource::Gang { .. }) && self.is_there(&group.origin);
        if is_written || matches!(group.origin, GangSource::Pod { .. }) || self.is_deleted(group) {
            return None;
        }
        let mut object = json!({
            "apiVersion": "muster.sh/v1alpha1",
            "kind": "Gang",
            "metadata": {
                "name": parts(name).1,
                "namespace": parts(name).0,
                "labels": {MANAGED_BY: MUSTER},
                "annotations": {SOURCE: group.origin.to_string()},
                "ownerReferences": self.owner_of(&group.origin).into_iter().collect::<Vec<_>>(),
            },
            "spec": spoken(spec),
        });
        if let GangSource::Joined(groups) = &group.origin {
            object["metadata"]["annotations"][GROUPS] = json!(listed(groups));
        }
        serde_json::from_value(object).ok()
    }
}

/// The lane of what is told to the objects of other dialects. Whoever keeps those from being written keeps nothing else from
/// it: where a gang goes, and that it goes nowhere any more, is on its own object.
pub(crate) fn group_lane(name: &str) -> Arc<str> {
    format!("group of {name}").into()
}

/// Tells the object of another dialect how its gang is.
pub(crate) async fn write_group_status(
    hands: &ApiWriter,
    objects: &Api<DynamicObject>,
    object: &str,
    patch: &StatusPatch,
) -> Result<(), Said> {
    let told = match patch.subresource {
        true => hands.patch_status(objects, object, &patch.patch).await,
        false => hands.patch(objects, object, &patch.patch).await,
    };
    told.map(drop)
}

/// On how many nodes members are.
pub(crate) fn nodes_of(placement: &[Placement]) -> usize {
    placement.iter().map(|one| &one.node).collect::<BTreeSet<_>>().len()
}

/// Where a gang's members go, as its status says. Nothing, if that cannot be understood.
pub(crate) fn placement_of(object: &DynamicObject) -> Vec<Placement> {
    let said = object.data.pointer("/status/placement");
    Placement::unfolded(said.and_then(|said| Vec::deserialize(said).ok()).unwrap_or_default())
}

/// Whether a gang was whole and ran when its status was written.
pub(crate) fn is_said_to_run(object: &DynamicObject) -> bool {
    object.data.pointer("/status/phase").is_some_and(|phase| phase == "Running")
}

/// A gang as its manifest would say it: what a person looks for.
fn spoken(spec: &GangSpec) -> Value {
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
pub(crate) async fn write(
    hands: &ApiWriter,
    objects: &Api<DynamicObject>,
    name: &str,
    object: Option<DynamicObject>,
    status: Value,
) -> Result<(), Said> {
    let (_, name) = parts(name);
    let patched = hands.patch_status(objects, name, &status).await;
    match (patched, object) {
        (Ok(_), _) => Ok(()),
        (Err(Said::Gone), Some(object)) => {
            match hands.create(objects, &object).await {
                Ok(_) | Err(Said::Exists) => {}
                Err(said) => return Err(said),
            }
            hands.patch_status(objects, name, &status).await.map(drop)
        }
        (Err(said), _) => Err(said),
    }
}

/// Removes an object that Muster made, and none that somebody else has written or has applied to since: whatever it says
/// then is theirs. Whether it was removed.
async fn remove_own(
    hands: &ApiWriter,
    objects: &Api<DynamicObject>,
    name: &str,
) -> Result<bool, Said> {
    let mut pauses = Backoff::new();
    loop {
        let seen = hands.ask(|| objects.get(name)).await?;
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
        match hands.delete(objects, name, &how).await {
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
