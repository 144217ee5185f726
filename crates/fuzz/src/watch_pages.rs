//! What the API server answers to lists and watches: an object that cannot be read hides no other, and none makes a reader panic.

use kube::api::{DynamicObject, WatchEvent};
use kube::core::{DeserializeGuard, ObjectList};
use kube::{Resource, ResourceExt};
use muster_kube::objects::{Node, NodeClaim, Pod};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::Target;

pub(crate) const TARGET: Target = Target {
    name: "watch_pages",
    run,
    words: &[
        "{\"a\":",
        "[",
        "]",
        "}",
        "null",
        "\"\"",
        "-1",
        "1e400",
        "18446744073709551616",
        "\"items\":",
        "\"metadata\":",
        "\"name\":",
        "\"namespace\":",
        "\"annotations\":",
        "\"labels\":",
        "\"ownerReferences\":",
        "\"finalizers\":",
        "\"resourceVersion\":",
        "\"continue\":",
        "\"spec\":",
        "\"status\":",
        "\"containers\":",
        "\"resources\":",
        "\"requests\":",
        "\"schedulingGates\":",
        "\"nodeName\":",
        "\"taints\":",
        "\"conditions\":",
        "\"allocatable\":",
        "\"type\":\"ADDED\"",
        "\"type\":\"DELETED\"",
        "\"type\":\"BOOKMARK\"",
        "\"type\":\"ERROR\"",
        "\"object\":",
        "\"creationTimestamp\":",
        "\"deletionTimestamp\":",
        "\"2026-11-17T00:00:00Z\"",
        "\"muster.sh/seat\":",
        "\"muster.sh/gang\":",
        "\"kubernetes.io/hostname\":",
        "\\u0000",
        "\\ud800",
    ],
    rounds: 6_000,
};

fn run(data: &[u8]) {
    page::<Pod>(data, |pod| {
        pod.unpin();
        pod.hold();
        let _ = (pod.node(), pod.seat(), pod.is_over(), pod.has_succeeded(), pod.is_leaving());
        let _ = (pod.is_sent_away(), pod.is_shy(), pod.has_gate(), pod.is_held());
    });
    page::<Node>(data, |node| {
        let _ = node.is_ready();
    });
    page::<NodeClaim>(data, |claim| {
        let _ =
            (claim.is_launched(), claim.launched_at(), claim.is_registered(), claim.is_leaving());
    });
    page::<DynamicObject>(data, |_| {});
}

fn page<K>(data: &[u8], look: impl Fn(&mut K))
where
    K: Resource + Clone + DeserializeOwned,
{
    if let Ok(list) = serde_json::from_slice::<ObjectList<DeserializeGuard<K>>>(data) {
        let readable = list.items.into_iter().filter_map(|item| item.0.ok());
        let mut seen = 0;
        for mut object in readable {
            look(&mut object);
            let _ = (object.namespace(), object.name_any(), object.resource_version());
            seen += 1;
        }
        assert_eq!(seen, one_by_one::<K>(data), "an object hides another");
    }
    for line in data.split(|byte| *byte == b'\n') {
        let Ok(event) = serde_json::from_slice::<WatchEvent<DeserializeGuard<K>>>(line) else {
            continue;
        };
        if let WatchEvent::Added(object)
        | WatchEvent::Modified(object)
        | WatchEvent::Deleted(object) = event
            && let Ok(mut object) = object.0
        {
            look(&mut object);
        }
    }
}

/// Of a page, how many objects can be read, each by itself.
fn one_by_one<K: DeserializeOwned>(data: &[u8]) -> usize {
    let Ok(page) = serde_json::from_slice::<Value>(data) else { return 0 };
    let items = page["items"].as_array().into_iter().flatten();
    items.filter(|item| serde_json::from_value::<K>((*item).clone()).is_ok()).count()
}
