//! Finds the gang of a pod: by the observer's label, or else by the fields that any client can read.
//!
//! Workloads of other operators describe gangs in many ways, which the product translates: their tests use the label.

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use serde_json::Value;

use super::pod_fields::{controller_of, label_or_annotation};
use super::snapshot::Snapshot;

/// The label by which tests name the gang of a pod for the observer, and the annotation with the minimum of the gang.
pub(crate) const GANG: &str = "observer/gang";
pub(crate) const LEAST: &str = "observer/least";

const MARK: &str = "muster.sh/gang";
const SIZE: &str = "muster.sh/gang-size";

/// The gang of a pod, and its minimum.
pub(crate) fn gang_of(snapshot: &Snapshot, key: &str, pod: &Pod) -> Option<(String, u32)> {
    if let Some(gang) = pod.labels().get(GANG) {
        let least = pod.annotations().get(LEAST).and_then(|least| least.parse().ok());
        return Some((gang.clone(), least.unwrap_or(1)));
    }
    if !snapshot.is_scheduled_by_muster(key, pod) {
        return None;
    }
    let namespace = pod.namespace().unwrap_or_default();
    match label_or_annotation(pod, MARK) {
        Some(name) => of_marks(snapshot, format!("{namespace}/{name}"), pod),
        None => of_job(snapshot, &namespace, pod),
    }
}

/// Pods with Muster's own labels: the minimum is in their Gang, or in their annotations.
fn of_marks(snapshot: &Snapshot, gang: String, pod: &Pod) -> Option<(String, u32)> {
    let roles = snapshot.gangs.get(&gang).and_then(|gang| gang.data["spec"]["roles"].as_array());
    let least: u64 = match roles {
        Some(roles) => roles.iter().filter_map(|role| role["min"].as_u64()).sum(),
        None => label_or_annotation(pod, SIZE)?.parse().ok()?,
    };
    Some((gang, u32::try_from(least).ok()?))
}

/// Pods of an Indexed Job that has no controller itself.
fn of_job(snapshot: &Snapshot, namespace: &str, pod: &Pod) -> Option<(String, u32)> {
    let owner = controller_of(pod).filter(|owner| owner.kind == "Job")?;
    let job = snapshot.jobs.get(&format!("{namespace}/{}", owner.name))?;
    let spec = &job.data["spec"];
    if spec["completionMode"] != "Indexed" || controller_of(job).is_some() {
        return None;
    }
    let count = |field: &str| spec[field].as_u64().or(spec["parallelism"].as_u64());
    let least = count("parallelism")?.min(count("completions")?);
    Some((format!("{namespace}/{}.job", owner.name), u32::try_from(least).ok()?))
}

/// The spec of the Gang that a pod names.
pub(crate) fn object_of<'a>(snapshot: &'a Snapshot, pod: &Pod) -> Option<&'a Value> {
    let name = label_or_annotation(pod, MARK)?;
    let gang = snapshot.gangs.get(&format!("{}/{name}", pod.namespace().unwrap_or_default()))?;
    Some(&gang.data["spec"])
}
