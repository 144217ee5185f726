//! The provider that boots a pool's nodes.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crd::gang::constraints::Taint;
use crate::crd::pool::simulated::Simulated;
use crate::crd::values::text::{Key, Name, Parameter, Text};

/// The provider that boots the pool's nodes: one of these.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend(
    "minProperties" = 1,
    "maxProperties" = 1,
    "x-kubernetes-validations" = [
        {"rule": "has(self.simulated) == has(oldSelf.simulated) && has(self.karpenter) == has(oldSelf.karpenter) && has(self.provisioningRequest) == has(oldSelf.provisioningRequest)", "message": "who boots a pool's nodes does not change: make another pool"},
    ]
))]
pub struct Provider {
    /// A simulated cloud, with the delays and failures of a real one. No machine is booted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub simulated: Option<Simulated>,
    /// Karpenter, with one NodeClaim per node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub karpenter: Option<Karpenter>,
    /// An autoscaler, with one ProvisioningRequest for all nodes of one kind that an order lacks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provisioning_request: Option<Autoscaler>,
    /// The machine Muster runs on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local: Option<Nothing>,
}

/// How Karpenter is used.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Karpenter {
    /// The node class of the NodeClaims.
    pub node_class_ref: NodeClassRef,
    /// Taints that new nodes have until a component on them, such as a network plugin, is set up and removes them.
    /// Members are placed after that. Taints that are not listed here are waited for as well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "atomic"))]
    pub startup_taints: Vec<Taint>,
    /// Extended resources of the offerings that Karpenter does not know of, because a component on the node provides
    /// them. Muster waits for them as for all others, and does not request them in NodeClaims: a NodeClaim that
    /// requests a resource unknown to Karpenter is never launched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "atomic"))]
    pub resources_not_requested: Vec<Key>,
}

/// How an autoscaler is used.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Autoscaler {
    /// The class of the ProvisioningRequests, which determines the autoscaler that serves them and how;
    /// `best-effort-atomic-scale-up.autoscaling.x-k8s.io` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = [
        {"rule": "self != 'gang.muster.sh'", "message": "is the class that Muster itself serves: it would ask itself"},
    ]))]
    pub class_name: Option<Name>,
    /// The parameters of the ProvisioningRequests, as the class defines them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 100))]
    pub parameters: BTreeMap<String, Parameter>,
}

/// A reference to a Karpenter node class.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct NodeClassRef {
    /// The API group, such as `karpenter.k8s.aws`.
    pub group: Text,
    /// The kind, such as `EC2NodeClass`.
    pub kind: Text,
    /// The name.
    pub name: Text,
}

/// An empty object.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Nothing {}
