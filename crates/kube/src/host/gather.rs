//! Gangs are gathered: from what pods say of themselves, what their group says, and what made them.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt;
use kube::api::DynamicObject;
use muster_api::assemble::{Member, assemble};
use muster_api::dialects::{self, Dialect, GroupRef, Terms};
use muster_api::workloads::{self, OwnerRef, WorkloadRole, gang_owner};
use muster_core::constraint::Constraints;
use muster_core::gang::Request;
use serde_json::{Value, json};

use super::Host;
use super::groups::Group;
use super::objects::read;
use crate::intake::{Gathered, Interest, Origin};
use crate::karpenter::{MANAGED_BY, MUSTER};
use crate::objects::Pod;
use crate::shelf::{Key, Moved};

/// Owners above one another, at most.
const CHAIN_MAX: usize = 8;

type Marks = BTreeMap<String, String>;

/// A pod that is part of a gang, taken apart once.
struct Part {
    key: Key,
    request: Request,
    constraints: Constraints,
    role: Option<String>,
    index: Option<u32>,
    done: bool,
}

impl Host {
    /// Why a pod is part of a gang.
    pub(super) fn origin_of(&self, pod: &Pod) -> Origin {
        let namespace = pod.metadata.namespace.as_deref().unwrap_or("default");
        let (labels, annotations) = marks(pod);
        match dialects::group_of(labels, annotations, &pod.spec, namespace) {
            Some(GroupRef { dialect: Dialect::Muster, namespace, name }) => {
                return Origin::Gang { namespace: namespace.into(), name: name.into() };
            }
            Some(group) => return Origin::Group(group),
            None => {}
        }
        let chain = self.owners(namespace, pod.metadata.owner_references.as_deref());
        if let Some(found) = gang_owner(&chain, labels) {
            let at = |at: usize| {
                let owner = &chain[at];
                (workloads::kind_of(&owner.api_version, &owner.kind), Arc::from(&*owner.name))
            };
            let (templates, name) = at(found.templates);
            return Origin::Owner {
                kind: found.kind,
                namespace: namespace.into(),
                gang: found.gang.into(),
                owner: at(found.at).1,
                templates: (templates.unwrap_or(found.kind), name),
            };
        }
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        Origin::Pod { namespace: namespace.into(), name: name.into() }
    }

    /// The owners of an object, each the controller of the one before, as far as they are watched.
    fn owners(&self, namespace: &str, first: Option<&[OwnerReference]>) -> Vec<OwnerRef> {
        let mut chain: Vec<OwnerRef> = Vec::new();
        let mut next = first.and_then(controller);
        while let Some(owner) = next.take().filter(|_| chain.len() < CHAIN_MAX) {
            if let Some(kind) = workloads::kind_of(&owner.api_version, &owner.kind) {
                let object = self.object(Interest::Workload(kind), namespace, &owner.name);
                let above = object.and_then(|object| object.metadata.owner_references.as_deref());
                next = above.and_then(controller);
            }
            chain.push(owner);
        }
        chain
    }

    fn object(
        &self,
        interest: Interest,
        namespace: &str,
        name: &str,
    ) -> Option<&Arc<DynamicObject>> {
        let shelf = self.mirror.others.get(&self.sources.of(interest)?)?;
        shelf.get(&format!("{namespace}/{name}"))
    }

    /// The object that stands for a gang, if there is one: not the one that Muster makes of it.
    fn object_of(&self, origin: &Origin) -> Option<(Interest, &Arc<DynamicObject>)> {
        match origin {
            Origin::Gang { namespace, name } => {
                let object = self.object(Interest::Gang, namespace, name)?;
                let labels = object.metadata.labels.as_ref();
                let own = labels.and_then(|labels| labels.get(MANAGED_BY));
                (own.is_none_or(|by| by != MUSTER)).then_some((Interest::Gang, object))
            }
            Origin::Group(group) => (0..dialects::kinds(group.dialect).len()).find_map(|at| {
                let interest = Interest::Group(group.dialect, at);
                Some((interest, self.object(interest, &group.namespace, group.object())?))
            }),
            Origin::Owner { kind, namespace, owner, .. } => {
                let interest = Interest::Workload(*kind);
                Some((interest, self.object(interest, namespace, owner)?))
            }
            Origin::Pod { .. } => None,
        }
    }

    /// The object of a gang that another dialect describes, and why its kind is watched.
    pub(super) fn group_object(&self, name: &str) -> Option<(Interest, Value)> {
        let (interest, object) = self.object_of(&self.groups.get(name)?.origin)?;
        Some((interest, whole(object)))
    }

    /// Whether what stands for a gang is there, with or without pods.
    pub(super) fn is_there(&self, origin: &Origin) -> bool {
        self.object_of(origin).is_some()
    }

    /// What the object that Muster makes of a gang names as its owner.
    pub(super) fn owner_of(&self, origin: &Origin) -> Option<OwnerReference> {
        let (interest, object) = self.object_of(origin)?;
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
    pub(super) fn see_group(&mut self, interest: Interest, moved: &Moved<DynamicObject>) {
        let (namespace, name) = super::orders::parts(&moved.key);
        let ends: String = match interest {
            Interest::Gang => String::new(),
            Interest::PriorityClass => return self.try_troubled(),
            _ => name.to_owned(),
        };
        // Few gangs are made of one object, and most have its name in theirs.
        let touched: Vec<Arc<str>> = self
            .groups
            .names()
            .filter(|gang| gang.starts_with(namespace) && gang.contains(&*ends))
            .filter(|gang| {
                self.groups.get(gang).is_some_and(|group| concerns(group, interest, name))
            })
            .cloned()
            .collect();
        self.dirty.gangs.extend(touched);
    }

    /// A gang of pods, or why they are none.
    pub(super) fn gather(&self, group: &Group) -> Result<Gathered, String> {
        let parts = self.parts(group)?;
        let terms = self.terms(group)?;
        let templates = self.templates(group)?;
        let members: Vec<Member<'_>> = parts.iter().map(Part::as_member).collect();
        let name = group.origin.gang_name();
        let gpus = &self.config.gpus;
        let assembled = assemble(&name, &terms, &members, templates.as_deref(), gpus);
        let mut assembled = assembled.map_err(|why| why.to_string())?;
        if assembled.absent > 0 && !self.may_be_absent(group) {
            let (exist, absent) = (parts.len(), assembled.absent);
            return Err(format!("{exist} of {} members exist", exist as u32 + absent));
        }
        self.with_manifest(group, &mut assembled.spec)?;
        if assembled.spec.priority == 0 {
            assembled.spec.priority = self.priority(group, &terms);
        }
        let mut roles = BTreeMap::new();
        for (role, members) in assembled.roles.iter().enumerate() {
            roles.extend(members.iter().map(|at| (parts[*at].key.clone(), role as u16)));
        }
        Ok(Gathered { spec: assembled.spec, roles })
    }

    /// Whether a gang is taken in before all of its members exist. None is yet: their makers make them at once.
    fn may_be_absent(&self, _: &Group) -> bool {
        false
    }

    fn parts(&self, group: &Group) -> Result<Vec<Part>, String> {
        let mut parts = Vec::with_capacity(group.pods.len());
        for key in &group.pods {
            let Some(pod) = self.mirror.pods.get(key) else { continue };
            if pod.status.phase == "Failed" || (pod.is_leaving() && pod.node().is_none()) {
                continue; // it does not come back; who made it makes another
            }
            let (labels, annotations) = marks(pod);
            let wrong = |why: Vec<String>| format!("pod {key}: {}", why.join("; "));
            let by_owner = match &group.origin {
                Origin::Owner { kind, .. } => workloads::role_of_pod(*kind, labels),
                _ => None,
            };
            let role = dialects::role_of(labels, annotations).or(by_owner).map(str::to_owned);
            let index = match &group.origin {
                Origin::Owner { kind, .. } => workloads::index_of_pod(*kind, labels),
                _ => None,
            };
            parts.push(Part {
                key: key.clone(),
                request: pod.spec.request(annotations, &self.config.gpus).map_err(wrong)?,
                constraints: pod.spec.constraints().map_err(wrong)?,
                role,
                index,
                done: pod.has_succeeded(),
            });
        }
        Ok(parts)
    }

    /// What a group says of itself, on its object and on its pods.
    fn terms(&self, group: &Group) -> Result<Terms, String> {
        let wrong = |why: Vec<String>| format!("{}: {}", group.origin, why.join("; "));
        let (dialect, by_object) = match &group.origin {
            Origin::Pod { .. } => return Ok(Terms::default()),
            Origin::Owner { .. } => (Dialect::Muster, Terms::default()),
            Origin::Gang { .. } => {
                let object = self.object_of(&group.origin).map(|(_, object)| &object.data);
                let terms =
                    object.map(|data| dialects::terms(Dialect::Muster, data, &self.config.gpus));
                (Dialect::Muster, terms.transpose().map_err(wrong)?.unwrap_or_default())
            }
            Origin::Group(of) => match self.object_of(&group.origin) {
                Some((_, object)) => {
                    let terms = dialects::terms_of(of, &whole(object), &self.config.gpus);
                    (of.dialect, terms.map_err(wrong)?)
                }
                None if needs_object(of.dialect) => {
                    return Err(format!("{} does not exist", group.origin));
                }
                None => (of.dialect, Terms::default()),
            },
        };
        let mut terms = by_object;
        for key in group.pods.iter().take(1) {
            let Some(pod) = self.mirror.pods.get(key) else { continue };
            let (labels, annotations) = marks(pod);
            let said = dialects::pod_terms(dialect, labels, annotations).map_err(wrong)?;
            terms = match dialect {
                Dialect::Koordinator => said.over(terms),
                _ => terms.over(said),
            };
        }
        Ok(terms)
    }

    /// The templates of a gang's workload.
    fn templates(&self, group: &Group) -> Result<Option<Vec<WorkloadRole>>, String> {
        let Origin::Owner { namespace, templates: (kind, name), .. } = &group.origin else {
            return Ok(None);
        };
        let interest = Interest::Workload(*kind);
        let Some(object) = self.object(interest, namespace, name) else { return Ok(None) };
        let Some(served) = self.sources.resource(interest) else { return Ok(None) };
        let mut object = whole(object);
        object["apiVersion"] = json!(served.api_version);
        object["kind"] = json!(served.kind);
        let roles = workloads::roles(&object);
        roles.map(Some).map_err(|why| format!("{}: {}", group.origin, why.join("; ")))
    }

    /// What only a Gang can say: how long it lasts, until when it should be done, what may be done to it.
    fn with_manifest(
        &self,
        group: &Group,
        spec: &mut muster_core::gang::GangSpec,
    ) -> Result<(), String> {
        let Origin::Gang { .. } = group.origin else { return Ok(()) };
        let Some((_, object)) = self.object_of(&group.origin) else { return Ok(()) };
        let Some(manifest) = read("Gang", object)?.gangs.pop() else { return Ok(()) };
        let said = manifest.spec;
        spec.closeness = said.closeness;
        spec.provisioning = said.provisioning;
        spec.expected_duration = said.expected_duration;
        spec.deadline = said.deadline;
        spec.cost_of_waiting = said.cost_of_waiting;
        spec.disruption = said.disruption;
        spec.scaling = said.scaling;
        spec.user = said.user;
        Ok(())
    }

    /// A gang's priority: what its group says, or what the API server has written on its pods.
    fn priority(&self, group: &Group, terms: &Terms) -> i32 {
        let by_name = terms.priority_class.as_deref().and_then(|class| {
            let shelf = self.mirror.others.get(&self.sources.of(Interest::PriorityClass)?)?;
            let value = shelf.get(class)?.data.get("value")?.as_i64()?;
            i32::try_from(value).ok()
        });
        let of_pods = || {
            let pods = group.pods.iter().filter_map(|key| self.mirror.pods.get(key));
            pods.filter_map(|pod| pod.spec.priority).max()
        };
        terms.priority.or(by_name).or_else(of_pods).unwrap_or(0)
    }
}

impl Part {
    fn as_member(&self) -> Member<'_> {
        Member {
            name: &self.key,
            role: self.role.as_deref(),
            index: self.index,
            request: &self.request,
            constraints: &self.constraints,
            done: self.done,
        }
    }
}

/// Whether a group of a dialect is nothing without its object. The others can be said by marks on pods alone.
fn needs_object(dialect: Dialect) -> bool {
    !matches!(dialect, Dialect::Muster | Dialect::Koordinator | Dialect::KubeBatch)
}

/// Whether a gang is made of an object of that name.
fn concerns(group: &Group, interest: Interest, name: &str) -> bool {
    match (&group.origin, interest) {
        (Origin::Gang { name: of, .. }, Interest::Gang) => **of == *name,
        (Origin::Group(group), Interest::Group(dialect, _)) => {
            group.dialect == dialect && group.object() == name
        }
        (Origin::Owner { kind, owner, templates, .. }, Interest::Workload(of)) => {
            (*kind == of && **owner == *name) || (templates.0 == of && *templates.1 == *name)
        }
        _ => false,
    }
}

fn controller(owners: &[OwnerReference]) -> Option<OwnerRef> {
    let owner = owners.iter().find(|owner| owner.controller == Some(true))?;
    Some(OwnerRef {
        api_version: owner.api_version.clone(),
        kind: owner.kind.clone(),
        name: owner.name.clone(),
        uid: owner.uid.clone(),
        controller: owner.controller,
    })
}

/// An object with its metadata, as its dialect's reader wants it.
fn whole(object: &DynamicObject) -> Value {
    let mut value = object.data.clone();
    value["metadata"] = serde_json::to_value(&object.metadata).unwrap_or_default();
    value
}

/// The labels and annotations of a pod.
fn marks(pod: &Pod) -> (&Marks, &Marks) {
    static NONE: Marks = Marks::new();
    let or_none = |marks: &'static Marks| marks;
    let labels = pod.metadata.labels.as_ref().unwrap_or_else(|| or_none(&NONE));
    (labels, pod.metadata.annotations.as_ref().unwrap_or(&NONE))
}
