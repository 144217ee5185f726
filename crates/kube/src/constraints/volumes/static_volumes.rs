//! Static PersistentVolumes for claims with `WaitForFirstConsumer`, such as local disks of a node.
//!
//! Node-local volumes, which only one node reaches, are tokens: a node has as many as it has such volumes, and the
//! planner counts them with everything else. Which claim gets which volume is decided when the gang has its seats
//! (`binding`). A volume that several nodes reach cannot be counted by node, and a claim that several members use
//! belongs to no single member: then each claim is assigned its volume before the gang is placed. That is stricter than
//! necessary.
//!
//! Claims with different requirements may compete for the same volumes. A token stands for all volumes that match one
//! set of requirements. A claim takes one of each token whose volumes it could have, except tokens with stricter
//! requirements than its own. If no token is taken more often than a node has of it, every claim can get a volume: go
//! through the tokens from the least strict one on, and keep those that have no volume in common with one already kept.
//! Each claim is counted in a kept token, since the token that displaced its own is no stricter; and so there are no
//! more claims than volumes. The same holds for any subset of the claims, which is the condition of Hall's theorem.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::constraints::cluster_view::{ClusterView, Member, namespace, node_matches};
use crate::constraints::pod_constraints::PodConstraints;
use crate::constraints::tokens::TokenKind;
use crate::constraints::volumes::claims::{claims, class_of, is_static, require_reachable};
use crate::constraints::volumes::index::{VolumeIndex, match_volumes};
use crate::constraints::volumes::lister::VolumeLister;
use crate::constraints::volumes::volume::{ClaimRequirements, PersistentVolume};

/// Volumes, and what other gangs want or were promised of them.
#[derive(Debug)]
pub(crate) struct StaticVolumes<'a> {
    pub(crate) volumes: &'a VolumeIndex,
    /// The requirements of other gangs' claims that are counted by tokens.
    pub(crate) others: BTreeSet<&'a ClaimRequirements>,
    /// Volumes that were promised to other gangs.
    pub(crate) promised: BTreeSet<&'a str>,
}

impl StaticVolumes<'_> {
    /// Whether a volume is free for a claim now.
    pub(crate) fn is_free(&self, name: &str, volume: &PersistentVolume) -> bool {
        volume.is_available && volume.claim_ref.is_none() && !self.promised.contains(name)
    }

    fn free<'a>(
        &'a self,
        requirements: &'a ClaimRequirements,
    ) -> impl Iterator<Item = (&'a Arc<str>, &'a PersistentVolume)> {
        self.volumes.matching(requirements).filter(|(name, volume)| self.is_free(name, volume))
    }

    /// Whether a claim with requirements `own` takes the token of the requirements `other`.
    fn counts(&self, own: &ClaimRequirements, other: &ClaimRequirements) -> bool {
        own == other || (!other.is_stricter_than(own) && self.volumes.overlap(own, other))
    }
}

/// The requirements of a gang's claims that need a static volume, and the members that use each claim.
type WantedVolumes = BTreeMap<String, (ClaimRequirements, Vec<usize>)>;

/// Has members go where their claims can get static volumes.
pub(crate) fn require_static_volumes(
    gang: &[Member<'_>],
    cluster: &ClusterView<'_>,
    lister: &impl VolumeLister,
    resolved: &mut [PodConstraints],
) {
    let mut wanted = WantedVolumes::new();
    for (at, one) in resolved.iter().enumerate() {
        for (claim, requirements) in &one.static_claims {
            let (_, users) =
                wanted.entry(claim.clone()).or_insert_with(|| (requirements.clone(), Vec::new()));
            users.push(at);
        }
    }
    if wanted.is_empty() {
        return;
    }
    let static_volumes = lister.static_volumes();
    // Most claims of a gang have the same requirements.
    let mut node_local: BTreeMap<ClaimRequirements, bool> = BTreeMap::new();
    let mut is_node_local = |requirements: &ClaimRequirements| {
        let look =
            || static_volumes.free(requirements).all(|(_, volume)| volume.only_hostname.is_some());
        *node_local.entry(requirements.clone()).or_insert_with(look)
    };
    let (counted, assigned): (WantedVolumes, WantedVolumes) = wanted
        .into_iter()
        .partition(|(_, (requirements, users))| users.len() == 1 && is_node_local(requirements));
    for claim in assigned.keys() {
        resolved.iter_mut().for_each(|one| drop(one.static_claims.remove(claim)));
    }
    take_tokens(&counted, &static_volumes, resolved);
    assign_volumes(&assigned, gang, cluster, (&static_volumes, lister), resolved);
}

/// Restores the tokens of a gang that was found already placed after a restart, as far as they are known: as many as it
/// was placed by, whether its claims are bound by now or not.
pub(crate) fn restore_static_volumes(
    gang: &[Member<'_>],
    lister: &impl VolumeLister,
    resolved: &mut [PodConstraints],
) {
    let mut wanted = WantedVolumes::new();
    for (at, member) in gang.iter().enumerate() {
        for name in claims(member.pod) {
            let Some(claim) = lister.claim(namespace(member.pod), &name) else { continue };
            let is_static = class_of(claim, lister).is_some_and(is_static);
            if let Some(requirements) = ClaimRequirements::of(claim).filter(|_| is_static) {
                let key = format!("{}/{name}", namespace(member.pod));
                wanted.entry(key).or_insert((requirements, Vec::new())).1.push(at);
            }
        }
    }
    if wanted.is_empty() {
        return;
    }
    let static_volumes = lister.static_volumes();
    wanted.retain(|_, (requirements, users)| {
        users.len() == 1
            && static_volumes
                .volumes
                .matching(requirements)
                .all(|(_, volume)| volume.only_hostname.is_some())
    });
    for (claim, (requirements, users)) in &wanted {
        users.iter().for_each(|at| {
            drop(resolved[*at].static_claims.insert(claim.clone(), requirements.clone()));
        });
    }
    take_tokens(&wanted, &static_volumes, resolved);
    resolved.iter_mut().for_each(|one| one.wait_reason = None);
}

/// Counts the claims of each member in every token whose volumes they compete for.
fn take_tokens(
    counted: &WantedVolumes,
    static_volumes: &StaticVolumes<'_>,
    resolved: &mut [PodConstraints],
) {
    let own: BTreeSet<&ClaimRequirements> =
        counted.values().map(|(requirements, _)| requirements).collect();
    let all: BTreeSet<&ClaimRequirements> =
        static_volumes.others.iter().chain(&own).copied().collect();
    let counts_in = |own: &ClaimRequirements| -> Vec<&ClaimRequirements> {
        all.iter().filter(|one| static_volumes.counts(own, one)).copied().collect()
    };
    let counts_in: BTreeMap<&ClaimRequirements, Vec<&ClaimRequirements>> =
        own.iter().map(|own| (*own, counts_in(own))).collect();
    for (requirements, users) in counted.values() {
        if static_volumes.free(requirements).next().is_none() {
            users.iter().for_each(|at| {
                resolved[*at].wait_because(format!("needs {requirements}, and there is none"));
            });
        }
    }
    for one in resolved {
        let mut takes: BTreeMap<&ClaimRequirements, u64> = BTreeMap::new();
        for requirements in
            one.static_claims.values().filter_map(|own| counts_in.get(own)).flatten()
        {
            *takes.entry(requirements).or_default() += 1;
        }
        takes.into_iter().for_each(|(requirements, n)| {
            one.take_token(TokenKind::StaticVolume(requirements.clone()), n);
        });
    }
}

/// Assigns each claim a volume, and restricts the members that use it to nodes that reach the volume.
fn assign_volumes(
    assigned: &WantedVolumes,
    gang: &[Member<'_>],
    cluster: &ClusterView<'_>,
    (static_volumes, lister): (&StaticVolumes<'_>, &impl VolumeLister),
    resolved: &mut [PodConstraints],
) {
    let mut claims: Vec<(&String, &(ClaimRequirements, Vec<usize>))> = assigned.iter().collect();
    claims.sort_by_key(|(claim, (requirements, _))| (requirements.bytes(), *claim));
    let could_have = |(_, (requirements, users)): &(&String, &(ClaimRequirements, Vec<usize>))| {
        let is_usable = |volume: &PersistentVolume| {
            let mut nodes = cluster.nodes.iter().filter(|node| volume.is_reachable_from(node));
            nodes.any(|node| users.iter().all(|at| node_matches(gang[*at].constraints, node)))
        };
        let mut volumes: Vec<_> =
            static_volumes.free(requirements).filter(|(_, volume)| is_usable(volume)).collect();
        volumes.sort_by_key(|(name, volume)| (volume.bytes, *name));
        volumes.into_iter().map(|(name, _)| name.clone()).collect()
    };
    let wanted: Vec<Vec<Arc<str>>> = claims.iter().map(could_have).collect();
    for ((claim, (requirements, users)), name) in claims.into_iter().zip(match_volumes(&wanted)) {
        for at in users {
            let volume = name.as_deref().and_then(|name| lister.volume(name));
            match (volume, &name) {
                (Some(volume), Some(name)) => {
                    require_reachable(volume, lister, &mut resolved[*at]);
                    resolved[*at].assigned_volumes.insert(claim.clone(), name.clone());
                }
                _ => resolved[*at].wait_because(format!("needs {requirements}, and none is left")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use muster_core::constraint::Constraints;
    use serde_json::json;

    use crate::constraints::cluster_view::fixtures::{cluster_view, node, pod, text};
    use crate::constraints::volumes::lister::fixtures::FakeVolumes;
    use crate::constraints::volumes::static_volumes::*;
    use crate::constraints::volumes::volume::fixtures::{claim, static_volume};

    /// The outcome for members with these claims each: `data=10Gi`.
    fn outcome(volumes: &str, others: &str, members: &str) -> String {
        let nodes = [node("a", "1"), node("b", "2")];
        let requirements = |size: &str| {
            let (size, kind) = size.split_once('/').unwrap_or((size, ""));
            let more = match kind {
                "" => json!({}),
                kind => json!({"selector": {"matchLabels": {"kind": kind}}}),
            };
            ClaimRequirements::of(&claim("local", size, &more)).expect("a claim")
        };
        let mut lister = FakeVolumes {
            others: others.split_whitespace().map(requirements).collect(),
            ..FakeVolumes::default()
        };
        for (at, text) in volumes.split(", ").enumerate() {
            let (text, kind) = text.split_once('/').unwrap_or((text, ""));
            let mut volume = static_volume(&format!("local {text}"));
            volume.metadata.labels = Some([("kind".to_owned(), kind.to_owned())].into());
            lister.add_volume(&format!("pv-{at}"), volume);
        }
        let member = |claims: &str| {
            let one = |claim: &str| {
                let (name, size) = claim.split_once('=').expect("name=size");
                (format!("here/{name}"), requirements(size))
            };
            let mut resolved = PodConstraints::default();
            resolved.static_claims = claims.split_whitespace().map(one).collect();
            resolved
        };
        let mut resolved: Vec<PodConstraints> = members.split('|').map(member).collect();
        let (pod, constraints) = (pod("db", &json!({})), Constraints::default());
        let gang = vec![Member { pod: &pod, constraints: &constraints }; resolved.len()];
        require_static_volumes(&gang, &cluster_view(&nodes, &[]), &lister, &mut resolved);
        let token = "a free volume of class local with ";
        let all: Vec<String> =
            resolved.iter().map(|resolved| text(resolved).replace(token, "")).collect();
        all.join(" | ").replace(" on the node", "").replace("kubernetes.io/hostname", "host")
    }

    #[test]
    fn members_go_where_their_claims_can_get_static_volumes() {
        // Volumes, requirements of other gangs, claims of members, and the outcome.
        for (volumes, others, members, expected) in [
            ("10Gi on a, 20Gi on b", "", "x=10Gi|y=10Gi", "1 of 10Gi | 1 of 10Gi"),
            ("10Gi on a, 20Gi on b", "", "x=10Gi|y=20Gi", "1 of 10Gi | 1 of 10Gi; 1 of 20Gi"),
            ("10Gi on a, 20Gi on b", "", "x=10Gi y=20Gi", "2 of 10Gi; 1 of 20Gi"),
            ("10Gi on a, 20Gi on b", "5Gi", "x=20Gi", "1 of 5Gi; 1 of 20Gi"),
            ("10Gi on a, 20Gi on b", "30Gi", "x=10Gi", "1 of 10Gi"),
            // Claims for other labels compete only if there are volumes that match both.
            ("9Gi on a/x, 9Gi on a/y", "1Gi/y", "x=1Gi/x", "1 of 1Gi and kind=x"),
            ("10Gi on a", "", "x=20Gi", "1 of 20Gi; waits: needs 20Gi, and there is none"),
            // Volumes that several nodes reach, and claims that several members use, are assigned.
            ("10Gi in 1, 20Gi in 2", "", "x=10Gi|y=10Gi", "zone In([1]) | zone In([2])"),
            ("10Gi in 1, 20Gi in 2", "", "x=20Gi|y=10Gi", "zone In([2]) | zone In([1])"),
            ("10Gi in 1, 20Gi", "", "x=10Gi|y=10Gi", "zone In([1]) | "),
            ("10Gi in 1", "", "x=9Gi|y=9Gi", "zone In([1]) | waits: needs 9Gi, and none is left"),
            ("10Gi in 3", "", "x=9Gi", "waits: needs 9Gi, and none is left"),
            ("9Gi on b, 8Gi on a", "", "x=8Gi|x=8Gi", "host In([a]) | host In([a])"),
        ] {
            let got = outcome(volumes, others, members);
            assert_eq!(got, expected, "{members} of {volumes} beside {others}");
        }
    }
}
