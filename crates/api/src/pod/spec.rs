//! The fields of a pod's spec that scheduling needs, under Kubernetes' names for them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::pod::affinity::{Affinity, TopologySpreadConstraint};
use crate::pod::lenient::or_default;
use crate::pod::resources::{Amount, Resources};
use crate::read::finding::shortened;
use crate::yaml::value::join;

/// A pod's spec without what scheduling has no use for.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, expecting = "a mapping")]
pub struct PodSpec {
    /// Containers that run side by side.
    #[serde(deserialize_with = "or_default")]
    pub containers: Vec<Container>,
    /// Containers that run before them, one after the other, and sidecars.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub init_containers: Vec<Container>,
    /// Resources of the pod as a whole; replaces the sum over its containers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
    /// Resources that running a pod takes besides its containers.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub overhead: BTreeMap<String, Amount>,
    /// The node it is bound to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_name: Option<String>,
    /// Labels its node must have.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// Its node affinity, pod affinity and pod anti-affinity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Affinity>,
    /// Taints it tolerates.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<TolerationSpec>,
    /// Its topology spread constraints.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub topology_spread_constraints: Vec<TopologySpreadConstraint>,
    /// Its priority by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority_class_name: Option<String>,
    /// Its priority, once admission has looked the name up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// `Never` when no pod is to be preempted for its priority.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preemption_policy: Option<String>,
    /// The scheduler that is to bind it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduler_name: Option<String>,
    /// Gates that must be removed before it may be scheduled.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub scheduling_gates: Vec<Named>,
    /// Its group, from Kubernetes 1.36 on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduling_group: Option<SchedulingGroup>,
    /// Its group in Kubernetes 1.35.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload_ref: Option<WorkloadRef>,
    /// Its volumes, of which only claims matter here.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<Volume>,
    /// ResourceClaims of devices it uses.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub resource_claims: Vec<DeviceClaim>,
    /// How long it may take to terminate before it is killed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub termination_grace_period_seconds: Option<i64>,
    /// When its containers are restarted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restart_policy: Option<String>,
}

impl PodSpec {
    /// Whether no pod is to be preempted for its priority.
    pub fn never_preempts(&self) -> bool {
        self.preemption_policy.as_deref() == Some(NEVER)
    }
}

/// The preemption policy of a pod, group or priority class that never preempts.
pub const NEVER: &str = "Never";

/// One container.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, expecting = "a mapping")]
pub struct Container {
    /// Its name.
    #[serde(deserialize_with = "or_default")]
    pub name: String,
    /// Its resource requests and limits.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Resources::is_empty")]
    pub resources: Resources,
    /// Ports it opens.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<Port>,
    /// `Always` makes an init container a sidecar.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restart_policy: Option<String>,
}

impl Container {
    /// Whether, being an init container, it keeps running beside the containers.
    pub fn is_sidecar(&self) -> bool {
        self.restart_policy.as_deref() == Some("Always")
    }
}

/// A container port; only its host port matters.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, expecting = "a mapping")]
pub struct Port {
    /// The container's port.
    #[serde(deserialize_with = "or_default")]
    pub container_port: i64,
    /// The host port; 0 when it takes none.
    #[serde(deserialize_with = "or_default")]
    pub host_port: i64,
    /// The node's address.
    #[serde(rename = "hostIP", skip_serializing_if = "Option::is_none")]
    pub host_ip: Option<String>,
    /// TCP by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
}

/// A toleration, as written.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, expecting = "a mapping")]
pub struct TolerationSpec {
    /// The taint's key; every key when empty, with `Exists`.
    #[serde(deserialize_with = "or_default")]
    pub key: String,
    /// `Equal` by default.
    #[serde(deserialize_with = "or_default")]
    pub operator: String,
    /// The taint's value.
    #[serde(deserialize_with = "or_default")]
    pub value: String,
    /// The taint's effect; every effect when empty.
    #[serde(deserialize_with = "or_default")]
    pub effect: String,
    /// How long it stays once the taint is set; irrelevant to placement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub toleration_seconds: Option<i64>,
}

/// Something with a name.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Named {
    /// The name.
    #[serde(deserialize_with = "or_default")]
    pub name: String,
}

/// The group a pod belongs to, from Kubernetes 1.36 on.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, expecting = "a mapping")]
pub struct SchedulingGroup {
    /// The PodGroup, in the pod's namespace.
    #[serde(deserialize_with = "or_default")]
    pub pod_group_name: String,
}

/// The group a pod belongs to in Kubernetes 1.35.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, expecting = "a mapping")]
pub struct WorkloadRef {
    /// The Workload, in the pod's namespace.
    #[serde(deserialize_with = "or_default")]
    pub name: String,
    /// Which of its groups.
    #[serde(deserialize_with = "or_default")]
    pub pod_group: String,
    /// Which replica of that group, where it has several.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub pod_group_replica_key: String,
}

/// A volume; what is not a claim only has its name.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, expecting = "a mapping")]
pub struct Volume {
    /// Its name in the pod.
    #[serde(deserialize_with = "or_default")]
    pub name: String,
    /// A PersistentVolumeClaim by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persistent_volume_claim: Option<ClaimRef>,
    /// A PersistentVolumeClaim created for this pod alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ephemeral: Option<Ephemeral>,
}

/// A claim by name.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, expecting = "a mapping")]
pub struct ClaimRef {
    /// The PersistentVolumeClaim, in the pod's namespace.
    #[serde(deserialize_with = "or_default")]
    pub claim_name: String,
}

/// A claim that is created and deleted with the pod; its template matters only to the provisioner.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Ephemeral {}

/// A claim of devices.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, expecting = "a mapping")]
pub struct DeviceClaim {
    /// Its name in the pod.
    #[serde(deserialize_with = "or_default")]
    pub name: String,
    /// The ResourceClaim, when it exists by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_claim_name: Option<String>,
    /// The template it is made from for this pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_claim_template_name: Option<String>,
}

impl PodSpec {
    /// Reads a pod's spec found at `field`; the errors name the fields that cannot be read, and why.
    pub fn read(value: &Value, field: &str) -> Result<Self, Vec<String>> {
        let whole = match Self::deserialize(value) {
            Ok(spec) => return Ok(spec),
            Err(error) => error,
        };
        let Some(fields) = value.as_object() else {
            return Err(vec![finding(field, &"must be a mapping")]);
        };
        // Read field by field only now that one of them is known to be bad.
        let mut findings = Vec::new();
        for (name, value) in fields {
            let alone = Map::from_iter([(name.clone(), value.clone())]);
            if let Err(error) = Self::deserialize(Value::Object(alone)) {
                findings.push(finding(&join(field, name), &error));
            }
        }
        if findings.is_empty() {
            findings.push(finding(field, &whole));
        }
        Err(findings)
    }
    /// Whether scheduling gates must be removed before it may be scheduled.
    pub fn is_gated(&self) -> bool {
        !self.scheduling_gates.is_empty()
    }
}

fn finding(field: &str, reason: &impl ToString) -> String {
    format!("{field}: {}", shortened(&reason.to_string(), 300))
}
