//! Features that are off: gangs and pools that need one report it, and the rest is unaffected.

use serde_json::{Value, json};

use crate::cache::kinds::KindRole;
use crate::config::Config;
use crate::features::Feature;
use crate::tests::fixture::HostFixture;
use crate::tests::objects::{job, node, pool, single_pod};

fn without(feature: Feature) -> HostFixture {
    let config = Config { disabled: [feature].into_iter().collect(), ..Config::default() };
    let mut fixture = HostFixture::with(&config);
    fixture.show(node("n0"), false);
    fixture
}

/// Why a gang is blocked when a feature is off. Checks that it is not blocked when the feature is on.
fn why_blocked(feature: Feature, object: &Value, gang: &str) -> String {
    let mut fixture = HostFixture::new();
    fixture.show(node("n0"), false);
    fixture.see(object.clone());
    let on = fixture.host.gangs.get(gang).and_then(|record| record.blocked.clone());
    assert!(on.is_none_or(|(why, _)| !why.contains("off")), "it is on");
    let mut fixture = without(feature);
    fixture.see(object.clone());
    let record = fixture.host.gangs.get(gang).expect("a record");
    assert!(fixture.phase(gang).is_none(), "it is not planned");
    record.blocked.clone().expect("a reason").0
}

#[tokio::test]
async fn gang_that_needs_a_disabled_feature_names_it() {
    let mut gated = single_pod("gated");
    gated["spec"]["schedulingGates"] = json!([{"name": "muster.sh/gang"}]);
    let why = why_blocked(Feature::Gates, &gated, "team/gated.pod");
    assert_eq!(
        why,
        "the gate muster.sh/gang is not removed: the feature `gates` is off in this cluster"
    );
    let mut held = job("held", 2);
    held["spec"]["suspend"] = json!(true);
    held["metadata"]["annotations"] = json!({"muster.sh/admit": "unsuspend"});
    let why = why_blocked(Feature::SuspendedJobs, &held, "team/held.job");
    assert!(why.contains("`suspendedJobs` is off"), "{why}");
    let gang = json!({
        "apiVersion": "muster.sh/v1alpha1", "kind": "Gang",
        "metadata": {"name": "made", "namespace": "team", "uid": "made"},
        "spec": {"roles": [{"name": "worker", "min": 1, "template": {"spec": {"containers": []}}}]},
    });
    let why = why_blocked(Feature::Templates, &gang, "team/made");
    assert!(why.contains("`templates` is off"), "{why}");
}

#[tokio::test]
async fn pool_with_a_disabled_provider_is_rejected_and_buys_nothing() {
    let mut fixture = without(Feature::Karpenter);
    fixture.show(pool(), false);
    fixture.show(single_pod("first"), false);
    fixture.see(single_pod("second"));
    let why = fixture.host.rejected_objects.get(&(KindRole::Pool, "gpu".into())).expect("a reason");
    assert_eq!(why, "no nodes are requested: the feature `karpenter` is off in this cluster");
    assert!(fixture.claims().is_empty());
    // With the feature on, a node is bought for the pod that has none.
    let mut fixture = HostFixture::new();
    fixture.show(node("n0"), false);
    fixture.show(pool(), false);
    fixture.show(single_pod("first"), false);
    fixture.see(single_pod("second"));
    assert_eq!(fixture.claims().len(), 1);
}
