//! Creates the pods of a Gang from its own templates, for users without an operator that creates pods.
//!
//! Muster creates `max` pods for a role with a `template`, under names that follow from the Gang's, so that a leader that
//! starts after a crash creates none twice. The pods are owned by the Gang, are deleted with it, and are recreated when they
//! are deleted before their work is done. A member that fails ends the whole gang. A pod that was deleted has not failed,
//! whatever its last phase: since Kubernetes 1.27 a deleted pod has a final phase, by the exit codes of its containers,
//! before it is removed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::ResourceExt;
use kube::api::{Api, DeleteParams, DynamicObject, Preconditions};
use muster_api::crd::GangPhase;
use muster_core::Event;
use muster_core::gang::Phase;
use serde_json::{Map, Value, json};

use crate::api::retry::ApiError;
use crate::cache::kinds::KindRole;
use crate::cache::store::split_key;
use crate::cache::store::{Key, ObjectChange};
use crate::effects::outcome::{Outcome, RETRY_PAUSE};
use crate::features::Feature;
use crate::gang::identity::GangSource;
use crate::gang::record::GangRecord;
use crate::host::Host;
use crate::objects::pod::Pod;
use crate::objects::resource::is_true;
use crate::provision::karpenter::{MANAGED_BY, MUSTER};

const GANG: &str = "muster.sh/gang";
const ROLE: &str = "muster.sh/role";
pub(crate) const INDEX: &str = "muster.sh/index";

impl Host {
    /// Registers a Gang that has templates.
    pub(crate) fn observe_templates(&mut self, moved: &ObjectChange<DynamicObject>) {
        let Some(gang) = moved.is.as_ref().filter(|gang| has_templates(gang)) else { return };
        let (namespace, name) = split_key(&moved.key);
        let source = GangSource::Gang { namespace: namespace.into(), name: name.into() };
        if is_over(gang) && self.gangs.get(&moved.key).is_none() {
            return;
        }
        self.gangs.ensure(source);
        self.dirty.gangs.insert(moved.key.clone());
    }

    /// Creates the members of a Gang's templates that do not exist.
    pub(crate) fn create_members(&mut self, name: &Arc<str>) {
        self.withdraw_deleted(name);
        let Some(record) = self.gangs.get(name) else { return };
        if self.config.disabled.has(Feature::Templates) {
            return;
        }
        let Some(gang) = self.template_gang(record) else { return };
        let id = self.world.gang_named(name);
        let phase = id.and_then(|id| self.world.gang(id)).map(|gang| &gang.phase);
        if is_over(&gang) || matches!(phase, Some(Phase::Stopping)) {
            return;
        }
        if self.has_failed(record) {
            return self.delete_members(name);
        }
        self.delete_disrupted_pods(name);
        // The members of a gang that is too large are not even listed.
        if self.templates_exceed_limit(&gang).is_some() {
            return;
        }
        self.delete_surplus_pods(name, &gang);
        let now = Instant::now();
        let record = self.gangs.get_mut(name).expect("the gang has a record");
        let soon = record.create_backoff.updated(gang.metadata.generation, now);
        let allowed = record.create_backoff.allowed(record.creating_pods.len(), now);
        soon.into_iter().for_each(|pause| self.requeue_in(name, pause));
        let record = self.gangs.get(name).expect("the gang has a record");
        let scheduler = self.config.scheduler_names.first().cloned().unwrap_or_default();
        let namespace = split_key(name).0;
        let mut templates = Templates::default();
        let missing = members(&gang).filter_map(|member| {
            let key: Key = format!("{namespace}/{}", member.name).into();
            let is_there = record.pods.contains(&key) || record.creating_pods.contains(&key);
            let template = (!is_there).then(|| templates.of(member.role_name, member.template))?;
            Some((key, pod(&gang, &scheduler, &member, template)))
        });
        let missing: Vec<(Key, Value)> = missing.take(allowed).collect();
        for (key, object) in missing {
            self.gangs
                .get_mut(name)
                .expect("the gang has a record")
                .creating_pods
                .insert(key.clone());
            self.create_pod(name, key, object);
        }
    }

    /// Whether a user wrote a gang as a Gang and has deleted it. The remaining pods are not started, and Muster creates no
    /// object of its own under that name: a user who creates the Gang again would write into it.
    pub(crate) fn is_deleted(&self, record: &GangRecord) -> bool {
        let is_gang = matches!(record.source, GangSource::Gang { .. });
        let has_gang_owner = |key: &Key| {
            let pod = self.cache.pods.get(key);
            let owners = pod.into_iter().flat_map(|pod| pod.metadata.owner_references.iter());
            owners
                .flatten()
                .any(|owner| owner.kind == "Gang" && owner.api_version.starts_with("muster.sh/"))
        };
        is_gang
            && !self.source_exists(&record.source)
            && (record.has_user_gang || record.pods.iter().any(has_gang_owner))
    }

    /// Cancels a waiting gang whose Gang was deleted, and notes whether a user's Gang exists.
    fn withdraw_deleted(&mut self, name: &Arc<str>) {
        let Some(record) = self.gangs.get(name) else { return };
        if matches!(record.source, GangSource::Gang { .. }) && self.source_exists(&record.source) {
            self.gangs.get_mut(name).expect("the gang has a record").has_user_gang = true;
            return;
        }
        let Some(id) = self.world.gang_named(name).filter(|_| self.is_deleted(record)) else {
            return;
        };
        let phase = &self.world.gang(id).expect("the World has the gang").phase;
        if matches!(phase, Phase::Waiting | Phase::Assembling(_)) {
            tracing::info!(gang = &**name, "its Gang was deleted");
            self.apply_event(&Event::GangCancelled(id));
            self.gangs.get_mut(name).expect("the gang has a record").submitted_spec = None;
        }
    }

    /// Creates one pod.
    fn create_pod(&self, name: &Arc<str>, key: Key, object: Value) {
        let writer = self.writer.for_namespace(split_key(name).0);
        let (outcomes, gang) = (self.outcomes.clone(), name.clone());
        let pods = self.pods_of(&key);
        tokio::spawn(async move {
            let object: DynamicObject = match serde_json::from_value(object) {
                Ok(object) => object,
                Err(why) => {
                    let why = format!("its template is not a valid pod: {why}");
                    let _ = outcomes.send(Outcome::PodCreateFailed { gang, pod: key, why });
                    return;
                }
            };
            match writer.create(&pods, &object).await {
                Ok(_) | Err(ApiError::AlreadyExists) => {}
                Err(error) => {
                    tracing::warn!(pod = &*key, %error, "not created");
                    let why = format!("pod {} cannot be created: {error}", split_key(&key).1);
                    let _ = outcomes.send(Outcome::PodCreateFailed { gang, pod: key, why });
                }
            }
        });
    }

    /// Notes that a member could not be created; it is retried after a backoff.
    pub(crate) fn handle_create_failed(&mut self, gang: &Arc<str>, pod: &Key, why: String) {
        let Some(record) = self.gangs.get_mut(gang) else { return };
        record.creating_pods.remove(pod);
        record.create_failed = true;
        let pause = record.create_backoff.refused(why.clone(), Instant::now());
        pause.into_iter().for_each(|pause| self.requeue_in(gang, pause));
        self.gangs.set_blocked(gang, Some(why));
        self.dirty.gangs.insert(gang.clone());
    }

    /// Requeues a gang after a pause.
    fn requeue_in(&self, gang: &Arc<str>, pause: Duration) {
        let (outcomes, gang) = (self.outcomes.clone(), gang.clone());
        tokio::spawn(async move {
            tokio::time::sleep(pause).await;
            let _ = outcomes.send(Outcome::Requeue(gang));
        });
    }

    /// Whether a Gang with templates has no pods yet, and is not over.
    pub(crate) fn has_no_created_pods(&self, record: &GangRecord) -> bool {
        record.pods.is_empty() && self.template_gang(record).is_some_and(|gang| !is_over(&gang))
    }

    /// Why no pods are created from a Gang's templates, if they are too many.
    pub(crate) fn templates_exceed_limit(&self, gang: &DynamicObject) -> Option<String> {
        let count = |role: &Value| role.get("max").or_else(|| role.get("min"))?.as_u64();
        let all = roles(gang).map(|role| count(role).unwrap_or(1));
        self.config.over_member_limit(all.fold(0, u64::saturating_add))
    }

    /// Whether members are being created and none is on a node yet: the order of creation is not that of the ranks. Where some
    /// cannot be created, the others do not wait for them.
    pub(crate) fn is_creating_members(&self, record: &GangRecord) -> bool {
        let runs = |key: &Key| self.cache.pods.get(key).is_some_and(|pod| pod.node().is_some());
        !record.creating_pods.is_empty() && !record.create_failed && !record.pods.iter().any(runs)
    }

    /// Deletes the other members when one has failed; none is recreated.
    fn delete_members(&mut self, name: &Arc<str>) {
        let Some(record) = self.gangs.get(name) else { return };
        let live = |key: &&Key| {
            self.cache.pods.get(key).is_some_and(|pod| !pod.is_finished() && !pod.is_terminating())
        };
        let left: Vec<Key> = record.pods.iter().filter(live).cloned().collect();
        let known = self.world.gang_named(name).is_some();
        if left.is_empty() && !known {
            self.write_final_status(name, GangPhase::Failed);
        }
        left.iter().for_each(|key| self.delete_pod(name, key));
    }

    fn pods_of(&self, key: &Key) -> Api<DynamicObject> {
        let kind = kube::api::ApiResource::erase::<k8s_openapi::api::core::v1::Pod>(&());
        Api::namespaced_with(self.writer.client.clone(), split_key(key).0, &kind)
    }

    /// Whether a member of a gang has failed.
    pub(crate) fn has_failed(&self, record: &GangRecord) -> bool {
        let mut pods = record.pods.iter().filter_map(|key| Some((key, self.cache.pods.get(key)?)));
        pods.any(|(key, pod)| {
            pod.status.phase == "Failed" && !self.is_to_be_replaced(record, key, pod)
        })
    }

    /// Whether a pod that is over was deleted or disrupted, so that another replaces it: it has neither failed nor finished its
    /// work.
    pub(crate) fn is_to_be_replaced(&self, record: &GangRecord, key: &Key, pod: &Pod) -> bool {
        let is_deleted =
            pod.is_terminating() || record.deleting_pods.contains(key) || was_disrupted(pod);
        is_deleted && pod.is_finished() && self.template_gang(record).is_some()
    }

    /// Whether a gang that has no pods now will have its members recreated.
    pub(crate) fn will_be_recreated(&self, record: &GangRecord) -> bool {
        if self.template_gang(record).is_none_or(|gang| is_over(&gang)) {
            return false;
        }
        let mut pods = record.pods.iter().filter_map(|key| Some((key, self.cache.pods.get(key)?)));
        let is_to_come = !record.creating_pods.is_empty()
            || pods.any(|(key, pod)| self.is_to_be_replaced(record, key, pod));
        is_to_come && !self.has_failed(record)
    }

    /// Deletes failed pods that were disrupted, as a kubelet leaves them that is short of a resource or shut down: their names
    /// are needed for their replacements.
    fn delete_disrupted_pods(&mut self, name: &Arc<str>) {
        let Some(record) = self.gangs.get(name) else { return };
        let is_left = |key: &&Key| {
            let pod = self.cache.pods.get(key).filter(|pod| !pod.is_terminating());
            pod.is_some_and(|pod| pod.status.phase == "Failed" && was_disrupted(pod))
        };
        let left: Vec<Key> = record.pods.iter().filter(is_left).cloned().collect();
        left.iter().for_each(|key| self.delete_pod(name, key));
    }

    /// Deletes members that a Gang no longer has: its `max` was lowered, or a role removed.
    fn delete_surplus_pods(&mut self, name: &Arc<str>, gang: &DynamicObject) {
        let Some(record) = self.gangs.get(name) else { return };
        let namespace = split_key(name).0;
        let wanted: BTreeSet<String> =
            members(gang).map(|member| format!("{namespace}/{}", member.name)).collect();
        let is_of_gang = |pod: &Pod| {
            let mut owners = pod.metadata.owner_references.iter().flatten();
            owners.any(|owner| gang.metadata.uid.as_deref() == Some(&*owner.uid))
        };
        let is_surplus = |key: &&Key| {
            let pod =
                self.cache.pods.get(key).filter(|pod| !pod.is_finished() && !pod.is_terminating());
            pod.is_some_and(|pod| is_of_gang(pod)) && !wanted.contains(&***key)
        };
        let surplus: Vec<Key> = record.pods.iter().filter(is_surplus).cloned().collect();
        surplus.iter().for_each(|key| self.delete_pod(name, key));
    }

    /// Deletes a created pod, once, and no later pod of the same name.
    fn delete_pod(&mut self, name: &Arc<str>, key: &Key) {
        let Some(pod) = self.cache.pods.get(key) else { return };
        let uid = pod.metadata.uid.clone();
        let Some(record) = self.gangs.get_mut(name) else { return };
        if !record.deleting_pods.insert(key.clone()) {
            return;
        }
        let writer = self.writer.for_namespace(split_key(key).0);
        let (outcomes, pods) = (self.outcomes.clone(), self.pods_of(key));
        let (gang, pod) = (name.clone(), key.clone());
        tokio::spawn(async move {
            let same_pod = Preconditions { uid: uid.clone(), resource_version: None };
            let how = DeleteParams { preconditions: Some(same_pod), ..DeleteParams::default() };
            match writer.delete(&pods, split_key(&pod).1, &how).await {
                Ok(()) | Err(ApiError::NotFound | ApiError::Conflict(_) | ApiError::NotLeader) => {}
                Err(error) => {
                    tracing::warn!(pod = &*pod, %error, "not deleted");
                    tokio::time::sleep(RETRY_PAUSE).await;
                    let uid = uid.unwrap_or_default();
                    let _ = outcomes.send(Outcome::DeleteFailed { gang, pod, uid });
                }
            }
        });
    }

    /// The Gang object with the templates of a gang.
    pub(crate) fn template_gang(&self, record: &GangRecord) -> Option<Arc<DynamicObject>> {
        self.template_gang_of(&record.source)
    }

    /// The Gang object of a source, if it has templates.
    pub(crate) fn template_gang_of(&self, source: &GangSource) -> Option<Arc<DynamicObject>> {
        let GangSource::Gang { namespace, name } = source else { return None };
        let gang = self.object(KindRole::Gang, namespace, name)?;
        // A Gang that is being deleted does not count: its members would be created and deleted in turn until it is gone.
        let is_there = has_templates(gang) && gang.metadata.deletion_timestamp.is_none();
        is_there.then(|| gang.clone())
    }
}

/// Whether a pod has a `DisruptionTarget` condition: an eviction, a node that is gone or shut down.
fn was_disrupted(pod: &Pod) -> bool {
    is_true(&pod.status.conditions, "DisruptionTarget")
}

/// Whether a Gang that a user wrote has a role with a template.
fn has_templates(gang: &DynamicObject) -> bool {
    let own = gang.labels().get(MANAGED_BY).is_some_and(|by| by == MUSTER);
    !own && roles(gang).any(|role| role.get("template").is_some())
}

fn roles(gang: &DynamicObject) -> impl Iterator<Item = &Value> {
    gang.data.pointer("/spec/roles").and_then(Value::as_array).into_iter().flatten()
}

/// Whether a Gang has ended.
fn is_over(gang: &DynamicObject) -> bool {
    let phase = gang.data.pointer("/status/phase").and_then(Value::as_str);
    matches!(phase, Some("Succeeded" | "Failed"))
}

/// A member of a template.
struct TemplateMember<'a> {
    role: &'a Value,
    template: &'a Value,
    /// The name of its role.
    role_name: &'a str,
    index: u64,
    name: String,
}

/// All members of a Gang's templates.
fn members(gang: &DynamicObject) -> impl Iterator<Item = TemplateMember<'_>> {
    let gang_name = gang.name_any();
    roles(gang).flat_map(move |role| {
        let template = role.get("template");
        let template = template.zip(role.get("name").and_then(Value::as_str));
        let count = role.get("max").or_else(|| role.get("min")).and_then(Value::as_u64);
        let gang_name = gang_name.clone();
        template.into_iter().flat_map(move |(template, role_name)| {
            let gang_name = gang_name.clone();
            (0..count.unwrap_or(1)).map(move |index| {
                let name = format!("{gang_name}-{role_name}-{index}");
                TemplateMember { role, template, role_name, index, name }
            })
        })
    })
}

/// Templates of a Gang's roles, each parsed once and only if it is needed: they are kept as text.
#[derive(Default)]
struct Templates<'a>(BTreeMap<&'a str, Map<String, Value>>);

impl<'a> Templates<'a> {
    fn of(&mut self, role: &'a str, template: &'a Value) -> &Map<String, Value> {
        self.0.entry(role).or_insert_with(|| match template {
            Value::String(text) => serde_json::from_str(text).unwrap_or_default(),
            Value::Object(template) => template.clone(),
            _ => Map::new(),
        })
    }
}

fn pod(
    gang: &DynamicObject,
    scheduler: &str,
    member: &TemplateMember<'_>,
    template: &Map<String, Value>,
) -> Value {
    let TemplateMember { role, role_name, index, name, .. } = member;
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": {}});
    for field in ["metadata", "spec"] {
        if let Some(value) = template.get(field) {
            pod[field] = value.clone();
        }
    }
    let metadata = &mut pod["metadata"];
    metadata["name"] = json!(name);
    metadata["namespace"] = json!(gang.namespace());
    for (label, value) in
        [(GANG, gang.name_any()), (ROLE, (*role_name).to_owned()), (INDEX, index.to_string())]
    {
        metadata["labels"][label] = json!(value);
    }
    metadata["ownerReferences"] = json!([{
        "apiVersion": "muster.sh/v1alpha1", "kind": "Gang", "controller": true,
        "name": gang.name_any(), "uid": gang.uid(),
    }]);
    let spec = &mut pod["spec"];
    for (field, value) in [("schedulerName", scheduler), ("restartPolicy", "Never")] {
        if spec.get(field).is_none() {
            spec[field] = json!(value);
        }
    }
    // The resources of the role are those of its pods, unless the template sets some.
    let has_resources = |spec: &Value| {
        let containers = spec.get("containers").and_then(Value::as_array);
        containers.into_iter().flatten().any(|one| one.get("resources").is_some())
    };
    if let Some(resources) = role.get("resources").filter(|_| !has_resources(spec))
        && let Some(first) = spec.pointer_mut("/containers/0")
    {
        first["resources"] = json!({"requests": resources, "limits": resources});
    }
    pod
}

#[cfg(test)]
mod tests {
    use crate::gang::pod_templates::create::*;

    #[test]
    fn pods_follow_the_template_and_are_owned_by_the_gang() {
        let gang: DynamicObject = serde_json::from_value(json!({
            "apiVersion": "muster.sh/v1alpha1", "kind": "Gang",
            "metadata": {"name": "train", "namespace": "team", "uid": "u"},
            "spec": {"roles": [
                {"name": "leader", "min": 1, "template": {"spec": {
                    "schedulerName": "other", "containers": [{"name": "a", "resources": {}}]}}},
                {"name": "worker", "min": 1, "max": 2, "resources": {"nvidia.com/gpu": 8},
                 "template": r#"{"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "a"}]}}"#},
                {"name": "others", "min": 3},
            ]},
        }))
        .expect("a gang");
        let members: Vec<TemplateMember<'_>> = members(&gang).collect();
        let names: Vec<&str> = members.iter().map(|member| &*member.name).collect();
        assert_eq!(names, ["train-leader-0", "train-worker-0", "train-worker-1"]);
        let mut templates = Templates::default();
        let pods: Vec<Value> = members
            .iter()
            .map(|one| pod(&gang, "muster", one, templates.of(one.role_name, one.template)))
            .collect();
        assert_eq!(pods[0]["spec"]["schedulerName"], "other");
        assert_eq!(pods[0]["spec"]["containers"][0]["resources"], json!({}));
        let worker = &pods[2];
        assert_eq!(worker["spec"]["schedulerName"], "muster");
        assert_eq!(worker["spec"]["restartPolicy"], "Never");
        assert_eq!(worker["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"], 8);
        assert_eq!(
            worker["metadata"]["labels"],
            json!({"app": "x", GANG: "train", ROLE: "worker", INDEX: "1"})
        );
        assert_eq!(worker["metadata"]["ownerReferences"][0]["uid"], "u");
    }
}
