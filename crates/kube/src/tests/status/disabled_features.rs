//! Features that are off: what needs one is not tried, and is told so; all else goes on.

use serde_json::{Value, json};

use crate::cache::kinds::KindRole;
use crate::config::Config;
use crate::features::Feature;
use crate::tests::fixture::HostFixture;
use crate::tests::objects::{alone, job, node, pool};

fn without(feature: Feature) -> HostFixture {
    let config = Config { disabled: [feature].into_iter().collect(), ..Config::default() };
    let mut stage = HostFixture::with(&config);
    stage.show(node("n0"), false);
    stage
}

/// Why a gang is not taken in, when it needs something that is off; that it is taken in when that is on.
fn told(feature: Feature, object: &Value, gang: &str) -> String {
    let mut stage = HostFixture::new();
    stage.show(node("n0"), false);
    stage.see(object.clone());
    let on = stage.host.gangs.get(gang).and_then(|group| group.blocked.clone());
    assert!(on.is_none_or(|(why, _)| !why.contains("off")), "it is on");
    let mut stage = without(feature);
    stage.see(object.clone());
    let group = stage.host.gangs.get(gang).expect("it is known");
    assert!(stage.phase(gang).is_none(), "it is not planned");
    group.blocked.clone().expect("it is told").0
}

#[tokio::test]
async fn gangs_that_need_a_feature_that_is_off_are_told_which() {
    let mut gated = alone("gated");
    gated["spec"]["schedulingGates"] = json!([{"name": "muster.sh/gang"}]);
    let why = told(Feature::Gates, &gated, "team/gated.pod");
    assert_eq!(
        why,
        "the gate muster.sh/gang is not lifted: the feature `gates` is off in this cluster"
    );
    let mut held = job("held", 2);
    held["spec"]["suspend"] = json!(true);
    held["metadata"]["annotations"] = json!({"muster.sh/admit": "unsuspend"});
    let why = told(Feature::SuspendedJobs, &held, "team/held.job");
    assert!(why.contains("`suspendedJobs` is off"), "{why}");
    let gang = json!({
        "apiVersion": "muster.sh/v1alpha1", "kind": "Gang",
        "metadata": {"name": "made", "namespace": "team", "uid": "made"},
        "spec": {"roles": [{"name": "worker", "min": 1, "template": {"spec": {"containers": []}}}]},
    });
    let why = told(Feature::Templates, &gang, "team/made");
    assert!(why.contains("`templates` is off"), "{why}");
}

#[tokio::test]
async fn pool_whose_provider_is_off_is_told_and_buys_nothing() {
    let mut stage = without(Feature::Karpenter);
    stage.show(pool(), false);
    stage.show(alone("first"), false);
    stage.see(alone("second"));
    let why = stage.host.rejected_objects.get(&(KindRole::Pool, "gpu".into())).expect("it is told");
    assert_eq!(why, "no nodes are asked for: the feature `karpenter` is off in this cluster");
    assert!(stage.claims().is_empty());
    // With it, one is bought for the pod that has no node.
    let mut stage = HostFixture::new();
    stage.show(node("n0"), false);
    stage.show(pool(), false);
    stage.show(alone("first"), false);
    stage.see(alone("second"));
    assert_eq!(stage.claims().len(), 1);
}
