//! The chart grants the rights that Muster uses, and no other: tests of other files run again under an audit log, and
//! their requests are compared with the rules of the ClusterRole and the Role.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use kube::api::DynamicObject;
use muster_testkit::cluster::{AUDIT, Cluster, Setup, objects};
use muster_testkit::testbed::Tool;
use serde_json::Value;

use crate::install::chart::RELEASE;

/// Tests that together use every right of Muster.
const TESTS: [&str; 15] = [
    "provision::autoscaler_pools::gang_gets_its_nodes_by_one_request_and_starts_whole",
    "provision::autoscaler_pools::warm_nodes_are_requested_held_and_released",
    "provision::node_claims::deleted_pool_keeps_its_nodes_until_the_gang_on_them_ends",
    "recover::controller_kills::gangs_that_preempt_never_share_a_seat_across_kills",
    "dialects::pod_groups::gang_of_every_dialect_starts_whole_or_not_at_all",
    "schedule::preemption::higher_priority_preempts_one_whole_gang_exactly_once",
    "schedule::scheduling_gates::gates_are_removed_together_when_every_node_is_ready",
    "dialects::workloads::every_workload_starts_whole_or_not_at_all",
    "recover::leader_election::standby_takes_over_when_the_leader_is_killed_or_stopped",
    "provision::provisioning_requests::booked_capacity_is_bought_together_and_used_by_its_pods",
    "schedule::suspended_jobs::preempted_job_is_suspended_again_and_resumes",
    "dialects::gang_templates::gang_with_templates_gets_its_pods_and_finishes",
    "constraints::provisioned_volumes::no_pod_is_bound_before_all_volumes_of_its_gang_exist",
    "status::conditions_and_events::invalid_object_reports_it_and_stops_no_other",
    "constraints::static_volumes::unbound_volumes_are_released_and_kept_across_a_controller_kill",
];

/// Rights that these tests need not use, and why they are granted.
const ALLOWED: [(&str, &str, &[&str], &str); 8] = [
    ("", "pods", &["get"], "a binding that conflicts is compared with the pod"),
    ("", "persistentvolumes", &["get"], "a volume that was changed meanwhile is read again"),
    ("batch", "jobs", &["get"], "a Job that was changed meanwhile is read again"),
    (
        "muster.sh",
        "orders",
        &["patch"],
        "an Order is written again when one of its claims is replaced",
    ),
    ("scheduling.k8s.io", "workloads", &["list", "watch"], "Kubernetes 1.35 has gangs in them"),
    ("scheduling.incubator.k8s.io", "queues", &["list", "watch"], "no story has kube-batch's"),
    ("scheduling.sigs.dev", "queues", &["list", "watch"], "nor those of its other group"),
    ("scheduling.volcano.sh", "queues", &["list", "watch"], "no story has Volcano's"),
];

/// A group, a resource with its subresource, and a verb.
pub(crate) type Right = (String, String, String);

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Every right in the rules of a role.
pub(crate) fn granted(roles: &[DynamicObject]) -> BTreeSet<Right> {
    let is_musters = |role: &&DynamicObject| {
        let kind = role.types.as_ref().map(|types| &*types.kind);
        matches!(kind, Some("ClusterRole" | "Role"))
            && role.metadata.name.as_deref() == Some("muster")
    };
    let rules = roles.iter().filter(is_musters).flat_map(|role| role.data["rules"].as_array());
    let mut rights = BTreeSet::new();
    for rule in rules.flatten() {
        let all = |field: &str| rule[field].as_array().into_iter().flatten().map(text);
        for group in all("apiGroups") {
            for resource in all("resources") {
                rights.extend(all("verbs").map(|verb| (group.clone(), resource.clone(), verb)));
            }
        }
    }
    rights
}

/// The rights that were used, by whether the API server allowed the request.
fn used(folder: &Path) -> BTreeMap<bool, BTreeSet<Right>> {
    let mut used = BTreeMap::<bool, BTreeSet<Right>>::new();
    for log in std::fs::read_dir(folder).expect("a folder").flatten() {
        for line in std::fs::read_to_string(log.path()).expect("a log").lines() {
            let asked: Value = serde_json::from_str(line).expect("one request a line");
            let of = &asked["objectRef"];
            if of.is_null() {
                continue; // what the server serves is no resource
            }
            let resource = match of["subresource"].as_str() {
                Some(sub) => format!("{}/{sub}", text(&of["resource"])),
                None => text(&of["resource"]),
            };
            let allowed = asked["annotations"]["authorization.k8s.io/decision"] == "allow";
            let right = (text(&of["apiGroup"]), resource, text(&asked["verb"]));
            used.entry(allowed).or_default().insert(right);
        }
    }
    used
}

#[tokio::test(flavor = "multi_thread")]
async fn chart_grants_exactly_the_rights_that_tests_use() {
    let setup = Setup::bare().needing(Tool::Helm);
    let Some(cluster) = Cluster::start_or_skip(setup).await else { return };
    let chart = cluster.rendered(RELEASE, &[]).expect("a chart");
    let folder = cluster.folder().join("audit");
    std::fs::create_dir(&folder).expect("a folder");
    let ran = Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "--test-threads", "1"])
        .args(TESTS)
        .env(AUDIT, &folder)
        .output()
        .expect("the stories run");
    let output = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{output}");
    assert!(
        output.contains(&format!("{} passed", TESTS.len())),
        "a test has another name: {output}"
    );
    let granted = granted(&objects(&chart).expect("objects"));
    let used = used(&folder);
    let none = BTreeSet::new();
    assert_eq!(used.get(&false).unwrap_or(&none), &none, "used and not granted");
    let used = used.get(&true).expect("Muster asked for something");
    let allowed = ALLOWED.iter().flat_map(|(group, resource, verbs, _)| {
        verbs.iter().map(|verb| ((*group).to_owned(), (*resource).to_owned(), (*verb).to_owned()))
    });
    let allowed: BTreeSet<Right> = allowed.collect();
    let unused: BTreeSet<&Right> =
        granted.difference(used).filter(|right| !allowed.contains(*right)).collect();
    assert_eq!(unused, BTreeSet::new(), "granted and not used");
    assert!(allowed.is_subset(&granted), "allowed and not granted any more");
}
