//! Members made of a Gang's own templates: for those who have no operator that makes pods for them.
//!
//! A role with a `template` has its pods made by Muster, `max` of them, under names that follow from the Gang's: whoever
//! is started after a crash makes none twice. They belong to the Gang, are deleted with it, and are made again when they
//! are gone before their work is done. A member that fails ends the gang, all of it.

use std::sync::Arc;

use kube::ResourceExt;
use kube::api::{Api, DynamicObject};
use muster_api::crd::GangPhase;
use muster_core::gang::Phase;
use serde_json::{Map, Value, json};

use super::groups::Group;
use super::orders::parts;
use super::record::AGAIN;
use super::{Host, Told};
use crate::hands::Said;
use crate::intake::{Interest, Origin};
use crate::karpenter::{MANAGED_BY, MUSTER};
use crate::shelf::{Key, Moved};

const GANG: &str = "muster.sh/gang";
const ROLE: &str = "muster.sh/role";
pub(super) const INDEX: &str = "muster.sh/index";

impl Host {
    /// A Gang was written that has its members made.
    pub(super) fn see_templates(&mut self, moved: &Moved<DynamicObject>) {
        let Some(gang) = moved.is.as_ref().filter(|gang| has_templates(gang)) else { return };
        let (namespace, name) = parts(&moved.key);
        let origin = Origin::Gang { namespace: namespace.into(), name: name.into() };
        if is_over(gang) && self.groups.get(&moved.key).is_none() {
            return;
        }
        self.groups.ensure(origin);
        self.dirty.gangs.insert(moved.key.clone());
    }

    /// Makes the members that a Gang has templates for and that are not there.
    pub(super) fn make_members(&mut self, name: &Arc<str>) {
        let Some(group) = self.groups.get(name) else { return };
        let Some(gang) = self.templates_of(group) else { return };
        let id = self.world.gang_named(name);
        let stopping = id.and_then(|id| self.world.gang(id)).map(|gang| &gang.phase);
        if is_over(&gang) || matches!(stopping, Some(Phase::Stopping)) {
            return;
        }
        if self.has_failed(group) {
            return self.end_members(name);
        }
        let scheduler = self.config.scheduler_names.first().cloned().unwrap_or_default();
        let wanted = pods(&gang, &scheduler);
        let namespace = parts(name).0.to_owned();
        let missing = wanted.into_iter().filter_map(|(pod, object)| {
            let key: Key = format!("{namespace}/{pod}").into();
            (!group.pods.contains(&key) && !group.making.contains(&key)).then_some((key, object))
        });
        let missing: Vec<(Key, Value)> = missing.collect();
        for (key, object) in missing {
            self.groups.get_mut(name).expect("just seen").making.insert(key.clone());
            self.make(name, key, object);
        }
    }

    fn make(&self, name: &Arc<str>, key: Key, object: Value) {
        let (hands, told, gang) = (self.hands.clone(), self.told.clone(), name.clone());
        let pods = self.pods_of(&key);
        tokio::spawn(async move {
            let object: DynamicObject = match serde_json::from_value(object) {
                Ok(object) => object,
                Err(why) => {
                    let why = format!("its template is no pod: {why}");
                    let _ = told.send(Told::NotMade { gang, pod: key, why });
                    return;
                }
            };
            match hands.create(&pods, &object).await {
                Ok(_) | Err(Said::Exists) => {}
                Err(said) => {
                    tracing::warn!(pod = &*key, %said, "not made");
                    let why = format!("pod {} cannot be made: {said}", parts(&key).1);
                    tokio::time::sleep(AGAIN).await;
                    let _ = told.send(Told::NotMade { gang, pod: key, why });
                }
            }
        });
    }

    /// A member was not made; it is tried again.
    pub(super) fn was_not_made(&mut self, gang: Arc<str>, pod: &Key, why: String) {
        if let Some(group) = self.groups.get_mut(&gang) {
            group.making.remove(pod);
            group.unmade = true;
            self.groups.trouble(&gang, Some(why));
            self.dirty.gangs.insert(gang);
        }
    }

    /// Whether members are being made of whom nobody runs yet: who is made first is not who comes first. Where some
    /// cannot be made, the others do not wait for them.
    pub(super) fn is_being_made(&self, group: &Group) -> bool {
        let runs = |key: &Key| self.mirror.pods.get(key).is_some_and(|pod| pod.node().is_some());
        !group.making.is_empty() && !group.unmade && !group.pods.iter().any(runs)
    }

    /// One failed: the others go, and nobody is made again.
    fn end_members(&mut self, name: &Arc<str>) {
        let Some(group) = self.groups.get(name) else { return };
        let live = |key: &&Key| {
            self.mirror.pods.get(key).is_some_and(|pod| !pod.is_over() && !pod.is_leaving())
        };
        let left: Vec<Key> = group.pods.iter().filter(live).cloned().collect();
        let known = self.world.gang_named(name).is_some();
        if left.is_empty() && !known {
            self.say_over(name, GangPhase::Failed);
        }
        for key in left {
            let (hands, pods) = (self.hands.clone(), self.pods_of(&key));
            tokio::spawn(async move {
                if let Err(said) = hands.remove(&pods, parts(&key).1).await {
                    tracing::debug!(pod = &*key, %said, "not ended");
                }
            });
        }
    }

    fn pods_of(&self, key: &Key) -> Api<DynamicObject> {
        let kind = kube::api::ApiResource::erase::<k8s_openapi::api::core::v1::Pod>(&());
        Api::namespaced_with(self.hands.client.clone(), parts(key).0, &kind)
    }

    /// Whether a member of a gang has failed.
    pub(super) fn has_failed(&self, group: &Group) -> bool {
        let mut pods = group.pods.iter().filter_map(|key| self.mirror.pods.get(key));
        pods.any(|pod| pod.status.phase == "Failed")
    }

    /// The Gang whose members Muster makes.
    pub(super) fn templates_of(&self, group: &Group) -> Option<Arc<DynamicObject>> {
        self.made_of(&group.origin)
    }

    /// The Gang that an origin is, if Muster makes its members.
    pub(super) fn made_of(&self, origin: &Origin) -> Option<Arc<DynamicObject>> {
        let Origin::Gang { namespace, name } = origin else { return None };
        let gang = self.object(Interest::Gang, namespace, name)?;
        has_templates(gang).then(|| gang.clone())
    }
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

/// All pods that a Gang's templates come to, by name.
fn pods(gang: &DynamicObject, scheduler: &str) -> Vec<(String, Value)> {
    let mut pods = Vec::new();
    for role in roles(gang) {
        let Some(template) = role.get("template").and_then(Value::as_object) else { continue };
        let Some(of) = role.get("name").and_then(Value::as_str) else { continue };
        let count = role.get("max").or_else(|| role.get("min")).and_then(Value::as_u64);
        for index in 0..count.unwrap_or(1) {
            let name = format!("{}-{of}-{index}", gang.name_any());
            pods.push((name.clone(), pod(gang, role, template, scheduler, (of, index, &name))));
        }
    }
    pods
}

fn pod(
    gang: &DynamicObject,
    role: &Value,
    template: &Map<String, Value>,
    scheduler: &str,
    (of, index, name): (&str, u64, &str),
) -> Value {
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
        [(GANG, gang.name_any()), (ROLE, of.to_owned()), (INDEX, index.to_string())]
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
    use super::*;

    #[test]
    fn pods_are_what_the_template_says_and_know_whose_they_are() {
        let gang: DynamicObject = serde_json::from_value(json!({
            "apiVersion": "muster.sh/v1alpha1", "kind": "Gang",
            "metadata": {"name": "train", "namespace": "team", "uid": "u"},
            "spec": {"roles": [
                {"name": "leader", "min": 1, "template": {"spec": {
                    "schedulerName": "other", "containers": [{"name": "a", "resources": {}}]}}},
                {"name": "worker", "min": 1, "max": 2, "resources": {"nvidia.com/gpu": 8},
                 "template": {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "a"}]}}},
                {"name": "others", "min": 3},
            ]},
        }))
        .expect("a gang");
        let pods = pods(&gang, "muster");
        let names: Vec<&str> = pods.iter().map(|(name, _)| &**name).collect();
        assert_eq!(names, ["train-leader-0", "train-worker-0", "train-worker-1"]);
        assert_eq!(pods[0].1["spec"]["schedulerName"], "other");
        assert_eq!(pods[0].1["spec"]["containers"][0]["resources"], json!({}));
        let worker = &pods[2].1;
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
