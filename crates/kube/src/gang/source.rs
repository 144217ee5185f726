//! Finds the source of a gang: the group that pods name, or the workload that created them, and the objects of both.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt;
use kube::api::DynamicObject;
use muster_api::dialects::{self, Dialect, GroupRef};
use muster_api::workloads::{self, OwnerRef, WorkloadKind, gang_owner};

use crate::cache::kinds::KindRole;
use crate::cache::store::{Key, ObjectChange, Store};
use crate::gang::build::labels_and_annotations;
use crate::gang::identity::GangSource;
use crate::gang::record::GangRecord;
use crate::host::Host;
use crate::objects::pod::Pod;
use crate::provision::karpenter::{MANAGED_BY, MUSTER};

/// Owners above one another, at most.
const CHAIN_MAX: usize = 8;

/// Longer names of objects may be cut in names of gangs.
const UNCUT_NAME_MAX: usize = 200;

impl Host {
    /// The source of the gang that a pod belongs to.
    pub(crate) fn source_of(&self, pod: &Pod) -> GangSource {
        self.source_and_owner_uid(pod).0
    }

    /// The source of a pod's gang, and the UID of the owner if one stands for the gang: another owner of the same name is
    /// another gang.
    pub(crate) fn source_and_owner_uid(&self, pod: &Pod) -> (GangSource, Option<Arc<str>>) {
        let namespace = pod.metadata.namespace.as_deref().unwrap_or("default");
        let (labels, annotations) = labels_and_annotations(pod);
        match dialects::group_of(labels, annotations, &pod.spec, namespace) {
            Some(GroupRef { dialect: Dialect::Muster, namespace, name }) => {
                let owner = pod.metadata.owner_references.as_deref().and_then(controller_of);
                let owner = owner.filter(|by| by.kind == "Gang" && by.name == name);
                let source = GangSource::Gang { namespace: namespace.into(), name: name.into() };
                return (source, owner.and_then(|by| owner_uid(&by)));
            }
            Some(group) => return (self.group_source(group, annotations), None),
            None => {}
        }
        let mut chain = self.owner_chain(namespace, pod.metadata.owner_references.as_deref());
        if gang_owner(&chain, labels).is_none() {
            chain.extend(workloads::named_owner(labels));
        }
        if let Some(found) = gang_owner(&chain, labels) {
            let at = |at: usize| {
                let owner = &chain[at];
                (workloads::kind_of(&owner.api_version, &owner.kind), Arc::from(&*owner.name))
            };
            let (templates, name) = at(found.templates);
            let source = GangSource::Owner {
                kind: found.kind,
                namespace: namespace.into(),
                gang: found.gang.into(),
                owner: at(found.at).1,
                templates: (templates.unwrap_or(found.kind), name),
            };
            return (source, owner_uid(&chain[found.at]));
        }
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        (GangSource::Pod { namespace: namespace.into(), name: name.into() }, None)
    }

    /// The owners of an object, each the controller of the one before, as far as they are watched.
    pub(crate) fn owner_chain(
        &self,
        namespace: &str,
        first: Option<&[OwnerReference]>,
    ) -> Vec<OwnerRef> {
        let mut chain: Vec<OwnerRef> = Vec::new();
        let mut next = first.and_then(controller_of);
        while let Some(owner) = next.take().filter(|_| chain.len() < CHAIN_MAX) {
            if let Some(kind) = workloads::kind_of(&owner.api_version, &owner.kind) {
                let object = self.object(KindRole::Workload(kind), namespace, &owner.name);
                let above = object.and_then(|object| object.metadata.owner_references.as_deref());
                next = above.and_then(controller_of);
            }
            chain.push(owner);
        }
        chain
    }

    /// Checks that the workload of a gang's pods is observed, where it can be: pods and workloads are watched separately, and
    /// the owners above the workload decide which gang its pods belong to.
    pub(crate) fn check_owner_observed(&self, record: &GangRecord) -> Result<(), String> {
        let GangSource::Owner { kind, namespace, owner, .. } = &record.source else {
            return match self.is_deleted(record) {
                true => Err(format!("{} was deleted", record.source)),
                false => Ok(()),
            };
        };
        let kind_role = KindRole::Workload(*kind);
        if self.sources.of(kind_role).is_none() {
            // Its CRD was created a moment ago: what it declares of its members is not observed yet.
            self.rediscover.notify_one();
            return Err(format!("{} is of a kind that is not watched yet", record.source));
        }
        match self.object(kind_role, namespace, owner) {
            Some(_) => Ok(()),
            None => Err(format!("{} does not exist", record.source)),
        }
    }

    /// Checks that all kinds are listed that may declare something of a gang. A kind that cannot be listed holds up only the
    /// gangs that it may concern.
    pub(crate) fn check_kinds_listed(&self, record: &GangRecord) -> Result<(), String> {
        let interests: Vec<KindRole> = match &record.source {
            GangSource::Owner { kind, templates, .. } => {
                vec![KindRole::Workload(*kind), KindRole::Workload(templates.0)]
            }
            GangSource::Group(of) => {
                let kinds = 0..dialects::kinds(of.dialect).len();
                kinds.map(|at| KindRole::Group(of.dialect, at)).collect()
            }
            GangSource::Merged(groups) => {
                let first = groups.first().expect("a merged gang has groups");
                let kinds = 0..dialects::kinds(first.dialect).len();
                kinds.map(|at| KindRole::Group(first.dialect, at)).collect()
            }
            GangSource::Request { .. } => vec![KindRole::Request],
            GangSource::Gang { .. } | GangSource::Pod { .. } => Vec::new(),
        };
        let unlisted = |kind_role: &KindRole| {
            let source = self.sources.of(*kind_role)?;
            let is_listed = self.cache.others.get(&source).is_some_and(Store::is_complete);
            self.sources.resource(*kind_role).filter(|_| !is_listed)
        };
        match interests.iter().find_map(unlisted) {
            Some(kind) => Err(format!("the server does not list {}.{}", kind.plural, kind.group)),
            None => Ok(()),
        }
    }

    /// Reassigns the pods of a workload that is observed for the first time: they may belong to an owner above it.
    fn reassign_pods_of_owner(&mut self, kind: WorkloadKind, namespace: &str, name: &str) {
        let (namespace, name): (Arc<str>, Arc<str>) = (namespace.into(), name.into());
        let (gang, owner) = (name.clone(), name.clone());
        let alone = GangSource::Owner { kind, namespace, gang, owner, templates: (kind, name) };
        let Some(record) = self.gangs.get(&alone.gang_name()) else { return };
        let pods: Vec<Key> = record.pods.iter().chain(&record.successors).cloned().collect();
        for key in pods {
            let Some(pod) = self.cache.pods.get(&key).cloned() else { continue };
            let name = self.add_to_gang(&key, &pod);
            self.dirty.gangs.insert(name);
        }
    }

    /// A cached object by kind, namespace and name.
    pub(crate) fn object(
        &self,
        kind_role: KindRole,
        namespace: &str,
        name: &str,
    ) -> Option<&Arc<DynamicObject>> {
        let store = self.cache.others.get(&self.sources.of(kind_role)?)?;
        store.get(&format!("{namespace}/{name}"))
    }

    /// The object that a gang is built from, if there is one: not the Gang that Muster creates for it.
    pub(crate) fn source_object(
        &self,
        source: &GangSource,
    ) -> Option<(KindRole, &Arc<DynamicObject>)> {
        match source {
            GangSource::Gang { namespace, name } => {
                let object = self.object(KindRole::Gang, namespace, name)?;
                let labels = object.metadata.labels.as_ref();
                let own = labels.and_then(|labels| labels.get(MANAGED_BY));
                (own.is_none_or(|by| by != MUSTER)).then_some((KindRole::Gang, object))
            }
            GangSource::Group(group) => (0..dialects::kinds(group.dialect).len()).find_map(|at| {
                let kind_role = KindRole::Group(group.dialect, at);
                Some((kind_role, self.object(kind_role, &group.namespace, group.object())?))
            }),
            GangSource::Owner { kind, namespace, owner, .. } => {
                let kind_role = KindRole::Workload(*kind);
                Some((kind_role, self.object(kind_role, namespace, owner)?))
            }
            GangSource::Request { namespace, name } => {
                let kind_role = KindRole::Request;
                Some((kind_role, self.object(kind_role, namespace, name)?))
            }
            // Each group has its own, and none stands for all.
            GangSource::Merged(_) | GangSource::Pod { .. } => None,
        }
    }

    /// Whether the source object of a gang exists, with or without pods. A Gang that is being deleted does not: no more pods
    /// are created from it.
    pub(crate) fn source_exists(&self, source: &GangSource) -> bool {
        match source {
            GangSource::Request { .. } => self.is_request_open(source),
            GangSource::Gang { .. } => {
                let object = self.source_object(source).map(|(_, object)| object);
                object.is_some_and(|object| object.metadata.deletion_timestamp.is_none())
            }
            GangSource::Merged(groups) => groups
                .iter()
                .any(|of| self.groups_in_object(of).is_some_and(|listed| *listed == **groups)),
            _ => self.source_object(source).is_some(),
        }
    }

    /// The owner reference for the Gang object that Muster creates for a gang.
    pub(crate) fn owner_reference(&self, source: &GangSource) -> Option<OwnerReference> {
        let (kind_role, object) = self.source_object(source)?;
        let kind = self.sources.resource(kind_role)?;
        Some(OwnerReference {
            api_version: kind.api_version.clone(),
            kind: kind.kind.clone(),
            name: object.name_any(),
            uid: object.metadata.uid.clone()?,
            block_owner_deletion: None,
            controller: None,
        })
    }

    /// Requeues gangs when an object they are built from has changed.
    pub(crate) fn observe_gang_source(
        &mut self,
        kind_role: KindRole,
        moved: &ObjectChange<DynamicObject>,
    ) {
        let (namespace, name) = crate::cache::store::split_key(&moved.key);
        let job = moved.is.as_ref().filter(|_| kind_role == KindRole::Workload(WorkloadKind::Job));
        if let Some(source) = job.and_then(|job| self.source_of_job(job)) {
            self.gangs.ensure(source);
        }
        match kind_role {
            // The gang has the object's name.
            KindRole::Gang => {
                let is_it = |record: &GangRecord| matches!(record.source, GangSource::Gang { .. });
                if self.gangs.get(&moved.key).is_some_and(is_it) {
                    self.dirty.gangs.insert(moved.key.clone());
                }
                return;
            }
            KindRole::PriorityClass => {
                // Gangs that name it may have been submitted without it.
                let all: Vec<Arc<str>> = self.gangs.names().cloned().collect();
                return self.dirty.gangs.extend(all);
            }
            KindRole::Workload(kind) => {
                if moved.was.is_none() {
                    self.reassign_pods_of_owner(kind, namespace, name);
                }
                if kind == WorkloadKind::Job {
                    self.observe_failed_indexes(moved);
                }
            }
            _ => {}
        }
        self.requeue_gangs_of(kind_role, namespace, name);
    }

    /// Requeues the gangs that are built from an object.
    pub(crate) fn requeue_gangs_of(&mut self, kind_role: KindRole, namespace: &str, name: &str) {
        // Few gangs are built from one object, and most have its name in theirs.
        let touched: Vec<Arc<str>> = self
            .gangs
            .names()
            .filter(|gang| gang.starts_with(namespace))
            .filter(|gang| name.len() > UNCUT_NAME_MAX || gang.contains(name))
            .filter(|gang| {
                self.gangs.get(gang).is_some_and(|record| is_built_from(record, kind_role, name))
            })
            .cloned()
            .collect();
        self.dirty.gangs.extend(touched);
        if let KindRole::Group(dialect, _) = kind_role {
            let (namespace, name) = (namespace.to_owned(), name.to_owned());
            let of = GroupRef { dialect, namespace, name };
            self.dirty.gangs.extend(self.gangs.merged_gangs_with(&of).cloned());
        }
    }
}

/// Whether a gang is built from an object of that name.
fn is_built_from(record: &GangRecord, kind_role: KindRole, name: &str) -> bool {
    match (&record.source, kind_role) {
        (GangSource::Group(group), KindRole::Group(dialect, _)) => {
            group.dialect == dialect && group.object() == name
        }
        (GangSource::Owner { kind, owner, templates, .. }, KindRole::Workload(of)) => {
            (*kind == of && **owner == *name) || (templates.0 == of && *templates.1 == *name)
        }
        // An operator names its group like its workload, whose templates the gang is built from.
        (GangSource::Group(group), KindRole::Workload(_)) => {
            crate::gang::staged_pods::is_of_operators(group)
        }
        _ => false,
    }
}

/// The UID of an owner, where it is known.
fn owner_uid(owner: &OwnerRef) -> Option<Arc<str>> {
    Some(owner.uid.as_str()).filter(|uid| !uid.is_empty()).map(Arc::from)
}

/// The owner reference that is the controller.
pub(crate) fn controller_of(owners: &[OwnerReference]) -> Option<OwnerRef> {
    let owner = owners.iter().find(|owner| owner.controller == Some(true))?;
    Some(OwnerRef {
        api_version: owner.api_version.clone(),
        kind: owner.kind.clone(),
        name: owner.name.clone(),
        uid: owner.uid.clone(),
        controller: owner.controller,
    })
}
