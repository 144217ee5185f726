//! Whose pods are: the group they name, or the workload that made them, and the objects that stand for both.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt;
use kube::api::DynamicObject;
use muster_api::dialects::{self, Dialect, GroupRef};
use muster_api::workloads::{self, OwnerRef, WorkloadKind, gang_owner};

use crate::cache::kinds::KindRole;
use crate::cache::store::{Key, Moved, Store};
use crate::gang::build::labels_and_annotations;
use crate::gang::identity::GangSource;
use crate::gang::record::GangRecord;
use crate::host::Host;
use crate::objects::pod::Pod;
use crate::provision::karpenter::{MANAGED_BY, MUSTER};

/// Owners above one another, at most.
const CHAIN_MAX: usize = 8;

/// Names of objects that are longer may be cut in names of gangs.
const SPELLED: usize = 200;

impl Host {
    /// Why a pod is part of a gang.
    pub(crate) fn source_of(&self, pod: &Pod) -> GangSource {
        self.source_and_owner_uid(pod).0
    }

    /// Why a pod is part of a gang, and the UID of what made it, if that stands for the gang: another of the same name is
    /// another gang.
    pub(crate) fn source_and_owner_uid(&self, pod: &Pod) -> (GangSource, Option<Arc<str>>) {
        let namespace = pod.metadata.namespace.as_deref().unwrap_or("default");
        let (labels, annotations) = labels_and_annotations(pod);
        match dialects::group_of(labels, annotations, &pod.spec, namespace) {
            Some(GroupRef { dialect: Dialect::Muster, namespace, name }) => {
                let made = pod.metadata.owner_references.as_deref().and_then(controller_of);
                let made = made.filter(|by| by.kind == "Gang" && by.name == name);
                let source = GangSource::Gang { namespace: namespace.into(), name: name.into() };
                return (source, made.and_then(|by| owner_uid(&by)));
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

    /// Whether the workload that made a gang's pods has been seen, where it can be: pods and workloads are watched apart,
    /// and what stands above the workload decides whose its pods are.
    pub(crate) fn check_owner_observed(&self, record: &GangRecord) -> Result<(), String> {
        let GangSource::Owner { kind, namespace, owner, .. } = &record.source else {
            return match self.is_deleted(record) {
                true => Err(format!("{} was deleted", record.source)),
                false => Ok(()),
            };
        };
        let interest = KindRole::Workload(*kind);
        if self.sources.of(interest).is_none() {
            // Its kind was made known to the server a moment ago: what it says of its members is not seen yet.
            self.rediscover.notify_one();
            return Err(format!("{} is of a kind that is not watched yet", record.source));
        }
        match self.object(interest, namespace, owner) {
            Some(_) => Ok(()),
            None => Err(format!("{} is not there", record.source)),
        }
    }

    /// Whether everything was listed that may say what a gang is. A kind that cannot be listed holds back those that it may
    /// say something of, and nobody else.
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
                let first = groups.first().expect("some start together");
                let kinds = 0..dialects::kinds(first.dialect).len();
                kinds.map(|at| KindRole::Group(first.dialect, at)).collect()
            }
            GangSource::Request { .. } => vec![KindRole::Request],
            GangSource::Gang { .. } | GangSource::Pod { .. } => Vec::new(),
        };
        let unlisted = |interest: &KindRole| {
            let source = self.sources.of(*interest)?;
            let is_listed = self.cache.others.get(&source).is_some_and(Store::is_complete);
            self.sources.resource(*interest).filter(|_| !is_listed)
        };
        match interests.iter().find_map(unlisted) {
            Some(kind) => Err(format!("the server does not list {}.{}", kind.plural, kind.group)),
            None => Ok(()),
        }
    }

    /// A workload is seen that was not: pods that were taken for its own may be those of what stands above it.
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

    pub(crate) fn object(
        &self,
        interest: KindRole,
        namespace: &str,
        name: &str,
    ) -> Option<&Arc<DynamicObject>> {
        let shelf = self.cache.others.get(&self.sources.of(interest)?)?;
        shelf.get(&format!("{namespace}/{name}"))
    }

    /// The object that stands for a gang, if there is one: not the one that Muster makes of it.
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
                let interest = KindRole::Group(group.dialect, at);
                Some((interest, self.object(interest, &group.namespace, group.object())?))
            }),
            GangSource::Owner { kind, namespace, owner, .. } => {
                let interest = KindRole::Workload(*kind);
                Some((interest, self.object(interest, namespace, owner)?))
            }
            GangSource::Request { namespace, name } => {
                let interest = KindRole::Request;
                Some((interest, self.object(interest, namespace, name)?))
            }
            // Each of its groups has its own, and none stands for all.
            GangSource::Merged(_) | GangSource::Pod { .. } => None,
        }
    }

    /// Whether what stands for a gang is there, with or without pods. A Gang that is being deleted is not: nobody is made of
    /// it any more.
    pub(crate) fn source_exists(&self, source: &GangSource) -> bool {
        match source {
            GangSource::Request { .. } => self.is_wanted(source),
            GangSource::Gang { .. } => {
                let object = self.source_object(source).map(|(_, object)| object);
                object.is_some_and(|object| object.metadata.deletion_timestamp.is_none())
            }
            GangSource::Merged(groups) => groups
                .iter()
                .any(|of| self.groups_in_object(of).is_some_and(|said| *said == **groups)),
            _ => self.source_object(source).is_some(),
        }
    }

    /// What the object that Muster makes of a gang names as its owner.
    pub(crate) fn owner_reference(&self, source: &GangSource) -> Option<OwnerReference> {
        let (interest, object) = self.source_object(source)?;
        let kind = self.sources.resource(interest)?;
        Some(OwnerReference {
            api_version: kind.api_version.clone(),
            kind: kind.kind.clone(),
            name: object.name_any(),
            uid: object.metadata.uid.clone()?,
            block_owner_deletion: None,
            controller: None,
        })
    }

    /// Something that stands for gangs has changed.
    pub(crate) fn observe_gang_source(&mut self, interest: KindRole, moved: &Moved<DynamicObject>) {
        let (namespace, name) = crate::provision::order_object::parts(&moved.key);
        let job = moved.is.as_ref().filter(|_| interest == KindRole::Workload(WorkloadKind::Job));
        if let Some(source) = job.and_then(|job| self.source_of_job(job)) {
            self.gangs.ensure(source);
        }
        match interest {
            // Its gang has its name.
            KindRole::Gang => {
                let is_it = |record: &GangRecord| matches!(record.source, GangSource::Gang { .. });
                if self.gangs.get(&moved.key).is_some_and(is_it) {
                    self.dirty.gangs.insert(moved.key.clone());
                }
                return;
            }
            KindRole::PriorityClass => {
                // Whoever names it may have been taken in without.
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
        self.requeue_gangs_of(interest, namespace, name);
    }

    /// Gangs that are made of an object are looked at again.
    pub(crate) fn requeue_gangs_of(&mut self, interest: KindRole, namespace: &str, name: &str) {
        // Few gangs are made of one object, and most have its name in theirs.
        let touched: Vec<Arc<str>> = self
            .gangs
            .names()
            .filter(|gang| gang.starts_with(namespace))
            .filter(|gang| name.len() > SPELLED || gang.contains(name))
            .filter(|gang| {
                self.gangs.get(gang).is_some_and(|record| is_built_from(record, interest, name))
            })
            .cloned()
            .collect();
        self.dirty.gangs.extend(touched);
        if let KindRole::Group(dialect, _) = interest {
            let (namespace, name) = (namespace.to_owned(), name.to_owned());
            let of = GroupRef { dialect, namespace, name };
            self.dirty.gangs.extend(self.gangs.merged_gangs_with(&of).cloned());
        }
    }
}

/// Whether a gang is made of an object of that name.
fn is_built_from(record: &GangRecord, interest: KindRole, name: &str) -> bool {
    match (&record.source, interest) {
        (GangSource::Group(group), KindRole::Group(dialect, _)) => {
            group.dialect == dialect && group.object() == name
        }
        (GangSource::Owner { kind, owner, templates, .. }, KindRole::Workload(of)) => {
            (*kind == of && **owner == *name) || (templates.0 == of && *templates.1 == *name)
        }
        // An operator's group is about as its workload is called; what the workload says of its pods is asked of it.
        (GangSource::Group(group), KindRole::Workload(_)) => {
            crate::gang::staged_pods::is_of_operators(group)
        }
        _ => false,
    }
}

/// What tells an owner from others that had its name, where that is known.
fn owner_uid(owner: &OwnerRef) -> Option<Arc<str>> {
    Some(owner.uid.as_str()).filter(|uid| !uid.is_empty()).map(Arc::from)
}

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
