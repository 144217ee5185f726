//! Merged groups: created one by one, with different lists, deleted, and found by a new leader.

use std::sync::Arc;

use muster_api::dialects::{Dialect, GroupRef, State};
use muster_core::gang::Phase;
use serde_json::{Value, json};

use crate::effects::outcome::Outcome;
use crate::gang::identity::GangSource;
use crate::tests::fixture::HostFixture;
use crate::tests::objects::{bought_node, claim, node, pool, single_pod};
use crate::tests::schedule::cases::on;
use crate::tests::schedule::seats::{ended, leaving, seats};

const LEFT: &str = "a/left";
const RIGHT: &str = "b/right";
const BOTH: &[&str] = &[RIGHT, LEFT];

fn reference(name: &str) -> GroupRef {
    let (namespace, name) = name.split_once('/').expect("a full name");
    let (namespace, name) = (namespace.to_owned(), name.to_owned());
    GroupRef { dialect: Dialect::Koordinator, namespace, name }
}

/// The name of the gang of groups that list each other.
fn joint(groups: &[&str]) -> Arc<str> {
    let mut groups: Vec<GroupRef> = groups.iter().map(|name| reference(name)).collect();
    groups.sort();
    GangSource::Merged(groups.into()).gang_name()
}

fn listed(groups: &[&str]) -> Value {
    let text = serde_json::to_string(groups).expect("plain");
    json!({"gang.scheduling.koordinator.sh/groups": text})
}

/// A PodGroup that lists these.
fn record(name: &str, min: u32, groups: &[&str]) -> Value {
    let of = reference(name);
    let marks = if groups.is_empty() { json!({}) } else { listed(groups) };
    json!({
        "apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "PodGroup",
        "metadata": {"name": of.name, "namespace": of.namespace, "uid": name, "annotations": marks},
        "spec": {"minMember": min},
    })
}

/// A pod of a group that has an object.
fn member(of: &str, at: u32) -> Value {
    let of = reference(of);
    let mut pod = single_pod(&format!("{}-{at}", of.name));
    pod["metadata"]["namespace"] = json!(of.namespace);
    pod["metadata"]["labels"] = json!({"pod-group.scheduling.sigs.k8s.io": of.name});
    pod
}

/// A pod of a group of so many that is declared by annotations alone.
fn marked(of: &str, at: u32, min: u32, groups: &[&str]) -> Value {
    let mut pod = member(of, at);
    let mut marks = listed(groups);
    marks["gang.scheduling.koordinator.sh/name"] = json!(reference(of).name);
    marks["gang.scheduling.koordinator.sh/min-available"] = json!(min.to_string());
    pod["metadata"]["annotations"] = marks;
    pod["metadata"]["labels"] = json!({});
    pod
}

fn with_nodes(count: u32) -> HostFixture {
    let mut fixture = HostFixture::new();
    (0..count).for_each(|at| fixture.show(node(&format!("n{at}")), false));
    fixture
}

/// Two members on the left and one on the right; the groups list each other.
fn show_all(fixture: &mut HostFixture) {
    fixture.show(record(LEFT, 2, BOTH), false);
    fixture.show(record(RIGHT, 1, BOTH), false);
    for pod in [member(LEFT, 0), member(LEFT, 1), member(RIGHT, 0)] {
        fixture.show(pod, false);
    }
}

impl HostFixture {
    fn blocked_reason(&self, name: &str) -> String {
        let record = self.host.gangs.get(name).unwrap_or_else(|| panic!("no {name}"));
        record.blocked.clone().map_or(String::new(), |(why, _)| why)
    }

    fn is_admitted(&self, name: &str) -> bool {
        matches!(self.phase(name), Some(Phase::Admitted { .. }))
    }

    fn is_running(&self, name: &str) -> bool {
        matches!(self.phase(name), Some(Phase::Running { .. }))
    }

    /// The node that a pod of a gang is assigned to.
    fn assigned_node(&self, gang: &str, pod: &str) -> Option<String> {
        let record = self.host.gangs.get(gang)?;
        record.assigned_nodes.get(pod).map(ToString::to_string)
    }
}

/// All of it runs, a pod on each node.
fn runs() -> HostFixture {
    let mut fixture = with_nodes(3);
    fixture.show(record(LEFT, 2, BOTH), false);
    fixture.show(record(RIGHT, 1, BOTH), false);
    let all = [member(LEFT, 0), member(LEFT, 1), member(RIGHT, 0)];
    all.into_iter()
        .enumerate()
        .for_each(|(at, pod)| fixture.show(on(pod, &format!("n{at}")), false));
    fixture.host.run_cycle();
    assert!(fixture.is_running(&joint(BOTH)), "{:?}", fixture.phase(&joint(BOTH)));
    fixture
}

#[tokio::test]
async fn groups_created_one_by_one_start_together_when_all_fit() {
    let mut fixture = with_nodes(2);
    let name = joint(BOTH);
    fixture.show(record(LEFT, 2, BOTH), false);
    fixture.show(member(LEFT, 0), false);
    fixture.see(member(LEFT, 1));
    assert!(
        fixture.blocked_reason(&name).contains("b/right, which does not exist"),
        "{}",
        fixture.blocked_reason(&name)
    );
    fixture.see(record(RIGHT, 1, BOTH));
    assert!(
        fixture.blocked_reason(&name).contains("b/right: 0 of 1 members"),
        "{}",
        fixture.blocked_reason(&name)
    );
    assert_eq!((fixture.phase(&name), fixture.phase("a/left.koordinator")), (None, None));
    fixture.see(member(RIGHT, 0));
    assert_eq!(fixture.phase(&name), Some(&Phase::Waiting), "only one of them fits");
    assert_eq!(seats(&fixture, &name), 0);
    fixture.see(node("n2"));
    assert!(fixture.is_admitted(&name), "{:?}", fixture.phase(&name));
    assert_eq!(seats(&fixture, &name), 3);
    let object = fixture.host.generated_gang_object(&name).expect("Muster creates its object");
    assert_eq!(object.metadata.namespace.as_deref(), Some("a"), "the namespace of the first group");
    assert_eq!(object.metadata.owner_references.unwrap_or_default(), []);
    fixture.handle_outcome(Outcome::PlacementWritten(name.clone()));
    for pod in ["a/left-0", "a/left-1", "b/right-0"] {
        assert!(fixture.assigned_node(&name, pod).is_some(), "{pod} is not assigned");
    }
}

#[tokio::test]
async fn groups_merge_by_pod_annotations_alone() {
    let mut fixture = with_nodes(3);
    let name = joint(BOTH);
    fixture.see(marked(LEFT, 0, 2, BOTH));
    // A group may omit its own name from its list.
    fixture.see(marked(RIGHT, 0, 1, &[LEFT]));
    assert!(
        fixture.blocked_reason(&name).contains("a/left: 1 of 2 members exist"),
        "{}",
        fixture.blocked_reason(&name)
    );
    fixture.see(marked(LEFT, 1, 2, BOTH));
    assert!(
        fixture.is_admitted(&name),
        "{:?}: {}",
        fixture.phase(&name),
        fixture.blocked_reason(&name)
    );
    let (_, gang) = fixture.gang(&name).expect("taken in");
    let roles = gang.spec.roles.iter().map(|role| (role.name.to_string(), role.min));
    let least = [("left-member".to_owned(), 2), ("right-member".to_owned(), 1)];
    assert_eq!(roles.collect::<Vec<_>>(), least);
}

#[tokio::test]
async fn merged_groups_get_one_order_for_all_their_nodes() {
    let mut fixture = HostFixture::new();
    fixture.show(pool(), false);
    show_all(&mut fixture);
    fixture.host.run_cycle();
    let name = joint(BOTH);
    let claims = fixture.claims();
    assert_eq!((claims.len(), fixture.host.world.orders().len()), (3, 1));
    assert!(fixture.order(&name).is_some());
    for id in &claims[..2] {
        fixture.show(claim(*id), false);
        fixture.see(bought_node(*id));
    }
    assert_eq!(seats(&fixture, &name), 0, "one of the nodes does not exist");
    fixture.show(claim(claims[2]), false);
    fixture.see(bought_node(claims[2]));
    assert!(fixture.is_admitted(&name), "{:?}", fixture.phase(&name));
}

#[tokio::test]
async fn group_listed_by_another_without_agreeing_starts_alone() {
    let mut fixture = with_nodes(3);
    let name = joint(BOTH);
    fixture.show(record(LEFT, 2, BOTH), false);
    fixture.show(record(RIGHT, 1, &[]), false);
    for pod in [member(LEFT, 0), member(LEFT, 1), member(RIGHT, 0)] {
        fixture.show(pod, false);
    }
    fixture.host.run_cycle();
    assert!(fixture.is_admitted("b/right.koordinator"));
    assert_eq!(fixture.phase(&name), None);
    assert!(
        fixture.blocked_reason(&name).contains("b/right, which does not say so"),
        "{}",
        fixture.blocked_reason(&name)
    );
    let written = fixture.host.group_patches(&name, |_| Some(State::Admitted));
    let written: Vec<&str> = written.iter().map(|(_, object, _)| &**object).collect();
    assert_eq!(written, ["left"], "this gang does not write the status of the other");
}

#[tokio::test]
async fn recreated_member_waits_until_its_predecessor_has_left_the_node() {
    let mut fixture = runs();
    fixture.show(leaving(on(member(RIGHT, 0), "n2")), false);
    fixture.see(member(RIGHT, 1));
    assert_eq!(
        fixture.assigned_node(&joint(BOTH), "b/right-1"),
        None,
        "its node is still occupied"
    );
    fixture.see_gone(leaving(on(member(RIGHT, 0), "n2")));
    assert_eq!(fixture.assigned_node(&joint(BOTH), "b/right-1").as_deref(), Some("n2"));
}

#[tokio::test]
async fn groups_with_different_lists_wait_with_the_reason() {
    let third = "c/third";
    let mut fixture = with_nodes(4);
    show_all(&mut fixture);
    fixture.show(record(RIGHT, 1, &[LEFT, RIGHT, third]), false);
    fixture.host.run_cycle();
    let (two, three) = (joint(BOTH), joint(&[LEFT, RIGHT, third]));
    assert_ne!(two, three);
    assert!(
        fixture.blocked_reason(&two).contains("b/right, which names other groups"),
        "{}",
        fixture.blocked_reason(&two)
    );
    assert!(
        fixture.blocked_reason(&three).contains("a/left, which names other groups"),
        "{}",
        fixture.blocked_reason(&three)
    );
    assert_eq!((fixture.phase(&two), fixture.phase(&three)), (None, None));
    // The same by annotations alone.
    let mut fixture = with_nodes(4);
    fixture.see(marked(RIGHT, 0, 1, &[RIGHT, third]));
    fixture.see(marked(LEFT, 0, 1, BOTH));
    assert!(
        fixture.blocked_reason(&two).contains("b/right, which names other groups"),
        "{}",
        fixture.blocked_reason(&two)
    );
    // A group whose list is changed to the same starts.
    fixture.see(marked(RIGHT, 0, 1, BOTH));
    assert!(
        fixture.is_admitted(&two),
        "{:?}: {}",
        fixture.phase(&two),
        fixture.blocked_reason(&two)
    );
}

#[tokio::test]
async fn list_changed_while_waiting_takes_effect_at_once() {
    let mut fixture = with_nodes(2);
    show_all(&mut fixture);
    fixture.host.run_cycle();
    let name = joint(BOTH);
    assert_eq!(fixture.phase(&name), Some(&Phase::Waiting));
    fixture.see(record(LEFT, 2, &[]));
    assert!(fixture.is_admitted("a/left.koordinator"), "it starts by itself");
    assert_eq!(seats(&fixture, &name), 0);
    assert!(
        fixture.blocked_reason(&name).contains("a/left, which does not say so"),
        "{}",
        fixture.blocked_reason(&name)
    );
}

#[tokio::test]
async fn merged_gang_waits_on_when_one_group_is_deleted() {
    let mut fixture = with_nodes(2);
    show_all(&mut fixture);
    fixture.host.run_cycle();
    let name = joint(BOTH);
    fixture.show(record(RIGHT, 1, BOTH), true);
    fixture.see_gone(member(RIGHT, 0));
    assert!(
        fixture.blocked_reason(&name).contains("b/right, which does not exist"),
        "{}",
        fixture.blocked_reason(&name)
    );
    fixture.see(node("n2"));
    assert_eq!(seats(&fixture, &name), 0, "half of it started");
    fixture.show(record(RIGHT, 1, BOTH), false);
    fixture.see(member(RIGHT, 0));
    assert!(
        fixture.is_admitted(&name),
        "{:?}: {}",
        fixture.phase(&name),
        fixture.blocked_reason(&name)
    );
}

#[tokio::test]
async fn group_recreated_while_the_gang_runs_gets_its_seats_back() {
    let mut fixture = runs();
    let name = joint(BOTH);
    fixture.show(record(RIGHT, 1, BOTH), true);
    fixture.see_gone(on(member(RIGHT, 0), "n2"));
    assert!(fixture.is_running(&name), "{:?}", fixture.phase(&name));
    assert_eq!(seats(&fixture, &name), 3);
    // A member of the other group is recreated meanwhile.
    fixture.see_gone(on(member(LEFT, 1), "n1"));
    fixture.see(member(LEFT, 2));
    assert_eq!(fixture.assigned_node(&name, "a/left-2").as_deref(), Some("n1"));
    fixture.show(record(RIGHT, 1, BOTH), false);
    fixture.see(member(RIGHT, 1));
    assert_eq!(fixture.assigned_node(&name, "b/right-1").as_deref(), Some("n2"));
}

#[tokio::test]
async fn started_groups_stay_merged_when_their_lists_change() {
    let mut fixture = runs();
    let name = joint(BOTH);
    fixture.show(record(LEFT, 2, &[]), false);
    fixture.show(record(RIGHT, 1, &[RIGHT, "c/third"]), false);
    fixture.see(on(member(RIGHT, 0), "n2"));
    assert!(fixture.is_running(&name), "{:?}", fixture.phase(&name));
    assert_eq!(seats(&fixture, &name), 3);
    let of: Vec<usize> = ["a/left.koordinator", "b/right.koordinator"]
        .map(|alone| fixture.host.gangs.get(alone).map_or(0, |record| record.pods.len()))
        .into();
    assert_eq!(of, [0, 0]);
}

#[tokio::test]
async fn group_started_alone_goes_on_when_it_lists_others_later() {
    let mut fixture = with_nodes(2);
    fixture.show(record(LEFT, 2, &[]), false);
    fixture.show(on(member(LEFT, 0), "n0"), false);
    fixture.see(on(member(LEFT, 1), "n1"));
    assert!(fixture.is_running("a/left.koordinator"));
    fixture.show(record(RIGHT, 1, BOTH), false);
    fixture.show(member(RIGHT, 0), false);
    fixture.see(record(LEFT, 2, BOTH));
    fixture.see(on(member(LEFT, 1), "n1"));
    assert!(fixture.is_running("a/left.koordinator"));
    assert_eq!(fixture.phase(&joint(BOTH)), None);
    // A recreated member joins those that run.
    fixture.see_gone(on(member(LEFT, 1), "n1"));
    fixture.see(member(LEFT, 2));
    assert_eq!(fixture.assigned_node("a/left.koordinator", "a/left-2").as_deref(), Some("n1"));
}

/// The stored object of a gang that has its seats.
fn recorded() -> Value {
    let mut fixture = with_nodes(3);
    show_all(&mut fixture);
    fixture.host.run_cycle();
    let name = joint(BOTH);
    let (_, gang) = fixture.gang(&name).expect("taken in");
    let placement = fixture.host.placement(gang);
    let object = fixture.host.generated_gang_object(&name).expect("Muster creates its object");
    let mut object = serde_json::to_value(object).expect("plain");
    object["status"] = json!({"placement": placement, "groups": [LEFT, RIGHT]});
    object
}

#[tokio::test]
async fn new_leader_binds_the_remaining_pods_of_every_group() {
    let mut object = recorded();
    object["apiVersion"] = json!("muster.sh/v1alpha1");
    object["kind"] = json!("Gang");
    let of = |role: &str| {
        let all = object["status"]["placement"].as_array().expect("a list").iter();
        let mine = all.filter(|one| one["role"] == role);
        mine.map(|one| one["node"].as_str().expect("a node").to_owned()).collect::<Vec<_>>()
    };
    let (left, right) = (of("left-member"), of("right-member"));
    assert_eq!((left.len(), right.len()), (2, 1));
    let name = joint(BOTH);
    // One is bound, so the gang goes on; also where the groups have other lists by now.
    for lists in [BOTH, &[]] {
        let mut fixture = with_nodes(3);
        fixture.show(object.clone(), false);
        fixture.show(record(LEFT, 2, lists), false);
        fixture.show(record(RIGHT, 1, lists), false);
        fixture.show(on(member(LEFT, 0), &left[0]), false);
        fixture.show(member(LEFT, 1), false);
        fixture.show(member(RIGHT, 0), false);
        fixture.host.run_cycle();
        assert!(fixture.is_running(&name), "{lists:?}: {:?}", fixture.phase(&name));
        assert_eq!(fixture.assigned_node(&name, "a/left-1"), Some(left[1].clone()), "{lists:?}");
        assert_eq!(fixture.assigned_node(&name, "b/right-0"), Some(right[0].clone()), "{lists:?}");
    }
}

#[tokio::test]
async fn unrecorded_half_of_a_merged_gang_is_stopped_and_starts_over() {
    let mut fixture = with_nodes(3);
    fixture.show(record(LEFT, 2, BOTH), false);
    fixture.show(record(RIGHT, 1, BOTH), false);
    fixture.show(on(member(LEFT, 0), "n0"), false);
    fixture.show(on(member(LEFT, 1), "n1"), false);
    fixture.show(member(RIGHT, 0), false);
    fixture.host.run_cycle();
    assert_eq!(fixture.phase(&joint(BOTH)), Some(&Phase::Stopping));
}

#[tokio::test]
async fn each_group_status_counts_its_own_members() {
    let mut fixture = runs();
    let name = joint(BOTH);
    let said = |fixture: &HostFixture| {
        let state = State::Running { running: 3, succeeded: 0, failed: 0 };
        let patches =
            fixture.host.group_patches(&name, |of| Some(fixture.host.state_for(&name, of, &state)));
        let one = |(_, object, patch): (_, String, muster_api::dialects::StatusPatch)| {
            let status = &patch.patch["status"];
            let count = |of: &str| status[of].as_u64().unwrap_or_default();
            let phase = status["phase"].as_str().unwrap_or_default().to_owned();
            (object, phase, count("running"), count("succeeded"))
        };
        patches.into_iter().map(one).collect::<Vec<_>>()
    };
    let row = |object: &str, phase: &str, running, done| {
        (object.to_owned(), phase.to_owned(), running, done)
    };
    assert_eq!(said(&fixture), [row("left", "Running", 2, 0), row("right", "Running", 1, 0)]);
    fixture.see(ended(on(member(RIGHT, 0), "n2"), "Succeeded"));
    assert_eq!(said(&fixture), [row("left", "Running", 2, 0), row("right", "Finished", 0, 1)]);
    assert_eq!(seats(&fixture, &name), 2, "a finished member gives up its seat");
    for at in 0..2 {
        fixture.see(ended(on(member(LEFT, at), &format!("n{at}")), "Succeeded"));
    }
    assert_eq!(fixture.phase(&name), None);
    let over = fixture.host.final_group_patches(&name);
    let counts: Vec<&Value> =
        over.iter().map(|(_, _, patch)| &patch.patch["status"]["succeeded"]).collect();
    assert_eq!(counts, [2, 1]);
}

#[tokio::test]
async fn forged_groups_annotation_merges_no_groups() {
    let name = joint(BOTH);
    // The tenant of the first namespace has a gang of its own under the name, and lists the other group on it.
    let mut forged = recorded();
    forged["apiVersion"] = json!("muster.sh/v1alpha1");
    forged["kind"] = json!("Gang");
    assert!(forged["metadata"]["annotations"]["muster.sh/groups"].is_string(), "for people");
    forged["status"].as_object_mut().expect("a status").remove("groups");
    let mut fixture = with_nodes(3);
    fixture.show(forged, false);
    fixture.show(record(RIGHT, 1, &[]), false);
    fixture.show(member(RIGHT, 0), false);
    fixture.host.run_cycle();
    assert!(
        fixture.is_admitted("b/right.koordinator"),
        "{:?}",
        fixture.phase("b/right.koordinator")
    );
    assert!(
        fixture.host.gangs.get(&name).is_none(),
        "an annotation merges groups of two namespaces"
    );
}

#[tokio::test]
async fn pods_with_a_node_name_do_not_merge_groups() {
    for before_start in [true, false] {
        let mut fixture = with_nodes(3);
        if !before_start {
            fixture.host.run_cycle();
        }
        fixture.show(record(LEFT, 1, BOTH), false);
        fixture.show(on(member(LEFT, 0), "n0"), false);
        fixture.show(record(RIGHT, 1, &[]), false);
        fixture.host.run_cycle();
        fixture.see(member(RIGHT, 0));
        assert!(
            fixture.is_admitted("b/right.koordinator"),
            "{:?}",
            fixture.phase("b/right.koordinator")
        );
        assert_eq!(fixture.phase(&joint(BOTH)), None, "one of them has not agreed");
    }
}

#[tokio::test]
async fn gang_with_the_suffix_of_merged_gangs_is_refused() {
    let mut fixture = with_nodes(1);
    let mut pod = single_pod("one");
    pod["metadata"]["annotations"] =
        json!({"muster.sh/gang": "left.0.joined", "muster.sh/gang-size": "1"});
    fixture.see(pod);
    assert_eq!(fixture.phase("team/left.0.joined"), None);
    assert!(fixture.blocked_reason("team/left.0.joined").contains("several groups"));
}
