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

use kube::api::DynamicObject;
use muster_api::crd::{GangPhase, Placement, Stamp, gang_conditions};
use muster_core::gang::{Gang, Phase};
use muster_core::id::GangId;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::api::retry::Said;
use crate::effects::outcome::Outcome;
use crate::gang::api_refusal::refusal_of;
use crate::gang::identity::GangSource;
use crate::gang::merged_groups::names_of;
use crate::host::Host;
use crate::provision::order_object::parts;
use crate::status::gang_object::{group_write_key, write_group_status, write_or_create};

/// How long until what was refused is tried again.
pub(crate) const AGAIN: Duration = Duration::from_secs(5);

impl Host {
    /// Writes down where a gang's members go, and has them bound then.
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
        let before = self.gang_seen(name).and_then(|gang| gang.data.get("status"));
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
        let object = self.gang_object(name);
        let is_new = self.gangs_without_object.remove(name);
        let made_first = object.clone().filter(|_| is_new);
        if let Some(record) = self.gangs.get_mut(name) {
            record.placement_writes_pending += 1;
            // It has so long from here, also if the server never answers.
            record.binding_since.get_or_insert_with(Instant::now);
        }
        let writer = self.writer.within(parts(name).0);
        let (outcomes, gang) = (self.outcomes.clone(), name.clone());
        self.ordered_writes.write(name, async move {
            let made = match made_first {
                Some(object) => writer.create(&objects, &object).await.map(drop),
                None => Ok(()),
            };
            let recorded = match made {
                Ok(()) | Err(Said::Exists) => {
                    write_or_create(&writer, &objects, &gang, object, status).await
                }
                refused => refused,
            };
            match recorded {
                Ok(()) => drop(outcomes.send(Outcome::PlacementWritten(gang))),
                Err(said) => {
                    tracing::warn!(gang = &*gang, %said, "where it goes was not written");
                    tokio::time::sleep(AGAIN).await;
                    let why = refusal_of(&said);
                    let _ = outcomes.send(Outcome::PlacementNotWritten { gang, why });
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

    /// A gang holds nothing any more. Its object goes if Muster made it and nothing is left of the gang.
    pub(crate) fn clear_placement(&mut self, name: &Arc<str>) {
        let Some(record) = self.gangs.get(name) else { return };
        if matches!(record.source, GangSource::Pod { .. }) {
            return;
        }
        // The object of a Gang that is gone is gone, or was Muster's.
        if record.pods.is_empty() && !self.source_exists(&record.source) {
            return self.remove_object(name);
        }
        let phase = match (record.submitted_spec.is_none(), self.has_failed(record)) {
            (false, _) => GangPhase::Waiting,
            (true, false) => GangPhase::Succeeded,
            (true, true) => GangPhase::Failed,
        };
        for (objects, object, patch) in self.final_group_patches(name) {
            let (writer, gang) = (self.writer.within(parts(name).0), name.clone());
            self.ordered_writes.write(&group_write_key(name), async move {
                let said = write_group_status(&writer, &objects, &object, &patch).await.err();
                if let Some(said) =
                    said.filter(|said| !matches!(said, Said::Gone | Said::NotLeader))
                {
                    tracing::warn!(gang = &*gang, %said, "its group was not told that it is over");
                }
            });
        }
        self.write_final_status(name, phase);
    }

    /// Says that a gang holds nothing, and where it stands.
    pub(crate) fn write_final_status(&mut self, name: &Arc<str>, phase: GangPhase) {
        let Some(objects) = self.gang_api(name) else { return };
        let (reason, message) = match phase {
            GangPhase::Succeeded => ("Succeeded", "every member has ended with success"),
            GangPhase::Failed => ("Failed", "the gang has ended, and a member has failed"),
            _ => ("Waiting", "the gang holds no seats"),
        };
        let is_finished = matches!(phase, GangPhase::Succeeded | GangPhase::Failed);
        let before = self.gang_seen(name).and_then(|gang| gang.data.get("status"));
        let conditions = gang_conditions(phase, reason, message, before, self.now());
        let patch = json!({"status": {
            "phase": phase,
            "placement": null,
            "nodes": null,
            "groups": null,
            "endedAt": is_finished.then_some(Stamp(self.now())),
            "conditions": conditions,
        }});
        let (writer, gang) = (self.writer.within(parts(name).0), name.clone());
        self.ordered_writes.write(name, async move {
            let (_, object) = parts(&gang);

            let said = writer.patch_status(&objects, object, &patch).await.err();
            if let Some(said) = said.filter(|said| !matches!(said, Said::Gone | Said::NotLeader)) {
                tracing::warn!(gang = &*gang, %said, "not written off");
            }
        });
    }
}

/// On how many nodes members are.
pub(crate) fn node_count(placement: &[Placement]) -> usize {
    placement.iter().map(|one| &one.node).collect::<BTreeSet<_>>().len()
}

/// Where a gang's members go, as its status says. Nothing, if that cannot be understood.
pub(crate) fn placement_of(object: &DynamicObject) -> Vec<Placement> {
    let said = object.data.pointer("/status/placement");
    Placement::unfolded(said.and_then(|said| Vec::deserialize(said).ok()).unwrap_or_default())
}

/// Whether a gang was whole and ran when its status was written.
pub(crate) fn is_recorded_running(object: &DynamicObject) -> bool {
    object.data.pointer("/status/phase").is_some_and(|phase| phase == "Running")
}
