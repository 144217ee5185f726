//! The watched kinds besides pods, nodes and NodeClaims, and which part of the host handles a change of each.
//!
//! Not here: which kinds there are (`kinds`), and the objects themselves (`cluster_cache`).

use std::collections::BTreeMap;

use kube::ResourceExt;
use kube::api::{ApiResource, DynamicObject};
use muster_api::Manifests;
use muster_api::dialects::Dialect;
use muster_core::topology::Levels;
use serde_json::{Value, json};

use crate::api::discovery::WatchedKind;
use crate::api::watch::watches::{SourceId, Watches};
use crate::cache::kinds;
use crate::cache::kinds::KindRole;
use crate::cache::store::{ObjectChange, Store};
use crate::host::Host;

/// The kinds that are watched besides pods, nodes and NodeClaims.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    kinds: Vec<(KindRole, ApiResource)>,
    by_role: BTreeMap<KindRole, SourceId>,
}

impl Sources {
    pub(crate) fn role_of(&self, source: SourceId) -> KindRole {
        self.kinds[source.0].0
    }

    pub(crate) fn of(&self, kind_role: KindRole) -> Option<SourceId> {
        self.by_role.get(&kind_role).copied()
    }

    pub(crate) fn resource(&self, kind_role: KindRole) -> Option<&ApiResource> {
        Some(&self.kinds[self.of(kind_role)?.0].1)
    }

    /// Kinds that are not watched yet.
    pub(crate) fn missing(&self) -> Vec<(KindRole, WatchedKind)> {
        let mut missing = kinds::watched_kinds();
        missing.retain(|(kind_role, _)| !self.by_role.contains_key(kind_role));
        missing
    }

    /// Starts to watch a kind that the API server serves. `None` if it is watched already.
    pub(crate) fn add(
        &mut self,
        kind_role: KindRole,
        kind: ApiResource,
        watches: &mut Watches,
    ) -> Option<SourceId> {
        let source = SourceId(self.kinds.len());
        if self.by_role.contains_key(&kind_role) {
            return None;
        }
        tracing::info!(kind = kind.kind, version = kind.api_version, "watched");
        watches.other(source, &kind, crate::objects::fields::mask_of(kind_role));
        self.by_role.insert(kind_role, source);
        self.kinds.push((kind_role, kind));
        Some(source)
    }
}

/// Karpenter's NodeClaim.
pub(crate) const NODE_CLAIMS: WatchedKind = WatchedKind {
    group: "karpenter.sh",
    versions: &["v1"],
    kind: "NodeClaim",
    plural: "nodeclaims",
};

/// Reads one of Muster's objects as a manifest. The error names the fields that are invalid.
pub(crate) fn read_manifest(kind: &str, object: &DynamicObject) -> Result<Manifests, String> {
    let mut text = json!({
        "apiVersion": "muster.sh/v1alpha1",
        "kind": kind,
        "metadata": {"name": object.name_any()},
        "spec": object.data.get("spec").cloned().unwrap_or_else(|| json!({})),
    });
    // Pod templates are stored as text and validated by the API server.
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
    /// Handles a change of an object that is not a pod, a node or a NodeClaim.
    pub(crate) fn observe_object(&mut self, source: SourceId, moved: &ObjectChange<DynamicObject>) {
        match self.sources.role_of(source) {
            KindRole::Queue | KindRole::ForeignQueue(_) => self.observe_queue(&moved.key),
            KindRole::Pool => self.observe_pool(moved),
            KindRole::Topology => self.topology_changed(),
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
            kind_role => {
                if let KindRole::Group(Dialect::Volcano, _) = kind_role {
                    self.observe_group_without_pods(moved);
                }
                if kind_role == KindRole::Gang {
                    self.observe_templates(moved);
                }
                self.observe_gang_source(kind_role, moved);
            }
        }
    }

    /// The levels of the cluster's Topology, or the default levels where there is none.
    pub(crate) fn levels(&self) -> Levels {
        let store = self.sources.of(KindRole::Topology).and_then(|of| self.cache.others.get(&of));
        let mut read =
            store.into_iter().flat_map(Store::iter).map(|(_, it)| read_manifest("Topology", it));
        read.find_map(Result::ok).map_or_else(Levels::default, |manifests| manifests.levels)
    }

    fn topology_changed(&mut self) {
        self.supply_status.write_soon();
        if self.world.is_synced() && self.levels() != *self.world.topology().levels() {
            tracing::info!("the topology was changed: the World is rebuilt");
            self.must_rebuild = true;
        }
    }
}
