//! Muster's own objects and those of others: which kinds are watched, and what queues and pools say.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt;
use kube::api::{ApiResource, DynamicObject};
use muster_api::dialects::Dialect;
use muster_api::{Manifests, PoolManifest};
use muster_core::Event;
use muster_core::constraint::Labels;
use muster_core::event::Refusal;
use muster_core::money::Money;
use muster_core::pool::{OfferingSpec, PoolSpec};
use muster_core::proactive::{Consolidate, Proactive};
use muster_core::resource::NamedAmounts;
use muster_core::time::Span;
use muster_core::topology::Levels;
use serde_json::{Value, json};

use crate::api::discovery::WatchedKind;
use crate::api::watch::watches::{Source, Watches};
use crate::cache::kinds;
use crate::cache::kinds::KindRole;
use crate::cache::store::{Moved, Store};
use crate::host::Host;

/// A pool, and what requests for its nodes name as their owner.
#[derive(Debug)]
pub(crate) struct KnownPool {
    pub(crate) manifest: PoolManifest,
    pub(crate) owner: Option<OwnerReference>,
}

/// The kinds that are watched besides pods, nodes and claims.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    kinds: Vec<(KindRole, ApiResource)>,
    by_interest: BTreeMap<KindRole, Source>,
}

impl Sources {
    pub(crate) fn interest(&self, source: Source) -> KindRole {
        self.kinds[source.0].0
    }
    pub(crate) fn of(&self, interest: KindRole) -> Option<Source> {
        self.by_interest.get(&interest).copied()
    }
    pub(crate) fn resource(&self, interest: KindRole) -> Option<&ApiResource> {
        Some(&self.kinds[self.of(interest)?.0].1)
    }

    /// Kinds that are not watched yet.
    pub(crate) fn missing(&self) -> Vec<(KindRole, WatchedKind)> {
        let mut wanted = kinds::wanted();
        wanted.retain(|(interest, _)| !self.by_interest.contains_key(interest));
        wanted
    }

    /// Watches a kind that is served.
    pub(crate) fn add(
        &mut self,
        interest: KindRole,
        kind: ApiResource,
        watches: &mut Watches,
    ) -> Option<Source> {
        let source = Source(self.kinds.len());
        if self.by_interest.contains_key(&interest) {
            return None;
        }
        tracing::info!(kind = kind.kind, version = kind.api_version, "watched");
        watches.other(source, &kind, crate::objects::fields::mask_of(interest));
        self.by_interest.insert(interest, source);
        self.kinds.push((interest, kind));
        Some(source)
    }
}

/// Where Karpenter's claims are served.
pub(crate) const CLAIMS: WatchedKind = WatchedKind {
    group: "karpenter.sh",
    versions: &["v1"],
    kind: "NodeClaim",
    plural: "nodeclaims",
};

/// An object of Muster's, read as a manifest is: findings speak of its fields.
pub(crate) fn read(kind: &str, object: &DynamicObject) -> Result<Manifests, String> {
    let mut text = json!({
        "apiVersion": "muster.sh/v1alpha1",
        "kind": kind,
        "metadata": {"name": object.name_any()},
        "spec": object.data.get("spec").cloned().unwrap_or_else(|| json!({})),
    });
    // Templates are kept as text, and are for the API server to understand.
    let roles = text.pointer_mut("/spec/roles").and_then(Value::as_array_mut);
    for role in roles.into_iter().flatten() {
        if let Some(template) = role.get_mut("template").filter(|one| one.is_string()) {
            *template = json!({});
        }
    }
    if let Some(namespace) = object.namespace() {
        text["metadata"]["namespace"] = json!(namespace);
    }
    let findings = match muster_api::read_alone(&object.name_any(), &text.to_string()) {
        Ok(manifests) => return Ok(manifests),
        Err(findings) => findings,
    };
    let all: Vec<String> = findings.iter().map(ToString::to_string).collect();
    Err(all.join("; "))
}

impl Host {
    /// Takes in a change of any kind that is not a pod, a node or a claim.
    pub(crate) fn observe_object(&mut self, source: Source, moved: &Moved<DynamicObject>) {
        match self.sources.interest(source) {
            KindRole::Queue | KindRole::ForeignQueue(_) => self.observe_queue(&moved.key),
            KindRole::Pool => self.observe_pool(moved),
            KindRole::Topology => self.levels_changed(),
            KindRole::Order => self.observe_order(moved),
            KindRole::Request => {
                self.observe_issued_request(moved);
                self.observe_request(moved);
            }
            KindRole::PodTemplate => {
                self.observe_own_template(moved);
                self.observe_template();
            }
            KindRole::Namespace => {
                self.constraints.invalidate();
                self.namespaces_changed();
            }
            KindRole::StorageClass => self.constraints.invalidate(),
            KindRole::Volume => self.observe_volume(moved),
            KindRole::CsiNode => self.observe_attach_limits(moved),
            KindRole::VolumeClaim => {
                self.constraints.invalidate();
                self.recheck_volume_binding();
            }
            interest => {
                if let KindRole::Group(Dialect::Volcano, _) = interest {
                    self.observe_group_without_pods(moved);
                }
                if interest == KindRole::Gang {
                    self.observe_templates(moved);
                }
                self.observe_gang_source(interest, moved);
            }
        }
    }

    pub(crate) fn observe_pool(&mut self, moved: &Moved<DynamicObject>) {
        let Some(object) = &moved.is else {
            self.judge(KindRole::Pool, &moved.key, None);
            return self.pool_is_gone(&moved.key);
        };
        let manifests = match read("Pool", object) {
            Ok(manifests) => manifests,
            Err(why) => return self.judge(KindRole::Pool, &moved.key, Some(why)),
        };
        for mut manifest in manifests.pools {
            manifest.spec.offerings.iter_mut().for_each(say_pods);
            let is_deaf = stop_nothing(&mut manifest.spec);
            let pool: Arc<str> = manifest.spec.name.clone();
            let known = self.pools.get(&pool).map(|known| &known.manifest);
            if known == Some(&manifest) && moved.was.is_some() {
                self.judge(KindRole::Pool, &pool, None);
                continue; // how it stands was written on it
            }
            if is_deaf {
                tracing::warn!(
                    pool = &*pool,
                    "machines cannot be stopped here: `warm.stopped` and `startTime` are passed over"
                );
            }
            let off = self.pool_is_off(&manifest.provider);
            if off.is_some() {
                // The nodes it has are counted, used while they are there, and not replaced.
                manifest.spec.offerings.clear();
                manifest.spec.ahead = Proactive::default();
            }
            let refused = self.tell_pool(&manifest).err().map(|refusal| refusal.to_string());
            let refused = refused.or(off);
            if refused.is_none() {
                let known = KnownPool { manifest, owner: owner("Pool", object) };
                self.pools.insert(pool.clone(), known);
            }
            self.judge(KindRole::Pool, &pool, refused);
        }
    }

    /// A pool is no more: nothing is asked of it, and what it has is given back as soon as nobody uses it.
    fn pool_is_gone(&mut self, name: &str) {
        let Some(known) = self.pools.get_mut(name) else { return };
        let spec = &mut known.manifest.spec;
        spec.offerings.clear();
        (spec.ahead, spec.consolidate) = (Proactive::default(), Consolidate::default());
        let manifest = known.manifest.clone();
        let _ = self.tell_pool(&manifest);
    }

    /// An offering that claims are of and that nobody lists any more, or whose pool cannot be read: its nodes are counted,
    /// used while they are there, and given back; no more are asked for.
    pub(crate) fn retire_offering(&mut self, pool: &Arc<str>, name: &str) -> bool {
        let Some(offering) = retired(name) else { return false };
        let known = self.world.pool_named(pool).map(|at| self.world.pools()[at].spec.clone());
        let mut spec = known.unwrap_or_else(|| PoolSpec {
            name: pool.clone(),
            idle_after: IDLE_AFTER,
            ..PoolSpec::default()
        });
        spec.offerings.push(offering);
        self.apply_event(&Event::PoolSet(spec))
    }

    /// Tells the World of a pool. Its nodes will have every token, as all nodes have.
    ///
    /// # Errors
    /// When the World does not take it.
    fn tell_pool(&mut self, manifest: &PoolManifest) -> Result<(), Refusal> {
        let mut spec = manifest.spec.clone();
        let tokens = self.constraints.on_every_node();
        for offering in &mut spec.offerings {
            // What is called GPUs here a node shows as such, and not among its amounts: it would be waited for in vain.
            offering.allocatable.retain(|name, _| !self.config.gpus.is_gpu(name));
            offering.allocatable.extend(tokens.clone());
        }
        self.world.apply(self.now(), &Event::PoolSet(spec))?;
        self.world_changed = true;
        Ok(())
    }

    /// Tells the World of all pools again.
    pub(crate) fn tell_pools(&mut self) {
        let pools: Vec<PoolManifest> =
            self.pools.values().map(|known| known.manifest.clone()).collect();
        pools.iter().for_each(|pool| drop(self.tell_pool(pool)));
    }

    /// The levels that the cluster's Topology names, or those there are when nobody says.
    pub(crate) fn levels(&self) -> Levels {
        let shelf = self.sources.of(KindRole::Topology).and_then(|of| self.cache.others.get(&of));
        let mut read = shelf.into_iter().flat_map(Store::iter).map(|(_, it)| read("Topology", it));
        read.find_map(Result::ok).map_or_else(Levels::default, |manifests| manifests.levels)
    }

    fn levels_changed(&mut self) {
        self.supply_status.is_news();
        if self.world.is_synced() && self.levels() != *self.world.topology().levels() {
            tracing::info!("the topology was rewritten: everything is counted anew");
            self.must_rebuild = true;
        }
    }
}

/// How long nodes are kept of a pool that nobody can ask.
const IDLE_AFTER: Span = Span::mins(10);

/// An offering of which only the name is left.
fn retired(name: &str) -> Option<OfferingSpec> {
    let mut parts = name.split('/').map(Arc::from);
    let (instance_type, zone, capacity_type) = (parts.next()?, parts.next()?, parts.next()?);
    Some(OfferingSpec {
        instance_type,
        zone,
        region: "".into(),
        capacity_type,
        price: Money::ZERO,
        allocatable: NamedAmounts::new(),
        gpu: None,
        gpus: 0,
        labels: Labels::default(),
        taints: Vec::new(),
        max: Some(0),
        boot_time: Span::ZERO,
        start_time: None,
    })
}

/// No provider that there is on Kubernetes stops machines and starts them again. Nodes that were to be stopped would be
/// paid for, and used by nobody. Whether that was asked for.
fn stop_nothing(spec: &mut PoolSpec) -> bool {
    let mut asked = std::mem::take(&mut spec.ahead.stopped) > 0;
    for offering in &mut spec.offerings {
        asked |= offering.start_time.take().is_some();
    }
    asked
}

/// Pods that a node takes when its offering does not say: what a kubelet does by default.
const PODS: (&str, u64) = ("pods", 110);

/// Every pod takes one of its node's pods, and few who write pools think of that.
fn say_pods(offering: &mut OfferingSpec) {
    offering.allocatable.entry(PODS.0.into()).or_insert(PODS.1);
}

/// What objects made for this one of Muster's name as their owner.
fn owner(kind: &str, object: &DynamicObject) -> Option<OwnerReference> {
    Some(OwnerReference {
        api_version: "muster.sh/v1alpha1".to_owned(),
        kind: kind.to_owned(),
        name: object.name_any(),
        uid: object.metadata.uid.clone()?,
        block_owner_deletion: None,
        controller: None,
    })
}
