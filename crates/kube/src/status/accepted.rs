//! The condition `Accepted` of Pools, Queues and Topologies: whether the object is valid, with an Event when it is not.
//! Invalid objects have no effect on others.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::DynamicObject;
use kube::runtime::events::EventType;
use kube::{Client, ResourceExt};
use muster_api::crd::Stamp;
use serde_json::{Value, json};

use crate::api::crd_version::outdated_crds;
use crate::api::error_chain::with_causes;
use crate::cache::kinds::KindRole;
use crate::cache::watched_objects::read_manifest;
use crate::host::Host;

const ACCEPTED: &str = "Accepted";
const INVALID_SPEC: &str = "InvalidSpec";

/// Invalid objects, and why they are invalid.
pub(crate) type RejectedObjects = BTreeMap<(KindRole, Arc<str>), String>;

impl Host {
    /// Records whether an object is valid, or why not. A new reason is reported by an Event.
    pub(crate) fn report_acceptance(
        &mut self,
        kind_role: KindRole,
        name: &str,
        why: Option<String>,
    ) {
        let key = (kind_role, Arc::from(name));
        if self.rejected_objects.get(&key) == why.as_ref() {
            return;
        }
        self.supply_status.write_soon();
        let Some(why) = why else { return drop(self.rejected_objects.remove(&key)) };
        tracing::warn!(kind = ?kind_role, name, why, "rejected");
        self.rejected_objects.insert(key, why.clone());
        if let Some(about) = self.object_named(kind_role, name) {
            let kind = self.sources.resource(kind_role).map(|kind| kind.kind.clone());
            let about = ObjectReference {
                api_version: Some("muster.sh/v1alpha1".to_owned()),
                kind,
                name: Some(name.to_owned()),
                uid: about.metadata.uid.clone(),
                ..ObjectReference::default()
            };
            self.record_event_about(about, EventType::Warning, (INVALID_SPEC, "Read"), &why);
        }
    }

    /// Warns of installed CRDs that are older than this controller.
    pub(crate) async fn warn_of_outdated_crds(&mut self, client: &Client) {
        let outdated = match outdated_crds(client).await {
            Ok(outdated) => outdated,
            Err(error) => {
                let error = with_causes(&error);
                return tracing::warn!(error, "cannot compare the installed CRDs");
            }
        };
        for one in outdated {
            let message = one.message();
            tracing::error!(crd = one.name, "{message}");
            let about = ObjectReference {
                api_version: Some("apiextensions.k8s.io/v1".to_owned()),
                kind: Some("CustomResourceDefinition".to_owned()),
                name: Some(one.name),
                ..ObjectReference::default()
            };
            self.publish(about, EventType::Warning, ("DefinitionTooOld", "Start"), &message);
        }
    }

    /// Whether an object exists and is invalid.
    pub(crate) fn is_rejected(&self, kind_role: KindRole, name: &str) -> bool {
        self.rejected_objects.contains_key(&(kind_role, Arc::from(name)))
    }

    pub(crate) fn object_named(
        &self,
        kind_role: KindRole,
        name: &str,
    ) -> Option<&Arc<DynamicObject>> {
        self.cache.others.get(&self.sources.of(kind_role)?)?.get(name)
    }

    /// A cluster has one topology: the first valid one by name.
    pub(crate) fn check_topologies(&mut self) {
        let mut first: Option<String> = None;
        let all = self.all_objects(KindRole::Topology);
        let is_there = |name: &Arc<str>| all.iter().any(|moved| moved.key == *name);
        self.rejected_objects.retain(|(of, name), _| *of != KindRole::Topology || is_there(name));
        for moved in all {
            let Some(object) = &moved.is else { continue };
            let why = match (read_manifest("Topology", object), &first) {
                (Err(why), _) => Some(why),
                (Ok(_), Some(first)) => {
                    Some(format!("a cluster has one topology, and that is {first}"))
                }
                (Ok(_), None) => {
                    first = Some(object.name_any());
                    None
                }
            };
            self.report_acceptance(KindRole::Topology, &moved.key, why);
        }
    }

    /// The condition `Accepted` of an object, without its transition time.
    pub(crate) fn accepted_condition(&self, kind_role: KindRole, object: &DynamicObject) -> Value {
        let why = self.rejected_objects.get(&(kind_role, Arc::from(object.name_any())));
        json!({
            "type": ACCEPTED,
            "status": if why.is_none() { "True" } else { "False" },
            "reason": if why.is_none() { "Valid" } else { INVALID_SPEC },
            "message": why.map_or("", String::as_str),
            "observedGeneration": object.metadata.generation,
        })
    }

    /// A condition with its transition time: that of the same condition on the object, or now if its status has changed.
    pub(crate) fn with_transition_time(
        &self,
        mut condition: Value,
        object: &DynamicObject,
    ) -> Value {
        let before = object.data["status"]["conditions"].as_array();
        let same =
            |one: &&Value| one["type"] == condition["type"] && one["status"] == condition["status"];
        let since = before.and_then(|all| all.iter().find(same));
        let since = since.and_then(|one| one.get("lastTransitionTime")).cloned();
        condition["lastTransitionTime"] = since.unwrap_or_else(|| json!(Stamp(self.now())));
        condition
    }
}
