//! The ProvisioningRequest for nodes of one offering, and the PodTemplate of a pod that fills one node.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt;
use kube::api::DynamicObject;
use muster_api::Autoscaler;
use muster_core::id::{ClaimId, OrderId};
use muster_core::pool::OfferingSpec;
use muster_core::resource::display_amount;
use muster_core::topology::HOSTNAME;
use serde_json::{Map, Value, json};

use crate::provision::karpenter::{
    MANAGED_BY, MUSTER, OFFERING, POOL, effect, node_claim_name, offering_name,
};

/// The annotation with the claims that a request is for.
const CLAIMS: &str = "muster.sh/claims";
/// The label with the order that it was first issued for.
const ORDER: &str = "muster.sh/order";
/// A template must name an image, although it is never run.
const IMAGE: &str = "registry.k8s.io/pause:3.10";

/// All nodes of one offering that are requested together.
#[derive(Debug)]
pub(crate) struct IssuedRequest<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) claims: Vec<ClaimId>,
    pub(crate) order: Option<OrderId>,
    pub(crate) pool: &'a str,
    pub(crate) owner: Option<OwnerReference>,
    pub(crate) autoscaler: &'a Autoscaler,
    pub(crate) offering: &'a OfferingSpec,
    /// Nodes of that offering that exist already, by hostname.
    pub(crate) existing_nodes: Vec<String>,
}

impl IssuedRequest<'_> {
    /// The name of its request and of its template: that of its first claim, and so the same on every attempt.
    pub(crate) fn name(&self) -> String {
        node_claim_name(self.claims.first().copied().unwrap_or(ClaimId(0)))
    }

    fn metadata(&self) -> Value {
        let numbers: Vec<String> = self.claims.iter().map(|claim| claim.0.to_string()).collect();
        let mut labels = json!({POOL: self.pool, MANAGED_BY: MUSTER});
        if let Some(order) = self.order {
            labels[ORDER] = json!(order.0.to_string());
        }
        json!({
            "name": self.name(),
            "namespace": self.namespace,
            "labels": labels,
            "annotations": {OFFERING: offering_name(self.offering), CLAIMS: numbers.join(" ")},
            "ownerReferences": self.owner.iter().collect::<Vec<_>>(),
        })
    }

    /// The template of a pod that fills one of the nodes.
    pub(crate) fn template(&self) -> Value {
        let mut spec = json!({
            "containers": [{
                "name": "node",
                "image": IMAGE,
                "resources": {"requests": filling_requests(self.offering), "limits": gpus(self.offering)},
            }],
            "nodeSelector": self.offering.shown_labels(),
            "tolerations": self.offering.taints.iter().map(|taint| json!({
                "key": taint.key, "operator": "Equal", "value": taint.value, "effect": effect(taint.effect),
            })).collect::<Vec<_>>(),
            "restartPolicy": "Never",
        });
        if !self.existing_nodes.is_empty() {
            let elsewhere =
                json!({"key": HOSTNAME, "operator": "NotIn", "values": self.existing_nodes});
            spec["affinity"] = json!({"nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [elsewhere]}],
                },
            }});
        }
        json!({
            "apiVersion": "v1",
            "kind": "PodTemplate",
            "metadata": self.metadata(),
            "template": {"metadata": {"labels": {MANAGED_BY: MUSTER}}, "spec": spec},
        })
    }

    /// The request.
    pub(crate) fn request(&self) -> Value {
        let Autoscaler { class, parameters } = self.autoscaler;
        let mut spec = json!({
            "provisioningClassName": class,
            "podSets": [{"podTemplateRef": {"name": self.name()}, "count": self.claims.len()}],
        });
        if !parameters.is_empty() {
            spec["parameters"] = json!(parameters);
        }
        json!({
            "apiVersion": "autoscaling.x-k8s.io/v1",
            "kind": "ProvisioningRequest",
            "metadata": self.metadata(),
            "spec": spec,
        })
    }
}

fn gpus(offering: &OfferingSpec) -> Map<String, Value> {
    let gpu = offering.gpu.as_ref().filter(|_| offering.gpus > 0);
    gpu.map(|gpu| (gpu.resource.to_string(), json!(offering.gpus.to_string())))
        .into_iter()
        .collect()
}

/// The requests of a pod that leave no space for a second one: all GPUs or, where there are none, more than half of CPU and
/// memory. Never everything: DaemonSets need some of it.
fn filling_requests(offering: &OfferingSpec) -> Map<String, Value> {
    let mut filling_requests = gpus(offering);
    if filling_requests.is_empty() {
        let large =
            offering.allocatable.iter().filter(|(name, _)| matches!(&***name, "cpu" | "memory"));
        filling_requests.extend(large.map(|(name, amount)| {
            (name.to_string(), json!(display_amount(name, amount / 2 + 1).to_string()))
        }));
    }
    filling_requests
}

/// What a request, or its template, is for, by its labels and annotations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestScope {
    pub(crate) pool: Arc<str>,
    pub(crate) offering: Arc<str>,
    pub(crate) claims: Vec<ClaimId>,
    pub(crate) order: Option<OrderId>,
}

/// What a request is for, if Muster issued it.
pub(crate) fn request_scope(request: &DynamicObject) -> Option<RequestScope> {
    let (labels, annotations) = (request.labels(), request.annotations());
    let numbers = annotations.get(CLAIMS)?.split(' ').map(|number| number.parse().map(ClaimId));
    let is_own = labels.get(MANAGED_BY).is_some_and(|by| by == MUSTER);
    let scope = RequestScope {
        pool: labels.get(POOL)?.as_str().into(),
        offering: annotations.get(OFFERING)?.as_str().into(),
        claims: numbers.collect::<Result<_, _>>().ok()?,
        order: labels.get(ORDER).and_then(|order| order.parse().ok()).map(OrderId),
    };
    is_own.then_some(scope)
}
