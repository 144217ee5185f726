//! Why a gang waits, for whoever asks: read off what the controller has written.

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

/// So many names are offered instead of one that is not there.
const OFFERED: usize = 5;

/// Why nothing can be said.
#[derive(Debug, thiserror::Error)]
pub enum CannotSay {
    /// The server does not answer, or refuses to.
    #[error("the cluster cannot be asked: {0}")]
    Server(#[from] kube::Error),
    /// Muster's kinds are not there.
    #[error("this cluster does not know gangs: is Muster installed there?")]
    NotInstalled,
    /// Nothing has that name.
    #[error("no gang and no pod in namespace {namespace} is called {name}{}", offered(.others))]
    Unknown {
        /// Where it was looked for.
        namespace: String,
        /// What was asked for.
        name: String,
        /// Gangs there are.
        others: Vec<String>,
    },
}

fn offered(others: &[String]) -> String {
    match others {
        [] => "; there are no gangs at all".to_owned(),
        others if others.len() <= OFFERED => format!("; there are {}", others.join(", ")),
        others => {
            let rest = others.len() - OFFERED;
            format!("; there are {} and {rest} more", others[..OFFERED].join(", "))
        }
    }
}

/// What is known of one gang.
#[derive(Debug)]
pub struct Known {
    /// Its namespace and name.
    pub name: String,
    /// What was written of it, as it is.
    pub status: Value,
    /// The same for people.
    pub lines: Vec<String>,
}

/// What is known of the gangs of that name. One is enough of it: `train` for `train.job`, and a pod's for its gang's. Groups
/// that start together are one gang, which is found by the name of each of them, also where it is in another namespace.
///
/// # Errors
/// When the cluster does not say.
pub async fn why(client: Client, namespace: &str, name: &str) -> Result<Vec<Known>, CannotSay> {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("muster.sh", "v1alpha1", "Gang"));
    let gangs: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &kind);
    let everywhere: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
    let all = match gangs.list(&ListParams::default()).await {
        Ok(all) => all.items,
        Err(kube::Error::Api(status)) if status.code == 404 => return Err(CannotSay::NotInstalled),
        Err(error) => return Err(error.into()),
    };
    let meant = |gang: &&DynamicObject| {
        let own = gang.name_any();
        let is_named =
            own == name || own.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'));
        is_named || is_of_group(gang, namespace, name)
    };
    let found: Vec<Known> = all.iter().filter(meant).map(known).collect();
    if !found.is_empty() {
        return Ok(found);
    }
    // Whoever may not look into other namespaces is not told of gangs there.
    if let Ok(elsewhere) = everywhere.list(&ListParams::default()).await {
        let joined = elsewhere.items.iter().filter(|gang| is_of_group(gang, namespace, name));
        let found: Vec<Known> = joined.map(known).collect();
        if !found.is_empty() {
            return Ok(found);
        }
    }
    let pods: Api<Pod> = Api::namespaced(client, namespace);
    let pods = pods.list(&ListParams::default()).await?.items;
    let of_it = pods.iter().find(|pod| pod.name_any() == name);
    if let Some(pod) = of_it.or_else(|| pods.iter().find(|pod| speaks_of(pod, name))) {
        return Ok(vec![known_pod(namespace, pod)]);
    }
    let others = all.iter().map(ResourceExt::name_any).collect();
    Err(CannotSay::Unknown { namespace: namespace.to_owned(), name: name.to_owned(), others })
}

/// Whether a pod says that it belongs to something of that name: pods that are no whole gang yet have nothing but what is
/// on them.
fn speaks_of(pod: &Pod, name: &str) -> bool {
    let waits = pod.spec.as_ref().is_none_or(|spec| spec.node_name.is_none());
    let owned = pod.owner_references().iter().any(|owner| owner.name == name);
    let mut marks = pod.labels().values().chain(pod.annotations().values());
    waits && (owned || marks.any(|mark| mark == name))
}

/// Whether a gang is of several groups, of which this is one.
fn is_of_group(gang: &DynamicObject, namespace: &str, name: &str) -> bool {
    let listed = gang.annotations().get(GROUPS);
    let groups = listed.and_then(|all| serde_json::from_str::<Vec<String>>(all).ok());
    let is_it = |group: &String| group.split_once('/') == Some((namespace, name));
    groups.is_some_and(|groups| groups.iter().any(is_it))
}

fn known(gang: &DynamicObject) -> Known {
    let name = key_of(gang);
    let status = gang.data.get("status").cloned().unwrap_or_default();
    let said: GangStatus = serde_json::from_value(status.clone()).unwrap_or_default();
    Known { lines: lines(&name, &said, Timestamp::now()), name, status }
}

/// What there is to say of a gang, first what it is.
fn lines(name: &str, said: &GangStatus, now: Timestamp) -> Vec<String> {
    let Some(phase) = said.phase else {
        return vec![format!("{name}: nothing was decided yet")];
    };
    let message = said.message.as_deref().unwrap_or("nothing more is known");
    let mut lines = vec![format!("{name}: {message}")];
    let waits = matches!(phase, GangPhase::Waiting | GangPhase::Provisioning);
    if let Some(since) = said.waiting_since.as_ref().filter(|_| waits) {
        let waited = now.as_millisecond().saturating_sub(since.0.0).max(0);
        let place = said.position.map(|at| format!(", number {at} in line")).unwrap_or_default();
        lines.push(format!("  it waits for {}{place}", span(Span(waited.unsigned_abs()))));
    }
    if let Some(start) = said.expected_start.as_ref().filter(|_| waits) {
        let left = start.0.0.saturating_sub(now.as_millisecond()).max(0);
        let left = span(Span(left.unsigned_abs()));
        lines.push(format!("  it is expected to start in about {left}"));
    }
    if let Some(order) = &said.order {
        lines.push(format!("  its nodes are in {order}: kubectl get order {order}"));
    }
    if let Some(restarts) = said.restarts.filter(|restarts| *restarts > 0) {
        let times = if restarts == 1 { "once".to_owned() } else { format!("{restarts} times") };
        lines.push(format!("  it had to start over {times}"));
    }
    lines
}

/// A pod that is a gang by itself has no object of its own.
fn known_pod(namespace: &str, pod: &Pod) -> Known {
    let name = format!("{namespace}/{}", pod.name_any());
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    let mut conditions = conditions.into_iter().flatten();
    let placed = conditions.find(|one| one.type_ == "PodScheduled");
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
    let words = match (node, placed.and_then(|one| one.message.as_deref())) {
        (Some(node), _) => format!("is on node {node}"),
        (None, Some(why)) => why.to_owned(),
        (None, None) => "nothing was decided yet".to_owned(),
    };
    let status = placed.and_then(|one| serde_json::to_value(one).ok()).unwrap_or_default();
    Known { lines: vec![format!("{name}: {words}")], name, status }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::why::*;

    fn say(status: Value) -> Vec<String> {
        let now: Timestamp = "2026-11-16T12:00:00Z".parse().expect("an instant");
        lines("default/train.job", &serde_json::from_value(status).expect("a status"), now)
    }

    #[test]
    fn whoever_waits_reads_for_how_long_and_until_when() {
        assert_eq!(say(json!({})), ["default/train.job: nothing was decided yet"]);
        let told = say(json!({
            "phase": "Waiting", "message": "waits: no room", "position": 3, "restarts": 2,
            "waitingSince": "2026-11-16T11:50:00Z", "expectedStart": "2026-11-16T12:30:00Z",
        }));
        assert_eq!(
            told,
            [
                "default/train.job: waits: no room",
                "  it waits for 10m00s, number 3 in line",
                "  it is expected to start in about 30m00s",
                "  it had to start over 2 times",
            ]
        );
        let runs =
            json!({"phase": "Running", "message": "runs", "waitingSince": "2026-11-16T11:50:00Z"});
        assert_eq!(say(runs), ["default/train.job: runs"]);
    }

    #[test]
    fn a_name_that_is_not_there_is_answered_with_those_that_are() {
        let unknown = |others: &[&str]| {
            let others = others.iter().map(|name| (*name).to_owned()).collect();
            let (namespace, name) = ("team".to_owned(), "tarin".to_owned());
            CannotSay::Unknown { namespace, name, others }.to_string()
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
