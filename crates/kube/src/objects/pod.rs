//! Pods.

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use muster_api::pod::PodSpec;
use muster_core::topology::HOSTNAME;
use serde::{Deserialize, Serialize};

use super::{Condition, served};

/// The gate by which pods of any scheduler are held until Muster has room for the whole gang.
pub const GATE: &str = "muster.sh/gang";
/// Written on a pod of another scheduler when its gate is lifted: the node that its seat is on.
pub const SEAT: &str = "muster.sh/seat";
/// Written beside it when it was Muster that told the pod to go to one node only.
pub const PINNED: &str = "muster.sh/pinned";

/// What a pod is told that Muster sends away.
pub const SENT_AWAY: &str = "Muster stops the whole gang";

/// A pod, as far as scheduling goes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Pod {
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub spec: PodSpec,
    #[serde(default)]
    pub status: PodStatus,
}

served!(Pod, NamespaceResourceScope, "", "v1", "pods");

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodStatus {
    pub phase: String,
    pub nominated_node_name: Option<String>,
    pub conditions: Vec<Condition>,
    pub start_time: Option<Time>,
}

impl Pod {
    /// Where it was put.
    pub fn node(&self) -> Option<&str> {
        self.spec.node_name.as_deref().filter(|name| !name.is_empty())
    }
    /// Whether it has run to its end and takes nothing any more.
    pub fn is_over(&self) -> bool {
        matches!(&*self.status.phase, "Succeeded" | "Failed")
    }
    pub fn has_succeeded(&self) -> bool {
        self.status.phase == "Succeeded"
    }
    /// Whether somebody has asked for its end.
    pub fn is_leaving(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }
    /// Whether Muster is sending it away.
    pub fn is_sent_away(&self) -> bool {
        let told = |one: &Condition| one.kind == "DisruptionTarget" && one.message == SENT_AWAY;
        self.status.conditions.iter().any(told)
    }
    /// Whether it must not meet certain others, and so they must not meet it.
    pub fn is_shy(&self) -> bool {
        let affinity = self.spec.affinity.as_ref();
        let away = affinity.and_then(|affinity| affinity.pod_anti_affinity.as_ref());
        away.is_some_and(|away| !away.required.is_empty())
    }
    /// Whether it waits for Muster to lift its gate.
    pub fn has_gate(&self) -> bool {
        self.spec.scheduling_gates.iter().any(|gate| gate.name == GATE)
    }
    /// Whether somebody else holds it back from being scheduled.
    pub fn is_held(&self) -> bool {
        self.spec.scheduling_gates.iter().any(|gate| gate.name != GATE)
    }
    /// The node it was let go to, for another scheduler to put it there.
    pub fn seat(&self) -> Option<&str> {
        let seat = self.metadata.annotations.as_ref()?.get(SEAT)?;
        Some(&**seat).filter(|seat| !seat.is_empty())
    }
    /// Takes out what Muster itself told it when its gate was lifted. Members that are alike stay alike, although each
    /// is told another node.
    pub fn unpin(&mut self) {
        let pinned = self.metadata.annotations.as_ref().is_some_and(|all| all.contains_key(PINNED));
        if pinned {
            self.spec.node_selector.remove(HOSTNAME);
        }
    }
}
