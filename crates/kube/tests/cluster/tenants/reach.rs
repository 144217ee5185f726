//! A tenant has no rights beyond its namespace and the role `edit`: the API server refuses the rest.

use kube::api::{Api, DynamicObject, ListParams};
use muster_testkit::cluster::Role;

use super::tenancy::gang;
use super::{TENANT, Tenancy, VICTIM};
use crate::fixture::controller::Controller;
use crate::observer::Kind;

/// Objects that belong to the administrator, or to another namespace.
const NOT_THEIRS: [(&str, &str); 5] = [
    (
        "a queue",
        "{apiVersion: muster.sh/v1alpha1, kind: Queue, metadata: {name: mine}, spec: {weight: 1000}}",
    ),
    (
        "a pool",
        "{apiVersion: muster.sh/v1alpha1, kind: Pool, metadata: {name: mine}, spec: {tier: spot, offerings: []}}",
    ),
    (
        "a topology",
        "{apiVersion: muster.sh/v1alpha1, kind: Topology, metadata: {name: mine}, spec: {levels: []}}",
    ),
    (
        "an order",
        "{apiVersion: muster.sh/v1alpha1, kind: Order, metadata: {name: mine, namespace: team-a}, spec: {}}",
    ),
    ("a node", "{apiVersion: v1, kind: Node, metadata: {name: mine}}"),
];

#[tokio::test(flavor = "multi_thread")]
async fn tenant_with_edit_writes_only_gangs_of_its_own_namespace() {
    let Some(tenancy) = Tenancy::start(2).await else { return };
    let _controller = Controller::start(&tenancy, &["--leader-elect=false"]);
    for (what, yaml) in NOT_THEIRS {
        let refusal = tenancy.attempt(yaml).await.expect_err(what);
        assert!(refusal.contains("403") || refusal.contains("forbidden"), "{what}: {refusal}");
    }
    let refusal = tenancy.attempt(&gang(VICTIM, "intruder", 1, 1, "")).await.expect_err("refused");
    assert!(refusal.contains("forbidden"), "{refusal}");
    // Reading is bounded by the namespace as well.
    let gangs: Api<DynamicObject> =
        Api::namespaced_with(tenancy.client(Role::Tenant).await, VICTIM, &Kind::Gang.resource());
    gangs.list(&ListParams::default()).await.expect_err("not theirs to read");
    tenancy.victim_starts("train", 2, 8).await;
    assert_eq!(tenancy.bound(TENANT, "").await, 0);
}
