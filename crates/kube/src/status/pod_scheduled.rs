//! What the pods of a gang are told while they wait: the condition `PodScheduled`, which autoscalers read too.

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
use crate::effects::outcome::RETRY_PAUSE;
use crate::host::Host;
use crate::status::reasons::{
    BINDING_REFUSED, CONSTRAINTS_UNSATISFIED, QUEUE_CLOSED, StatusReport, UNKNOWN_QUEUE,
};

impl Host {
    /// Whether nodes would help a gang that Muster cannot get: what another autoscaler has to know, and nothing else is. It
    /// is never so for who waits for room under a limit, for others to move, or for nodes that Muster gets itself, and
    /// who wants no nodes bought wants none of others either.
    pub(crate) fn node_would_help(
        &self,
        name: &str,
        verdict: &Verdict,
        told: &StatusReport,
    ) -> bool {
        let gang = self.world.gang_named(name).and_then(|id| self.world.gang(id));
        let buys = gang.is_some_and(|gang| gang.spec.provisioning.mode != ProvisioningMode::Never);
        let is_kept = matches!(told.reason, CONSTRAINTS_UNSATISFIED | BINDING_REFUSED);
        buys && !is_kept && verdict.lacks_unoffered_nodes()
    }

    /// Why the pods of a gang are nowhere, in one word; none when they are about to be somewhere. To every autoscaler
    /// `Unschedulable` means that one more node would help this pod.
    pub(crate) fn pod_reason(
        &self,
        name: &str,
        verdict: &Verdict,
        told: &StatusReport,
    ) -> Option<&'static str> {
        match verdict {
            Verdict::Waiting { .. } | Verdict::Impossible { .. } => Some(match told.reason {
                reason @ (CONSTRAINTS_UNSATISFIED
                | BINDING_REFUSED
                | UNKNOWN_QUEUE
                | QUEUE_CLOSED) => reason,
                _ if self.node_would_help(name, verdict, told) => "Unschedulable",
                _ => "WaitingForTurn",
            }),
            Verdict::Provisioning { .. } => Some("WaitingForNodes"),
            Verdict::Admitted | Verdict::Running | Verdict::Stopping => None,
        }
    }

    /// Pods of a gang that waits are told why.
    pub(crate) fn write_pod_reasons(
        &mut self,
        name: &Arc<str>,
        lane: &Arc<str>,
        verdict: &Verdict,
        told: &StatusReport,
    ) {
        if let Some(reason) = self.pod_reason(name, verdict, told) {
            self.write_pod_conditions(name, lane, reason, &told.message);
        }
    }

    /// Tells the pods of a gang that are nowhere why that is so.
    pub(crate) fn write_pod_conditions(
        &mut self,
        name: &Arc<str>,
        lane: &Arc<str>,
        reason: &'static str,
        message: &str,
    ) {
        let Some(group) = self.gangs.get(name) else { return };
        let mut writes = Vec::new();
        for key in self.pods_by_state(group).unbound {
            // To others a pod with a gate is not there yet, and that is the word they know for it.
            let gated = self.cache.pods.get(&key).is_some_and(|pod| pod.has_gate());
            let reason = if gated { "SchedulingGated" } else { reason };
            let same = |(was, said): &(&str, String)| *was == reason && said == message;
            if self.written_status.pods.get(&key).is_some_and(same) {
                continue;
            }
            self.written_status.pods.insert(key.clone(), (reason, message.to_owned()));
            // Of this pod, and as it was seen: one that was bound meanwhile, or is another, needs no reason any more.
            let Some(pod) = self.cache.pods.get(&key) else { continue };
            let is = (&pod.metadata.uid, &pod.metadata.resource_version);
            let patch = json!({"metadata": {"uid": is.0, "resourceVersion": is.1}, "status": {"conditions": [{
                "type": "PodScheduled",
                "status": "False",
                "reason": reason,
                "message": message,
                "lastTransitionTime": jiff::Timestamp::now().round(jiff::Unit::Second).map(|at| at.to_string()).unwrap_or_default(),
            }]}});
            let (hands, told) =
                (self.writer.for_namespace(split_key(&key).0), self.outcomes.clone());
            writes.push(async move {
                let (namespace, pod) = split_key(&key);
                let pods: Api<AnyPod> = Api::namespaced(hands.client.clone(), namespace);
                match tell(&hands, &pods, pod, patch).await {
                    Ok(()) | Err(ApiError::NotFound | ApiError::NotLeader) => {}
                    Err(said) => {
                        tracing::info!(pod = &*key, %said, "not told why it waits");
                        tokio::time::sleep(RETRY_PAUSE).await;
                        let _ = told.send(
                            crate::effects::outcome::Outcome::PodConditionNotWritten(key.clone()),
                        );
                    }
                }
            });
        }
        if !writes.is_empty() {
            self.ordered_writes.write(lane, async move { drop(join_all(writes).await) });
        }
    }
}

/// How often a patch that loses a race against another writer is sent again, before its gang is looked at anew.
const RACES: u32 = 8;

/// Tells a pod why it waits. A patch that loses a race is sent again for the pod as it is then, until it is written or the
/// pod waits no more.
async fn tell(
    hands: &ApiWriter,
    pods: &Api<AnyPod>,
    name: &str,
    mut patch: Value,
) -> Result<(), ApiError> {
    let (params, mut pauses, mut races) = (PatchParams::default(), Backoff::new(), 0);
    loop {
        let sent = Patch::Strategic(patch.clone());
        let why = match hands.request(|| pods.patch_status(name, &params, &sent)).await {
            Ok(_) => return Ok(()),
            Err(ApiError::Conflict(why)) => why,
            Err(said) => return Err(said),
        };
        races += 1;
        if races > RACES {
            return Err(ApiError::Conflict(why));
        }
        tokio::time::sleep(pauses.next(None)).await;
        let is = hands.request(|| pods.get(name)).await?;
        let is_bound = is.spec.is_some_and(|spec| spec.node_name.is_some());
        let is_another = json!(is.metadata.uid) != patch["metadata"]["uid"];
        if is_bound || is_another || is.metadata.deletion_timestamp.is_some() {
            return Ok(());
        }
        patch["metadata"]["resourceVersion"] = json!(is.metadata.resource_version);
    }
}
