//! Volumes as the host has seen them, for a gang.

use std::collections::BTreeSet;
use std::sync::Arc;

use kube::api::DynamicObject;
use muster_core::topology::HOSTNAME;

use crate::cache::kinds::KindRole;
use crate::constraints::cluster_view::namespace;
use crate::constraints::volumes::claims;
use crate::constraints::volumes::claims::VolumeLister;
use crate::constraints::volumes::static_volumes::StaticVolumes;
use crate::constraints::volumes::volume::ClaimRequirements;
use crate::host::Host;
use crate::objects::node::Node;
use crate::objects::pod::Pod;

/// Volumes as the host has seen them, for a gang.
pub(crate) struct CachedVolumes<'a> {
    pub(crate) host: &'a Host,
    pub(crate) gang: &'a str,
}

impl CachedVolumes<'_> {
    fn object(&self, interest: KindRole, key: &str) -> Option<&DynamicObject> {
        let objects = self.host.cache.others.get(&self.host.sources.of(interest)?)?;
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
        // One that is not what the claim asks for is never given to it.
        let suits = volumes.get(volume)?.matches(&ClaimRequirements::of(claim)?);
        suits.then_some(volume)
    }
    fn static_volumes(&self) -> StaticVolumes<'_> {
        let Host { constraints: constraints, gangs: gangs, .. } = self.host;
        let (mut requirements, mut promised) = (BTreeSet::new(), BTreeSet::new());
        let others = constraints.gangs_with_volumes.iter().filter(|name| ***name != *self.gang);
        for (name, record) in others.filter_map(|name| Some((name, gangs.get(name)?))) {
            for resolved in record.pod_constraints.values() {
                // Who has a volume already is in nobody's way.
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

/// What tests put on the shelves.
#[cfg(test)]
pub(crate) mod fixtures {
    use std::collections::BTreeMap;

    use crate::cache::store::Moved;
    use crate::constraints::volumes::index::VolumeIndex;
    use crate::constraints::volumes::lister::*;

    #[derive(Default)]
    pub(crate) struct CachedVolumes {
        pub(crate) claims: BTreeMap<String, DynamicObject>,
        pub(crate) volumes: BTreeMap<String, DynamicObject>,
        pub(crate) classes: BTreeMap<String, DynamicObject>,
        pub(crate) used: bool,
        /// Volumes that are kept for claims.
        pub(crate) kept: BTreeMap<String, String>,
        pub(crate) volumes: VolumeIndex,
        /// What claims of others ask for.
        pub(crate) others: Vec<ClaimRequirements>,
        pub(crate) limited: BTreeSet<String>,
    }

    impl CachedVolumes {
        /// Puts a volume where it is seen.
        pub(crate) fn add_volume(&mut self, name: &str, mut volume: DynamicObject) {
            volume.metadata.name = Some(name.to_owned());
            self.volumes.insert(name.to_owned(), volume.clone());
            self.volumes.take(&Moved { key: name.into(), was: None, is: Some(Arc::new(volume)) });
        }
    }

    impl VolumeLister for CachedVolumes {
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
            StaticVolumes { volumes: &self.volumes, others, promised: BTreeSet::new() }
        }
        fn has_attach_limit(&self, driver: &str) -> bool {
            self.limited.contains(driver)
        }
    }
}
