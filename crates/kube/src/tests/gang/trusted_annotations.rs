//! Annotations and labels that tenants write: none is trusted before a start, while the host runs, or at a change of leader.

use muster_core::gang::Phase;
use serde_json::{Value, json};

use crate::effects::outcome::Outcome;
use crate::tests::fixture::HostFixture;
use crate::tests::objects::{bought_node, claim, job, node, of_job, pod, pool, single_pod};
use crate::tests::schedule::cases::on;
use crate::tests::schedule::seats::seats;

const VICTIM: &str = "team/victim.job";

fn with_nodes(count: u32) -> HostFixture {
    let mut fixture = HostFixture::new();
    (0..count).for_each(|at| fixture.show(node(&format!("n{at}")), false));
    fixture
}

/// A queue that allows so many GPUs.
fn queue(gpus: u32) -> Value {
    json!({
        "apiVersion": "muster.sh/v1alpha1", "kind": "Queue", "metadata": {"name": "small"},
        "spec": {"limit": {"nvidia.com/gpu": gpus}},
    })
}

fn in_queue(mut pod: Value) -> Value {
    pod["metadata"]["labels"]["muster.sh/queue"] = json!("small");
    pod
}

/// A pod of another scheduler with annotations as if Muster had released it to this node.
fn forged(name: &str, node: &str) -> Value {
    let mut pod = single_pod(name);
    pod["spec"]["schedulerName"] = json!("other");
    pod["metadata"]["annotations"] =
        json!({"muster.sh/assigned-node": node, "muster.sh/node-selector-added": "true"});
    pod
}

fn victim_starts(fixture: &mut HostFixture, nodes: u32) {
    fixture.show(job("victim", nodes), false);
    (0..nodes).for_each(|at| fixture.show(pod(&format!("victim-{at}"), of_job("victim")), false));
    fixture.host.run_cycle();
    let phase = fixture.phase(VICTIM);
    assert!(matches!(phase, Some(Phase::Admitted { .. })), "{phase:?}");
}

#[tokio::test]
async fn seat_annotation_of_another_schedulers_pod_takes_no_node() {
    for before_start in [true, false] {
        let mut fixture = with_nodes(2);
        if !before_start {
            fixture.host.run_cycle();
        }
        for at in 0..2 {
            fixture.show(forged(&format!("thief-{at}"), &format!("n{at}")), false);
        }
        fixture.host.run_cycle();
        assert_eq!(fixture.host.gangs.names().count(), 0, "a pod of another scheduler is a gang");
        victim_starts(&mut fixture, 2);
    }
}

/// A gated pod of another scheduler, of a gang of two.
fn gated(name: &str) -> Value {
    let mut pod = single_pod(name);
    pod["spec"]["schedulerName"] = json!("other");
    pod["spec"]["schedulingGates"] = json!([{"name": "muster.sh/gang"}]);
    pod["metadata"]["annotations"] = json!({"muster.sh/gang": "pair", "muster.sh/gang-size": "2"});
    pod
}

fn released(mut pod: Value, node: &str) -> Value {
    pod["spec"]["schedulingGates"] = json!([]);
    pod["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": node});
    pod["metadata"]["annotations"]["muster.sh/assigned-node"] = json!(node);
    pod["metadata"]["annotations"]["muster.sh/node-selector-added"] = json!("true");
    pod
}

/// The Gang object with the recorded placement of the pair.
fn record(placement: &Value) -> Value {
    json!({
        "apiVersion": "muster.sh/v1alpha1", "kind": "Gang",
        "metadata": {"name": "pair", "namespace": "team",
            "labels": {"app.kubernetes.io/managed-by": "muster"}},
        "spec": {"roles": []},
        "status": {"phase": "Admitted", "placement": placement},
    })
}

#[tokio::test]
async fn released_pods_keep_their_seats_at_a_change_of_leader_if_recorded() {
    let seat = |node: &str| json!({"role": "member", "node": node, "members": 1});
    let both = json!([seat("n0"), seat("n1")]);
    for (placement, is_trusted) in [(both, true), (json!([]), false)] {
        let mut fixture = with_nodes(2);
        fixture.show(record(&placement), false);
        fixture.show(released(gated("a"), "n0"), false);
        fixture.show(released(gated("b"), "n1"), false);
        fixture.host.run_cycle();
        let assigned =
            fixture.host.gangs.get("team/pair").map_or(0, |record| record.assigned_nodes.len());
        assert_eq!(assigned, if is_trusted { 2 } else { 0 }, "{placement}");
        assert_eq!(seats(&fixture, "team/pair"), if is_trusted { 2 } else { 0 }, "{placement}");
    }
}

#[tokio::test]
async fn recorded_placement_of_one_member_is_no_seat_for_two() {
    let mut fixture = with_nodes(2);
    fixture.show(record(&json!([{"role": "member", "node": "n0", "members": 1}])), false);
    fixture.show(released(gated("a"), "n0"), false);
    fixture.show(released(gated("b"), "n0"), false);
    fixture.host.run_cycle();
    let record = fixture.host.gangs.get("team/pair").expect("one of them is its member");
    assert_eq!(record.assigned_nodes.len(), 1);
}

#[tokio::test]
async fn single_released_pod_is_recognized_by_its_status() {
    for (says, is_trusted) in [("n0", true), ("n1", false)] {
        let mut fixture = with_nodes(2);
        let mut single = forged("single", "n0");
        single["status"]["conditions"] = json!([
            {"type": "muster.sh/Seated", "status": "True", "message": says},
        ]);
        fixture.show(single, false);
        fixture.host.run_cycle();
        assert_eq!(fixture.host.gangs.get("team/single.pod").is_some(), is_trusted, "{says}");
    }
}

#[tokio::test]
async fn pinned_annotation_on_a_pod_of_musters_own_hides_no_node_selector() {
    let mut fixture = with_nodes(2);
    let mut picky = single_pod("picky");
    picky["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": "n1"});
    picky["metadata"]["annotations"] =
        json!({"muster.sh/assigned-node": "n0", "muster.sh/node-selector-added": "true"});
    fixture.see(picky);
    let (_, gang) = fixture.gang("team/picky.pod").expect("it is a single pod");
    assert_eq!(fixture.host.world.node_name(gang.seats[0].node).map(|name| &**name), Some("n1"));
}

#[tokio::test]
async fn placement_annotation_beside_musters_label_binds_nothing_beyond_a_limit() {
    let mut fixture = with_nodes(2);
    fixture.show(queue(1), false);
    let mut spoof = record(&json!([]));
    spoof.as_object_mut().expect("an object").remove("status");
    spoof["metadata"]["annotations"] = json!({"muster.sh/placement": json!([
        {"role": "member", "node": "n0", "members": 1},
        {"role": "member", "node": "n1", "members": 1},
    ]).to_string()});
    fixture.show(spoof, false);
    for name in ["a", "b"] {
        let mut member = in_queue(single_pod(name));
        member["metadata"]["annotations"] =
            json!({"muster.sh/gang": "pair", "muster.sh/gang-size": "2"});
        fixture.show(member, false);
    }
    fixture.host.run_cycle();
    assert_eq!(fixture.phase("team/pair"), Some(&Phase::Waiting));
    victim_starts(&mut fixture, 2);
}

#[tokio::test]
async fn recorded_gang_with_replaced_pods_gets_no_more_than_its_limit() {
    let placement = json!([
        {"role": "member", "node": "n0", "members": 1}, {"role": "member", "node": "n1", "members": 1},
    ]);
    for (limit, is_admitted) in [(16, true), (1, false)] {
        let mut fixture = with_nodes(2);
        fixture.show(queue(limit), false);
        fixture.show(record(&placement), false);
        for name in ["a", "b"] {
            let mut member = in_queue(single_pod(name));
            member["metadata"]["annotations"] =
                json!({"muster.sh/gang": "pair", "muster.sh/gang-size": "2"});
            fixture.show(member, false);
        }
        fixture.host.run_cycle();
        assert_eq!(seats(&fixture, "team/pair"), if is_admitted { 2 } else { 0 }, "{limit}");
    }
}

/// The pod of a Job whose template has a node name.
fn put(at: u32) -> Value {
    let name = format!("hand-{at}");
    in_queue(on(pod(&name, of_job(&name)), &format!("n{at}")))
}

/// Jobs whose owner has written node names into their templates.
fn with_node_name(fixture: &mut HostFixture, count: u32) {
    for at in 0..count {
        fixture.show(job(&format!("hand-{at}"), 1), false);
        fixture.show(put(at), false);
    }
    fixture.host.run_cycle();
}

#[tokio::test]
async fn pods_with_a_node_name_get_what_their_queue_limit_leaves() {
    for before_start in [true, false] {
        let mut fixture = with_nodes(4);
        fixture.show(queue(16), false);
        if !before_start {
            fixture.host.run_cycle();
        }
        with_node_name(&mut fixture, 3);
        let held: u32 = (0..3).map(|at| seats(&fixture, &format!("team/hand-{at}.job"))).sum();
        assert_eq!(held, 2, "the queue allows two of them");
        let name = (0..3).map(|at| format!("team/hand-{at}.job"));
        let out = name.filter(|name| seats(&fixture, name) == 0).collect::<Vec<_>>();
        let record = fixture.host.gangs.get(&out[0]).expect("it has a record");
        assert!(record.is_bound_beyond_limits && record.is_limit_event_recorded);
        // All of them use their nodes: one node is left.
        victim_starts(&mut fixture, 1);
        let (_, victim) = fixture.gang(VICTIM).expect("it started");
        assert_eq!(
            fixture.host.world.node_name(victim.seats[0].node).map(|name| &**name),
            Some("n3")
        );
        // When the others end the queue's limit allows the third.
        for at in 0..3 {
            let name = format!("hand-{at}");
            if !out[0].contains(&name) {
                fixture.show(put(at), true);
            }
        }
        fixture.host.run_cycle();
        fixture.host.bound_elsewhere_checked_at = None;
        fixture.host.run_cycle();
        assert_eq!(seats(&fixture, &out[0]), 1, "{:?}", fixture.phase(&out[0]));
    }
}

#[tokio::test]
async fn recorded_gangs_have_their_quota_before_pods_with_a_node_name() {
    let mut fixture = with_nodes(3);
    fixture.show(queue(16), false);
    let placement = json!([
        {"role": "member", "node": "n1", "members": 1}, {"role": "member", "node": "n2", "members": 1},
    ]);
    fixture.show(record(&placement), false);
    for name in ["a", "b"] {
        let mut member = in_queue(single_pod(name));
        member["metadata"]["annotations"] =
            json!({"muster.sh/gang": "pair", "muster.sh/gang-size": "2"});
        fixture.show(member, false);
    }
    with_node_name(&mut fixture, 1);
    assert_eq!(seats(&fixture, "team/pair"), 2, "{:?}", fixture.phase("team/pair"));
    assert_eq!(seats(&fixture, "team/hand-0.job"), 0);
}

#[tokio::test]
async fn claim_label_that_no_node_claim_confirms_is_not_trusted() {
    let mut fixture = HostFixture::new();
    fixture.show(pool(), false);
    fixture.show(job("victim", 1), false);
    fixture.see(pod("victim-0", of_job("victim")));
    let id = fixture.claims()[0];
    // Its kubelet has set the label on itself, before the real node exists.
    let mut liar = bought_node(id);
    liar["metadata"]["name"] = json!("liar");
    let mut asked = claim(id);
    asked["status"].as_object_mut().expect("a status").remove("nodeName");
    fixture.show_as_is(asked, false);
    fixture.show_as_is(liar, false);
    fixture.host.run_cycle();
    assert!(
        matches!(fixture.phase(VICTIM), Some(Phase::Assembling(_))),
        "{:?}",
        fixture.phase(VICTIM)
    );
    let known = fixture.host.world.claims()[&muster_core::id::ClaimId(id)].joined;
    assert_eq!(known, None, "a node was taken for the claim's by its own label");
    fixture.show_as_is(claim(id), false);
    fixture.show_as_is(bought_node(id), false);
    fixture.host.run_cycle();
    assert!(
        matches!(fixture.phase(VICTIM), Some(Phase::Admitted { .. })),
        "{:?}",
        fixture.phase(VICTIM)
    );
    fixture.handle_outcome(Outcome::PlacementWritten(VICTIM.into()));
    let (_, gang) = fixture.gang(VICTIM).expect("it has seats");
    let node = fixture.host.world.node_name(gang.seats[0].node).map(ToString::to_string);
    assert_eq!(node, Some(format!("node-{id}")));
}
