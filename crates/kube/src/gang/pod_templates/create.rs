//! Members made of a Gang's own templates: for those who have no operator that makes pods for them.
//!
//! A role with a `template` has its pods made by Muster, `max` of them, under names that follow from the Gang's: whoever
//! is started after a crash makes none twice. They belong to the Gang, are deleted with it, and are made again when they
//! are gone before their work is done. A member that fails ends the gang, all of it. One that was told to go has not failed,
//! whatever it says with its last breath: since Kubernetes 1.27 a pod that is deleted is shown to have ended, with whatever
//! its programs returned, before it is removed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::ResourceExt;
use kube::api::{Api, DeleteParams, DynamicObject, Preconditions};
use muster_api::crd::GangPhase;
use muster_core::Event;
use muster_core::gang::Phase;
use serde_json::{Map, Value, json};

use crate::api::retry::Said;
use crate::cache::kinds::KindRole;
use crate::cache::store::{Key, Moved};
use crate::effects::outcome::Outcome;
use crate::features::Feature;
use crate::gang::identity::GangSource;
use crate::gang::record::GangRecord;
use crate::host::Host;
use crate::objects::pod::Pod;
use crate::objects::resource::is_true;
use crate::provision::karpenter::{MANAGED_BY, MUSTER};
use crate::provision::order_object::parts;
use crate::schedule::placement::AGAIN;

const GANG: &str = "muster.sh/gang";
const ROLE: &str = "muster.sh/role";
pub(crate) const INDEX: &str = "muster.sh/index";

impl Host {
    /// A Gang was written that has its members made.
    pub(crate) fn observe_templates(&mut self, moved: &Moved<DynamicObject>) {
        let Some(gang) = moved.is.as_ref().filter(|gang| has_templates(gang)) else { return };
        let (namespace, name) = parts(&moved.key);
        let source = GangSource::Gang { namespace: namespace.into(), name: name.into() };
        if is_over(gang) && self.gangs.get(&moved.key).is_none() {
            return;
        }
        self.gangs.ensure(source);
        self.dirty.gangs.insert(moved.key.clone());
    }

    /// Makes the members that a Gang has templates for and that are not there.
    pub(crate) fn create_members(&mut self, name: &Arc<str>) {
        self.withdraw_deleted(name);
        let Some(record) = self.gangs.get(name) else { return };
        if self.config.disabled.has(Feature::Templates) {
            return;
        }
        let Some(gang) = self.template_gang(record) else { return };
        let id = self.world.gang_named(name);
        let stopping = id.and_then(|id| self.world.gang(id)).map(|gang| &gang.phase);
        if is_over(&gang) || matches!(stopping, Some(Phase::Stopping)) {
            return;
        }
        if self.has_failed(record) {
            return self.delete_members(name);
        }
        self.delete_disrupted_pods(name);
        // Of a gang that is too large no list of members is made.
        if self.templates_exceed_limit(&gang).is_some() {
            return;
        }
        self.delete_surplus_pods(name, &gang);
        let now = Instant::now();
        let record = self.gangs.get_mut(name).expect("just seen");
        let soon = record.create_backoff.rewritten(gang.metadata.generation, now);
        let room = record.create_backoff.room(record.creating_pods.len(), now);
        soon.into_iter().for_each(|pause| self.requeue_in(name, pause));
        let record = self.gangs.get(name).expect("just seen");
        let scheduler = self.config.scheduler_names.first().cloned().unwrap_or_default();
        let namespace = parts(name).0;
        let mut templates = Templates::default();
        let missing = members(&gang).filter_map(|member| {
            let key: Key = format!("{namespace}/{}", member.name).into();
            let is_there = record.pods.contains(&key) || record.creating_pods.contains(&key);
            let template = (!is_there).then(|| templates.of(member.of, member.template))?;
            Some((key, pod(&gang, &scheduler, &member, template)))
        });
        let missing: Vec<(Key, Value)> = missing.take(room).collect();
        for (key, object) in missing {
            self.gangs.get_mut(name).expect("just seen").creating_pods.insert(key.clone());
            self.create_pod(name, key, object);
        }
    }

    /// Whether somebody wrote a gang as a Gang and has deleted it. What is left of its members is nobody's to start, and
    /// Muster makes no object of its own in the place of theirs: who writes theirs again would write into it.
    pub(crate) fn is_deleted(&self, record: &GangRecord) -> bool {
        let is_gang = matches!(record.source, GangSource::Gang { .. });
        let of_gang = |key: &Key| {
            let pod = self.cache.pods.get(key);
            let owners = pod.into_iter().flat_map(|pod| pod.metadata.owner_references.iter());
            owners
                .flatten()
                .any(|owner| owner.kind == "Gang" && owner.api_version.starts_with("muster.sh/"))
        };
        is_gang
            && !self.source_exists(&record.source)
            && (record.has_user_gang || record.pods.iter().any(of_gang))
    }

    /// A gang that waits and whose Gang was deleted waits no more.
    fn withdraw_deleted(&mut self, name: &Arc<str>) {
        let Some(record) = self.gangs.get(name) else { return };
        if matches!(record.source, GangSource::Gang { .. }) && self.source_exists(&record.source) {
            self.gangs.get_mut(name).expect("just seen").has_user_gang = true;
            return;
        }
        let Some(id) = self.world.gang_named(name).filter(|_| self.is_deleted(record)) else {
            return;
        };
        let phase = &self.world.gang(id).expect("named").phase;
        if matches!(phase, Phase::Waiting | Phase::Assembling(_)) {
            tracing::info!(gang = &**name, "its Gang was deleted");
            self.apply_event(&Event::GangCancelled(id));
            self.gangs.get_mut(name).expect("just seen").submitted_spec = None;
        }
    }

    fn create_pod(&self, name: &Arc<str>, key: Key, object: Value) {
        let writer = self.writer.within(parts(name).0);
        let (outcomes, gang) = (self.outcomes.clone(), name.clone());
        let pods = self.pods_of(&key);
        tokio::spawn(async move {
            let object: DynamicObject = match serde_json::from_value(object) {
                Ok(object) => object,
                Err(why) => {
                    let why = format!("its template is no pod: {why}");
                    let _ = outcomes.send(Outcome::PodCreateFailed { gang, pod: key, why });
                    return;
                }
            };
            match writer.create(&pods, &object).await {
                Ok(_) | Err(Said::Exists) => {}
                Err(said) => {
                    tracing::warn!(pod = &*key, %said, "not made");
                    let why = format!("pod {} cannot be made: {said}", parts(&key).1);
                    let _ = outcomes.send(Outcome::PodCreateFailed { gang, pod: key, why });
                }
            }
        });
    }

    /// A member was not made; it is tried again after a pause.
    pub(crate) fn handle_create_failed(&mut self, gang: &Arc<str>, pod: &Key, why: String) {
        let Some(record) = self.gangs.get_mut(gang) else { return };
        record.creating_pods.remove(pod);
        record.create_failed = true;
        let pause = record.create_backoff.refused(why.clone(), Instant::now());
        pause.into_iter().for_each(|pause| self.requeue_in(gang, pause));
        self.gangs.set_blocked(gang, Some(why));
        self.dirty.gangs.insert(gang.clone());
    }

    /// Looks at a gang again after a while.
    fn requeue_in(&self, gang: &Arc<str>, pause: Duration) {
        let (outcomes, gang) = (self.outcomes.clone(), gang.clone());
        tokio::spawn(async move {
            tokio::time::sleep(pause).await;
            let _ = outcomes.send(Outcome::Requeue(gang));
        });
    }

    /// Whether a Gang that has its members made has none yet, and is to have some.
    pub(crate) fn has_no_created_pods(&self, record: &GangRecord) -> bool {
        record.pods.is_empty() && self.template_gang(record).is_some_and(|gang| !is_over(&gang))
    }

    /// Why no members are made of a Gang's templates, if they are too many.
    pub(crate) fn templates_exceed_limit(&self, gang: &DynamicObject) -> Option<String> {
        let count = |role: &Value| role.get("max").or_else(|| role.get("min"))?.as_u64();
        let all = roles(gang).map(|role| count(role).unwrap_or(1));
        self.config.over_member_limit(all.fold(0, u64::saturating_add))
    }

    /// Whether members are being made of whom nobody runs yet: who is made first is not who comes first. Where some
    /// cannot be made, the others do not wait for them.
    pub(crate) fn is_creating_members(&self, record: &GangRecord) -> bool {
        let runs = |key: &Key| self.cache.pods.get(key).is_some_and(|pod| pod.node().is_some());
        !record.creating_pods.is_empty() && !record.create_failed && !record.pods.iter().any(runs)
    }

    /// One failed: the others go, and nobody is made again.
    fn delete_members(&mut self, name: &Arc<str>) {
        let Some(record) = self.gangs.get(name) else { return };
        let live = |key: &&Key| {
            self.cache.pods.get(key).is_some_and(|pod| !pod.is_over() && !pod.is_leaving())
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
        Api::namespaced_with(self.writer.client.clone(), parts(key).0, &kind)
    }

    /// Whether a member of a gang has failed.
    pub(crate) fn has_failed(&self, record: &GangRecord) -> bool {
        let mut pods = record.pods.iter().filter_map(|key| Some((key, self.cache.pods.get(key)?)));
        pods.any(|(key, pod)| {
            pod.status.phase == "Failed" && !self.is_to_be_replaced(record, key, pod)
        })
    }

    /// Whether a pod that is over was told to go, so that another is made in its place: it has neither failed nor is its
    /// work done.
    pub(crate) fn is_to_be_replaced(&self, record: &GangRecord, key: &Key, pod: &Pod) -> bool {
        let told = pod.is_leaving() || record.deleting_pods.contains(key) || was_disrupted(pod);
        told && pod.is_over() && self.template_gang(record).is_some()
    }

    /// Whether a gang that has nobody now will have its members made again.
    pub(crate) fn will_be_recreated(&self, record: &GangRecord) -> bool {
        if self.template_gang(record).is_none_or(|gang| is_over(&gang)) {
            return false;
        }
        let mut pods = record.pods.iter().filter_map(|key| Some((key, self.cache.pods.get(key)?)));
        let is_to_come = !record.creating_pods.is_empty()
            || pods.any(|(key, pod)| self.is_to_be_replaced(record, key, pod));
        is_to_come && !self.has_failed(record)
    }

    /// Removes pods that were ended from outside and that nobody removes, as a kubelet leaves them that is short of
    /// something or shut down: they are in the way of those that are made in their place.
    fn delete_disrupted_pods(&mut self, name: &Arc<str>) {
        let Some(record) = self.gangs.get(name) else { return };
        let is_left = |key: &&Key| {
            let pod = self.cache.pods.get(key).filter(|pod| !pod.is_leaving());
            pod.is_some_and(|pod| pod.status.phase == "Failed" && was_disrupted(pod))
        };
        let left: Vec<Key> = record.pods.iter().filter(is_left).cloned().collect();
        left.iter().for_each(|key| self.delete_pod(name, key));
    }

    /// Members that a Gang was written for and is no longer go: its `max` was lowered, or a role removed.
    fn delete_surplus_pods(&mut self, name: &Arc<str>, gang: &DynamicObject) {
        let Some(record) = self.gangs.get(name) else { return };
        let namespace = parts(name).0;
        let wanted: BTreeSet<String> =
            members(gang).map(|member| format!("{namespace}/{}", member.name)).collect();
        let is_made_of_it = |pod: &Pod| {
            let mut owners = pod.metadata.owner_references.iter().flatten();
            owners.any(|owner| gang.metadata.uid.as_deref() == Some(&*owner.uid))
        };
        let is_surplus = |key: &&Key| {
            let pod = self.cache.pods.get(key).filter(|pod| !pod.is_over() && !pod.is_leaving());
            pod.is_some_and(|pod| is_made_of_it(pod)) && !wanted.contains(&***key)
        };
        let surplus: Vec<Key> = record.pods.iter().filter(is_surplus).cloned().collect();
        surplus.iter().for_each(|key| self.delete_pod(name, key));
    }

    /// Removes a pod that was made, once, and no other that has its name by then.
    fn delete_pod(&mut self, name: &Arc<str>, key: &Key) {
        let Some(pod) = self.cache.pods.get(key) else { return };
        let uid = pod.metadata.uid.clone();
        let Some(record) = self.gangs.get_mut(name) else { return };
        if !record.deleting_pods.insert(key.clone()) {
            return;
        }
        let writer = self.writer.within(parts(key).0);
        let (outcomes, pods) = (self.outcomes.clone(), self.pods_of(key));
        let (gang, pod) = (name.clone(), key.clone());
        tokio::spawn(async move {
            let this = Preconditions { uid: uid.clone(), resource_version: None };
            let how = DeleteParams { preconditions: Some(this), ..DeleteParams::default() };
            match writer.delete(&pods, parts(&pod).1, &how).await {
                Ok(()) | Err(Said::Gone | Said::Conflict(_) | Said::NotLeader) => {}
                Err(said) => {
                    tracing::warn!(pod = &*pod, %said, "not removed");
                    tokio::time::sleep(AGAIN).await;
                    let uid = uid.unwrap_or_default();
                    let _ = outcomes.send(Outcome::DeleteFailed { gang, pod, uid });
                }
            }
        });
    }

    /// The Gang whose members Muster makes.
    pub(crate) fn template_gang(&self, record: &GangRecord) -> Option<Arc<DynamicObject>> {
        self.template_gang_of(&record.source)
    }

    /// The Gang that an origin is, if Muster makes its members.
    pub(crate) fn template_gang_of(&self, source: &GangSource) -> Option<Arc<DynamicObject>> {
        let GangSource::Gang { namespace, name } = source else { return None };
        let gang = self.object(KindRole::Gang, namespace, name)?;
        // Whoever is being deleted is not there: its members would be made and removed in turn, for as long as that takes.
        let is_there = has_templates(gang) && gang.metadata.deletion_timestamp.is_none();
        is_there.then(|| gang.clone())
    }
}

/// Whether whoever ends a pod has said that it is not the pod's fault: an eviction, a node that is gone or shut down.
fn was_disrupted(pod: &Pod) -> bool {
    is_true(&pod.status.conditions, "DisruptionTarget")
}

/// Whether a Gang that somebody wrote has a role whose members are made of a template.
fn has_templates(gang: &DynamicObject) -> bool {
    let own = gang.labels().get(MANAGED_BY).is_some_and(|by| by == MUSTER);
    !own && roles(gang).any(|role| role.get("template").is_some())
}

fn roles(gang: &DynamicObject) -> impl Iterator<Item = &Value> {
    gang.data.pointer("/spec/roles").and_then(Value::as_array).into_iter().flatten()
}

/// Whether a Gang has come to its end.
fn is_over(gang: &DynamicObject) -> bool {
    let phase = gang.data.pointer("/status/phase").and_then(Value::as_str);
    matches!(phase, Some("Succeeded" | "Failed"))
}

/// A member that a template comes to.
struct TemplateMember<'a> {
    role: &'a Value,
    template: &'a Value,
    /// What its role is called.
    of: &'a str,
    index: u64,
    name: String,
}

/// All members that a Gang's templates come to.
fn members(gang: &DynamicObject) -> impl Iterator<Item = TemplateMember<'_>> {
    let whose = gang.name_any();
    roles(gang).flat_map(move |role| {
        let template = role.get("template");
        let template = template.zip(role.get("name").and_then(Value::as_str));
        let count = role.get("max").or_else(|| role.get("min")).and_then(Value::as_u64);
        let whose = whose.clone();
        template.into_iter().flat_map(move |(template, of)| {
            let whose = whose.clone();
            (0..count.unwrap_or(1)).map(move |index| {
                let name = format!("{whose}-{of}-{index}");
                TemplateMember { role, template, of, index, name }
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
    let TemplateMember { role, of, index, name, .. } = member;
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": {}});
    for field in ["metadata", "spec"] {
        if let Some(said) = template.get(field) {
            pod[field] = said.clone();
        }
    }
    let metadata = &mut pod["metadata"];
    metadata["name"] = json!(name);
    metadata["namespace"] = json!(gang.namespace());
    for (label, value) in
        [(GANG, gang.name_any()), (ROLE, (*of).to_owned()), (INDEX, index.to_string())]
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
    // What the role asks for is what its pods ask for, unless they say so themselves.
    let asks = |spec: &Value| {
        let containers = spec.get("containers").and_then(Value::as_array);
        containers.into_iter().flatten().any(|one| one.get("resources").is_some())
    };
    if let Some(resources) = role.get("resources").filter(|_| !asks(spec))
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
    fn pods_are_what_the_template_says_and_know_whose_they_are() {
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
        let made = members.iter();
        let pods: Vec<Value> =
            made.map(|one| pod(&gang, "muster", one, templates.of(one.of, one.template))).collect();
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
