//! The chart as helm renders it: the API server accepts it, every value has an effect, and the controller runs as the
//! Deployment states.

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, DynamicObject};
use muster_testkit::cluster::{Cluster, Release, Role, Setup, objects};
use muster_testkit::testbed::Tool;
use serde_json::Value;

use crate::fixture::controller::Controller;
use crate::fixture::objects::custom_objects;
use crate::install::rbac::granted;

/// The release name and namespace of the docs.
pub(crate) const RELEASE: Release<'static> = Release {
    name: "muster",
    chart: concat!(env!("CARGO_MANIFEST_DIR"), "/../../charts/muster"),
    namespace: "muster-system",
};

pub(crate) const NAMESPACE: &str =
    "{apiVersion: v1, kind: Namespace, metadata: {name: muster-system}}";

/// The default values.
const DEFAULTS: &str = include_str!("../../../../../charts/muster/values.yaml");
/// Another value for each of them.
const OTHERS: &str = include_str!("values.yaml");
const OTHERS_FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cluster/install/values.yaml");

async fn cluster() -> Option<Cluster> {
    Cluster::start_or_skip(Setup::bare().needing(Tool::Helm)).await
}

fn rendered(cluster: &Cluster, more: &[&str]) -> String {
    cluster.rendered(RELEASE, more).expect("a chart")
}

/// Paths and values of all leaves; an empty table is a leaf.
fn leaves(at: &str, value: &Value, found: &mut Vec<(String, Value)>) {
    match value.as_object().filter(|table| !table.is_empty()) {
        Some(table) => table.iter().for_each(|(name, value)| {
            leaves(&format!("{at}/{name}"), value, found);
        }),
        None => found.push((at.to_owned(), value.clone())),
    }
}

/// One value as an argument of `--set-json`.
fn set_json_argument(path: &str, value: &Value) -> String {
    let names: Vec<&str> = path.split('/').skip(1).collect();
    let name = names.join(".");
    format!("{name}={value}")
}

#[tokio::test(flavor = "multi_thread")]
async fn api_server_accepts_the_chart_with_default_and_other_values() {
    let Some(cluster) = cluster().await else { return };
    cluster.apply(NAMESPACE).await.expect("a namespace");
    for values in [&[][..], &["--values", OTHERS_FILE]] {
        let chart = RELEASE.chart;
        cluster
            .helm(&[&["lint", "--strict", chart], values].concat())
            .expect("nothing to complain of");
        let text = rendered(&cluster, values);
        cluster.dry_run(&text).await.unwrap_or_else(|error| panic!("{error} of\n{text}"));
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
async fn every_chart_value_changes_the_manifests() {
    let Some(cluster) = cluster().await else { return };
    let read = |text: &str| serde_saphyr::from_str::<Value>(text).expect("values");
    let (defaults, others) = (read(DEFAULTS), read(OTHERS));
    let mut all = Vec::new();
    leaves("", &defaults, &mut all);
    let plain = rendered(&cluster, &[]);
    for (path, value) in all {
        let other = others.pointer(&path).unwrap_or_else(|| panic!("no other value for {path}"));
        assert_ne!(*other, value, "{path} is the same");
        let changed = rendered(&cluster, &["--set-json", &set_json_argument(&path, other)]);
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

/// The environment of a container as a kubelet would set it, for a pod of this name.
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
async fn controller_runs_as_helm_installs_and_upgrades_it() {
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
        let mut controller = Controller::start_with_env(&cluster, &args, &env);
        until_leads(&cluster, pod, &mut controller).await;
        assert!(controller.stop(), "it ends in good order");
    }
    cluster.helm(&["uninstall", name, "--namespace", namespace]).expect("removed");
    // The CRDs and their objects stay, and the service account has no rights any more.
    let gangs = custom_objects(&cluster, ("muster.sh", "v1alpha1"), ("Gang", "gangs")).await;
    gangs.list(&kube::api::ListParams::default()).await.expect("gangs are still served");
    let pods: Api<k8s_openapi::api::core::v1::Pod> = Api::all(cluster.client(Role::Muster).await);
    cluster
        .until("Muster's rights are gone", async || {
            let answer = pods.list(&kube::api::ListParams::default()).await;
            matches!(answer, Err(kube::Error::Api(status)) if status.code == 403).then_some(())
        })
        .await;
}

/// Rights that one feature alone needs.
const OF_FEATURES: [(&str, &str, &str, &str); 9] = [
    ("templates", "", "pods", "create"),
    ("gates", "", "pods", "patch"),
    ("suspendedJobs", "batch", "jobs", "patch"),
    ("volumes", "", "persistentvolumes", "patch"),
    ("volumes", "", "persistentvolumeclaims", "patch"),
    ("karpenter", "karpenter.sh", "nodeclaims", "create"),
    ("karpenter", "karpenter.sh", "nodeclaims", "delete"),
    ("autoscaler", "autoscaling.x-k8s.io", "provisioningrequests", "create"),
    ("autoscaler", "", "podtemplates", "create"),
];

#[tokio::test(flavor = "multi_thread")]
async fn disabled_features_drop_their_rights_and_set_the_flag() {
    let Some(cluster) = cluster().await else { return };
    let of = |more: &[&str]| objects(&rendered(&cluster, more)).expect("objects");
    let all = granted(&of(&[]));
    for (feature, group, resource, verb) in OF_FEATURES {
        let off = of(&["--set", &format!("features.{feature}=false")]);
        let right = (group.to_owned(), resource.to_owned(), verb.to_owned());
        assert!(all.contains(&right), "{right:?} is never granted");
        let left = granted(&off);
        assert!(!left.contains(&right), "{feature} is off and {right:?} is granted");
        assert!(left.is_subset(&all) && left.len() + 4 >= all.len(), "{feature} takes more away");
        let args = container(&off)["args"].clone();
        assert!(args.to_string().contains(&format!("--disable={feature}")), "{args}");
    }
    let marks = (String::new(), "nodes".to_owned(), "patch".to_owned());
    let off = of(&["--set", "features.karpenter=false,features.autoscaler=false"]);
    assert!(all.contains(&marks) && !granted(&off).contains(&marks));
}

/// Admission policies by the value that disables them.
const OF_ADMISSION: [(&str, &[&str]); 4] = [
    ("protectMarks", &["muster-marks", "muster-node-marks"]),
    ("checkQueues", &["muster-queues"]),
    ("stampUsers", &["muster-users", "muster-job-users", "muster-users-kept"]),
    ("scheduleNamespaces", &["muster-schedule"]),
];

#[tokio::test(flavor = "multi_thread")]
async fn disabled_or_unserved_policies_are_left_out() {
    let Some(cluster) = cluster().await else { return };
    let policies = |text: &str| {
        let all = objects(text).expect("objects").into_iter();
        let is_one = |one: &DynamicObject| {
            one.types.as_ref().is_some_and(|types| types.kind.ends_with("AdmissionPolicy"))
        };
        let names = all.filter(is_one).filter_map(|one| one.metadata.name);
        names.collect::<std::collections::BTreeSet<String>>()
    };
    let all = policies(&rendered(&cluster, &[]));
    for (value, names) in OF_ADMISSION {
        let off = policies(&rendered(&cluster, &["--set", &format!("admission.{value}=false")]));
        let gone: Vec<&String> = all.difference(&off).collect();
        let mut names = names.to_vec();
        names.sort_unstable();
        assert_eq!(gone, names, "{value}");
    }
    // An API server without these kinds gets none of the policies, and user annotations are not trusted, since no
    // policy stamps them.
    let Release { name, chart, namespace } = RELEASE;
    let old = ["template", name, chart, "--namespace", namespace, "--kube-version", "v1.33.0"];
    let old = cluster.helm(&old).expect("a chart");
    assert!(policies(&old).is_empty() && !old.contains("--trust-user-annotation"));
    assert!(rendered(&cluster, &[]).contains("--trust-user-annotation"));
    // helm refuses an unknown value.
    let wrong = cluster.rendered(RELEASE, &["--set", "features.gate=false"]).expect_err("refused");
    assert!(wrong.to_string().contains("gate"), "{wrong}");
}
