//! Pod rules that core does not support: host ports, volumes, inter-pod affinity and anti-affinity, topology spread.
//!
//! Nothing is decided here. A host that places such pods checks its placement against these rules, or translates them
//! into what core supports, such as one member per node.

use std::collections::BTreeMap;

use crate::pod::affinity::{PodAffinityTerm, TopologySpreadConstraint};
use crate::pod::spec::PodSpec;
use muster_core::topology::HOSTNAME;

/// A host port, which only one pod of a node can have.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct HostPort<'a> {
    /// Its number.
    pub port: u16,
    /// `TCP`, `UDP` or `SCTP`.
    pub protocol: &'a str,
    /// The address, `0.0.0.0` for all of them.
    pub ip: &'a str,
}

impl HostPort<'_> {
    /// Whether pods with these two host ports cannot share a node.
    pub fn conflicts_with(&self, other: &HostPort<'_>) -> bool {
        let every = |ip: &str| ip == "0.0.0.0";
        self.port == other.port
            && self.protocol == other.protocol
            && (self.ip == other.ip || every(self.ip) || every(other.ip))
    }
}

impl PodSpec {
    /// The host ports of its containers and sidecars.
    pub fn host_ports(&self) -> Vec<HostPort<'_>> {
        let sidecars = self.init_containers.iter().filter(|container| container.is_sidecar());
        let ports = self.containers.iter().chain(sidecars).flat_map(|container| &container.ports);
        let taken = ports.filter_map(|port| {
            let number = u16::try_from(port.host_port).ok().filter(|number| *number > 0)?;
            let given =
                |text: &'_ Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
            let protocol = port.protocol.as_deref().filter(|_| given(&port.protocol));
            let ip = port.host_ip.as_deref().filter(|_| given(&port.host_ip));
            Some(HostPort {
                port: number,
                protocol: protocol.unwrap_or("TCP"),
                ip: ip.unwrap_or("0.0.0.0"),
            })
        });
        taken.collect()
    }
    /// The PersistentVolumeClaims it uses, when the pod is named `pod`: those it names, and its ephemeral ones.
    pub fn claims(&self, pod: &str) -> Vec<String> {
        let mut claims = Vec::new();
        for volume in &self.volumes {
            if let Some(claim) = &volume.persistent_volume_claim {
                claims.push(claim.claim_name.clone());
            } else if volume.ephemeral.is_some() {
                claims.push(format!("{pod}-{}", volume.name));
            }
        }
        claims
    }
    /// Its required topology spread rule (`DoNotSchedule`) over this topology key, if it has one.
    pub fn required_spread_over(&self, key: &str) -> Option<&TopologySpreadConstraint> {
        let hard = |rule: &&TopologySpreadConstraint| rule.when_unsatisfiable != "ScheduleAnyway";
        let mut rules = self.topology_spread_constraints.iter().filter(hard);
        rules.find(|rule| rule.topology_key == key)
    }
    /// The topology key of its required anti-affinity to pods like itself: each domain, such as a node or a rack, holds
    /// at most one of them. The widest key when there are several, with a node as the narrowest.
    ///
    /// Other pods that the same term matches are not considered; the host must look at those.
    pub fn self_anti_affinity_key(
        &self,
        labels: &BTreeMap<String, String>,
        namespace: &str,
    ) -> Option<&str> {
        let away = self.affinity.as_ref()?.pod_anti_affinity.as_ref()?;
        let own = away.required.iter().filter(|term| matches_itself(term, labels, namespace));
        let keys = own.map(|term| term.topology_key.as_str()).filter(|key| !key.is_empty());
        keys.min_by_key(|key| *key == HOSTNAME)
    }
    /// Whether it has required inter-pod rules that [`PodSpec::self_anti_affinity_key`] does not cover.
    pub fn has_other_inter_pod_rules(
        &self,
        labels: &BTreeMap<String, String>,
        namespace: &str,
    ) -> bool {
        let Some(affinity) = &self.affinity else { return false };
        let near = affinity.pod_affinity.as_ref().is_some_and(|near| !near.required.is_empty());
        let mut away = affinity.pod_anti_affinity.iter().flat_map(|away| &away.required);
        near || away.any(|term| !matches_itself(term, labels, namespace))
    }
}

/// Whether a term matches a pod with these labels.
fn matches_itself(
    term: &PodAffinityTerm,
    labels: &BTreeMap<String, String>,
    namespace: &str,
) -> bool {
    let here = match &term.namespace_selector {
        // Which labels a namespace has is not known here; the empty selector is every namespace.
        Some(selector) => selector.match_labels.is_empty() && selector.match_expressions.is_empty(),
        None => term.namespaces.is_empty(),
    };
    (here || term.namespaces.iter().any(|name| name == namespace))
        && term.mismatch_label_keys.is_empty()
        && term.label_selector.as_ref().is_some_and(|selector| selector.matches(labels))
}
