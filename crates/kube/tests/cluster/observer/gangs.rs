//! Which pods are one gang. A test says so by a label; where it does not, it is worked out from what anybody can see.
//!
//! Workloads of other operators have a hundred ways to say so, which is what the product is for: their tests use the label.

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use serde_json::Value;

use super::pods::{maker, mark};
use super::seen::Seen;

/// The label by which tests tell the observer which pods are one gang, and the annotation that says how many are the
/// least it may run with.
pub(crate) const GANG: &str = "observer/gang";
pub(crate) const LEAST: &str = "observer/least";

const MARK: &str = "muster.sh/gang";
const SIZE: &str = "muster.sh/gang-size";

/// The gang a pod is of, and the least it may run with.
pub(super) fn gang_of(seen: &Seen, key: &str, pod: &Pod) -> Option<(String, u32)> {
    if let Some(gang) = pod.labels().get(GANG) {
        let least = pod.annotations().get(LEAST).and_then(|least| least.parse().ok());
        return Some((gang.clone(), least.unwrap_or(1)));
    }
    if !seen.is_musters(key, pod) {
        return None;
    }
    let namespace = pod.namespace().unwrap_or_default();
    match mark(pod, MARK) {
        Some(name) => of_marks(seen, format!("{namespace}/{name}"), pod),
        None => of_job(seen, &namespace, pod),
    }
}

/// Pods in Muster's own words: their Gang says how many are needed, or they do themselves.
fn of_marks(seen: &Seen, gang: String, pod: &Pod) -> Option<(String, u32)> {
    let roles = seen.gangs.get(&gang).and_then(|gang| gang.data["spec"]["roles"].as_array());
    let least: u64 = match roles {
        Some(roles) => roles.iter().filter_map(|role| role["min"].as_u64()).sum(),
        None => mark(pod, SIZE)?.parse().ok()?,
    };
    Some((gang, u32::try_from(least).ok()?))
}

/// Pods of a Job whose members need each other, and that nobody else has made.
fn of_job(seen: &Seen, namespace: &str, pod: &Pod) -> Option<(String, u32)> {
    let owner = maker(pod).filter(|owner| owner.kind == "Job")?;
    let job = seen.jobs.get(&format!("{namespace}/{}", owner.name))?;
    let spec = &job.data["spec"];
    if spec["completionMode"] != "Indexed" || maker(job).is_some() {
        return None;
    }
    let count = |field: &str| spec[field].as_u64().or(spec["parallelism"].as_u64());
    let least = count("parallelism")?.min(count("completions")?);
    Some((format!("{namespace}/{}.job", owner.name), u32::try_from(least).ok()?))
}

/// The Gang that a pod is of by its marks.
pub(super) fn object_of<'a>(seen: &'a Seen, pod: &Pod) -> Option<&'a Value> {
    let name = mark(pod, MARK)?;
    let gang = seen.gangs.get(&format!("{}/{name}", pod.namespace().unwrap_or_default()))?;
    Some(&gang.data["spec"])
}
