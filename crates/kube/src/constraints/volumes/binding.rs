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
    Claim, SELECTED_NODE, Store, annotation, claims, is_by_hand, stands,
};
use crate::constraints::volumes::index::give_out;
use crate::constraints::volumes::lister::Shop;
use crate::constraints::volumes::volume::{Shape, StoredVolume};
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
    open: BTreeMap<String, Arc<str>>,
    /// Those that were told to be made there.
    told: BTreeMap<String, Arc<str>>,
    /// The volumes that are kept for others of them.
    pub(crate) chosen: BTreeMap<String, Arc<str>>,
}

impl VolumeBinding {
    /// What a person is told meanwhile.
    pub(crate) fn in_words(&self) -> String {
        let names: Vec<&str> = self.open.keys().map(|key| parts(key).1).collect();
        format!("waits for its volumes: {}", names.join(", "))
    }

    /// Which claims are to have which volumes.
    #[cfg(test)]
    pub(crate) fn chosen(&self) -> BTreeMap<String, String> {
        let pairs = self.chosen.iter().map(|(claim, disk)| (claim.clone(), disk.to_string()));
        pairs.collect()
    }
}

/// The node that volumes of a pod draw it to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pull {
    pub(crate) node: Arc<str>,
    /// Whether they cannot be reached from any other.
    pub(crate) must: bool,
}

/// A claim that waits for its pod, whose node is known.
struct OpenClaim {
    claim: String,
    node: Arc<str>,
    /// What it asks for, if it may be given a volume that is there.
    shape: Option<Shape>,
    is_by_hand: bool,
}

/// The claims of pods that are to be bound.
#[derive(Default)]
struct Claims {
    /// Those that have no volume yet, and the nodes of their pods.
    open: BTreeMap<String, Arc<str>>,
    wishes: Vec<OpenClaim>,
}

impl Host {
    /// The node that a pod's volumes are on, or are made for, if that is one.
    pub(crate) fn told_to(&self, gang: &str, key: &str) -> Option<Pull> {
        let chosen = self.gangs.get(gang).and_then(|group| group.volume_binding.as_ref());
        if let Some(node) = chosen.and_then(|chosen| chosen.pods.get(key)) {
            return Some(Pull { node: node.clone(), must: false });
        }
        let pod = self.cache.pods.get(key)?;
        let shop = Shop { host: self, gang };
        let told = |name: &String| {
            let claim = shop.claim(namespace(pod), name)?;
            if let Claim::Has(volume) | Claim::Keeps(volume) = stands(claim, &shop) {
                let home = self.constraints.disks.get(volume)?.home.as_ref()?;
                let node = shop.nodes_called(home).into_iter().next();
                return Some(Pull { node: node.unwrap_or_else(|| home.clone()), must: true });
            }
            let selected = annotation(claim, SELECTED_NODE)?;
            Some(Pull { node: selected.into(), must: false })
        };
        claims(pod).iter().find_map(told)
    }

    /// Whether every volume of these pods is there. If not, those that wait for their pod are given one that is, or are
    /// told where it goes: all of them, or none. What others could have is not kept for who cannot start.
    pub(crate) fn volumes_are_there(&mut self, gang: &Arc<str>, pods: &[(Key, Arc<str>)]) -> bool {
        let Claims { open, wishes } = self.open_claims(gang, pods);
        if open.is_empty() {
            self.gangs.get_mut(gang).expect("followed").volume_binding = None;
            return true;
        }
        let before = self.gangs.get_mut(gang).expect("followed").volume_binding.take();
        let mut choosing = before.unwrap_or_else(|| VolumeBinding {
            since: self.now(),
            pods: BTreeMap::new(),
            open: BTreeMap::new(),
            told: BTreeMap::new(),
            chosen: BTreeMap::new(),
        });
        choosing.pods = pods.iter().cloned().collect();
        choosing.told.retain(|claim, _| open.contains_key(claim));
        choosing.chosen.retain(|claim, _| open.contains_key(claim));
        choosing.open = open;
        let chosen = self.choose(gang, &wishes, &choosing.chosen);
        let lacks = |wish: &OpenClaim| wish.is_by_hand && !chosen.contains_key(&wish.claim);
        if !wishes.iter().any(lacks) {
            for OpenClaim { claim, node, .. } in wishes {
                match chosen.get(&claim) {
                    Some(disk) if choosing.chosen.get(&claim) != Some(disk) => {
                        choosing.chosen.insert(claim.clone(), disk.clone());
                        self.keep(gang, claim, disk);
                        self.constraints.recount = true;
                    }
                    None if choosing.told.get(&claim) != Some(&node) => {
                        choosing.told.insert(claim.clone(), node.clone());
                        self.annotate(claim, json!(node));
                    }
                    _ => {}
                }
            }
        }
        self.gangs.get_mut(gang).expect("followed").volume_binding = Some(choosing);
        false
    }

    /// Claims of pods that are to be bound and that have no volume yet.
    fn open_claims(&self, gang: &str, pods: &[(Key, Arc<str>)]) -> Claims {
        let shop = Shop { host: self, gang };
        let mut all = Claims::default();
        for (key, node) in pods {
            let Some(pod) = self.cache.pods.get(key) else { continue };
            for name in claims(pod) {
                let at = format!("{}/{name}", namespace(pod));
                let claim = shop.claim(namespace(pod), &name);
                let stands = claim.map(|claim| (claim, stands(claim, &shop)));
                if let Some((_, Claim::Has(_))) = stands {
                    continue;
                }
                // A claim that several of them use is made for the first.
                if all.open.contains_key(&at) {
                    continue;
                }
                all.open.insert(at.clone(), node.clone());
                let Some((claim, Claim::WaitsForPod(class))) = stands else { continue };
                let selected = annotation(claim, SELECTED_NODE);
                if selected != Some(&**node) {
                    all.wishes.push(OpenClaim {
                        claim: at,
                        node: node.clone(),
                        shape: Shape::of(claim).filter(|_| selected.is_none()),
                        is_by_hand: is_by_hand(class),
                    });
                }
            }
        }
        all.wishes.sort_by_key(|wish| wish.shape.as_ref().map(Shape::bytes));
        all
    }

    /// A claim of a pod that waits for its pod to be told its node.
    pub(crate) fn waiting_claim(&self, gang: &str, pod: &Pod) -> Option<String> {
        let shop = Shop { host: self, gang };
        let waits = |name: &String| {
            let claim = shop.claim(namespace(pod), name);
            claim.is_some_and(|claim| matches!(stands(claim, &shop), Claim::WaitsForPod(_)))
        };
        claims(pod).into_iter().find(waits)
    }

    /// Volumes that are there for claims of a gang, the smallest that will do; those that were chosen before if they still
    /// can be had.
    fn choose(
        &self,
        gang: &Arc<str>,
        wishes: &[OpenClaim],
        before: &BTreeMap<String, Arc<str>>,
    ) -> BTreeMap<String, Arc<str>> {
        if wishes.iter().all(|wish| wish.shape.is_none()) {
            return BTreeMap::new();
        }
        let shop = Shop { host: self, gang };
        let market = shop.market();
        let tied =
            self.gangs.get(gang).into_iter().flat_map(|group| group.pod_constraints.values());
        let dealt: BTreeMap<&String, &Arc<str>> = tied.flat_map(|tied| &tied.given).collect();
        let could_have = |wish: &OpenClaim| {
            let (Some(shape), Some(node)) = (&wish.shape, self.cache.nodes.get(&wish.node)) else {
                return Vec::new();
            };
            let reached = |(name, disk): &(&Arc<str>, &StoredVolume)| {
                market.is_free(name, disk) && disk.is_reached_from(node)
            };
            let mut disks: Vec<_> = market.disks.like(shape).filter(reached).collect();
            disks.sort_by_key(|(name, disk)| {
                let is = |of: Option<&Arc<str>>| of == Some(*name);
                let (was, dealt) = (before.get(&wish.claim), dealt.get(&wish.claim).copied());
                (!is(was), !is(dealt), disk.bytes, *name)
            });
            disks.into_iter().map(|(name, _)| name.clone()).collect()
        };
        let wanted: Vec<Vec<Arc<str>>> = wishes.iter().map(could_have).collect();
        let given = wishes.iter().zip(give_out(&wanted));
        given.filter_map(|(wish, disk)| Some((wish.claim.clone(), disk?))).collect()
    }

    /// Gangs whose volumes did not come in time start over. What was said to their claims is taken back, and what was kept
    /// for them let go, so that they may be made elsewhere.
    pub(crate) fn expire_volume_binding(&mut self) {
        let now = self.now();
        let patience = self.config.volume_binding_timeout;
        let late = |name: &&Arc<str>| {
            let group = self.gangs.get(name);
            let chosen = group.and_then(|group| group.volume_binding.as_ref());
            chosen.is_some_and(|chosen| now.since(chosen.since) >= patience)
        };
        let late: Vec<Arc<str>> = self.gangs.names().filter(late).cloned().collect();
        for name in late {
            let group = self.gangs.get_mut(&name).expect("just seen");
            let chosen = group.volume_binding.take().expect("just seen");
            let words = chosen.in_words();
            tracing::info!(gang = &*name, "{words}, and starts over");
            self.take_back(&name, chosen);
            let group = self.gangs.get(&name).expect("just seen");
            let nobody = self.pods_by_state(group).bound.is_empty();
            if let Some(id) = self.world.gang_named(&name).filter(|_| nobody) {
                self.back_off_because(&name, &words);
                // Those that are bound already keep their seats, and the one that came later tries again.
                self.stop_gang(id, StopReason::Moved);
            }
            self.dirty.gangs.insert(name);
        }
    }

    /// Claims that have no volume are as if nobody had said anything, whoever led when it was said.
    fn take_back(&self, gang: &str, choosing: VolumeBinding) {
        let shop = Shop { host: self, gang };
        for claim in choosing.open.into_keys() {
            let (namespace, name) = parts(&claim);
            let seen = shop.claim(namespace, name);
            let kept = seen.and_then(|seen| shop.kept_for(seen)).map(Arc::from);
            if let Some(disk) = choosing.chosen.get(&claim).cloned().or(kept) {
                self.release_claim_ref(claim.clone(), &disk);
            }
            let is_told = seen.is_some_and(|seen| annotation(seen, SELECTED_NODE).is_some());
            if is_told || choosing.told.contains_key(&claim) {
                self.annotate(claim, Value::Null);
            }
        }
    }

    /// Gangs that wait for volumes look again: some may be there.
    pub(crate) fn look_for_volumes(&mut self) {
        let waits = |name: &&Arc<str>| {
            self.gangs.get(name).is_some_and(|group| group.volume_binding.is_some())
        };
        let names: Vec<Arc<str>> = self.gangs.names().filter(waits).cloned().collect();
        self.dirty.gangs.extend(names);
    }

    fn annotate(&self, claim: String, node: Value) {
        let Some(kind) = self.sources.resource(KindRole::VolumeClaim) else { return };
        let (namespace, _) = parts(&claim);
        let hands = self.writer.within(namespace);
        let claims: Api<DynamicObject> =
            Api::namespaced_with(hands.client.clone(), namespace, kind);
        tokio::spawn(async move {
            let patch = json!({"metadata": {"annotations": {SELECTED_NODE: node}}});
            match hands.patch(&claims, parts(&claim).1, &patch).await {
                Ok(_) | Err(Said::Gone | Said::NotLeader) => {}
                Err(said) => tracing::warn!(claim, %said, "not told where its pod goes"),
            }
        });
    }
}
