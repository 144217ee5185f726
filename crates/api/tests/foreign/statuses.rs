//! Statuses that are written into the objects of groups.

use muster_api::dialects::{Dialect, State, status};
use muster_core::time::Time;
use serde_json::{Value, json};

const NOW: Time = Time(1_800_000_000_000);

fn states() -> [(&'static str, State); 7] {
    [
        ("waits for a node", State::Waiting { why: "2 nodes short".into(), node_would_help: true }),
        ("waits for quota", State::Waiting { why: "queue full".into(), node_would_help: false }),
        ("provisioning", State::Provisioning { ready: 3, total: 8 }),
        ("admitted", State::Admitted),
        ("running", State::Running { running: 7, succeeded: 1, failed: 0 }),
        ("finished", State::Finished { succeeded: 8, failed: 0 }),
        ("impossible", State::Infeasible { why: "no such GPU".into() }),
    ]
}

/// The patch of every state for a fresh object, one per line.
fn patches(dialect: Dialect, object: &Value) -> String {
    let line = |(name, state): (&str, State)| match status(dialect, object, &state, NOW) {
        Some(patch) => format!(
            "{name} -> {} {}",
            if patch.subresource { "status" } else { "object" },
            patch.patch["status"]
        ),
        None => format!("{name} -> nothing"),
    };
    states().map(line).join("\n").replace("\"lastTransitionTime\":\"2027-01-15T08:00:00Z\",", "")
}

#[test]
fn volcano_group_leaves_pending_only_when_capacity_is_ready() {
    insta::assert_snapshot!(patches(Dialect::Volcano, &json!({})), @r#"
    waits for a node -> object {"conditions":[{"message":"2 nodes short","reason":"NotEnoughResources","status":"True","type":"Unschedulable"}],"phase":"Pending"}
    waits for quota -> object {"conditions":[{"message":"queue full","reason":"Waiting","status":"False","type":"Unschedulable"}],"phase":"Pending"}
    provisioning -> object {"conditions":[{"message":"3 of 8 nodes are ready","reason":"Provisioning","status":"False","type":"Unschedulable"}],"phase":"Pending"}
    admitted -> object {"conditions":[{"message":"every member has a seat","reason":"Scheduled","status":"True","type":"Scheduled"}],"phase":"Inqueue"}
    running -> object {"conditions":[{"message":"7 members run","reason":"Scheduled","status":"True","type":"Scheduled"}],"failed":0,"phase":"Running","running":7,"succeeded":1}
    finished -> object {"conditions":[{"message":"no member is left to run","reason":"Scheduled","status":"True","type":"Scheduled"}],"failed":0,"phase":"Completed","running":0,"succeeded":8}
    impossible -> object {"conditions":[{"message":"no such GPU","reason":"Infeasible","status":"False","type":"Unschedulable"}],"phase":"Pending"}
    "#);
    let inqueue = json!({"status": {"phase": "Inqueue"}});
    let waiting = State::Waiting { why: "w".into(), node_would_help: false };
    let patch = status(Dialect::Volcano, &inqueue, &waiting, NOW).unwrap();
    assert_eq!(patch.patch["status"].get("phase"), None, "it keeps Inqueue");
    let running = json!({"status": {"phase": "Running"}});
    let patch = status(Dialect::Volcano, &running, &waiting, NOW).unwrap();
    assert_eq!(patch.patch["status"]["phase"], "Pending", "evicted, it is back in the queue");
}

#[test]
fn native_conditions_by_version() {
    insta::assert_snapshot!(patches(Dialect::Native, &json!({"apiVersion": "scheduling.k8s.io/v1beta1"})), @r#"
    waits for a node -> status {"conditions":[{"message":"2 nodes short","reason":"Unschedulable","status":"False","type":"PodGroupInitiallyScheduled"}]}
    waits for quota -> status {"conditions":[{"message":"queue full","reason":"Waiting","status":"False","type":"PodGroupInitiallyScheduled"}]}
    provisioning -> status {"conditions":[{"message":"3 of 8 nodes are ready","reason":"Provisioning","status":"False","type":"PodGroupInitiallyScheduled"}]}
    admitted -> status {"conditions":[{"message":"every member has a seat","reason":"Scheduled","status":"True","type":"PodGroupInitiallyScheduled"}]}
    running -> status {"conditions":[{"message":"7 members run","reason":"Scheduled","status":"True","type":"PodGroupInitiallyScheduled"}]}
    finished -> status {"conditions":[{"message":"no member is left to run","reason":"Scheduled","status":"True","type":"PodGroupInitiallyScheduled"}]}
    impossible -> status {"conditions":[{"message":"no such GPU","reason":"Infeasible","status":"False","type":"PodGroupInitiallyScheduled"}]}
    "#);
    insta::assert_snapshot!(patches(Dialect::Native, &json!({"apiVersion": "scheduling.k8s.io/v1alpha2"})), @r#"
    waits for a node -> status {"conditions":[{"message":"2 nodes short","reason":"Unschedulable","status":"False","type":"PodGroupScheduled"}]}
    waits for quota -> status {"conditions":[{"message":"queue full","reason":"Waiting","status":"False","type":"PodGroupScheduled"}]}
    provisioning -> status {"conditions":[{"message":"3 of 8 nodes are ready","reason":"Provisioning","status":"False","type":"PodGroupScheduled"}]}
    admitted -> status {"conditions":[{"message":"every member has a seat","reason":"Scheduled","status":"True","type":"PodGroupScheduled"}]}
    running -> status {"conditions":[{"message":"7 members run","reason":"Scheduled","status":"True","type":"PodGroupScheduled"}]}
    finished -> status {"conditions":[{"message":"no member is left to run","reason":"Scheduled","status":"True","type":"PodGroupScheduled"}]}
    impossible -> status {"conditions":[{"message":"no such GPU","reason":"Infeasible","status":"False","type":"PodGroupScheduled"}]}
    "#);
    let placed = |version: &str, kind: &str| json!({"apiVersion": version, "status": {"conditions": [{"type": kind, "status": "True"}]}});
    let once = placed("scheduling.k8s.io/v1alpha3", "PodGroupInitiallyScheduled");
    let again = placed("scheduling.k8s.io/v1alpha2", "PodGroupScheduled");
    let waiting = &states()[0].1;
    assert_eq!(status(Dialect::Native, &once, waiting, NOW), None, "true once, true forever");
    assert!(status(Dialect::Native, &again, waiting, NOW).is_some());
    assert_eq!(
        patches(Dialect::Workload, &json!({})).matches("nothing").count(),
        7,
        "it has no status"
    );
}

#[test]
fn phases_of_the_other_dialects() {
    insta::assert_snapshot!(patches(Dialect::SchedulerPlugins, &json!({})), @r#"
    waits for a node -> status {"phase":"Pending"}
    waits for quota -> status {"phase":"Pending"}
    provisioning -> status {"phase":"Pending"}
    admitted -> status {"phase":"Scheduling","scheduleStartTime":"2027-01-15T08:00:00Z"}
    running -> status {"failed":0,"phase":"Running","running":7,"scheduleStartTime":"2027-01-15T08:00:00Z","succeeded":1}
    finished -> status {"failed":0,"phase":"Finished","running":0,"scheduleStartTime":"2027-01-15T08:00:00Z","succeeded":8}
    impossible -> status {"phase":"Pending"}
    "#);
    insta::assert_snapshot!(patches(Dialect::Koordinator, &json!({})), @r#"
    waits for a node -> object {"phase":"Pending"}
    waits for quota -> object {"phase":"Pending"}
    provisioning -> object {"phase":"PreScheduling"}
    admitted -> object {"phase":"Scheduled","scheduleStartTime":"2027-01-15T08:00:00Z"}
    running -> object {"failed":0,"phase":"Running","running":7,"scheduleStartTime":"2027-01-15T08:00:00Z","succeeded":1}
    finished -> object {"failed":0,"phase":"Finished","running":0,"scheduleStartTime":"2027-01-15T08:00:00Z","succeeded":8}
    impossible -> object {"phase":"Pending"}
    "#);
    insta::assert_snapshot!(patches(Dialect::KubeBatch, &json!({"apiVersion": "scheduling.sigs.dev/v1alpha2"})), @r#"
    waits for a node -> status {"conditions":[{"message":"2 nodes short","reason":"NotEnoughResources","status":"True","type":"Unschedulable"}],"phase":"Pending"}
    waits for quota -> status {"conditions":[{"message":"queue full","reason":"Waiting","status":"False","type":"Unschedulable"}],"phase":"Pending"}
    provisioning -> status {"conditions":[{"message":"3 of 8 nodes are ready","reason":"Provisioning","status":"False","type":"Unschedulable"}],"phase":"Pending"}
    admitted -> status {"conditions":[{"message":"every member has a seat","reason":"Scheduled","status":"True","type":"Scheduled"}],"phase":"Pending"}
    running -> status {"conditions":[{"message":"7 members run","reason":"Scheduled","status":"True","type":"Scheduled"}],"failed":0,"phase":"Running","running":7,"succeeded":1}
    finished -> status {"conditions":[{"message":"no member is left to run","reason":"Scheduled","status":"True","type":"Scheduled"}],"failed":0,"phase":"Running","running":0,"succeeded":8}
    impossible -> status {"conditions":[{"message":"no such GPU","reason":"Infeasible","status":"False","type":"Unschedulable"}],"phase":"Pending"}
    "#);
    insta::assert_snapshot!(patches(Dialect::Kai, &json!({})), @r#"
    waits for a node -> status {"schedulingConditions":[{"message":"2 nodes short","nodePool":"default","reason":"Unschedulable","status":"True","type":"UnschedulableOnNodePool"}]}
    waits for quota -> status {"schedulingConditions":[{"message":"queue full","nodePool":"default","reason":"Waiting","status":"True","type":"UnschedulableOnNodePool"}]}
    provisioning -> status {"schedulingConditions":[{"message":"3 of 8 nodes are ready","nodePool":"default","reason":"Provisioning","status":"True","type":"UnschedulableOnNodePool"}]}
    admitted -> nothing
    running -> nothing
    finished -> nothing
    impossible -> status {"schedulingConditions":[{"message":"no such GPU","nodePool":"default","reason":"Infeasible","status":"True","type":"UnschedulableOnNodePool"}]}
    "#);
    let gang = states().map(|(_, state)| status(Dialect::Muster, &json!({}), &state, NOW));
    assert!(gang.iter().all(Option::is_none), "the status of a Gang is written apart from this");
    let old = status(
        Dialect::KubeBatch,
        &json!({"apiVersion": "scheduling.incubator.k8s.io/v1alpha1"}),
        &State::Admitted,
        NOW,
    );
    assert!(!old.unwrap().subresource, "its CRD has no status subresource");
    let failed = State::Finished { succeeded: 1, failed: 1 };
    let patch = status(Dialect::SchedulerPlugins, &json!({}), &failed, NOW).unwrap();
    assert_eq!(patch.patch["status"]["phase"], "Failed");
}

/// Merges a patch the way an API server does.
fn merge(into: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *into = patch.clone();
        return;
    };
    if !into.is_object() {
        *into = json!({});
    }
    for (name, value) in fields {
        merge(&mut into[name], value);
    }
}

#[test]
fn unchanged_status_is_not_patched_again() {
    for dialect in Dialect::ALL {
        for version in ["scheduling.k8s.io/v1beta1", "scheduling.k8s.io/v1alpha2"] {
            for (name, state) in states() {
                let mut object = json!({"apiVersion": version, "spec": {}});
                if let Some(patch) = status(dialect, &object, &state, NOW) {
                    merge(&mut object, &patch.patch);
                }
                let later = status(dialect, &object, &state, Time(NOW.0 + 60_000));
                assert_eq!(later, None, "{dialect:?} {name}");
            }
        }
    }
}

#[test]
fn unschedulable_is_withdrawn_once_admitted() {
    for dialect in [Dialect::Volcano, Dialect::KubeBatch, Dialect::Kai, Dialect::Native] {
        let mut object = json!({"apiVersion": "scheduling.k8s.io/v1beta1"});
        for state in [&states()[0].1, &State::Admitted] {
            let patch = status(dialect, &object, state, NOW).unwrap();
            merge(&mut object, &patch.patch);
        }
        let text = object["status"].to_string();
        let still =
            text.contains("\"reason\":\"Unschedulable\"") || text.contains("NotEnoughResources");
        assert!(!still, "{dialect:?}: {text}");
        let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let bad = |one: &&Value| one["type"] == "Unschedulable" && one["status"] == "True";
        assert_eq!(conditions.iter().find(bad), None, "{dialect:?}");
    }
}

#[test]
fn other_conditions_stay_and_times_change_only_with_the_status() {
    let object = json!({"apiVersion": "scheduling.k8s.io/v1beta1", "status": {"conditions": [
        {"type": "DisruptionTarget", "status": "False"},
        {"type": "PodGroupInitiallyScheduled", "status": "False", "reason": "Waiting", "message": "old", "lastTransitionTime": "2026-01-01T00:00:00Z"},
    ]}});
    let patch = status(Dialect::Native, &object, &states()[0].1, NOW).unwrap();
    insta::assert_snapshot!(patch.patch.to_string(), @r#"{"status":{"conditions":[{"status":"False","type":"DisruptionTarget"},{"lastTransitionTime":"2026-01-01T00:00:00Z","message":"2 nodes short","reason":"Unschedulable","status":"False","type":"PodGroupInitiallyScheduled"}]}}"#);
    let turned = status(Dialect::Native, &object, &State::Admitted, NOW).unwrap();
    assert!(turned.patch.to_string().contains("2027-01-15T08:00:00Z"));
}

#[test]
fn only_a_gang_that_needs_a_node_is_unschedulable() {
    for dialect in Dialect::ALL {
        for (name, state) in states().into_iter().skip(1) {
            let patch =
                status(dialect, &json!({"apiVersion": "scheduling.k8s.io/v1beta1"}), &state, NOW);
            let text = patch.map(|patch| patch.patch.to_string()).unwrap_or_default();
            assert!(!text.contains("\"reason\":\"Unschedulable\""), "{dialect:?} {name}: {text}");
        }
    }
}
