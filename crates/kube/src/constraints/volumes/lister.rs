//! Access to claims, PersistentVolumes and storage classes: from the cache for a gang, and from fixtures in tests.

use std::collections::BTreeSet;
use std::sync::Arc;

use kube::api::DynamicObject;
use muster_core::topology::HOSTNAME;

use crate::cache::kinds::KindRole;
use crate::constraints::cluster_view::namespace;
use crate::constraints::volumes::claims;
use crate::constraints::volumes::static_volumes::StaticVolumes;
use crate::constraints::volumes::volume::ClaimRequirements;
use crate::host::Host;
use crate::objects::node::Node;
use crate::objects::pod::Pod;

/// Claims, volumes and storage classes as last observed.
pub(crate) trait VolumeLister {
    fn claim(&self, namespace: &str, name: &str) -> Option<&DynamicObject>;
    fn volume(&self, name: &str) -> Option<&DynamicObject>;
    fn class(&self, name: &str) -> Option<&DynamicObject>;
    /// The names of nodes with this hostname label.
    fn nodes_with_hostname(&self, hostname: &str) -> Vec<Arc<str>>;
    /// A placed pod outside the gang that uses a claim.
    fn user(&self, namespace: &str, claim: &str) -> Option<String>;
    /// The volume whose claim ref names an unbound claim, if it meets the claim's requirements.
    fn kept_for(&self, claim: &DynamicObject) -> Option<&str>;
    /// Static volumes, and what other gangs want or were promised of them.
    fn static_volumes(&self) -> StaticVolumes<'_>;
    /// Whether some node limits how many volumes of a CSI driver it attaches.
    fn has_attach_limit(&self, driver: &str) -> bool;
}

/// Volumes from the host's cache, for a gang.
pub(crate) struct CachedVolumes<'a> {
    pub(crate) host: &'a Host,
    pub(crate) gang: &'a str,
}

impl CachedVolumes<'_> {
    fn object(&self, kind_role: KindRole, key: &str) -> Option<&DynamicObject> {
        let objects = self.host.cache.others.get(&self.host.sources.of(kind_role)?)?;
        objects.get(key).map(|object| &**object)
    }
}

impl VolumeLister for CachedVolumes<'_> {
    fn claim(&self, namespace: &str, name: &str) -> Option<&DynamicObject> {
        self.object(KindRole::VolumeClaim, &format!("{namespace}/{name}"))
    }
    fn volume(&self, name: &str) -> Option<&DynamicObject> {
        self.object(KindRole::Volume, name)
    }
    fn class(&self, name: &str) -> Option<&DynamicObject> {
        self.object(KindRole::StorageClass, name)
    }
    fn nodes_with_hostname(&self, hostname: &str) -> Vec<Arc<str>> {
        let hostname = |node: &Node| {
            let labels = node.metadata.labels.as_ref();
            labels.and_then(|labels| labels.get(HOSTNAME)).is_some_and(|label| label == hostname)
        };
        let nodes = self.host.cache.nodes.iter().filter(|(_, node)| hostname(node));
        nodes.map(|(name, _)| name.clone()).collect()
    }
    fn user(&self, of: &str, claim: &str) -> Option<String> {
        let cluster = self.host.cluster_view(self.gang, false);
        let uses = |pod: &Pod| {
            namespace(pod) == of && claims::claims(pod).iter().any(|name| name == claim)
        };
        let other = cluster.pods.iter().find(|other| uses(other.pod))?;
        other.pod.metadata.name.clone()
    }
    fn kept_for(&self, claim: &DynamicObject) -> Option<&str> {
        let meta = &claim.metadata;
        let namespace = meta.namespace.as_deref().unwrap_or("default");
        let key = format!("{namespace}/{}", meta.name.as_deref().unwrap_or_default());
        let volumes = &self.host.constraints.volumes;
        let volume = volumes.claimed_by(&key, meta.uid.as_deref())?;
        // The controller never binds a claim to a volume that does not meet its requirements.
        let suits = volumes.get(volume)?.matches(&ClaimRequirements::of(claim)?);
        suits.then_some(volume)
    }
    fn static_volumes(&self) -> StaticVolumes<'_> {
        let Host { constraints, gangs, .. } = self.host;
        let (mut requirements, mut promised) = (BTreeSet::new(), BTreeSet::new());
        let others = constraints.gangs_with_volumes.iter().filter(|name| ***name != *self.gang);
        for (name, record) in others.filter_map(|name| Some((name, gangs.get(name)?))) {
            for resolved in record.pod_constraints.values() {
                // A claim that has a volume already does not compete.
                let wants = resolved
                    .static_claims
                    .iter()
                    .filter(|(of, _)| !constraints.volumes.is_any_claimed_by(of));
                requirements.extend(wants.map(|(_, requirements)| requirements));
            }
            if self.host.is_placed(name, record) {
                let given = record
                    .pod_constraints
                    .values()
                    .flat_map(|resolved| resolved.assigned_volumes.values());
                let chosen = record.volume_binding.iter().flat_map(|one| one.chosen.values());
                promised.extend(given.chain(chosen).map(|volume| &**volume));
            }
        }
        StaticVolumes { volumes: &constraints.volumes, others: requirements, promised }
    }
    fn has_attach_limit(&self, driver: &str) -> bool {
        self.host.constraints.attach_limits.has_limit(driver)
    }
}

/// Volumes for tests.
#[cfg(test)]
pub(crate) mod fixtures {
    use std::collections::BTreeMap;

    use crate::cache::store::ObjectChange;
    use crate::constraints::volumes::index::VolumeIndex;
    use crate::constraints::volumes::lister::*;

    #[derive(Default)]
    pub(crate) struct FakeVolumes {
        pub(crate) claims: BTreeMap<String, DynamicObject>,
        pub(crate) volumes: BTreeMap<String, DynamicObject>,
        pub(crate) classes: BTreeMap<String, DynamicObject>,
        pub(crate) used: bool,
        /// Volumes whose claim ref names these claims.
        pub(crate) kept: BTreeMap<String, String>,
        pub(crate) index: VolumeIndex,
        /// The requirements of other gangs' claims.
        pub(crate) others: Vec<ClaimRequirements>,
        pub(crate) limited: BTreeSet<String>,
    }

    impl FakeVolumes {
        /// Adds a volume under a name.
        pub(crate) fn add_volume(&mut self, name: &str, mut volume: DynamicObject) {
            volume.metadata.name = Some(name.to_owned());
            self.volumes.insert(name.to_owned(), volume.clone());
            self.index.update(&ObjectChange {
                key: name.into(),
                was: None,
                is: Some(Arc::new(volume)),
            });
        }
    }

    impl VolumeLister for FakeVolumes {
        fn claim(&self, _: &str, name: &str) -> Option<&DynamicObject> {
            self.claims.get(name)
        }
        fn volume(&self, name: &str) -> Option<&DynamicObject> {
            self.volumes.get(name)
        }
        fn class(&self, name: &str) -> Option<&DynamicObject> {
            self.classes.get(name)
        }
        fn nodes_with_hostname(&self, hostname: &str) -> Vec<Arc<str>> {
            if hostname == "host-a" { vec!["a".into()] } else { Vec::new() }
        }
        fn user(&self, _: &str, _: &str) -> Option<String> {
            self.used.then(|| "other".to_owned())
        }
        fn kept_for(&self, claim: &DynamicObject) -> Option<&str> {
            self.kept.get(claim.metadata.name.as_deref()?).map(String::as_str)
        }
        fn static_volumes(&self) -> StaticVolumes<'_> {
            let others = self.others.iter().collect();
            StaticVolumes { volumes: &self.index, others, promised: BTreeSet::new() }
        }
        fn has_attach_limit(&self, driver: &str) -> bool {
            self.limited.contains(driver)
        }
    }
}
