//! The chart grants what Muster uses, and nothing else: stories of other tests run again under an audit log, and what was
//! asked for in them is compared with the rules of the ClusterRole and the Role.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use kube::api::DynamicObject;
use muster_testkit::cluster::{AUDIT, Cluster, Setup, objects};
use muster_testkit::testbed::Tool;
use serde_json::Value;

use crate::chart::RELEASE;

/// Stories that together use everything that Muster can do.
const STORIES: [&str; 15] = [
    "autoscaled::four_nodes_are_asked_for_in_one_request_and_four_pods_start_together",
    "autoscaled::warm_nodes_are_asked_for_held_and_let_go",
    "bought::a_gang_goes_on_when_the_pool_of_its_nodes_is_deleted_and_they_go_when_it_is_done",
    "crash::rivals_for_too_few_nodes_never_have_the_same_seat_however_often_it_is_killed",
    "dialects::every_dialect_gets_gangs",
    "disruption::a_higher_priority_stops_one_whole_gang_once_and_rivals_leave_each_other_alone",
    "gates::gates_are_lifted_together_when_every_node_is_there",
    "operators::every_workload_starts_whole_or_not_at_all",
    "replicas::another_replica_takes_over_from_one_that_is_killed_or_told_to_go",
    "requests::room_is_bought_together_and_taken_by_those_it_was_booked_for",
    "suspended::a_job_that_makes_way_is_suspended_again_and_comes_back",
    "templates::a_gang_with_templates_has_its_pods_made_and_comes_to_an_end",
    "ties::no_pod_is_bound_before_all_volumes_of_its_gang_are_made",
    "told::an_object_that_makes_no_sense_says_so_and_nobody_else_is_stopped",
    "volumes::killed_between_choosing_and_binding_the_next_one_goes_on_and_what_does_not_come_is_let_go",
];

/// Rights that these stories need not use, and why they are granted.
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

/// What was asked for, by whether the server allowed it.
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
async fn chart_grants_exactly_what_the_stories_use() {
    let setup = Setup::bare().needing(Tool::Helm);
    let Some(cluster) = Cluster::start_or_skip(setup).await else { return };
    let chart = cluster.rendered(RELEASE, &[]).expect("a chart");
    let folder = cluster.folder().join("audit");
    std::fs::create_dir(&folder).expect("a folder");
    let ran = Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "--test-threads", "1"])
        .args(STORIES)
        .env(AUDIT, &folder)
        .output()
        .expect("the stories run");
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{said}");
    assert!(
        said.contains(&format!("{} passed", STORIES.len())),
        "a story has another name: {said}"
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
