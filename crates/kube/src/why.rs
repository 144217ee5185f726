//! Explains why a gang waits (`muster why`), from the statuses that the controller has written.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams};
use kube::{Client, ResourceExt};
use muster_api::crd::{GangPhase, GangStatus};
use muster_api::figures::span;
use muster_core::time::Span;
use serde_json::Value;

use crate::api::watch::watches::key_of;
use crate::gang::merged_groups::GROUPS;

/// The most names that are suggested for one that does not exist.
const SUGGESTED_MAX: usize = 5;

/// Why there is no explanation.
#[derive(Debug, thiserror::Error)]
pub enum WhyError {
    /// The API server does not answer, or refuses the request.
    #[error("the request to the cluster failed: {0}")]
    Server(#[from] kube::Error),
    /// Muster's kinds are not served.
    #[error("this cluster does not know gangs: is Muster installed there?")]
    NotInstalled,
    /// No gang or pod has that name.
    #[error("no gang and no pod in namespace {namespace} is called {name}{}", suggestions(.others))]
    Unknown {
        /// The namespace of the request.
        namespace: String,
        /// The name of the request.
        name: String,
        /// The gangs of the namespace.
        others: Vec<String>,
    },
}

fn suggestions(others: &[String]) -> String {
    match others {
        [] => "; there are no gangs at all".to_owned(),
        others if others.len() <= SUGGESTED_MAX => format!("; there are {}", others.join(", ")),
        others => {
            let rest = others.len() - SUGGESTED_MAX;
            format!("; there are {} and {rest} more", others[..SUGGESTED_MAX].join(", "))
        }
    }
}

/// The explanation of one gang.
#[derive(Debug)]
pub struct Explanation {
    /// Its namespace and name.
    pub name: String,
    /// Its status, unchanged.
    pub status: Value,
    /// Its status in sentences.
    pub lines: Vec<String>,
}

/// Explains the gangs of a name. `train` finds `train.job`, and the name of a pod finds its gang. Groups that start together
/// are one gang, which is found by the name of each of them, also in another namespace.
///
/// # Errors
/// When a request fails, or no gang has that name.
pub async fn why(
    client: Client,
    namespace: &str,
    name: &str,
) -> Result<Vec<Explanation>, WhyError> {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("muster.sh", "v1alpha1", "Gang"));
    let gangs: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &kind);
    let all_namespaces: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
    let all = match gangs.list(&ListParams::default()).await {
        Ok(all) => all.items,
        Err(kube::Error::Api(status)) if status.code == 404 => return Err(WhyError::NotInstalled),
        Err(error) => return Err(error.into()),
    };
    let matches = |gang: &&DynamicObject| {
        let own = gang.name_any();
        let is_named =
            own == name || own.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'));
        is_named || is_of_group(gang, namespace, name)
    };
    let found: Vec<Explanation> = all.iter().filter(matches).map(explain).collect();
    if !found.is_empty() {
        return Ok(found);
    }
    // A user without rights in other namespaces gets no gangs from there.
    if let Ok(elsewhere) = all_namespaces.list(&ListParams::default()).await {
        let merged = elsewhere.items.iter().filter(|gang| is_of_group(gang, namespace, name));
        let found: Vec<Explanation> = merged.map(explain).collect();
        if !found.is_empty() {
            return Ok(found);
        }
    }
    let pods: Api<Pod> = Api::namespaced(client, namespace);
    let pods = pods.list(&ListParams::default()).await?.items;
    let named = pods.iter().find(|pod| pod.name_any() == name);
    if let Some(pod) = named.or_else(|| pods.iter().find(|pod| refers_to(pod, name))) {
        return Ok(vec![explain_pod(namespace, pod)]);
    }
    let others = all.iter().map(ResourceExt::name_any).collect();
    Err(WhyError::Unknown { namespace: namespace.to_owned(), name: name.to_owned(), others })
}

/// Whether an unbound pod refers to this name, by its owner, a label or an annotation. Pods that are not a gang yet have no
/// other status than their own.
fn refers_to(pod: &Pod, name: &str) -> bool {
    let waits = pod.spec.as_ref().is_none_or(|spec| spec.node_name.is_none());
    let owned = pod.owner_references().iter().any(|owner| owner.name == name);
    let mut marks = pod.labels().values().chain(pod.annotations().values());
    waits && (owned || marks.any(|mark| mark == name))
}

/// Whether a gang is merged from groups, of which this is one.
fn is_of_group(gang: &DynamicObject, namespace: &str, name: &str) -> bool {
    let listed = gang.annotations().get(GROUPS);
    let groups = listed.and_then(|all| serde_json::from_str::<Vec<String>>(all).ok());
    let is_it = |group: &String| group.split_once('/') == Some((namespace, name));
    groups.is_some_and(|groups| groups.iter().any(is_it))
}

fn explain(gang: &DynamicObject) -> Explanation {
    let name = key_of(gang);
    let status = gang.data.get("status").cloned().unwrap_or_default();
    let parsed: GangStatus = serde_json::from_value(status.clone()).unwrap_or_default();
    Explanation { lines: lines(&name, &parsed, Timestamp::now()), name, status }
}

/// The status of a gang in sentences, its message first.
fn lines(name: &str, status: &GangStatus, now: Timestamp) -> Vec<String> {
    let Some(phase) = status.phase else {
        return vec![format!("{name}: nothing was decided yet")];
    };
    let message = status.message.as_deref().unwrap_or("nothing more is known");
    let mut lines = vec![format!("{name}: {message}")];
    let waits = matches!(phase, GangPhase::Waiting | GangPhase::Provisioning);
    if let Some(since) = status.waiting_since.as_ref().filter(|_| waits) {
        let waited = now.as_millisecond().saturating_sub(since.0.0).max(0);
        let place = status.position.map(|at| format!(", number {at} in line")).unwrap_or_default();
        lines.push(format!("  it waits for {}{place}", span(Span(waited.unsigned_abs()))));
    }
    if let Some(start) = status.expected_start.as_ref().filter(|_| waits) {
        let left = start.0.0.saturating_sub(now.as_millisecond()).max(0);
        let left = span(Span(left.unsigned_abs()));
        lines.push(format!("  it is expected to start in about {left}"));
    }
    if let Some(order) = &status.order {
        lines.push(format!("  its nodes are in {order}: kubectl get order {order}"));
    }
    if let Some(restarts) = status.restarts.filter(|restarts| *restarts > 0) {
        let times = if restarts == 1 { "once".to_owned() } else { format!("{restarts} times") };
        lines.push(format!("  it had to start over {times}"));
    }
    lines
}

/// Explains a single pod, which has no Gang object.
fn explain_pod(namespace: &str, pod: &Pod) -> Explanation {
    let name = format!("{namespace}/{}", pod.name_any());
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    let mut conditions = conditions.into_iter().flatten();
    let placed = conditions.find(|one| one.type_ == "PodScheduled");
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
    let message = match (node, placed.and_then(|one| one.message.as_deref())) {
        (Some(node), _) => format!("is on node {node}"),
        (None, Some(why)) => why.to_owned(),
        (None, None) => "nothing was decided yet".to_owned(),
    };
    let status = placed.and_then(|one| serde_json::to_value(one).ok()).unwrap_or_default();
    Explanation { lines: vec![format!("{name}: {message}")], name, status }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::why::*;

    fn lines_of(status: Value) -> Vec<String> {
        let now: Timestamp = "2026-11-16T12:00:00Z".parse().expect("an instant");
        lines("default/train.job", &serde_json::from_value(status).expect("a status"), now)
    }

    #[test]
    fn waiting_gang_shows_how_long_it_waits_and_its_expected_start() {
        assert_eq!(lines_of(json!({})), ["default/train.job: nothing was decided yet"]);
        let waiting = lines_of(json!({
            "phase": "Waiting", "message": "waits: no room", "position": 3, "restarts": 2,
            "waitingSince": "2026-11-16T11:50:00Z", "expectedStart": "2026-11-16T12:30:00Z",
        }));
        assert_eq!(
            waiting,
            [
                "default/train.job: waits: no room",
                "  it waits for 10m00s, number 3 in line",
                "  it is expected to start in about 30m00s",
                "  it had to start over 2 times",
            ]
        );
        let runs =
            json!({"phase": "Running", "message": "runs", "waitingSince": "2026-11-16T11:50:00Z"});
        assert_eq!(lines_of(runs), ["default/train.job: runs"]);
    }

    #[test]
    fn unknown_name_is_answered_with_existing_gangs() {
        let unknown = |others: &[&str]| {
            let others = others.iter().map(|name| (*name).to_owned()).collect();
            let (namespace, name) = ("team".to_owned(), "tarin".to_owned());
            WhyError::Unknown { namespace, name, others }.to_string()
        };
        assert_eq!(
            unknown(&[]),
            "no gang and no pod in namespace team is called tarin; there are no gangs at all"
        );
        assert_eq!(
            unknown(&["a", "b", "c", "d", "e", "f", "g"]),
            "no gang and no pod in namespace team is called tarin; there are a, b, c, d, e and 2 more"
        );
    }
}
