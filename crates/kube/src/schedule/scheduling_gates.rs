//! Removes scheduling gates: the members that another scheduler binds are released together, each to its node.
//!
//! Such pods carry the scheduling gate `muster.sh/gang`. They are built, planned and provisioned for like any others, and
//! when their gang has all its seats the gate is removed. The same write sets a node selector for the pod's node, which
//! the API server allows only while a pod is gated, so no other scheduler ever sees the pod without it. The node is also
//! written as an annotation: a pod without its gate would otherwise look like any other pod after a restart. The annotation
//! is trusted where the status of the gang, or of a single pod, confirms it (`gang::tenancy::trusted_annotations`).
//!
//! Not here: adding a gate again. The API server does not allow that, so a pod that must wait again is deleted, and its owner
//! recreates it with its gate.

use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod as AnyPod;
use kube::api::{Api, Patch, PatchParams};
use muster_core::gang::Phase;
use muster_core::id::GangId;
use muster_core::plan::StopReason;
use muster_core::topology::HOSTNAME;
use serde_json::{Value, json};

use crate::api::retry::ApiError;
use crate::api::writer::ApiWriter;
use crate::cache::store::Key;
use crate::cache::store::split_key;
use crate::effects::outcome::{Outcome, RETRY_PAUSE};
use crate::features::Feature;
use crate::gang::api_refusal::refusal_of;
use crate::gang::identity::GangSource;
use crate::gang::tenancy::trusted_annotations::Released;
use crate::host::Host;
use crate::objects::pod::{ASSIGNED_NODE, GATE, NODE_SELECTOR_ADDED, Pod, SEATED};
use crate::schedule::bind::bind;

impl Host {
    /// Removes the gate of a pod. A pod that names Muster as its scheduler is bound after that; other schedulers bind the others.
    pub(crate) fn remove_gate(&mut self, gang: &Arc<str>, key: &Key, node: &Arc<str>) {
        let Some(pod) = self.cache.pods.get(key).cloned() else { return };
        if self.config.disabled.has(Feature::Gates) {
            return;
        }
        let binds = self.config.binds(&pod);
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        let patch = match binds {
            true => gate_removed(&uid),
            false => gate_removed_to(&uid, &pod, node, &self.hostname(node)),
        };
        let record = self.gangs.get_mut(gang).expect("the gang has a record");
        record.assigned_nodes.insert(key.clone(), node.clone());
        if !binds {
            let released = Released { uid: uid.clone(), node: node.clone() };
            record.released.insert(key.clone(), released);
        }
        // The node is recorded first: in the status of the Gang, or for a single pod in its own status.
        let seated =
            (!binds && matches!(record.source, GangSource::Pod { .. })).then(|| seated(&uid, node));
        let (writer, outcomes) =
            (self.writer.for_namespace(split_key(key).0), self.outcomes.clone());
        let (gang, key, node) = (gang.clone(), key.clone(), node.clone());
        tokio::spawn(async move {
            let (namespace, name) = split_key(&key);
            let pods: Api<AnyPod> = Api::namespaced(writer.client.clone(), namespace);
            let mut done = match seated {
                Some(seated) => record_seat(&writer, &pods, name, &uid, seated).await,
                None => Ok(()),
            };
            if done.is_ok() {
                done = writer.patch_with_uid(&pods, name, &uid, &Patch::Strategic(patch)).await;
            }
            if done.is_ok() && binds {
                done = bind(&writer, &key, &uid, &node).await;
            }
            if let Err(error) = done {
                tracing::info!(pod = &*key, node = &*node, %error, "gate not removed");
                tokio::time::sleep(RETRY_PAUSE).await;
                let why = refusal_of(&error);
                let _ = outcomes.send(Outcome::BindFailed { gang, pod: key, uid, why });
            }
        });
    }

    /// The hostname label of a node: most often, but not always, its name.
    fn hostname(&self, node: &str) -> String {
        let labels = self.cache.nodes.get(node).and_then(|node| node.metadata.labels.as_ref());
        labels.and_then(|labels| labels.get(HOSTNAME)).map_or(node, |label| label).to_owned()
    }

    /// Stops released gangs that another scheduler has not fully bound in time, so that they start over as a whole: half a gang
    /// is of no use and holds capacity.
    pub(crate) fn expire_external_binding(&mut self) {
        let timeout = Duration::from_millis(self.config.handover_timeout.0);
        let late = |name: &&Arc<str>| {
            let since = self.gangs.get(name).and_then(|record| record.external_binding_since);
            since.is_some_and(|since| since.elapsed() >= timeout)
        };
        let late: Vec<Arc<str>> = self.gangs.names().filter(late).cloned().collect();
        for name in late {
            self.gangs.get_mut(&name).expect("the gang has a record").external_binding_since = None;
            let Some(id) = self.world.gang_named(&name) else { continue };
            tracing::info!(gang = &*name, "not fully bound by its scheduler in time: starts over");
            self.back_off_because(&name, "its scheduler did not bind all of it in time");
            self.stop_gang(id, StopReason::Moved);
        }
    }

    /// Starts or clears the timeout of a gang that another scheduler has bound in part.
    pub(crate) fn watch_external_binding(&mut self, name: &Arc<str>, id: GangId) {
        let Some(record) = self.gangs.get(name) else { return };
        let gang = self.world.gang(id).expect("the World has the gang");
        let theirs = |key: &Key| {
            let pod = self.cache.pods.get(key);
            pod.is_some_and(|pod| pod.node().is_none() && !self.config.binds(pod))
        };
        let awaits_scheduler =
            record.assigned_nodes.keys().any(theirs) && !self.is_fully_bound(name, id);
        let waits = matches!(gang.phase, Phase::Admitted { .. } | Phase::Running { .. })
            && (awaits_scheduler || self.waits_for_job(record, &gang.spec));
        let since = waits.then(|| record.external_binding_since.unwrap_or_else(Instant::now));
        self.gangs.get_mut(name).expect("the gang has a record").external_binding_since = since;
    }
}

/// The status of a single pod that is released to a node.
fn seated(uid: &str, node: &str) -> Value {
    json!({"metadata": {"uid": uid}, "status": {"conditions": [{
        "type": SEATED, "status": "True", "reason": "GateLifted", "message": node,
        "lastTransitionTime": jiff::Timestamp::now().to_string(),
    }]}})
}

/// Records the node of a released pod in its status.
async fn record_seat(
    writer: &ApiWriter,
    pods: &Api<AnyPod>,
    name: &str,
    uid: &str,
    status: Value,
) -> Result<(), ApiError> {
    let (params, patch) = (PatchParams::default(), Patch::Strategic(status));
    writer.write_with_uid(pods, name, uid, || pods.patch_status(name, &params, &patch)).await
}

/// A patch that removes Muster's gate.
fn gate_removed(uid: &str) -> Value {
    json!({
        "metadata": {"uid": uid},
        "spec": {"schedulingGates": [{"$patch": "delete", "name": GATE}]},
    })
}

/// A patch that removes Muster's gate and selects one node. A pod that already selects a hostname needs no selector.
fn gate_removed_to(uid: &str, pod: &Pod, node: &str, hostname: &str) -> Value {
    let mut patch = gate_removed(uid);
    patch["metadata"]["annotations"] = json!({ASSIGNED_NODE: node});
    if !pod.spec.node_selector.contains_key(HOSTNAME) {
        patch["metadata"]["annotations"][NODE_SELECTOR_ADDED] = json!("true");
        patch["spec"]["nodeSelector"] = json!({HOSTNAME: hostname});
    }
    patch
}

#[cfg(test)]
mod tests {
    use crate::schedule::scheduling_gates::*;

    fn pod(spec: &Value) -> Pod {
        serde_json::from_value(json!({"metadata": {"name": "a"}, "spec": spec})).expect("a pod")
    }

    #[test]
    fn pod_that_selects_its_hostname_gets_no_selector() {
        let named = pod(&json!({"nodeSelector": {HOSTNAME: "n1"}}));
        let patch = gate_removed_to("u", &named, "n1", "n1");
        assert_eq!(patch["metadata"]["annotations"], json!({ASSIGNED_NODE: "n1"}));
        assert_eq!(patch["spec"].get("nodeSelector"), None);
    }

    #[test]
    fn unpinned_pod_has_the_spec_its_owner_created() {
        let asked = pod(&json!({"nodeSelector": {"zone": "a"}}));
        let patch = gate_removed_to("u", &asked, "n1", "host-1");
        let mut released = asked.clone();
        released.metadata.annotations =
            serde_json::from_value(patch["metadata"]["annotations"].clone()).expect("marks");
        released.spec.node_selector.insert(HOSTNAME.to_owned(), "host-1".to_owned());
        assert_eq!(patch["spec"]["nodeSelector"], json!({HOSTNAME: "host-1"}));
        released.remove_added_selector();
        assert_eq!(released.spec, asked.spec);
        assert_eq!(released.assigned_node(), Some("n1"));
    }
}
