//! Writes the condition `PodScheduled` on the pods of a gang while they wait. Autoscalers read it, too.

use std::sync::Arc;

use futures::future::join_all;
use k8s_openapi::api::core::v1::Pod as AnyPod;
use kube::api::{Api, Patch, PatchParams};
use muster_core::gang::ProvisioningMode;
use muster_core::verdict::Verdict;
use serde_json::{Value, json};

use crate::api::retry::{ApiError, Backoff};
use crate::api::writer::ApiWriter;
use crate::cache::store::split_key;
use crate::effects::outcome::{Outcome, RETRY_PAUSE};
use crate::host::Host;
use crate::status::reasons::{
    BINDING_REFUSED, CONSTRAINTS_UNSATISFIED, QUEUE_CLOSED, StatusReport, UNKNOWN_QUEUE,
};

impl Host {
    /// Whether a node would help a gang that Muster cannot buy, so that another autoscaler should add it. Never so for a
    /// gang that waits for room under a limit, for other pods to move, or for nodes that Muster buys. A gang that wants no
    /// nodes bought wants none of another autoscaler either.
    pub(crate) fn node_would_help(
        &self,
        name: &str,
        verdict: &Verdict,
        report: &StatusReport,
    ) -> bool {
        let gang = self.world.gang_named(name).and_then(|id| self.world.gang(id));
        let buys = gang.is_some_and(|gang| gang.spec.provisioning.mode != ProvisioningMode::Never);
        let is_held = matches!(report.reason, CONSTRAINTS_UNSATISFIED | BINDING_REFUSED);
        buys && !is_held && verdict.lacks_unoffered_nodes()
    }

    /// The reason why the pods of a gang are not bound; none when they are about to be. To every autoscaler `Unschedulable`
    /// means that one more node would help this pod.
    pub(crate) fn pod_reason(
        &self,
        name: &str,
        verdict: &Verdict,
        report: &StatusReport,
    ) -> Option<&'static str> {
        match verdict {
            Verdict::Waiting { .. } | Verdict::Impossible { .. } => Some(match report.reason {
                reason @ (CONSTRAINTS_UNSATISFIED
                | BINDING_REFUSED
                | UNKNOWN_QUEUE
                | QUEUE_CLOSED) => reason,
                _ if self.node_would_help(name, verdict, report) => "Unschedulable",
                _ => "WaitingForTurn",
            }),
            Verdict::Provisioning { .. } => Some("WaitingForNodes"),
            Verdict::Admitted | Verdict::Running | Verdict::Stopping => None,
        }
    }

    /// Writes on the pods of a waiting gang why it waits.
    pub(crate) fn write_pod_reasons(
        &mut self,
        name: &Arc<str>,
        write_key: &Arc<str>,
        verdict: &Verdict,
        report: &StatusReport,
    ) {
        if let Some(reason) = self.pod_reason(name, verdict, report) {
            self.write_pod_conditions(name, write_key, reason, &report.message);
        }
    }

    /// Writes on the unbound pods of a gang why they are not bound.
    pub(crate) fn write_pod_conditions(
        &mut self,
        name: &Arc<str>,
        write_key: &Arc<str>,
        reason: &'static str,
        message: &str,
    ) {
        let Some(record) = self.gangs.get(name) else { return };
        let mut writes = Vec::new();
        for key in self.pods_by_state(record).unbound {
            // Other controllers ignore a gated pod, and expect the reason `SchedulingGated` on it.
            let gated = self.cache.pods.get(&key).is_some_and(|pod| pod.has_gate());
            let reason = if gated { "SchedulingGated" } else { reason };
            let same = |(was, text): &(&str, String)| *was == reason && text == message;
            if self.written_status.pods.get(&key).is_some_and(same) {
                continue;
            }
            self.written_status.pods.insert(key.clone(), (reason, message.to_owned()));
            // Only for the observed version of this pod: a pod that was bound or recreated meanwhile needs no reason.
            let Some(pod) = self.cache.pods.get(&key) else { continue };
            let observed = (&pod.metadata.uid, &pod.metadata.resource_version);
            let patch = json!({"metadata": {"uid": observed.0, "resourceVersion": observed.1}, "status": {"conditions": [{
                "type": "PodScheduled",
                "status": "False",
                "reason": reason,
                "message": message,
                "lastTransitionTime": jiff::Timestamp::now().round(jiff::Unit::Second).map(|at| at.to_string()).unwrap_or_default(),
            }]}});
            let (writer, outcomes) =
                (self.writer.for_namespace(split_key(&key).0), self.outcomes.clone());
            writes.push(async move {
                let (namespace, pod) = split_key(&key);
                let pods: Api<AnyPod> = Api::namespaced(writer.client.clone(), namespace);
                match patch_condition(&writer, &pods, pod, patch).await {
                    Ok(()) | Err(ApiError::NotFound | ApiError::NotLeader) => {}
                    Err(error) => {
                        tracing::info!(pod = &*key, %error, "its condition was not written");
                        tokio::time::sleep(RETRY_PAUSE).await;
                        let _ = outcomes.send(Outcome::PodConditionNotWritten(key.clone()));
                    }
                }
            });
        }
        if !writes.is_empty() {
            self.ordered_writes.write(write_key, async move { drop(join_all(writes).await) });
        }
    }
}

/// How often a conflicting patch is retried, before its gang is reconciled again.
const CONFLICTS_MAX: u32 = 8;

/// Patches the condition of a pod. After a conflict the patch is retried for the current version of the pod, until it is
/// written or the pod no longer waits.
async fn patch_condition(
    writer: &ApiWriter,
    pods: &Api<AnyPod>,
    name: &str,
    mut patch: Value,
) -> Result<(), ApiError> {
    let (params, mut backoff, mut conflicts) = (PatchParams::default(), Backoff::new(), 0);
    loop {
        let sent = Patch::Strategic(patch.clone());
        let conflict = match writer.request(|| pods.patch_status(name, &params, &sent)).await {
            Ok(_) => return Ok(()),
            Err(ApiError::Conflict(conflict)) => conflict,
            Err(error) => return Err(error),
        };
        conflicts += 1;
        if conflicts > CONFLICTS_MAX {
            return Err(ApiError::Conflict(conflict));
        }
        tokio::time::sleep(backoff.next(None)).await;
        let pod = writer.request(|| pods.get(name)).await?;
        let is_bound = pod.spec.is_some_and(|spec| spec.node_name.is_some());
        let is_recreated = json!(pod.metadata.uid) != patch["metadata"]["uid"];
        if is_bound || is_recreated || pod.metadata.deletion_timestamp.is_some() {
            return Ok(());
        }
        patch["metadata"]["resourceVersion"] = json!(pod.metadata.resource_version);
    }
}
