//! Binds the pods of a gang to its seats once its placement is written, or removes their gates; evicts pods.
//!
//! All or nothing: before a gang runs, nothing is bound unless the minimum of every role can be.

use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod as AnyPod;
use kube::api::{Api, DeleteParams, Patch, PatchParams, Preconditions};
use muster_core::gang::Phase;
use muster_core::id::GangId;
use muster_core::plan::StopReason;
use muster_core::time::Span;

use crate::api::retry::{ApiError, Backoff};
use crate::api::writer::ApiWriter;
use crate::cache::store::Key;
use crate::cache::store::split_key;
use crate::constraints::volumes::binding::VolumeNode;
use crate::effects::outcome::{Outcome, RETRY_PAUSE};
use crate::features::Feature;
use crate::gang::api_refusal::refusal_of;
use crate::host::Host;
use crate::objects::pod::EVICTION_MESSAGE;
use crate::schedule::phase::PodsByState;

impl Host {
    /// Binds pods to free seats on nodes that accept pods. Before a gang runs, nothing is bound unless there are pods, and such
    /// seats, for the minimum of every role: a gang that waits for missing members holds its seats and starts no pod.
    pub(crate) fn bind_members(&mut self, name: &Arc<str>, id: GangId, by_state: &PodsByState) {
        let record = self.gangs.get(name).expect("the gang has a record");
        let gang = self.world.gang(id).expect("the World has the gang");
        if !record.placement_written
            || by_state.unbound.is_empty()
            || self.is_terminating(gang, by_state)
        {
            return;
        }
        let seats = self.seats(record, gang, by_state);
        let possible_members = |role: u16, min: u32| seats.possible_members(role) >= min;
        let (mut open, mut there) = (seats.open.clone(), seats.there.clone());
        for key in &by_state.unbound {
            *record
                .pod_roles
                .get(key)
                .map(|role| there.entry(*role).or_default())
                .unwrap_or(&mut 0) += 1;
        }
        let enough = gang.spec.roles.iter().enumerate().all(|(at, role)| {
            let there = there.get(&(at as u16)).copied().unwrap_or(0);
            there >= role.min && possible_members(at as u16, role.min)
        });
        let in_stages = self.comes_in_stages(record);
        if !enough && !in_stages && by_state.bound.is_empty() {
            return;
        }
        // All seats are kept, so the roles whose pods are created first may be bound first.
        let is_whole = |role: u16| {
            let min = gang.spec.roles.get(usize::from(role)).map_or(0, |role| role.min);
            there.get(&role).copied().unwrap_or(0) >= min && possible_members(role, min)
        };
        let mut assigned = Vec::new();
        // Pods whose volumes are provisioned for a node go there; the others take what is left.
        let pods = by_state.unbound.iter().map(|key| (key, self.volume_node(name, key)));
        let mut pods: Vec<(&Key, Option<VolumeNode>)> = pods.collect();
        pods.sort_by_key(|(key, volume_node)| (volume_node.is_none(), record.rank(key)));
        for (key, volume_node) in pods {
            let Some(role) = record.pod_roles.get(key) else { continue };
            if in_stages && !enough && !is_whole(*role) {
                continue;
            }
            let Some(seats) = open.get_mut(role).filter(|seats| !seats.is_empty()) else {
                continue;
            };
            let there =
                |volume_node: &VolumeNode| seats.iter().position(|seat| *seat == volume_node.node);
            let at = match (volume_node.as_ref().and_then(there), volume_node) {
                (Some(at), _) => at,
                (None, Some(VolumeNode { is_required: true, .. })) => continue, // its volume is out of reach elsewhere
                (None, _) => 0,
            };
            assigned.push((key.clone(), seats.remove(at)));
        }
        if !self.bind_volumes(name, &assigned) {
            return;
        }
        for (key, node) in assigned {
            match self.cache.pods.get(&key).is_some_and(|pod| pod.has_gate()) {
                true => self.remove_gate(name, &key, &node),
                false => self.bind(name, &key, &node),
            }
        }
    }

    /// Starts or clears the bind timeout of a gang that is bound in part: its minimum was never bound, or a recreated member
    /// cannot be bound to its seat. Pods that another scheduler binds have a timeout of their own, and members that are
    /// created in stages have none, unless the API server refuses the first of them.
    pub(crate) fn watch_binding(&mut self, name: &Arc<str>, id: GangId, by_state: &PodsByState) {
        let Some(record) = self.gangs.get(name) else { return };
        let gang = self.world.gang(id).expect("the World has the gang");
        let has_seats = matches!(gang.phase, Phase::Admitted { .. } | Phase::Running { .. });
        let binds_itself = record.external_binding_since.is_none() && !self.comes_in_stages(record);
        let is_whole = has_seats && self.is_fully_bound(name, id);
        let was_whole = record.was_fully_bound && matches!(gang.phase, Phase::Running { .. });
        let has_barred_seats = has_seats && self.has_barred_seats(record, gang, by_state);
        let is_on_node =
            |key: &Key| self.cache.pods.get(key).is_some_and(|pod| pod.node().is_some());
        let is_refused =
            record.api_refusal.is_some() && !was_whole && !record.pods.iter().any(is_on_node);
        let is_late = binds_itself && (has_barred_seats || !(is_whole || was_whole));
        let waits = has_seats && (is_late || is_refused);
        // A refused pod is retried after a pause, and the timeout goes on meanwhile.
        let has_begun = has_barred_seats || !by_state.bound.is_empty();
        let begun = record.binding_since.or_else(|| has_begun.then(Instant::now));
        let record = self.gangs.get_mut(name).expect("the gang has a record");
        record.was_fully_bound = is_whole || (record.was_fully_bound && has_seats);
        record.binding_since = begun.filter(|_| waits);
    }

    /// Stops gangs that have their seats and are not fully bound within the bind timeout, so that they start over as a whole: a
    /// member was deleted and not recreated, its node does not come back, or the API server refuses the binding.
    pub(crate) fn expire_binding(&mut self) {
        let timeout = Duration::from_millis(self.config.bind_timeout.0);
        let late = |name: &&Arc<str>| {
            let since = self.gangs.get(name).and_then(|record| record.binding_since);
            since.is_some_and(|since| since.elapsed() >= timeout)
        };
        let late: Vec<Arc<str>> = self.gangs.names().filter(late).cloned().collect();
        for name in late {
            self.gangs.get_mut(&name).expect("the gang has a record").binding_since = None;
            let Some(id) = self.world.gang_named(&name) else { continue };
            tracing::warn!(gang = &*name, "not fully bound within the bind timeout: starts over");
            self.back_off_if_refused(&name);
            self.stop_gang(id, StopReason::Moved);
        }
    }

    /// Binds one pod, in a task of its own.
    fn bind(&mut self, gang: &Arc<str>, key: &Key, node: &Arc<str>) {
        let Some(pod) = self.cache.pods.get(key) else { return };
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        self.gangs
            .get_mut(gang)
            .expect("the gang has a record")
            .assigned_nodes
            .insert(key.clone(), node.clone());
        let (writer, outcomes) =
            (self.writer.for_namespace(split_key(key).0), self.outcomes.clone());
        let (gang, key, node) = (gang.clone(), key.clone(), node.clone());
        tokio::spawn(async move {
            if let Err(error) = bind(&writer, &key, &uid, &node).await {
                tracing::info!(pod = &*key, node = &*node, %error, "not bound");
                // The obstacle will be observed; what is not observed must not be retried in a tight loop.
                tokio::time::sleep(RETRY_PAUSE).await;
                let why = refusal_of(&error);
                let _ = outcomes.send(Outcome::BindFailed { gang, pod: key, uid, why });
            }
        });
    }

    /// Evicts pods, each with the gang's grace period.
    pub(crate) fn evict_pods(&mut self, name: &Arc<str>, pods: &[(Key, Arc<str>)], grace: Span) {
        for (key, _) in pods {
            let Some(pod) = self.cache.pods.get(key).cloned() else { continue };
            let record = self.gangs.get_mut(name).expect("the gang has a record");
            if !record.deleting_pods.insert(key.clone()) || pod.is_terminating() {
                continue;
            }
            let (writer, outcomes) =
                (self.writer.for_namespace(split_key(key).0), self.outcomes.clone());
            let (gang, key) = (name.clone(), key.clone());
            let uid = pod.metadata.uid.clone().unwrap_or_default();
            let finalizers = pod.metadata.finalizers.iter().flatten();
            // Without the right to patch pods the Job counts them as failed, unless its pod failure policy ignores evictions.
            let is_counted = finalizers.into_iter().any(|one| one == JOB_TRACKING)
                && !self.config.disabled.has(Feature::Gates);
            let grace = u32::try_from(grace.0 / 1_000).unwrap_or(u32::MAX);
            tokio::spawn(async move {
                match delete(&writer, &key, (&uid, is_counted), grace).await {
                    Ok(()) | Err(ApiError::NotFound | ApiError::NotLeader) => {}
                    Err(error) => {
                        tracing::warn!(pod = &*key, %error, "not evicted");
                        tokio::time::sleep(RETRY_PAUSE).await;
                        let _ = outcomes.send(Outcome::DeleteFailed { gang, pod: key, uid });
                    }
                }
            });
        }
    }
}

/// Binds a pod to a node by UID: a later pod of the same name is another pod.
pub(crate) async fn bind(
    writer: &ApiWriter,
    key: &str,
    uid: &str,
    node: &str,
) -> Result<(), ApiError> {
    let (namespace, name) = split_key(key);
    let body = serde_json::json!({
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, "namespace": namespace, "uid": uid},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    });
    let body = serde_json::to_vec(&body).expect("plain JSON");
    let path = format!("/api/v1/namespaces/{namespace}/pods/{name}/binding");
    let pods: Api<AnyPod> = Api::namespaced(writer.client.clone(), namespace);
    let mut pauses = Backoff::new();
    loop {
        let bound = writer
            .request(|| async {
                let request = http::Request::post(&path).body(body.clone());
                let request = request.map_err(kube::Error::HttpError)?;
                writer.client.request::<serde_json::Value>(request).await
            })
            .await;
        let why = match bound {
            Ok(_) => return Ok(()),
            Err(ApiError::Conflict(why)) => why,
            Err(error) => return Err(error),
        };
        // The first answer may have been lost: read where the pod is.
        let pod = writer.request(|| pods.get(name)).await?;
        let same = pod.metadata.uid.as_deref() == Some(uid);
        match pod.spec.and_then(|spec| spec.node_name) {
            Some(there) if same && there == node => return Ok(()),
            None if same && pod.metadata.deletion_timestamp.is_none() => {}
            _ => return Err(ApiError::Conflict(why)),
        }
        tokio::time::sleep(pauses.next(None)).await;
    }
}

/// The finalizer by which the Job controller counts ended pods. The controller removes it from pods that it deletes itself, so
/// that these do not count as failures: after `backoffLimit` failures the whole Job fails, and a gang has more members than
/// that.
const JOB_TRACKING: &str = "batch.kubernetes.io/job-tracking";

/// Deletes a pod as the target of a disruption.
async fn delete(
    writer: &ApiWriter,
    key: &str,
    (uid, is_counted): (&str, bool),
    grace: u32,
) -> Result<(), ApiError> {
    let (namespace, name) = split_key(key);
    let pods: Api<AnyPod> = Api::namespaced(writer.client.clone(), namespace);
    let condition = serde_json::json!({"metadata": {"uid": uid}, "status": {"conditions": [{
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": EVICTION_MESSAGE,
        "lastTransitionTime": jiff::Timestamp::now().to_string(),
    }]}});
    let (params, patch) = (PatchParams::default(), Patch::Strategic(condition));
    writer.write_with_uid(&pods, name, uid, || pods.patch_status(name, &params, &patch)).await?;
    if is_counted {
        let patch = serde_json::json!({"metadata": {
            "uid": uid,
            "$deleteFromPrimitiveList/finalizers": [JOB_TRACKING],
        }});
        writer.patch_with_uid(&pods, name, uid, &Patch::Strategic(patch)).await?;
    }
    let options = DeleteParams {
        grace_period_seconds: Some(grace),
        preconditions: Some(Preconditions { uid: Some(uid.to_owned()), resource_version: None }),
        ..DeleteParams::default()
    };
    writer.delete(&pods, name, &options).await
}
