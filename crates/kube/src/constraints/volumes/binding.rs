//! Volumes of pods that have their seats: claims that wait for their pod are given one that is there, or are told the node
//! and have one made. No pod of the gang is bound before all of them have their volume. A gang whose volumes do not come in
//! time gives its seats back and starts over.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::api::{Api, DynamicObject};
use muster_core::plan::StopReason;
use muster_core::time::Time;
use serde_json::{Value, json};

use crate::api::retry::Said;
use crate::cache::kinds::KindRole;
use crate::cache::store::Key;
use crate::constraints::cluster_view::namespace;
use crate::constraints::volumes::claims::{
    ClaimState, SELECTED_NODE, VolumeLister, annotation, claim_state, claims, is_static,
};
use crate::constraints::volumes::index::match_volumes;
use crate::constraints::volumes::lister::CachedVolumes;
use crate::constraints::volumes::volume::{ClaimRequirements, PersistentVolume};
use crate::host::Host;
use crate::objects::pod::Pod;
use crate::provision::order_object::parts;

/// A gang that waits for its volumes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VolumeBinding {
    /// Since when.
    since: Time,
    /// Where its pods will be bound.
    pods: BTreeMap<Key, Arc<str>>,
    /// The claims that have no volume yet, and the nodes of their pods.
    unbound: BTreeMap<String, Arc<str>>,
    /// Those that were told to be made there.
    selected_nodes: BTreeMap<String, Arc<str>>,
    /// The volumes that are kept for others of them.
    pub(crate) chosen: BTreeMap<String, Arc<str>>,
}

impl VolumeBinding {
    /// What a person is told meanwhile.
    pub(crate) fn describe(&self) -> String {
        let names: Vec<&str> = self.unbound.keys().map(|key| parts(key).1).collect();
        format!("waits for its volumes: {}", names.join(", "))
    }

    /// Which claims are to have which volumes.
    #[cfg(test)]
    pub(crate) fn chosen(&self) -> BTreeMap<String, String> {
        let pairs = self.chosen.iter().map(|(claim, volume)| (claim.clone(), volume.to_string()));
        pairs.collect()
    }
}

/// The node that volumes of a pod draw it to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VolumeNode {
    pub(crate) node: Arc<str>,
    /// Whether they cannot be reached from any other.
    pub(crate) is_required: bool,
}

/// A claim that waits for its pod, whose node is known.
struct WaitingClaim {
    claim: String,
    node: Arc<str>,
    /// What it asks for, if it may be given a volume that is there.
    requirements: Option<ClaimRequirements>,
    is_static: bool,
}

/// The claims of pods that are to be bound.
#[derive(Default)]
struct UnboundClaims {
    /// Those that have no volume yet, and the nodes of their pods.
    unbound: BTreeMap<String, Arc<str>>,
    waiting: Vec<WaitingClaim>,
}

impl Host {
    /// The node that a pod's volumes are on, or are made for, if that is one.
    pub(crate) fn volume_node(&self, gang: &str, key: &str) -> Option<VolumeNode> {
        let chosen = self.gangs.get(gang).and_then(|record| record.volume_binding.as_ref());
        if let Some(node) = chosen.and_then(|chosen| chosen.pods.get(key)) {
            return Some(VolumeNode { node: node.clone(), is_required: false });
        }
        let pod = self.cache.pods.get(key)?;
        let lister = CachedVolumes { host: self, gang };
        let told = |name: &String| {
            let claim = lister.claim(namespace(pod), name)?;
            if let ClaimState::Bound(volume) | ClaimState::Prebound(volume) =
                claim_state(claim, &lister)
            {
                let only_hostname = self.constraints.volumes.get(volume)?.only_hostname.as_ref()?;
                let node = lister.nodes_with_hostname(only_hostname).into_iter().next();
                return Some(VolumeNode {
                    node: node.unwrap_or_else(|| only_hostname.clone()),
                    is_required: true,
                });
            }
            let selected = annotation(claim, SELECTED_NODE)?;
            Some(VolumeNode { node: selected.into(), is_required: false })
        };
        claims(pod).iter().find_map(told)
    }

    /// Whether every volume of these pods is there. If not, those that wait for their pod are given one that is, or are
    /// told where it goes: all of them, or none. What others could have is not kept for who cannot start.
    pub(crate) fn bind_volumes(&mut self, gang: &Arc<str>, pods: &[(Key, Arc<str>)]) -> bool {
        let UnboundClaims { unbound, waiting } = self.unbound_claims(gang, pods);
        if unbound.is_empty() {
            self.gangs.get_mut(gang).expect("followed").volume_binding = None;
            return true;
        }
        let before = self.gangs.get_mut(gang).expect("followed").volume_binding.take();
        let mut binding = before.unwrap_or_else(|| VolumeBinding {
            since: self.now(),
            pods: BTreeMap::new(),
            unbound: BTreeMap::new(),
            selected_nodes: BTreeMap::new(),
            chosen: BTreeMap::new(),
        });
        binding.pods = pods.iter().cloned().collect();
        binding.selected_nodes.retain(|claim, _| unbound.contains_key(claim));
        binding.chosen.retain(|claim, _| unbound.contains_key(claim));
        binding.unbound = unbound;
        let chosen = self.choose_static_volumes(gang, &waiting, &binding.chosen);
        let lacks = |claim: &WaitingClaim| claim.is_static && !chosen.contains_key(&claim.claim);
        if !waiting.iter().any(lacks) {
            for WaitingClaim { claim, node, .. } in waiting {
                match chosen.get(&claim) {
                    Some(volume) if binding.chosen.get(&claim) != Some(volume) => {
                        binding.chosen.insert(claim.clone(), volume.clone());
                        self.set_claim_ref(gang, claim, volume);
                        self.constraints.recount_nodes = true;
                    }
                    None if binding.selected_nodes.get(&claim) != Some(&node) => {
                        binding.selected_nodes.insert(claim.clone(), node.clone());
                        self.set_selected_node(claim, json!(node));
                    }
                    _ => {}
                }
            }
        }
        self.gangs.get_mut(gang).expect("followed").volume_binding = Some(binding);
        false
    }

    /// Claims of pods that are to be bound and that have no volume yet.
    fn unbound_claims(&self, gang: &str, pods: &[(Key, Arc<str>)]) -> UnboundClaims {
        let lister = CachedVolumes { host: self, gang };
        let mut all = UnboundClaims::default();
        for (key, node) in pods {
            let Some(pod) = self.cache.pods.get(key) else { continue };
            for name in claims(pod) {
                let at = format!("{}/{name}", namespace(pod));
                let claim = lister.claim(namespace(pod), &name);
                let claim_state = claim.map(|claim| (claim, claim_state(claim, &lister)));
                if let Some((_, ClaimState::Bound(_))) = claim_state {
                    continue;
                }
                // A claim that several of them use is made for the first.
                if all.unbound.contains_key(&at) {
                    continue;
                }
                all.unbound.insert(at.clone(), node.clone());
                let Some((claim, ClaimState::WaitForFirstConsumer(class))) = claim_state else {
                    continue;
                };
                let selected = annotation(claim, SELECTED_NODE);
                if selected != Some(&**node) {
                    all.waiting.push(WaitingClaim {
                        claim: at,
                        node: node.clone(),
                        requirements: ClaimRequirements::of(claim).filter(|_| selected.is_none()),
                        is_static: is_static(class),
                    });
                }
            }
        }
        all.waiting.sort_by_key(|claim| claim.requirements.as_ref().map(ClaimRequirements::bytes));
        all
    }

    /// A claim of a pod that waits for its pod to be told its node.
    pub(crate) fn claim_waiting_for_first_consumer(&self, gang: &str, pod: &Pod) -> Option<String> {
        let lister = CachedVolumes { host: self, gang };
        let waits = |name: &String| {
            let claim = lister.claim(namespace(pod), name);
            claim.is_some_and(|claim| {
                matches!(claim_state(claim, &lister), ClaimState::WaitForFirstConsumer(_))
            })
        };
        claims(pod).into_iter().find(waits)
    }

    /// Volumes that are there for claims of a gang, the smallest that will do; those that were chosen before if they still
    /// can be had.
    fn choose_static_volumes(
        &self,
        gang: &Arc<str>,
        waiting: &[WaitingClaim],
        before: &BTreeMap<String, Arc<str>>,
    ) -> BTreeMap<String, Arc<str>> {
        if waiting.iter().all(|claim| claim.requirements.is_none()) {
            return BTreeMap::new();
        }
        let lister = CachedVolumes { host: self, gang };
        let static_volumes = lister.static_volumes();
        let resolved =
            self.gangs.get(gang).into_iter().flat_map(|record| record.pod_constraints.values());
        let dealt: BTreeMap<&String, &Arc<str>> =
            resolved.flat_map(|resolved| &resolved.assigned_volumes).collect();
        let could_have = |claim: &WaitingClaim| {
            let (Some(requirements), Some(node)) =
                (&claim.requirements, self.cache.nodes.get(&claim.node))
            else {
                return Vec::new();
            };
            let reached = |(name, volume): &(&Arc<str>, &PersistentVolume)| {
                static_volumes.is_free(name, volume) && volume.is_reachable_from(node)
            };
            let mut volumes: Vec<_> =
                static_volumes.volumes.matching(requirements).filter(reached).collect();
            volumes.sort_by_key(|(name, volume)| {
                let is = |of: Option<&Arc<str>>| of == Some(*name);
                let (was, dealt) = (before.get(&claim.claim), dealt.get(&claim.claim).copied());
                (!is(was), !is(dealt), volume.bytes, *name)
            });
            volumes.into_iter().map(|(name, _)| name.clone()).collect()
        };
        let wanted: Vec<Vec<Arc<str>>> = waiting.iter().map(could_have).collect();
        let given = waiting.iter().zip(match_volumes(&wanted));
        given.filter_map(|(claim, volume)| Some((claim.claim.clone(), volume?))).collect()
    }

    /// Gangs whose volumes did not come in time start over. What was said to their claims is taken back, and what was kept
    /// for them let go, so that they may be made elsewhere.
    pub(crate) fn expire_volume_binding(&mut self) {
        let now = self.now();
        let timeout = self.config.volume_binding_timeout;
        let late = |name: &&Arc<str>| {
            let record = self.gangs.get(name);
            let chosen = record.and_then(|record| record.volume_binding.as_ref());
            chosen.is_some_and(|chosen| now.since(chosen.since) >= timeout)
        };
        let late: Vec<Arc<str>> = self.gangs.names().filter(late).cloned().collect();
        for name in late {
            let record = self.gangs.get_mut(&name).expect("just seen");
            let chosen = record.volume_binding.take().expect("just seen");
            let words = chosen.describe();
            tracing::info!(gang = &*name, "{words}, and starts over");
            self.release_volumes(&name, chosen);
            let record = self.gangs.get(&name).expect("just seen");
            let nobody = self.pods_by_state(record).bound.is_empty();
            if let Some(id) = self.world.gang_named(&name).filter(|_| nobody) {
                self.back_off_because(&name, &words);
                // Those that are bound already keep their seats, and the one that came later tries again.
                self.stop_gang(id, StopReason::Moved);
            }
            self.dirty.gangs.insert(name);
        }
    }

    /// Claims that have no volume are as if nobody had said anything, whoever led when it was said.
    fn release_volumes(&self, gang: &str, binding: VolumeBinding) {
        let lister = CachedVolumes { host: self, gang };
        for claim in binding.unbound.into_keys() {
            let (namespace, name) = parts(&claim);
            let seen = lister.claim(namespace, name);
            let kept = seen.and_then(|seen| lister.kept_for(seen)).map(Arc::from);
            if let Some(volume) = binding.chosen.get(&claim).cloned().or(kept) {
                self.release_claim_ref(claim.clone(), &volume);
            }
            let is_told = seen.is_some_and(|seen| annotation(seen, SELECTED_NODE).is_some());
            if is_told || binding.selected_nodes.contains_key(&claim) {
                self.set_selected_node(claim, Value::Null);
            }
        }
    }

    /// Gangs that wait for volumes look again: some may be there.
    pub(crate) fn recheck_volume_binding(&mut self) {
        let waits = |name: &&Arc<str>| {
            self.gangs.get(name).is_some_and(|record| record.volume_binding.is_some())
        };
        let names: Vec<Arc<str>> = self.gangs.names().filter(waits).cloned().collect();
        self.dirty.gangs.extend(names);
    }

    fn set_selected_node(&self, claim: String, node: Value) {
        let Some(kind) = self.sources.resource(KindRole::VolumeClaim) else { return };
        let (namespace, _) = parts(&claim);
        let writer = self.writer.within(namespace);
        let claims: Api<DynamicObject> =
            Api::namespaced_with(writer.client.clone(), namespace, kind);
        tokio::spawn(async move {
            let patch = json!({"metadata": {"annotations": {SELECTED_NODE: node}}});
            match writer.patch(&claims, parts(&claim).1, &patch).await {
                Ok(_) | Err(Said::Gone | Said::NotLeader) => {}
                Err(said) => tracing::warn!(claim, %said, "not told where its pod goes"),
            }
        });
    }
}
