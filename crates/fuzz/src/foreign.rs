//! Objects of other systems: each input is parsed as every kind it could be taken for.

use std::collections::BTreeMap;

use muster_api::assemble::assemble;
use muster_api::dialects::{self, Dialect, State};
use muster_api::pod::{GpuNames, PodSpec};
use muster_api::{foreign, provisioning, workloads};
use muster_core::time::Time;
use serde_json::Value;

use crate::Target;

pub(crate) const TARGET: Target = Target {
    name: "foreign",
    run,
    words: &[
        "spec: ",
        "status: ",
        "metadata: ",
        "labels: ",
        "annotations: ",
        "template: ",
        "containers: ",
        "resources: ",
        "requests: ",
        "cpu: ",
        "memory: ",
        "nvidia.com/gpu: ",
        "minMember: ",
        "minResources: ",
        "queue: ",
        "replicas: ",
        "parallelism: ",
        "completions: ",
        "replicatedJobs: ",
        "pytorchReplicaSpecs: ",
        "mpiReplicaSpecs: ",
        "Worker: ",
        "headGroupSpec: ",
        "workerGroupSpecs: ",
        "numOfHosts: ",
        "maxReplicas: ",
        "minReplicas: ",
        "leaderWorkerTemplate: ",
        "size: ",
        "trainer: ",
        "numNodes: ",
        "podSets: ",
        "count: ",
        "podTemplateRef: ",
        "parameters: ",
        "networkTopology: ",
        "highestTierAllowed: ",
        "affinity: ",
        "tolerations: ",
        "topologySpreadConstraints: ",
        "matchExpressions: ",
        "operator: In",
        "values: ",
        "hostPort: ",
        "gang.scheduling.koordinator.sh/waiting-time: ",
        "gang.scheduling.koordinator.sh/groups: ",
        "muster.sh/gang-size: ",
        "gpu-fraction: ",
        "1000001",
        "4294967295",
        "4294967296",
        "-1",
        "2147483648",
        "9223372036854775807",
        "18446744073709551615",
        "1e400",
        "0.5",
        "9E",
        "1Ei",
        "-8",
        "null",
        "[]",
        "{}",
        "- ",
        "---\n",
        "\"\"",
        "é9s",
        "é",
    ],
    rounds: 3_000,
};

fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(objects) = foreign("a.yaml", text) else { return };
    for object in &objects {
        let labels = texts(object, "labels");
        let annotations = texts(object, "annotations");
        read_as_group(object, &labels, &annotations);
        read_as_pod(object, &labels, &annotations);
        read_as_workload(object, &labels);
        read_as_request(object, &annotations);
    }
}

fn texts(object: &Value, field: &str) -> BTreeMap<String, String> {
    let all = object.pointer(&format!("/metadata/{field}")).and_then(Value::as_object);
    let texts = all.into_iter().flatten();
    texts.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

fn read_as_group(
    object: &Value,
    labels: &BTreeMap<String, String>,
    annotations: &BTreeMap<String, String>,
) {
    let gpus = GpuNames::default();
    let states = [State::Admitted, State::Waiting { why: String::new(), node_would_help: true }];
    for dialect in Dialect::ALL {
        let _ = dialects::pod_terms(dialect, labels, annotations);
        for state in &states {
            let _ = dialects::status(dialect, object, state, Time(i64::MAX));
        }
        if let Ok(terms) = dialects::terms(dialect, object, &gpus) {
            for role in assemble("ns/g", &terms, &[], None, &gpus)
                .into_iter()
                .flat_map(|made| made.spec.roles)
            {
                assert!(role.min >= 1 && role.min <= role.max, "{dialect:?}: {role:?}");
            }
        }
    }
    let _ = (dialects::queue(object, &gpus), dialects::role_of(labels, annotations));
    let _ = dialects::is_sized_by_resources(object);
}

fn read_as_pod(
    object: &Value,
    labels: &BTreeMap<String, String>,
    annotations: &BTreeMap<String, String>,
) {
    let gpus = GpuNames::default();
    let Ok(pod) = PodSpec::read(&object["spec"], "spec") else { return };
    if let Some(group) = dialects::group_of(labels, annotations, &pod, "ns") {
        let _ = dialects::merged_groups(&group, annotations);
        let _ = dialects::terms_of(&group, object, &gpus);
    }
    let _ = (pod.request(annotations, &gpus), pod.constraints(), pod.host_ports(), pod.claims("p"));
    let _ = (pod.self_anti_affinity_key(labels, "ns"), pod.has_other_inter_pod_rules(labels, "ns"));
    let _ = workloads::run_of(object);
}

fn read_as_workload(object: &Value, labels: &BTreeMap<String, String>) {
    let gpus = GpuNames::default();
    for (kind, served) in workloads::kinds() {
        let version = served.versions[0];
        let api = match served.group {
            "" => version.to_owned(),
            group => format!("{group}/{version}"),
        };
        let whole = serde_json::json!({"apiVersion": api, "kind": served.kind, "metadata": object["metadata"],
            "spec": object["spec"], "status": object["status"]});
        let _ = (workloads::is_suspended(*kind, &whole), workloads::is_over(&whole));
        let _ = (workloads::comes_in_stages(*kind, &whole), workloads::role_of_pod(*kind, labels));
        let _ = workloads::index_of_pod(*kind, labels);
        let Ok(roles) = workloads::roles(&whole) else { continue };
        let made = assemble("ns/g", &dialects::Terms::default(), &[], Some(&roles), &gpus);
        for role in made.into_iter().flat_map(|made| made.spec.roles) {
            assert!(role.min >= 1 && role.min <= role.max, "{}: {role:?}", served.kind);
        }
        let owner = workloads::OwnerRef {
            api_version: api,
            kind: served.kind.into(),
            ..workloads::OwnerRef::default()
        };
        let _ = workloads::gang_owner(&[owner], labels);
    }
}

fn read_as_request(object: &Value, annotations: &BTreeMap<String, String>) {
    let _ = (provisioning::class_of(object), provisioning::consumes(annotations));
    let Ok(parsed) = provisioning::parse_request(object) else { return };
    for set in &parsed.pod_sets {
        let _ = provisioning::role(set, object);
    }
}
