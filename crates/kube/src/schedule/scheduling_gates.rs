//! Gates are lifted: members that another scheduler binds are let go, all of them together, each to its node.
//!
//! Such pods carry the scheduling gate `muster.sh/gang`. They are gathered, planned and provided for like any others, and
//! when their gang has all its seats the gate goes. In the same write the pod is told its node by a node selector, which
//! the API server allows only while a pod is gated, so no other scheduler ever sees it without. The node is also written
//! down as an annotation: a pod that has lost its gate would otherwise look like anybody else's after a restart. The
//! annotation is believed where the status of the gang, or of a pod that stands for itself, says the same (`trust`).
//!
//! Not here: putting a gate back. Nobody can, so who must wait again is deleted, and made anew with its gate.

use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod as AnyPod;
use kube::api::{Api, Patch, PatchParams};
use muster_core::gang::Phase;
use muster_core::id::GangId;
use muster_core::plan::StopReason;
use muster_core::topology::HOSTNAME;
use serde_json::{Value, json};

use crate::api::retry::Said;
use crate::api::writer::ApiWriter;
use crate::cache::store::Key;
use crate::effects::outcome::Outcome;
use crate::features::Feature;
use crate::gang::api_refusal::refusal_of;
use crate::gang::identity::GangSource;
use crate::gang::tenancy::trusted_annotations::Released;
use crate::host::Host;
use crate::objects::pod::{GATE, PINNED, Pod, SEAT, SEATED};
use crate::provision::order_object::parts;
use crate::schedule::bind::bind;
use crate::schedule::placement::AGAIN;

impl Host {
    /// Lifts the gate of a pod. One that names Muster as its scheduler is bound then; the others' schedulers do that.
    pub(crate) fn remove_gate(&mut self, gang: &Arc<str>, key: &Key, node: &Arc<str>) {
        let Some(pod) = self.cache.pods.get(key).cloned() else { return };
        if self.config.disabled.has(Feature::Gates) {
            return;
        }
        let binds = self.config.binds(&pod);
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        let patch = match binds {
            true => lifted(&uid),
            false => lifted_to(&uid, &pod, node, &self.hostname(node)),
        };
        let record = self.gangs.get_mut(gang).expect("followed");
        record.assigned_nodes.insert(key.clone(), node.clone());
        if !binds {
            let released = Released { uid: uid.clone(), node: node.clone() };
            record.released.insert(key.clone(), released);
        }
        // Where it goes is recorded first. A gang has its Gang for that; a pod that stands for itself has its own status.
        let seated =
            (!binds && matches!(record.source, GangSource::Pod { .. })).then(|| seated(&uid, node));
        let (writer, outcomes) = (self.writer.within(parts(key).0), self.outcomes.clone());
        let (gang, key, node) = (gang.clone(), key.clone(), node.clone());
        tokio::spawn(async move {
            let (namespace, name) = parts(&key);
            let pods: Api<AnyPod> = Api::namespaced(writer.client.clone(), namespace);
            let mut done = match seated {
                Some(seated) => record_seat(&writer, &pods, name, &uid, seated).await,
                None => Ok(()),
            };
            if done.is_ok() {
                done = writer.patch_this(&pods, name, &uid, &Patch::Strategic(patch)).await;
            }
            if done.is_ok() && binds {
                done = bind(&writer, &key, &uid, &node).await;
            }
            if let Err(said) = done {
                tracing::info!(pod = &*key, node = &*node, %said, "not let go");
                tokio::time::sleep(AGAIN).await;
                let why = refusal_of(&said);
                let _ = outcomes.send(Outcome::BindFailed { gang, pod: key, uid, why });
            }
        });
    }

    /// What a node is called by its label: most often, but not always, its name.
    fn hostname(&self, node: &str) -> String {
        let labels = self.cache.nodes.get(node).and_then(|node| node.metadata.labels.as_ref());
        labels.and_then(|labels| labels.get(HOSTNAME)).map_or(node, |label| label).to_owned()
    }

    /// Gangs that were let go and that another scheduler leaves standing in part start over as a whole: half a gang is
    /// of no use to anybody, and holds room that is.
    pub(crate) fn expire_external_binding(&mut self) {
        let patience = Duration::from_millis(self.config.handover_timeout.0);
        let late = |name: &&Arc<str>| {
            let since = self.gangs.get(name).and_then(|record| record.external_binding_since);
            since.is_some_and(|since| since.elapsed() >= patience)
        };
        let late: Vec<Arc<str>> = self.gangs.names().filter(late).cloned().collect();
        for name in late {
            self.gangs.get_mut(&name).expect("just seen").external_binding_since = None;
            let Some(id) = self.world.gang_named(&name) else { continue };
            tracing::info!(gang = &*name, "not put on its nodes by its scheduler: starts over");
            self.back_off_because(&name, "its scheduler did not bind all of it in time");
            self.stop_gang(id, StopReason::Moved);
        }
    }

    /// Looks whether a gang that has its seats stands in part because of another scheduler.
    pub(crate) fn watch_external_binding(&mut self, name: &Arc<str>, id: GangId) {
        let Some(record) = self.gangs.get(name) else { return };
        let gang = self.world.gang(id).expect("followed");
        let theirs = |key: &Key| {
            let pod = self.cache.pods.get(key);
            pod.is_some_and(|pod| pod.node().is_none() && !self.config.binds(pod))
        };
        let remove_gate =
            record.assigned_nodes.keys().any(theirs) && !self.is_fully_bound(name, id);
        let waits = matches!(gang.phase, Phase::Admitted { .. } | Phase::Running { .. })
            && (remove_gate || self.waits_for_job(record, &gang.spec));
        let since = waits.then(|| record.external_binding_since.unwrap_or_else(Instant::now));
        self.gangs.get_mut(name).expect("just seen").external_binding_since = since;
    }
}

/// The status of a pod that stands for itself and is released to a node.
fn seated(uid: &str, node: &str) -> Value {
    json!({"metadata": {"uid": uid}, "status": {"conditions": [{
        "type": SEATED, "status": "True", "reason": "GateLifted", "message": node,
        "lastTransitionTime": jiff::Timestamp::now().to_string(),
    }]}})
}

async fn record_seat(
    writer: &ApiWriter,
    pods: &Api<AnyPod>,
    name: &str,
    uid: &str,
    status: Value,
) -> Result<(), Said> {
    let (params, patch) = (PatchParams::default(), Patch::Strategic(status));
    writer.write_to_this(pods, name, uid, || pods.patch_status(name, &params, &patch)).await
}

/// No gate of Muster's any more.
fn lifted(uid: &str) -> Value {
    json!({
        "metadata": {"uid": uid},
        "spec": {"schedulingGates": [{"$patch": "delete", "name": GATE}]},
    })
}

/// No gate of Muster's any more, and one node only. A pod that names a node itself needs no other word.
fn lifted_to(uid: &str, pod: &Pod, node: &str, hostname: &str) -> Value {
    let mut patch = lifted(uid);
    patch["metadata"]["annotations"] = json!({SEAT: node});
    if !pod.spec.node_selector.contains_key(HOSTNAME) {
        patch["metadata"]["annotations"][PINNED] = json!("true");
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
    fn a_pod_that_names_its_node_itself_is_not_told_again() {
        let named = pod(&json!({"nodeSelector": {HOSTNAME: "n1"}}));
        let patch = lifted_to("u", &named, "n1", "n1");
        assert_eq!(patch["metadata"]["annotations"], json!({SEAT: "n1"}));
        assert_eq!(patch["spec"].get("nodeSelector"), None);
    }

    #[test]
    fn what_muster_told_a_pod_is_not_what_the_pod_asks_for() {
        let asked = pod(&json!({"nodeSelector": {"zone": "a"}}));
        let patch = lifted_to("u", &asked, "n1", "host-1");
        let mut told = asked.clone();
        told.metadata.annotations =
            serde_json::from_value(patch["metadata"]["annotations"].clone()).expect("marks");
        told.spec.node_selector.insert(HOSTNAME.to_owned(), "host-1".to_owned());
        assert_eq!(patch["spec"]["nodeSelector"], json!({HOSTNAME: "host-1"}));
        told.unpin();
        assert_eq!(told.spec, asked.spec);
        assert_eq!(told.seat(), Some("n1"));
    }
}
