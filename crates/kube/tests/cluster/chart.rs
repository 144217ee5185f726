//! The chart as helm makes it: what a server takes, what its values do, and that the controller runs as it says.

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, DynamicObject};
use muster_testkit::cluster::{Cluster, Release, Role, Setup, objects};
use muster_testkit::testbed::Tool;
use serde_json::Value;

use crate::controller::Controller;

/// The chart under the name and in the namespace that the docs have it.
pub(crate) const RELEASE: Release<'static> = Release {
    name: "muster",
    chart: concat!(env!("CARGO_MANIFEST_DIR"), "/../../charts/muster"),
    namespace: "muster-system",
};

pub(crate) const NAMESPACE: &str =
    "{apiVersion: v1, kind: Namespace, metadata: {name: muster-system}}";

/// What a user may say otherwise.
const DEFAULTS: &str = include_str!("../../../../charts/muster/values.yaml");
/// All of it said otherwise.
const OTHERS: &str = include_str!("values.yaml");
const OTHERS_FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cluster/values.yaml");

async fn cluster() -> Option<Cluster> {
    Cluster::start_or_skip(Setup::bare().needing(Tool::Helm)).await
}

fn rendered(cluster: &Cluster, more: &[&str]) -> String {
    cluster.rendered(RELEASE, more).expect("a chart")
}

/// The paths of all values that are no tables themselves, or empty ones, and what they are.
fn leaves(at: &str, value: &Value, found: &mut Vec<(String, Value)>) {
    match value.as_object().filter(|table| !table.is_empty()) {
        Some(table) => table.iter().for_each(|(name, value)| {
            leaves(&format!("{at}/{name}"), value, found);
        }),
        None => found.push((at.to_owned(), value.clone())),
    }
}

/// A table with nothing but this value, as helm is told of it.
fn only(path: &str, value: &Value) -> String {
    let names: Vec<&str> = path.split('/').skip(1).collect();
    let name = names.join(".");
    format!("{name}={value}")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_takes_all_of_the_chart_whatever_its_values_are() {
    let Some(cluster) = cluster().await else { return };
    cluster.apply(NAMESPACE).await.expect("a namespace");
    for values in [&[][..], &["--values", OTHERS_FILE]] {
        let chart = RELEASE.chart;
        cluster
            .helm(&[&["lint", "--strict", chart], values].concat())
            .expect("nothing to complain of");
        let text = rendered(&cluster, values);
        cluster.would_take(&text).await.unwrap_or_else(|error| panic!("{error} of\n{text}"));
        let kinds: Vec<String> = objects(&text)
            .expect("objects")
            .into_iter()
            .filter_map(|one| one.types)
            .map(|one| one.kind)
            .collect();
        for kind in [
            "CustomResourceDefinition",
            "Deployment",
            "PodDisruptionBudget",
            "Role",
            "ServiceAccount",
        ] {
            assert!(kinds.iter().any(|one| one == kind), "no {kind} among {kinds:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_value_of_the_chart_does_something() {
    let Some(cluster) = cluster().await else { return };
    let read = |text: &str| serde_saphyr::from_str::<Value>(text).expect("values");
    let (defaults, others) = (read(DEFAULTS), read(OTHERS));
    let mut all = Vec::new();
    leaves("", &defaults, &mut all);
    let plain = rendered(&cluster, &[]);
    for (path, value) in all {
        let other =
            others.pointer(&path).unwrap_or_else(|| panic!("nothing else is said for {path}"));
        assert_ne!(*other, value, "{path} is the same");
        let changed = rendered(&cluster, &["--set-json", &only(&path, other)]);
        assert_ne!(changed, plain, "{path} does nothing");
    }
}

/// The one container of the chart's Deployment.
fn container(objects: &[DynamicObject]) -> Value {
    let is_it =
        |one: &&DynamicObject| one.types.as_ref().is_some_and(|types| types.kind == "Deployment");
    let deployment = objects.iter().find(is_it).expect("a deployment");
    deployment.data["spec"]["template"]["spec"]["containers"][0].clone()
}

/// What a kubelet would find in a container's environment, for a pod of this name.
fn environment(container: &Value, pod: &str) -> Vec<(String, String)> {
    let of = |variable: &Value| {
        let value = match variable["valueFrom"]["fieldRef"]["fieldPath"].as_str() {
            Some("metadata.name") => pod,
            Some("metadata.namespace") => RELEASE.namespace,
            _ => variable["value"].as_str().expect("a variable is text or a field"),
        };
        (variable["name"].as_str().expect("a name").to_owned(), value.to_owned())
    };
    container["env"].as_array().into_iter().flatten().map(of).collect()
}

async fn until_leads(cluster: &Cluster, pod: &str, controller: &mut Controller) {
    let leases: Api<Lease> =
        Api::namespaced(cluster.client(Role::Observer).await, RELEASE.namespace);
    cluster
        .until(&format!("{pod} leads"), async || {
            assert!(!controller.has_ended(), "it does not run so:\n{}", controller.log());
            let lease = leases.get("muster").await.ok()?;
            lease.spec?.holder_identity?.starts_with(&format!("{pod}_")).then_some(())
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_controller_runs_as_helm_installs_it() {
    let Some(cluster) = cluster().await else { return };
    let Release { name, chart, namespace } = RELEASE;
    let of_release = [name, chart, "--namespace", namespace];
    let install = [&["install"], &of_release[..], &["--create-namespace"]].concat();
    cluster.helm(&install).expect("installed");
    let upgrade = [&["upgrade"], &of_release[..], &["--values", OTHERS_FILE]].concat();
    for (pod, upgrade) in [("muster-0", None), ("muster-1", Some(upgrade))] {
        if let Some(upgrade) = upgrade {
            cluster.helm(&upgrade).expect("upgraded");
        }
        let manifest = cluster.helm(&["get", "manifest", name, "--namespace", namespace]);
        let container = container(&objects(&manifest.expect("a manifest")).expect("objects"));
        assert_eq!(container["command"], serde_json::json!(["muster-controller"]));
        let args = container["args"].as_array().into_iter().flatten();
        let args: Vec<&str> = args.map(|arg| arg.as_str().expect("text")).collect();
        let env = environment(&container, pod);
        let mut controller = Controller::start_within(&cluster, &args, &env);
        until_leads(&cluster, pod, &mut controller).await;
        assert!(controller.stop(), "it ends in good order");
    }
    cluster.helm(&["uninstall", name, "--namespace", namespace]).expect("removed");
    // Its kinds stay with all that users made of them, and who it was may do nothing any more.
    let gangs = crate::stage::objects(&cluster, ("muster.sh", "v1alpha1"), ("Gang", "gangs")).await;
    gangs.list(&kube::api::ListParams::default()).await.expect("gangs are still served");
    let pods: Api<k8s_openapi::api::core::v1::Pod> = Api::all(cluster.client(Role::Muster).await);
    cluster
        .until("Muster's rights are gone", async || {
            let answer = pods.list(&kube::api::ListParams::default()).await;
            matches!(answer, Err(kube::Error::Api(status)) if status.code == 403).then_some(())
        })
        .await;
}
