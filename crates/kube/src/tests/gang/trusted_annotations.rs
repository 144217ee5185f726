//! StringMap that tenants write: none of them is believed, before a start, while the host runs, or at a change of leader.

use muster_core::gang::Phase;
use serde_json::{Value, json};

use crate::effects::outcome::Outcome;
use crate::tests::fixture::HostFixture;
use crate::tests::objects::{alone, bought, claim, job, node, of_job, pod, pool};
use crate::tests::schedule::cases::on;
use crate::tests::schedule::seats::seats;

const VICTIM: &str = "team/victim.job";

fn with_nodes(count: u32) -> HostFixture {
    let mut stage = HostFixture::new();
    (0..count).for_each(|at| stage.show(node(&format!("n{at}")), false));
    stage
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

/// A pod of another scheduler, whose annotations say that Muster released it to this node.
fn forged(name: &str, node: &str) -> Value {
    let mut pod = alone(name);
    pod["spec"]["schedulerName"] = json!("other");
    pod["metadata"]["annotations"] =
        json!({"muster.sh/assigned-node": node, "muster.sh/node-selector-added": "true"});
    pod
}

fn victim_starts(stage: &mut HostFixture, nodes: u32) {
    stage.show(job("victim", nodes), false);
    (0..nodes).for_each(|at| stage.show(pod(&format!("victim-{at}"), of_job("victim")), false));
    stage.host.turn();
    let phase = stage.phase(VICTIM);
    assert!(matches!(phase, Some(Phase::Admitted { .. })), "{phase:?}");
}

#[tokio::test]
async fn seat_annotation_of_another_schedulers_pod_takes_no_node() {
    for before_start in [true, false] {
        let mut stage = with_nodes(2);
        if !before_start {
            stage.host.turn();
        }
        for at in 0..2 {
            stage.show(forged(&format!("thief-{at}"), &format!("n{at}")), false);
        }
        stage.host.turn();
        assert_eq!(stage.host.gangs.names().count(), 0, "a pod of another scheduler is a gang");
        victim_starts(&mut stage, 2);
    }
}

/// Two gated pods of another scheduler that are one gang, the first of them as it is now.
fn gated(name: &str) -> Value {
    let mut pod = alone(name);
    pod["spec"]["schedulerName"] = json!("other");
    pod["spec"]["schedulingGates"] = json!([{"name": "muster.sh/gang"}]);
    pod["metadata"]["annotations"] = json!({"muster.sh/gang": "pair", "muster.sh/gang-size": "2"});
    pod
}

fn lifted(mut pod: Value, node: &str) -> Value {
    pod["spec"]["schedulingGates"] = json!([]);
    pod["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": node});
    pod["metadata"]["annotations"]["muster.sh/assigned-node"] = json!(node);
    pod["metadata"]["annotations"]["muster.sh/node-selector-added"] = json!("true");
    pod
}

/// What Muster recorded of the pair.
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
    for (placement, is_believed) in [(both, true), (json!([]), false)] {
        let mut stage = with_nodes(2);
        stage.show(record(&placement), false);
        stage.show(lifted(gated("a"), "n0"), false);
        stage.show(lifted(gated("b"), "n1"), false);
        stage.host.turn();
        let assigned =
            stage.host.gangs.get("team/pair").map_or(0, |record| record.assigned_nodes.len());
        assert_eq!(assigned, if is_believed { 2 } else { 0 }, "{placement}");
        assert_eq!(seats(&stage, "team/pair"), if is_believed { 2 } else { 0 }, "{placement}");
    }
}

#[tokio::test]
async fn a_record_of_one_member_is_no_seat_for_two() {
    let mut stage = with_nodes(2);
    stage.show(record(&json!([{"role": "member", "node": "n0", "members": 1}])), false);
    stage.show(lifted(gated("a"), "n0"), false);
    stage.show(lifted(gated("b"), "n0"), false);
    stage.host.turn();
    let record = stage.host.gangs.get("team/pair").expect("one of them is of it");
    assert_eq!(record.assigned_nodes.len(), 1);
}

#[tokio::test]
async fn a_pod_released_by_itself_is_known_by_its_status() {
    for (says, is_believed) in [("n0", true), ("n1", false)] {
        let mut stage = with_nodes(2);
        let mut single = forged("single", "n0");
        single["status"]["conditions"] = json!([
            {"type": "muster.sh/Seated", "status": "True", "message": says},
        ]);
        stage.show(single, false);
        stage.host.turn();
        assert_eq!(stage.host.gangs.get("team/single.pod").is_some(), is_believed, "{says}");
    }
}

#[tokio::test]
async fn pinned_annotation_on_a_pod_of_musters_own_hides_no_node_selector() {
    let mut stage = with_nodes(2);
    let mut picky = alone("picky");
    picky["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": "n1"});
    picky["metadata"]["annotations"] =
        json!({"muster.sh/assigned-node": "n0", "muster.sh/node-selector-added": "true"});
    stage.see(picky);
    let (_, gang) = stage.gang("team/picky.pod").expect("it is a gang of one");
    assert_eq!(stage.host.world.node_name(gang.seats[0].node).map(|name| &**name), Some("n1"));
}

#[tokio::test]
async fn placement_annotation_beside_musters_label_binds_nothing_beyond_a_limit() {
    let mut stage = with_nodes(2);
    stage.show(queue(1), false);
    let mut spoof = record(&json!([]));
    spoof.as_object_mut().expect("an object").remove("status");
    spoof["metadata"]["annotations"] = json!({"muster.sh/placement": json!([
        {"role": "member", "node": "n0", "members": 1},
        {"role": "member", "node": "n1", "members": 1},
    ]).to_string()});
    stage.show(spoof, false);
    for name in ["a", "b"] {
        let mut member = in_queue(alone(name));
        member["metadata"]["annotations"] =
            json!({"muster.sh/gang": "pair", "muster.sh/gang-size": "2"});
        stage.show(member, false);
    }
    stage.host.turn();
    assert_eq!(stage.phase("team/pair"), Some(&Phase::Waiting));
    victim_starts(&mut stage, 2);
}

#[tokio::test]
async fn a_recorded_gang_whose_pods_were_replaced_gets_no_more_than_its_limit() {
    let placement = json!([
        {"role": "member", "node": "n0", "members": 1}, {"role": "member", "node": "n1", "members": 1},
    ]);
    for (limit, is_admitted) in [(16, true), (1, false)] {
        let mut stage = with_nodes(2);
        stage.show(queue(limit), false);
        stage.show(record(&placement), false);
        for name in ["a", "b"] {
            let mut member = in_queue(alone(name));
            member["metadata"]["annotations"] =
                json!({"muster.sh/gang": "pair", "muster.sh/gang-size": "2"});
            stage.show(member, false);
        }
        stage.host.turn();
        assert_eq!(seats(&stage, "team/pair"), if is_admitted { 2 } else { 0 }, "{limit}");
    }
}

/// The pod of a Job whose template has a node name.
fn put(at: u32) -> Value {
    let name = format!("hand-{at}");
    in_queue(on(pod(&name, of_job(&name)), &format!("n{at}")))
}

/// Jobs whose owner has written node names into their templates.
fn by_hand(stage: &mut HostFixture, count: u32) {
    for at in 0..count {
        stage.show(job(&format!("hand-{at}"), 1), false);
        stage.show(put(at), false);
    }
    stage.host.turn();
}

#[tokio::test]
async fn node_names_written_by_hand_get_what_the_limit_of_their_queue_leaves() {
    for before_start in [true, false] {
        let mut stage = with_nodes(4);
        stage.show(queue(16), false);
        if !before_start {
            stage.host.turn();
        }
        by_hand(&mut stage, 3);
        let held: u32 = (0..3).map(|at| seats(&stage, &format!("team/hand-{at}.job"))).sum();
        assert_eq!(held, 2, "the queue allows two of them");
        let name = (0..3).map(|at| format!("team/hand-{at}.job"));
        let out = name.filter(|name| seats(&stage, name) == 0).collect::<Vec<_>>();
        let record = stage.host.gangs.get(&out[0]).expect("it is known");
        assert!(record.is_bound_beyond_limits && record.is_limit_event_recorded);
        // All of them are where they are: one node is left.
        victim_starts(&mut stage, 1);
        let (_, victim) = stage.gang(VICTIM).expect("it started");
        assert_eq!(
            stage.host.world.node_name(victim.seats[0].node).map(|name| &**name),
            Some("n3")
        );
        // When the others end the queue has room for the third.
        for at in 0..3 {
            let name = format!("hand-{at}");
            if !out[0].contains(&name) {
                stage.show(put(at), true);
            }
        }
        stage.host.turn();
        stage.host.bound_elsewhere_checked_at = None;
        stage.host.turn();
        assert_eq!(seats(&stage, &out[0]), 1, "{:?}", stage.phase(&out[0]));
    }
}

#[tokio::test]
async fn recorded_gangs_have_their_quota_before_pods_placed_by_hand() {
    let mut stage = with_nodes(3);
    stage.show(queue(16), false);
    let placement = json!([
        {"role": "member", "node": "n1", "members": 1}, {"role": "member", "node": "n2", "members": 1},
    ]);
    stage.show(record(&placement), false);
    for name in ["a", "b"] {
        let mut member = in_queue(alone(name));
        member["metadata"]["annotations"] =
            json!({"muster.sh/gang": "pair", "muster.sh/gang-size": "2"});
        stage.show(member, false);
    }
    by_hand(&mut stage, 1);
    assert_eq!(seats(&stage, "team/pair"), 2, "{:?}", stage.phase("team/pair"));
    assert_eq!(seats(&stage, "team/hand-0.job"), 0);
}

#[tokio::test]
async fn claim_label_that_no_node_claim_confirms_is_not_believed() {
    let mut stage = HostFixture::new();
    stage.show(pool(), false);
    stage.show(job("victim", 1), false);
    stage.see(pod("victim-0", of_job("victim")));
    let id = stage.claims()[0];
    // Its kubelet has set the label on itself, before the real node is there.
    let mut liar = bought(id);
    liar["metadata"]["name"] = json!("liar");
    let mut asked = claim(id);
    asked["status"].as_object_mut().expect("a status").remove("nodeName");
    stage.show_as_is(asked, false);
    stage.show_as_is(liar, false);
    stage.host.turn();
    assert!(matches!(stage.phase(VICTIM), Some(Phase::Assembling(_))), "{:?}", stage.phase(VICTIM));
    let known = stage.host.world.claims()[&muster_core::id::ClaimId(id)].joined;
    assert_eq!(known, None, "a node is the claim's by its own word");
    stage.show_as_is(claim(id), false);
    stage.show_as_is(bought(id), false);
    stage.host.turn();
    assert!(
        matches!(stage.phase(VICTIM), Some(Phase::Admitted { .. })),
        "{:?}",
        stage.phase(VICTIM)
    );
    stage.handle_outcome(Outcome::PlacementWritten(VICTIM.into()));
    let (_, gang) = stage.gang(VICTIM).expect("it has seats");
    let node = stage.host.world.node_name(gang.seats[0].node).map(ToString::to_string);
    assert_eq!(node, Some(format!("node-{id}")));
}
