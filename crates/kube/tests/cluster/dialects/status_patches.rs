//! Every status that Muster writes into another system's object is accepted whole by that system's CRD: no field is
//! rejected, and none is dropped silently.

use kube::api::{Api, DynamicObject, Patch, PatchParams, TypeMeta, ValidationDirective};
use kube::core::GroupVersionKind;
use kube::{Client, discovery};
use muster_api::dialects::{Dialect, State, StatusPatch, status};
use muster_core::time::Time;
use muster_testkit::cluster::{Cluster, Role, Setup};
use serde_json::{Value, json};

/// A dialect, the API version of its groups, their CRD, and the required spec of a group.
type ForeignGroup = (Dialect, &'static str, Option<&'static str>, Value);

fn foreign_groups(cluster: &Cluster) -> Vec<ForeignGroup> {
    let counted = json!({"minMember": 4});
    let native = json!({"schedulingPolicy": {"gang": {"minCount": 4}}});
    let mut all = vec![
        (
            Dialect::Volcano,
            "scheduling.volcano.sh/v1beta1",
            Some("volcano/scheduling.volcano.sh_podgroups"),
            counted.clone(),
        ),
        (
            Dialect::Koordinator,
            "scheduling.sigs.k8s.io/v1alpha1",
            Some("koordinator/scheduling.sigs.k8s.io_podgroups"),
            counted.clone(),
        ),
        (
            Dialect::SchedulerPlugins,
            "scheduling.x-k8s.io/v1alpha1",
            Some("scheduler-plugins/scheduling.x-k8s.io_podgroups"),
            counted.clone(),
        ),
        (
            Dialect::Kai,
            "scheduling.run.ai/v2alpha2",
            Some("kai/scheduling.run.ai_podgroups"),
            counted,
        ),
    ];
    // The native group, in every version that this API server serves.
    for version in cluster.version().gang_apis().iter().filter(|version| **version != "v1alpha1") {
        let version = match *version {
            "v1alpha2" => "scheduling.k8s.io/v1alpha2",
            "v1alpha3" => "scheduling.k8s.io/v1alpha3",
            _ => "scheduling.k8s.io/v1beta1",
        };
        all.push((Dialect::Native, version, None, native.clone()));
    }
    all
}

/// The states of a whole run, and every other state.
fn states() -> Vec<State> {
    let waiting = |node_would_help| State::Waiting { why: "no room".into(), node_would_help };
    vec![
        waiting(false),
        waiting(true),
        State::Infeasible { why: "it cannot be".into() },
        State::Provisioning { ready: 1, total: 4 },
        State::Admitted,
        State::Running { running: 3, succeeded: 1, failed: 0 },
        waiting(true),
        State::Finished { succeeded: 3, failed: 1 },
        State::Finished { succeeded: 4, failed: 0 },
    ]
}

async fn groups(client: &Client, version: &str) -> Api<DynamicObject> {
    let types = TypeMeta { api_version: version.to_owned(), kind: "PodGroup".to_owned() };
    let kind = GroupVersionKind::try_from(&types).expect("a version");
    let (resource, _) = discovery::pinned_kind(client, &kind).await.expect("it is served");
    Api::namespaced_with(client.clone(), "default", &resource)
}

/// Writes as the controller does, but with every unknown field an error.
async fn write(
    groups: &Api<DynamicObject>,
    name: &str,
    reported: &StatusPatch,
) -> Result<Value, kube::Error> {
    let params = PatchParams {
        field_validation: Some(ValidationDirective::Strict),
        ..PatchParams::default()
    };
    let patch = Patch::Merge(&reported.patch);
    let answer = match reported.subresource {
        true => groups.patch_status(name, &params, &patch).await?,
        false => groups.patch(name, &params, &patch).await?,
    };
    Ok(serde_json::to_value(answer).expect("an object"))
}

/// Fields of the patch that the object does not have afterwards.
fn lost_fields(patch: &Value, object: &Value) -> Vec<String> {
    let message = patch["status"].as_object().expect("a status");
    let differs = |(name, value): &(&String, &Value)| object["status"][name.as_str()] != **value;
    message.iter().filter(differs).map(|(name, value)| format!("{name}: {value}")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_status_patch_is_accepted_whole_by_its_foreign_crd() {
    let Some(cluster) = Cluster::start_or_skip(Setup::bare()).await else { return };
    let client = cluster.client(Role::Admin).await;
    let mut findings = Vec::new();
    for (dialect, version, definition, spec) in foreign_groups(&cluster) {
        if let Some(definition) = definition {
            let Some(()) = cluster.define_or_skip(&[definition]).await else { return };
        }
        // A group of its own: versions of one kind show the same objects.
        let name = version.replace('/', ".");
        let group = json!({
            "apiVersion": version,
            "kind": "PodGroup",
            "metadata": {"name": name, "namespace": "default"},
            "spec": spec,
        });
        cluster
            .apply(&group.to_string())
            .await
            .unwrap_or_else(|error| panic!("{version}: {error}"));
        let groups = groups(&client, version).await;
        let mut count = 0;
        for (at, state) in states().iter().enumerate() {
            let object = groups.get(&name).await.expect("it is there");
            let object = serde_json::to_value(object).expect("an object");
            let now = Time(1_790_000_000_000 + 60_000 * i64::try_from(at).expect("few"));
            let Some(reported) = status(dialect, &object, state, now) else { continue };
            count += 1;
            match write(&groups, &name, &reported).await {
                Err(error) => findings.push(format!("{version} refuses {state:?}: {error}")),
                Ok(after) => {
                    let lost = lost_fields(&reported.patch, &after);
                    if !lost.is_empty() {
                        findings.push(format!("{version} loses {lost:?} of {state:?}"));
                    }
                    // A status that was written once is not written again.
                    let again = status(dialect, &after, state, now);
                    if again.is_some() {
                        findings.push(format!("{version} gets {again:?} twice"));
                    }
                }
            }
        }
        assert!(count > 0, "{version} got no status");
    }
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}
