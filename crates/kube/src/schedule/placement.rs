//! Writes the placement of a gang into its status before the first member is bound, and clears it when the gang has ended.
//!
//! The status is the only record of a placement that counts, since tenants cannot write it. A status cannot be given to an
//! object that is being created, so a gang that starts as soon as it is observed costs two writes: the object, then its
//! status. No member is bound before the second. Not here: the Gang object itself, which is in `status::gang_object`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use kube::api::DynamicObject;
use muster_api::crd::{GangPhase, Placement, Stamp, gang_conditions};
use muster_core::gang::{Gang, Phase};
use muster_core::id::GangId;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::api::retry::ApiError;
use crate::cache::store::split_key;
use crate::effects::outcome::{Outcome, RETRY_PAUSE};
use crate::gang::api_refusal::refusal_of;
use crate::gang::identity::GangSource;
use crate::gang::merged_groups::names_of;
use crate::host::Host;
use crate::status::gang_object::{group_write_key, write_group_status, write_or_create};

impl Host {
    /// Writes a gang's placement; its members are bound when the write has succeeded.
    pub(crate) fn write_placement(&mut self, name: &Arc<str>, id: GangId) {
        let Some(gang) = self.world.gang(id) else { return };
        let placement = self.placement(gang);
        let phase = match gang.phase {
            Phase::Running { .. } => GangPhase::Running,
            _ => GangPhase::Admitted,
        };
        let groups = match self.gangs.get(name).map(|record| &record.source) {
            Some(GangSource::Merged(groups)) => json!(names_of(groups)),
            _ => Value::Null,
        };
        let reason = if phase == GangPhase::Running { "Running" } else { "Admitted" };
        let before = self.gang_object(name).and_then(|gang| gang.data.get("status"));
        let message = "every member has a seat";
        let conditions = gang_conditions(phase, reason, message, before, self.now());
        let status = json!({"status": {
            "phase": phase,
            "conditions": conditions,
            "nodes": node_count(&placement),
            "groups": groups,
            "placement": Placement::folded(placement.clone()),
        }});
        let Some(objects) = self.gang_api(name) else { return };
        let object = self.generated_gang_object(name);
        let is_new = self.gangs_without_object.remove(name);
        let created_first = object.clone().filter(|_| is_new);
        if let Some(record) = self.gangs.get_mut(name) {
            record.placement_writes_pending += 1;
            // The bind timeout runs from here, also if the API server never answers.
            record.binding_since.get_or_insert_with(Instant::now);
        }
        let writer = self.writer.for_namespace(split_key(name).0);
        let (outcomes, gang) = (self.outcomes.clone(), name.clone());
        self.ordered_writes.write(name, async move {
            let created = match created_first {
                Some(object) => writer.create(&objects, &object).await.map(drop),
                None => Ok(()),
            };
            let written = match created {
                Ok(()) | Err(ApiError::AlreadyExists) => {
                    write_or_create(&writer, &objects, &gang, object, status).await
                }
                refused => refused,
            };
            match written {
                Ok(()) => drop(outcomes.send(Outcome::PlacementWritten(gang))),
                Err(error) => {
                    tracing::warn!(gang = &*gang, %error, "its placement was not written");
                    tokio::time::sleep(RETRY_PAUSE).await;
                    let why = refusal_of(&error);
                    let _ = outcomes.send(Outcome::PlacementNotWritten { gang, why });
                }
            }
        });
    }

    /// The placement of a gang: members by role and node.
    pub(crate) fn placement(&self, gang: &Gang) -> Vec<Placement> {
        let mut placement: Vec<Placement> = Vec::new();
        let mut indexes: BTreeMap<_, usize> = BTreeMap::new();
        for seat in &gang.seats {
            let Some(node) = self.world.node_name(seat.node) else { continue };
            let members = i32::from(seat.members);
            let at = *indexes.entry((seat.role, seat.node)).or_insert(placement.len());
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

    /// Clears the placement of a gang that has no seats any more. Its object is removed if Muster created it and nothing is
    /// left of the gang.
    pub(crate) fn clear_placement(&mut self, name: &Arc<str>) {
        let Some(record) = self.gangs.get(name) else { return };
        if matches!(record.source, GangSource::Pod { .. }) {
            return;
        }
        // A deleted Gang leaves no object, or one of Muster's.
        if record.pods.is_empty() && !self.source_exists(&record.source) {
            return self.remove_object(name);
        }
        let phase = match (record.submitted_spec.is_none(), self.has_failed(record)) {
            (false, _) => GangPhase::Waiting,
            (true, false) => GangPhase::Succeeded,
            (true, true) => GangPhase::Failed,
        };
        for (objects, object, patch) in self.final_group_patches(name) {
            let (writer, gang) = (self.writer.for_namespace(split_key(name).0), name.clone());
            self.ordered_writes.write(&group_write_key(name), async move {
                let error = write_group_status(&writer, &objects, &object, &patch).await.err();
                if let Some(error) =
                    error.filter(|error| !matches!(error, ApiError::NotFound | ApiError::NotLeader))
                {
                    tracing::warn!(gang = &*gang, %error, "the end was not written to its group");
                }
            });
        }
        self.write_final_status(name, phase);
    }

    /// Writes that a gang has no placement, and its phase.
    pub(crate) fn write_final_status(&mut self, name: &Arc<str>, phase: GangPhase) {
        let Some(objects) = self.gang_api(name) else { return };
        let (reason, message) = match phase {
            GangPhase::Succeeded => ("Succeeded", "every member has ended with success"),
            GangPhase::Failed => ("Failed", "the gang has ended, and a member has failed"),
            _ => ("Waiting", "the gang holds no seats"),
        };
        let is_finished = matches!(phase, GangPhase::Succeeded | GangPhase::Failed);
        let before = self.gang_object(name).and_then(|gang| gang.data.get("status"));
        let conditions = gang_conditions(phase, reason, message, before, self.now());
        let patch = json!({"status": {
            "phase": phase,
            "placement": null,
            "nodes": null,
            "groups": null,
            "endedAt": is_finished.then_some(Stamp(self.now())),
            "conditions": conditions,
        }});
        let (writer, gang) = (self.writer.for_namespace(split_key(name).0), name.clone());
        self.ordered_writes.write(name, async move {
            let (_, object) = split_key(&gang);

            let error = writer.patch_status(&objects, object, &patch).await.err();
            if let Some(error) =
                error.filter(|error| !matches!(error, ApiError::NotFound | ApiError::NotLeader))
            {
                tracing::warn!(gang = &*gang, %error, "its final status was not written");
            }
        });
    }
}

/// The number of nodes in a placement.
pub(crate) fn node_count(placement: &[Placement]) -> usize {
    placement.iter().map(|one| &one.node).collect::<BTreeSet<_>>().len()
}

/// The placement in the status of a Gang object; empty if it is not valid.
pub(crate) fn placement_of(object: &DynamicObject) -> Vec<Placement> {
    let placement = object.data.pointer("/status/placement");
    let placement = placement.and_then(|placement| Vec::deserialize(placement).ok());
    Placement::unfolded(placement.unwrap_or_default())
}

/// Whether a gang ran with all its members when its status was written.
pub(crate) fn is_recorded_running(object: &DynamicObject) -> bool {
    object.data.pointer("/status/phase").is_some_and(|phase| phase == "Running")
}
