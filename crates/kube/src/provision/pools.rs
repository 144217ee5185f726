//! Pool objects: which nodes may be requested, from which provider, at which price.
//!
//! A valid Pool is applied to the World and kept in [`Host::pools`] with its provider, which the World does not know. An invalid
//! one is reported in its status, and the last valid version stays in use. A deleted Pool, or one whose provider is disabled,
//! keeps its nodes while they are used and requests no more.
//!
//! Not here: the requests themselves (`node_claims`, `requests_issued`), and the status of a pool, which is in
//! `status::pools_and_queues`.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt;
use kube::api::DynamicObject;
use muster_api::PoolManifest;
use muster_core::Event;
use muster_core::constraint::Labels;
use muster_core::event::Refusal;
use muster_core::money::Money;
use muster_core::pool::{OfferingSpec, PoolSpec};
use muster_core::proactive::{Consolidate, Proactive};
use muster_core::resource::NamedAmounts;
use muster_core::time::Span;

use crate::cache::kinds::KindRole;
use crate::cache::store::ObjectChange;
use crate::cache::watched_objects::read_manifest;
use crate::host::Host;

/// A valid Pool, and the owner reference for objects that are created for it.
#[derive(Debug)]
pub(crate) struct DeclaredPool {
    pub(crate) manifest: PoolManifest,
    pub(crate) owner: Option<OwnerReference>,
}

impl Host {
    /// Applies a change of a Pool object to the World, and reports whether it was accepted.
    pub(crate) fn observe_pool(&mut self, moved: &ObjectChange<DynamicObject>) {
        let Some(object) = &moved.is else {
            self.report_acceptance(KindRole::Pool, &moved.key, None);
            return self.pool_deleted(&moved.key);
        };
        let manifests = match read_manifest("Pool", object) {
            Ok(manifests) => manifests,
            Err(why) => return self.report_acceptance(KindRole::Pool, &moved.key, Some(why)),
        };
        for mut manifest in manifests.pools {
            manifest.spec.offerings.iter_mut().for_each(default_pod_count);
            let names_stopped = drop_stopped_nodes(&mut manifest.spec);
            let pool: Arc<str> = manifest.spec.name.clone();
            let known = self.pools.get(&pool).map(|declared| &declared.manifest);
            if known == Some(&manifest) && moved.was.is_some() {
                self.report_acceptance(KindRole::Pool, &pool, None);
                continue; // only its status has changed
            }
            if names_stopped {
                tracing::warn!(
                    pool = &*pool,
                    "nodes cannot be stopped on Kubernetes: `warm.stopped` and `startTime` are ignored"
                );
            }
            let disabled = self.why_provider_is_off(&manifest.provider);
            if disabled.is_some() {
                // Its nodes are counted, used while they exist, and not replaced.
                manifest.spec.offerings.clear();
                manifest.spec.ahead = Proactive::default();
            }
            let refused = self.apply_pool(&manifest).err().map(|refusal| refusal.to_string());
            let refused = refused.or(disabled);
            if refused.is_none() {
                let declared = DeclaredPool { manifest, owner: owner("Pool", object) };
                self.pools.insert(pool.clone(), declared);
            }
            self.report_acceptance(KindRole::Pool, &pool, refused);
        }
    }

    /// Stops requesting nodes of a deleted pool, and releases those it has as soon as they are unused.
    fn pool_deleted(&mut self, name: &str) {
        let Some(declared) = self.pools.get_mut(name) else { return };
        let spec = &mut declared.manifest.spec;
        spec.offerings.clear();
        (spec.ahead, spec.consolidate) = (Proactive::default(), Consolidate::default());
        let manifest = declared.manifest.clone();
        let _ = self.apply_pool(&manifest);
    }

    /// Adds an offering that a claim names but no Pool lists any more, or whose Pool is invalid. Its nodes are counted, used while
    /// they exist, and then released; no more are requested. Returns whether the World accepted it.
    pub(crate) fn retire_offering(&mut self, pool: &Arc<str>, name: &str) -> bool {
        let Some(offering) = retired_offering(name) else { return false };
        let known = self.world.pool_named(pool).map(|at| self.world.pools()[at].spec.clone());
        let mut spec = known.unwrap_or_else(|| PoolSpec {
            name: pool.clone(),
            idle_after: UNDECLARED_IDLE_AFTER,
            ..PoolSpec::default()
        });
        spec.offerings.push(offering);
        self.apply_event(&Event::PoolSet(spec))
    }

    /// Applies a pool to the World. Its nodes will have every token, as all nodes have.
    ///
    /// # Errors
    /// When the World refuses it.
    fn apply_pool(&mut self, manifest: &PoolManifest) -> Result<(), Refusal> {
        let mut spec = manifest.spec.clone();
        let tokens = self.constraints.on_every_node();
        for offering in &mut spec.offerings {
            // A node shows GPUs as devices and not among its amounts: readiness would wait for this amount in vain.
            offering.allocatable.retain(|name, _| !self.config.gpus.is_gpu(name));
            offering.allocatable.extend(tokens.clone());
        }
        self.world.apply(self.now(), &Event::PoolSet(spec))?;
        self.world_changed = true;
        Ok(())
    }

    /// Applies all pools to the World again.
    pub(crate) fn apply_pools(&mut self) {
        let pools: Vec<PoolManifest> =
            self.pools.values().map(|declared| declared.manifest.clone()).collect();
        pools.iter().for_each(|pool| drop(self.apply_pool(pool)));
    }
}

/// The idle time of nodes whose pool is not declared.
const UNDECLARED_IDLE_AFTER: Span = Span::mins(10);

/// An offering of which only the name `INSTANCE_TYPE/ZONE/CAPACITY_TYPE` is known.
fn retired_offering(name: &str) -> Option<OfferingSpec> {
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

/// Removes stopped nodes from a pool, and returns whether it named any. No provider on Kubernetes stops machines and starts them
/// again: nodes bought to be stopped would be paid for and never used.
fn drop_stopped_nodes(spec: &mut PoolSpec) -> bool {
    let mut named = std::mem::take(&mut spec.ahead.stopped) > 0;
    for offering in &mut spec.offerings {
        named |= offering.start_time.take().is_some();
    }
    named
}

/// The pods that a node can run where its offering does not say: the kubelet's default.
const DEFAULT_PODS: (&str, u64) = ("pods", 110);

/// Adds the `pods` resource, which every pod requests one of and few Pools list.
fn default_pod_count(offering: &mut OfferingSpec) {
    offering.allocatable.entry(DEFAULT_PODS.0.into()).or_insert(DEFAULT_PODS.1);
}

/// The owner reference for objects created for one of Muster's objects.
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
