//! Volumes as the host has seen them, for a gang.

use std::collections::BTreeSet;
use std::sync::Arc;

use kube::api::DynamicObject;
use muster_core::topology::HOSTNAME;

use crate::cache::kinds::KindRole;
use crate::constraints::cluster_view::namespace;
use crate::constraints::volumes::claims;
use crate::constraints::volumes::claims::Store;
use crate::constraints::volumes::static_volumes::StaticVolumes;
use crate::constraints::volumes::volume::Shape;
use crate::host::Host;
use crate::objects::node::Node;
use crate::objects::pod::Pod;

/// Volumes as the host has seen them, for a gang.
pub(crate) struct Shop<'a> {
    pub(crate) host: &'a Host,
    pub(crate) gang: &'a str,
}

impl Shop<'_> {
    fn object(&self, interest: KindRole, key: &str) -> Option<&DynamicObject> {
        let shelf = self.host.cache.others.get(&self.host.sources.of(interest)?)?;
        shelf.get(key).map(|object| &**object)
    }
}

impl Store for Shop<'_> {
    fn claim(&self, namespace: &str, name: &str) -> Option<&DynamicObject> {
        self.object(KindRole::VolumeClaim, &format!("{namespace}/{name}"))
    }
    fn volume(&self, name: &str) -> Option<&DynamicObject> {
        self.object(KindRole::Volume, name)
    }
    fn class(&self, name: &str) -> Option<&DynamicObject> {
        self.object(KindRole::StorageClass, name)
    }
    fn nodes_called(&self, hostname: &str) -> Vec<Arc<str>> {
        let called = |node: &Node| {
            let labels = node.metadata.labels.as_ref();
            labels.and_then(|labels| labels.get(HOSTNAME)).is_some_and(|label| label == hostname)
        };
        let nodes = self.host.cache.nodes.iter().filter(|(_, node)| called(node));
        nodes.map(|(name, _)| name.clone()).collect()
    }
    fn user(&self, of: &str, claim: &str) -> Option<String> {
        let around = self.host.around(self.gang, false);
        let uses = |pod: &Pod| {
            namespace(pod) == of && claims::claims(pod).iter().any(|name| name == claim)
        };
        let other = around.pods.iter().find(|other| uses(other.pod))?;
        other.pod.metadata.name.clone()
    }
    fn kept_for(&self, claim: &DynamicObject) -> Option<&str> {
        let meta = &claim.metadata;
        let space = meta.namespace.as_deref().unwrap_or("default");
        let key = format!("{space}/{}", meta.name.as_deref().unwrap_or_default());
        let disks = &self.host.constraints.disks;
        let disk = disks.kept_for(&key, meta.uid.as_deref())?;
        // One that is not what the claim asks for is never given to it.
        let suits = disks.get(disk)?.suits(&Shape::of(claim)?);
        suits.then_some(disk)
    }
    fn market(&self) -> StaticVolumes<'_> {
        let Host { constraints: ties, gangs: groups, .. } = self.host;
        let (mut shapes, mut promised) = (BTreeSet::new(), BTreeSet::new());
        let others = ties.volumes.iter().filter(|name| ***name != *self.gang);
        for (name, group) in others.filter_map(|name| Some((name, groups.get(name)?))) {
            for tied in group.pod_constraints.values() {
                // Who has a volume already is in nobody's way.
                let wants = tied.wants.iter().filter(|(of, _)| !ties.disks.is_any_kept_for(of));
                shapes.extend(wants.map(|(_, shape)| shape));
            }
            if self.host.is_settled(name, group) {
                let given = group.pod_constraints.values().flat_map(|tied| tied.given.values());
                let chosen = group.volume_binding.iter().flat_map(|one| one.chosen.values());
                promised.extend(given.chain(chosen).map(|disk| &**disk));
            }
        }
        StaticVolumes { disks: &ties.disks, others: shapes, promised }
    }
    fn is_limited(&self, driver: &str) -> bool {
        self.host.constraints.limits.is_limited(driver)
    }
}

/// What tests put on the shelves.
#[cfg(test)]
pub(crate) mod play {
    use std::collections::BTreeMap;

    use crate::cache::store::Moved;
    use crate::constraints::volumes::index::VolumeIndex;
    use crate::constraints::volumes::lister::*;

    #[derive(Default)]
    pub(crate) struct Shop {
        pub(crate) claims: BTreeMap<String, DynamicObject>,
        pub(crate) volumes: BTreeMap<String, DynamicObject>,
        pub(crate) classes: BTreeMap<String, DynamicObject>,
        pub(crate) used: bool,
        /// Volumes that are kept for claims.
        pub(crate) kept: BTreeMap<String, String>,
        pub(crate) disks: VolumeIndex,
        /// What claims of others ask for.
        pub(crate) others: Vec<Shape>,
        pub(crate) limited: BTreeSet<String>,
    }

    impl Shop {
        /// Puts a volume where it is seen.
        pub(crate) fn shelve(&mut self, name: &str, mut volume: DynamicObject) {
            volume.metadata.name = Some(name.to_owned());
            self.volumes.insert(name.to_owned(), volume.clone());
            self.disks.take(&Moved { key: name.into(), was: None, is: Some(Arc::new(volume)) });
        }
    }

    impl Store for Shop {
        fn claim(&self, _: &str, name: &str) -> Option<&DynamicObject> {
            self.claims.get(name)
        }
        fn volume(&self, name: &str) -> Option<&DynamicObject> {
            self.volumes.get(name)
        }
        fn class(&self, name: &str) -> Option<&DynamicObject> {
            self.classes.get(name)
        }
        fn nodes_called(&self, hostname: &str) -> Vec<Arc<str>> {
            if hostname == "host-a" { vec!["a".into()] } else { Vec::new() }
        }
        fn user(&self, _: &str, _: &str) -> Option<String> {
            self.used.then(|| "other".to_owned())
        }
        fn kept_for(&self, claim: &DynamicObject) -> Option<&str> {
            self.kept.get(claim.metadata.name.as_deref()?).map(String::as_str)
        }
        fn market(&self) -> StaticVolumes<'_> {
            let others = self.others.iter().collect();
            StaticVolumes { disks: &self.disks, others, promised: BTreeSet::new() }
        }
        fn is_limited(&self, driver: &str) -> bool {
            self.limited.contains(driver)
        }
    }
}
