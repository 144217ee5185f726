//! What a pod insists on that core has no word for: ports of the node, volumes, neighbours, even spreading.
//!
//! Nothing is decided here. A host that places such pods holds its placement against these, or reduces them to
//! what core knows, such as one member per node.

use std::collections::BTreeMap;

use crate::pod::affinity::{PodTerm, SpreadConstraint};
use crate::pod::spec::PodSpec;
use muster_core::topology::HOSTNAME;

/// A port of the node that only one pod can have.
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
    /// Whether both cannot be on one node.
    pub fn clashes(&self, other: &HostPort<'_>) -> bool {
        let every = |ip: &str| ip == "0.0.0.0";
        self.port == other.port
            && self.protocol == other.protocol
            && (self.ip == other.ip || every(self.ip) || every(other.ip))
    }
}

impl PodSpec {
    /// Ports of the node it takes, by its containers and its sidecars.
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
    /// PersistentVolumeClaims it uses, when the pod is called `pod`: those it names, and those made for it.
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
    /// The rule it must be spread over domains of this label by, if it must.
    pub fn spreads_over(&self, key: &str) -> Option<&SpreadConstraint> {
        let hard = |rule: &&SpreadConstraint| rule.when_unsatisfiable != "ScheduleAnyway";
        let mut rules = self.topology_spread_constraints.iter().filter(hard);
        rules.find(|rule| rule.topology_key == key)
    }
    /// The label whose domains hold at most one pod like it: what a pod says that must not share a node, or a
    /// rack, with pods its own labels match. The widest when there are several, taking a node for the narrowest.
    ///
    /// It says nothing about pods of others that the same term matches; those are for the host to see.
    pub fn alone_per(&self, labels: &BTreeMap<String, String>, namespace: &str) -> Option<&str> {
        let away = self.affinity.as_ref()?.pod_anti_affinity.as_ref()?;
        let own = away.required.iter().filter(|term| matches_itself(term, labels, namespace));
        let keys = own.map(|term| term.topology_key.as_str()).filter(|key| !key.is_empty());
        keys.min_by_key(|key| *key == HOSTNAME)
    }
    /// Whether it has rules about neighbours that [`PodSpec::alone_per`] does not put into one word.
    pub fn minds_neighbours(&self, labels: &BTreeMap<String, String>, namespace: &str) -> bool {
        let Some(affinity) = &self.affinity else { return false };
        let near = affinity.pod_affinity.as_ref().is_some_and(|near| !near.required.is_empty());
        let mut away = affinity.pod_anti_affinity.iter().flat_map(|away| &away.required);
        near || away.any(|term| !matches_itself(term, labels, namespace))
    }
}

/// Whether a pod with these labels is one of those the term is about.
fn matches_itself(term: &PodTerm, labels: &BTreeMap<String, String>, namespace: &str) -> bool {
    let here = match &term.namespace_selector {
        // Which labels a namespace has is not known here; the empty selector is every namespace.
        Some(selector) => selector.match_labels.is_empty() && selector.match_expressions.is_empty(),
        None => term.namespaces.is_empty(),
    };
    (here || term.namespaces.iter().any(|name| name == namespace))
        && term.mismatch_label_keys.is_empty()
        && term.label_selector.as_ref().is_some_and(|selector| selector.matches(labels))
}
