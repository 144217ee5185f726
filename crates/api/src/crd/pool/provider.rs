//! Who boots a pool's nodes.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crd::gang::constraints::Taint;
use crate::crd::pool::simulated::Simulated;
use crate::crd::values::text::{Key, Name, Parameter, Text};

/// Who boots a pool's nodes: one of these.
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
    /// Nobody: nodes are played, with the delays and failures of a cloud.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub simulated: Option<Simulated>,
    /// Karpenter, asked with one NodeClaim per node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub karpenter: Option<Karpenter>,
    /// An autoscaler, asked with one ProvisioningRequest for all nodes of a kind that an order lacks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provisioning_request: Option<Autoscaler>,
    /// The machine Muster runs on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local: Option<Nothing>,
}

/// How Karpenter is asked.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Karpenter {
    /// The node class its claims name.
    pub node_class_ref: NodeClassRef,
    /// Taints that its nodes have until something on them, such as a network, is set up and takes them away: nobody is put
    /// there before. Those that are not named here are waited for as well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "atomic"))]
    pub startup_taints: Vec<Taint>,
    /// Extended resources of its offerings that Karpenter does not know its machines have, since something on the node makes
    /// them. They are waited for like all others, and not named in NodeClaims: a claim that names what Karpenter does not know
    /// is never fulfilled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "atomic"))]
    pub resources_not_requested: Vec<Key>,
}

/// How an autoscaler is asked.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Autoscaler {
    /// The class of the requests, which says who serves them and how: `best-effort-atomic-scale-up.autoscaling.x-k8s.io`
    /// when nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = [
        {"rule": "self != 'gang.muster.sh'", "message": "is the class that Muster itself serves: it would ask itself"},
    ]))]
    pub class_name: Option<Name>,
    /// What that class wants to be told.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 100))]
    pub parameters: BTreeMap<String, Parameter>,
}

/// A reference to a Karpenter node class.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct NodeClassRef {
    /// Its API group, such as `karpenter.k8s.aws`.
    pub group: Text,
    /// Its kind, such as `EC2NodeClass`.
    pub kind: Text,
    /// Its name.
    pub name: Text,
}

/// Nothing more to say.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Nothing {}
