//! Binds the PersistentVolumeClaims of a gang that has its seats, before its pods are bound: a claim with
//! `WaitForFirstConsumer` gets a static volume, or the selected node for its provisioner. No pod of the gang is bound
//! before all claims are bound. A gang whose claims are not bound within the volume binding timeout gives its seats
//! back and starts over.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::api::{Api, DynamicObject};
use muster_core::plan::StopReason;
use muster_core::time::Time;
use serde_json::{Value, json};

use crate::api::retry::ApiError;
use crate::cache::kinds::KindRole;
use crate::cache::store::Key;
use crate::cache::store::split_key;
use crate::constraints::cluster_view::namespace;
use crate::constraints::volumes::claims::{
    ClaimState, SELECTED_NODE, annotation, claim_state, claims, is_static,
};
use crate::constraints::volumes::index::match_volumes;
use crate::constraints::volumes::lister::{CachedVolumes, VolumeLister};
use crate::constraints::volumes::volume::{ClaimRequirements, PersistentVolume};
use crate::host::Host;
use crate::objects::pod::Pod;

/// A gang that waits for its claims to be bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VolumeBinding {
    /// Since when.
    since: Time,
    /// The nodes its pods will be bound to.
    pods: BTreeMap<Key, Arc<str>>,
    /// The unbound claims, and the nodes of their pods.
    unbound: BTreeMap<String, Arc<str>>,
    /// The selected nodes written on claims that are to be provisioned.
    selected_nodes: BTreeMap<String, Arc<str>>,
    /// The static volumes whose claim refs are written for the other claims.
    pub(crate) chosen: BTreeMap<String, Arc<str>>,
}

impl VolumeBinding {
    /// The status message meanwhile.
    pub(crate) fn describe(&self) -> String {
        let names: Vec<&str> = self.unbound.keys().map(|key| split_key(key).1).collect();
        format!("waits for its volumes: {}", names.join(", "))
    }

    /// The static volume chosen for each claim.
    #[cfg(test)]
    pub(crate) fn chosen(&self) -> BTreeMap<String, String> {
        let pairs = self.chosen.iter().map(|(claim, volume)| (claim.clone(), volume.to_string()));
        pairs.collect()
    }
}

/// The node where a pod's volumes are, or are provisioned for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VolumeNode {
    pub(crate) node: Arc<str>,
    /// Whether no other node reaches them.
    pub(crate) is_required: bool,
}

/// A claim with `WaitForFirstConsumer` whose pod has a node.
struct WaitingClaim {
    claim: String,
    node: Arc<str>,
    /// Its requirements, if it may get a static volume.
    requirements: Option<ClaimRequirements>,
    is_static: bool,
}

/// The unbound claims of pods that are to be bound.
#[derive(Default)]
struct UnboundClaims {
    /// All of them, and the nodes of their pods.
    unbound: BTreeMap<String, Arc<str>>,
    waiting: Vec<WaitingClaim>,
}

impl Host {
    /// The node that a pod's volumes are on, or are provisioned for, if there is one.
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

    /// Binds the claims of these pods, and returns whether all are bound. Unbound claims with `WaitForFirstConsumer`
    /// get a static volume or the selected node: all of them or none, so that a gang that cannot start reserves no
    /// volume that others could use.
    pub(crate) fn bind_volumes(&mut self, gang: &Arc<str>, pods: &[(Key, Arc<str>)]) -> bool {
        let UnboundClaims { unbound, waiting } = self.unbound_claims(gang, pods);
        if unbound.is_empty() {
            self.gangs.get_mut(gang).expect("the gang has a record").volume_binding = None;
            return true;
        }
        let before = self.gangs.get_mut(gang).expect("the gang has a record").volume_binding.take();
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
        self.gangs.get_mut(gang).expect("the gang has a record").volume_binding = Some(binding);
        false
    }

    /// The unbound claims of pods that are to be bound, by requested size.
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
                // A claim that several of them use is provisioned for the first.
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

    /// A claim of a pod that waits for its first consumer.
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

    /// Chooses static volumes for claims of a gang: the volume chosen before if it is still free, else the one assigned
    /// before placement, else the smallest that matches.
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
        let assigned: BTreeMap<&String, &Arc<str>> =
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
                let (was, assigned) =
                    (before.get(&claim.claim), assigned.get(&claim.claim).copied());
                (!is(was), !is(assigned), volume.bytes, *name)
            });
            volumes.into_iter().map(|(name, _)| name.clone()).collect()
        };
        let wanted: Vec<Vec<Arc<str>>> = waiting.iter().map(could_have).collect();
        let given = waiting.iter().zip(match_volumes(&wanted));
        given.filter_map(|(claim, volume)| Some((claim.claim.clone(), volume?))).collect()
    }

    /// Gangs whose claims were not bound within the timeout start over. Their claim refs and selected nodes are
    /// removed, so that the volumes may be bound or provisioned elsewhere.
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
            let record = self.gangs.get_mut(&name).expect("the gang waits for volumes");
            let chosen = record.volume_binding.take().expect("the gang waits for volumes");
            let words = chosen.describe();
            tracing::info!(gang = &*name, "{words}, and starts over");
            self.release_volumes(&name, chosen);
            let record = self.gangs.get(&name).expect("the gang waits for volumes");
            let none_bound = self.pods_by_state(record).bound.is_empty();
            if let Some(id) = self.world.gang_named(&name).filter(|_| none_bound) {
                self.back_off_because(&name, &words);
                // A gang with bound pods keeps its seats, and only the later pod retries.
                self.stop_gang(id, StopReason::Moved);
            }
            self.dirty.gangs.insert(name);
        }
    }

    /// Removes claim refs and selected nodes of unbound claims, also those written by a previous leader.
    fn release_volumes(&self, gang: &str, binding: VolumeBinding) {
        let lister = CachedVolumes { host: self, gang };
        for claim in binding.unbound.into_keys() {
            let (namespace, name) = split_key(&claim);
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

    /// Reconciles gangs that wait for volumes: some claims may be bound by now.
    pub(crate) fn recheck_volume_binding(&mut self) {
        let waits = |name: &&Arc<str>| {
            self.gangs.get(name).is_some_and(|record| record.volume_binding.is_some())
        };
        let names: Vec<Arc<str>> = self.gangs.names().filter(waits).cloned().collect();
        self.dirty.gangs.extend(names);
    }

    fn set_selected_node(&self, claim: String, node: Value) {
        let Some(kind) = self.sources.resource(KindRole::VolumeClaim) else { return };
        let (namespace, _) = split_key(&claim);
        let writer = self.writer.for_namespace(namespace);
        let claims: Api<DynamicObject> =
            Api::namespaced_with(writer.client.clone(), namespace, kind);
        tokio::spawn(async move {
            let patch = json!({"metadata": {"annotations": {SELECTED_NODE: node}}});
            match writer.patch(&claims, split_key(&claim).1, &patch).await {
                Ok(_) | Err(ApiError::NotFound | ApiError::NotLeader) => {}
                Err(said) => tracing::warn!(claim, %said, "failed to write the selected node"),
            }
        });
    }
}
