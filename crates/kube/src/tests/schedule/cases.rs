//! Reconciling: orders and members that change, pools that go, kinds that cannot be listed.

use muster_api::dialects::Dialect;
use muster_api::workloads::WorkloadKind;
use muster_core::gang::Phase;
use muster_core::time::Span;
use serde_json::{Value, json};

use crate::cache::kinds::KindRole;
use crate::cache::store::Store;
use crate::config::Config;
use crate::effects::outcome::Outcome;
use crate::tests::fixture::HostFixture;
use crate::tests::objects::{bought_node, claim, job, node, of_job, pod, pool, single_pod, spec};

fn done(mut pod: Value) -> Value {
    pod["status"]["phase"] = json!("Succeeded");
    pod
}

pub(crate) fn on(mut pod: Value, node: &str) -> Value {
    pod["spec"]["nodeName"] = json!(node);
    pod
}

fn elastic_job() -> Value {
    json!({
        "apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob",
        "metadata": {"name": "train", "namespace": "team", "uid": "train"},
        "spec": {
            "elasticPolicy": {"minReplicas": 1, "maxReplicas": 8},
            "pytorchReplicaSpecs": {"Worker": {"replicas": 2, "template": {"spec": spec()}}},
        },
    })
}

#[tokio::test]
async fn finished_elastic_job_is_not_planned_again() {
    let mut fixture = HostFixture::new();
    fixture.see(pool());
    fixture.see(elastic_job());
    let of = ("kubeflow.org/v1", "PyTorchJob", "train");
    for (at, name) in ["a", "b"].into_iter().enumerate() {
        let node_name = format!("n{at}");
        fixture.show(node(&node_name), false);
        fixture.show(on(pod(name, of), &node_name), false);
    }
    fixture.host.run_cycle();
    let name = "team/train.pytorchjob";
    assert!(
        matches!(fixture.phase(name), Some(Phase::Running { .. })),
        "{:?}",
        fixture.phase(name)
    );
    for (at, name) in ["a", "b"].into_iter().enumerate() {
        fixture.show(done(on(pod(name, of), &format!("n{at}"))), false);
    }
    fixture.host.run_cycle();
    assert_eq!(fixture.phase(name), None);
    // Its operator writes the condition, and its pods are kept.
    let mut over = elastic_job();
    over["status"] = json!({"conditions": [{"type": "Succeeded", "status": "True"}]});
    fixture.see(over);
    assert_eq!(fixture.phase(name), None);
    assert!(fixture.host.world.orders().is_empty(), "a node is ordered for a finished gang");
    assert!(fixture.host.requeued.is_empty(), "it was reconciled too often");
}

/// A Job whose order assembles, and the requested claims.
pub(crate) fn assembling(pods: u32) -> (HostFixture, Vec<u32>) {
    let mut fixture = HostFixture::new();
    fixture.see(pool());
    fixture.show(job("train", pods), false);
    for at in 0..pods {
        fixture.show(pod(&format!("train-{at}"), of_job("train")), false);
    }
    fixture.host.run_cycle();
    let claims = fixture.claims();
    assert_eq!(claims.len(), pods as usize, "{:?}", fixture.phase(TRAIN));
    (fixture, claims)
}

pub(crate) const TRAIN: &str = "team/train.job";

#[tokio::test]
async fn gang_that_loses_a_member_rolls_back_its_assembling_order() {
    let (mut fixture, claims) = assembling(4);
    let order = fixture.order(TRAIN).expect("it has an order");
    fixture.see_gone(pod("train-3", of_job("train")));
    claims.iter().for_each(|claim| fixture.show(bought_node(*claim), false));
    fixture.host.run_cycle();
    // Three of four are not a gang: none starts, and nothing is held for them.
    assert!(!matches!(fixture.phase(TRAIN), Some(Phase::Admitted { .. } | Phase::Assembling(_))));
    assert!(!fixture.host.world.orders().contains_key(&order), "its order is held forever");
    fixture.see(pod("train-3", of_job("train")));
    assert!(
        matches!(fixture.phase(TRAIN), Some(Phase::Admitted { .. })),
        "{:?}",
        fixture.phase(TRAIN)
    );
}

#[tokio::test]
async fn gang_enlarged_while_its_order_assembles_is_planned_again() {
    let (mut fixture, claims) = assembling(4);
    fixture.show(job("train", 8), false);
    for at in 4..8 {
        fixture.show(pod(&format!("train-{at}"), of_job("train")), false);
    }
    fixture.host.run_cycle();
    claims.iter().for_each(|claim| fixture.show(bought_node(*claim), false));
    fixture.host.run_cycle();
    let (_, gang) = fixture.gang(TRAIN).expect("it waits");
    assert_eq!(gang.spec.roles[0].min, 8);
    assert!(matches!(gang.phase, Phase::Assembling(_)), "started in part: {:?}", gang.phase);
    let new: Vec<u32> = fixture.claims().into_iter().filter(|id| !claims.contains(id)).collect();
    assert_eq!(new.len(), 4, "the provisioned nodes are used");
    new.iter().for_each(|claim| fixture.show(bought_node(*claim), false));
    fixture.host.run_cycle();
    assert!(
        matches!(fixture.phase(TRAIN), Some(Phase::Admitted { .. })),
        "{:?}",
        fixture.phase(TRAIN)
    );
}

#[tokio::test]
async fn order_goes_on_when_only_constraints_of_its_gang_change() {
    let (mut fixture, _) = assembling(2);
    let order = fixture.order(TRAIN);
    for at in 0..2 {
        let mut picky = pod(&format!("train-{at}"), of_job("train"));
        picky["spec"]["nodeSelector"] = json!({"topology.kubernetes.io/zone": "zone-a"});
        fixture.show(picky, false);
    }
    fixture.host.run_cycle();
    assert_eq!(fixture.order(TRAIN), order);
}

#[tokio::test]
async fn gang_without_progress_does_not_hold_up_other_gangs() {
    let mut fixture = HostFixture::new();
    fixture.host.run_cycle();
    // Requeued again and again in the same cycle.
    for _ in 0..3 {
        fixture.host.requeue_after(&TRAIN.into());
    }
    assert_eq!(fixture.host.requeued.len(), 1);
    fixture.handle_outcome(Outcome::RequeueAfterLimit(TRAIN.into()));
    assert!(fixture.host.requeued.is_empty());
}

#[tokio::test]
async fn names_of_other_systems_become_valid_gang_and_role_names() {
    let mut fixture = HostFixture::new();
    fixture.show(node("n"), false);
    let mut one = single_pod("one");
    one["metadata"]["annotations"] =
        json!({"muster.sh/gang": "My_Gang", "muster.sh/gang-size": "1"});
    one["metadata"]["labels"] = json!({"muster.sh/role": "Worker_A"});
    fixture.see(one);
    let record = fixture.host.gangs.names().next().expect("a gang").clone();
    let object = fixture.host.generated_gang_object(&record).expect("Muster creates its object");
    let name = object.metadata.name.clone().unwrap_or_default();
    assert!(name.starts_with("my-gang-"), "{name}");
    let role = object.data["spec"]["roles"][0]["name"].as_str().unwrap_or_default().to_owned();
    assert!(role.starts_with("worker-a-"), "{role}");
    // The recorded placement is restored.
    let (_, gang) = fixture.gang(&record).expect("taken in");
    assert!(matches!(gang.phase, Phase::Admitted { .. }), "{:?}", gang.phase);
    let mut object = serde_json::to_value(object).expect("plain");
    object["status"] = json!({"placement": [{"role": role, "node": "n", "members": 1}]});
    fixture.show(object, false);
    assert_eq!(fixture.host.recorded_seats(&record).map(|sitting| sitting.len()), Some(1));
}

/// Two pods that declare a gang.
fn show_pair(fixture: &mut HostFixture) {
    for name in ["a", "b"] {
        let mut member = single_pod(name);
        member["metadata"]["annotations"] =
            json!({"muster.sh/gang": "pair", "muster.sh/gang-size": "2"});
        fixture.show(member, false);
    }
}

#[tokio::test]
async fn placement_is_read_from_the_status_and_not_from_annotations() {
    let mut fixture = HostFixture::new();
    fixture.show(node("n0"), false);
    fixture.show(node("n1"), false);
    show_pair(&mut fixture);
    fixture.host.run_cycle();
    let record = fixture.host.gangs.names().next().expect("a gang").clone();
    let (id, gang) = fixture.gang(&record).expect("taken in");
    assert!(matches!(gang.phase, Phase::Admitted { .. }), "{:?}", gang.phase);
    // It is created with the placement, so it is created once.
    assert!(fixture.host.gangs_without_object.is_empty());
    let placement = fixture.host.placement(fixture.host.world.gang(id).expect("taken in"));
    let object = fixture.host.generated_gang_object(&record).expect("Muster creates its object");
    let object = serde_json::to_value(object).expect("plain");
    let recorded = |fixture: &mut HostFixture, status: Option<Value>| {
        let mut object = object.clone();
        let said = json!(placement).to_string();
        object["metadata"]["annotations"]["muster.sh/placement"] = json!(said);
        if let Some(status) = status {
            object["status"] = status;
        }
        fixture.show(object, false);
        let all = fixture.host.recorded_seats(&record).unwrap_or_default();
        all.iter().map(|one| one.members).sum::<u16>()
    };
    assert_eq!(recorded(&mut fixture, Some(json!({"placement": placement}))), 2);
    assert_eq!(recorded(&mut fixture, Some(json!({"phase": "Waiting"}))), 0);
    let elsewhere = json!({"placement": [{"role": "worker", "node": "gone", "members": 2}]});
    assert_eq!(recorded(&mut fixture, Some(elsewhere)), 0);
    assert_eq!(recorded(&mut fixture, None), 0, "an annotation is trusted");
}

#[tokio::test]
async fn waiting_gang_has_its_object_at_once() {
    let mut fixture = HostFixture::new();
    show_pair(&mut fixture);
    fixture.host.run_cycle();
    let record = fixture.host.gangs.names().next().expect("a gang").clone();
    assert_eq!(fixture.phase(&record), Some(&Phase::Waiting));
    assert!(
        fixture.host.gangs_without_object.is_empty()
            && fixture.host.ordered_writes.is_busy(&record)
    );
}

#[tokio::test]
async fn partly_bound_gang_starts_over_after_the_bind_timeout() {
    let patient = Config { bind_timeout: Span::mins(5), ..Config::default() };
    let mut fixture = HostFixture::with(&patient);
    fixture.show(node("n0"), false);
    fixture.show(node("n1"), false);
    show_pair(&mut fixture);
    fixture.host.run_cycle();
    let name = "team/pair";
    fixture.handle_outcome(Outcome::PlacementWritten(name.into()));
    let record = fixture.host.gangs.get(name).expect("a gang");
    let seats: Vec<_> =
        record.assigned_nodes.iter().map(|(pod, node)| (pod.clone(), node.clone())).collect();
    assert_eq!(seats.len(), 2, "both are assigned a node");
    let mut bound = on(single_pod("a"), &seats[0].1);
    bound["metadata"]["annotations"] =
        json!({"muster.sh/gang": "pair", "muster.sh/gang-size": "2"});
    fixture.see(bound);
    fixture.see_gone(single_pod("b"));
    assert!(
        matches!(fixture.phase(name), Some(Phase::Admitted { .. })),
        "{:?}",
        fixture.phase(name)
    );
    fixture.host.config.bind_timeout = Span::ZERO;
    fixture.host.run_cycle();
    assert_eq!(fixture.phase(name), Some(&Phase::Stopping));
}

/// Whether all claims are released, which takes as long as their pool lets them idle.
async fn until_released(fixture: &mut HostFixture) {
    let is_kept =
        |fixture: &HostFixture| fixture.host.world.claims().values().any(|one| !one.releasing);
    let within = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while is_kept(fixture) {
        assert!(std::time::Instant::now() < within, "kept: {:?}", fixture.host.world.claims());
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        fixture.host.world_changed = true;
        fixture.host.run_cycle();
    }
}

#[tokio::test]
async fn deleted_pool_gets_no_requests_and_its_claims_are_released() {
    let mut fixture = HostFixture::new();
    let mut warm = pool();
    warm["spec"]["warm"] = json!({"nodes": 2});
    fixture.see(warm.clone());
    assert_eq!(fixture.claims().len(), 2);
    fixture.see_gone(warm);
    until_released(&mut fixture).await;
    fixture.show(job("train", 1), false);
    fixture.see(pod("train-0", of_job("train")));
    assert_eq!(fixture.order(TRAIN), None, "it is asked for more");
}

#[tokio::test]
async fn claims_that_no_pool_offers_are_found_and_released() {
    let mut fixture = HostFixture::new();
    let mut smaller = pool();
    smaller["spec"]["offerings"][0]["zone"] = json!("zone-b");
    fixture.show(smaller, false);
    fixture.show(claim(7), false);
    fixture.show(bought_node(7), false);
    let mut lost = claim(8);
    lost["metadata"]["labels"]["muster.sh/pool"] = json!("unheard-of");
    fixture.show(lost, false);
    fixture.host.run_cycle();
    assert_eq!(fixture.claims(), [7, 8], "they cost money, and the host does not know them");
    until_released(&mut fixture).await;
}

#[tokio::test]
async fn gang_of_a_newly_served_kind_does_not_start_in_part() {
    let new = KindRole::Workload(WorkloadKind::PyTorchJob);
    let mut fixture = HostFixture::watching(&Config::default(), |kind_role| kind_role != new);
    fixture.show(node("n0"), false);
    fixture.see(pod("a", ("kubeflow.org/v1", "PyTorchJob", "train")));
    assert_eq!(
        fixture.phase("team/train.pytorchjob"),
        None,
        "one of two pods was submitted as the whole gang"
    );
    // Discovery is requested at once.
    let asked = fixture.host.rediscover.notified();
    let within = std::time::Duration::from_secs(5);
    tokio::time::timeout(within, asked).await.expect("discovery is requested");
}

#[tokio::test]
async fn kind_that_cannot_be_listed_holds_up_only_its_own_gangs() {
    let broken = KindRole::Group(Dialect::Koordinator, 0);
    let mut fixture = HostFixture::new();
    let source = fixture.host.sources.of(broken).expect("watched");
    fixture.host.cache.others.insert(source, Store::default());
    fixture.show(node("n0"), false);
    fixture.show(node("n1"), false);
    let mut theirs = single_pod("theirs");
    theirs["metadata"]["annotations"] = json!({"gang.scheduling.koordinator.sh/name": "g",
        "gang.scheduling.koordinator.sh/min-available": "1"});
    fixture.show(theirs, false);
    fixture.see(single_pod("mine"));
    assert_eq!(
        fixture.phase("team/g.koordinator"),
        None,
        "the terms of its group were not observed"
    );
    assert!(matches!(fixture.phase("team/mine.pod"), Some(Phase::Admitted { .. })));
}

fn koordinator(name: &str, more: &Value) -> Value {
    let mut pod = single_pod(name);
    let mut marks = json!({"gang.scheduling.koordinator.sh/name": "g",
        "gang.scheduling.koordinator.sh/min-available": "1"});
    for (key, value) in more.as_object().into_iter().flatten() {
        marks[key] = value.clone();
    }
    pod["metadata"]["annotations"] = marks;
    pod
}

fn volcano_group(spec: &Value) -> Value {
    json!({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "team"}, "spec": spec})
}

fn volcano_pod() -> Value {
    let mut pod = single_pod("a");
    pod["metadata"]["annotations"] = json!({"scheduling.k8s.io/group-name": "g"});
    pod
}

#[tokio::test]
async fn unsupported_requirement_of_a_group_blocks_it_with_the_reason() {
    let mut fixture = HostFixture::new();
    fixture.show(node("n0"), false);
    let tier =
        json!({"minMember": 1, "networkTopology": {"mode": "hard", "highestTierAllowed": 1}});
    fixture.show(volcano_group(&tier), false);
    fixture.see(volcano_pod());
    let name = "team/g.volcano";
    assert_eq!(fixture.phase(name), None, "{name} was submitted");
    let blocked = fixture.host.gangs.get(name).and_then(|record| record.blocked.clone());
    let (why, _) = blocked.expect("it has a reason");
    assert!(why.contains("tier 1"), "{why}");
    let alone = json!({"gang.scheduling.koordinator.sh/groups": "[\"team/g\"]"});
    fixture.see(koordinator("k", &alone));
    assert!(fixture.phase("team/g.koordinator").is_some(), "it is not merged with other groups");
}

#[tokio::test]
async fn group_status_is_finished_when_its_gang_has_ended() {
    let mut fixture = HostFixture::new();
    fixture.show(node("n0"), false);
    fixture.show(volcano_group(&json!({"minMember": 1})), false);
    fixture.see(on(volcano_pod(), "n0"));
    let name = "team/g.volcano".into();
    assert!(fixture.host.final_group_patches(&name).is_empty(), "it runs");
    fixture.see(done(on(volcano_pod(), "n0")));
    assert_eq!(fixture.phase(&name), None);
    let (_, object, patch) = fixture.host.final_group_patches(&name).pop().expect("it is over");
    assert_eq!(object, "g");
    assert_eq!(patch.patch["status"]["phase"], "Completed");
    assert_eq!(patch.patch["status"]["succeeded"], 1);
}
