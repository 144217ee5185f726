//! Reading any object ends with a result or with findings.
//!
//! Objects are generated from the words that the readers look for, so that they get past the first field; a failing one
//! is printed in its smallest form, and kept in proptest's seed file for the next run.

use std::collections::BTreeMap;

use muster_api::assemble::{Member, assemble};
use muster_api::dialects::{
    Dialect, State, Terms, group_of, pod_terms, queue, role_of, status, terms,
};
use muster_api::pod::{GpuNames, PodSpec};
use muster_api::workloads::{
    OwnerRef, gang_owner, index_of_pod, is_suspended, kinds, role_of_pod, roles,
};
use muster_core::constraint::Constraints;
use muster_core::time::Time;
use proptest::prelude::*;
use serde_json::{Map, Value};

const WORDS: &[&str] = &[
    "spec",
    "status",
    "metadata",
    "labels",
    "annotations",
    "template",
    "containers",
    "initContainers",
    "resources",
    "requests",
    "limits",
    "cpu",
    "memory",
    "nvidia.com/gpu",
    "pods",
    "affinity",
    "nodeAffinity",
    "tolerations",
    "requiredDuringSchedulingIgnoredDuringExecution",
    "nodeSelectorTerms",
    "matchExpressions",
    "key",
    "operator",
    "values",
    "minMember",
    "minResources",
    "minTaskMember",
    "queue",
    "networkTopology",
    "highestTierAllowed",
    "schedulingPolicy",
    "gang",
    "minCount",
    "basic",
    "podGroups",
    "policy",
    "name",
    "conditions",
    "type",
    "phase",
    "lastTransitionTime",
    "schedulingConditions",
    "parallelism",
    "completions",
    "replicatedJobs",
    "replicas",
    "pytorchReplicaSpecs",
    "mpiReplicaSpecs",
    "Worker",
    "headGroupSpec",
    "workerGroupSpecs",
    "groupName",
    "numOfHosts",
    "maxReplicas",
    "minReplicas",
    "leaderWorkerTemplate",
    "workerTemplate",
    "size",
    "trainer",
    "numNodes",
    "elasticPolicy",
    "disruptionMode",
    "scheduleTimeoutSeconds",
    "overhead",
    "weight",
    "capability",
    "gang.scheduling.koordinator.sh/waiting-time",
    "gang.scheduling.koordinator.sh/network-topology-spec",
    "muster.sh/gang-size",
    "gpu-fraction",
    "ports",
    "hostPort",
    "schedulingGroup",
    "podGroupName",
    "workloadRef",
];

fn word() -> impl Strategy<Value = String> {
    prop_oneof![4 => prop::sample::select(WORDS).prop_map(str::to_owned), 1 => ".{0,6}"]
}

fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (-2i64..1_000_002).prop_map(Value::from),
        prop::sample::select(
            &[
                "8",
                "500m",
                "1Ti",
                "9E",
                "-1",
                "1e400",
                "0.5",
                "In",
                "Exists",
                "1.5h",
                "é9s",
                "{\"gatherStrategy\":3}"
            ][..]
        )
        .prop_map(Value::from),
        word().prop_map(Value::from),
    ]
}

fn object() -> impl Strategy<Value = Value> {
    leaf().prop_recursive(6, 96, 6, |inner| {
        prop_oneof![
            1 => prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            3 => prop::collection::vec((word(), inner), 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

fn texts() -> impl Strategy<Value = BTreeMap<String, String>> {
    prop::collection::btree_map(word(), prop_oneof!["[0-9.]{0,8}[a-zµ]{0,2}", ".{0,8}"], 0..4)
}

/// Reads an object as everything that it could be.
fn read_as_everything(
    object: &Value,
    labels: &BTreeMap<String, String>,
    annotations: &BTreeMap<String, String>,
) {
    let gpus = GpuNames::default();
    let states = [State::Admitted, State::Waiting { why: String::new(), node_would_help: true }];
    for dialect in Dialect::ALL {
        let _ = terms(dialect, object, &gpus);
        let _ = pod_terms(dialect, labels, annotations);
        for state in &states {
            let _ = status(dialect, object, state, Time(i64::MAX));
        }
    }
    let _ = queue(object, &gpus);
    let _ = role_of(labels, annotations);
    if let Ok(spec) = PodSpec::read(object, "spec") {
        let _ = group_of(labels, annotations, &spec, "ns");
        let _ = (spec.request(annotations, &gpus), spec.constraints());
        let _ = (
            spec.host_ports(),
            spec.claims("p"),
            spec.self_anti_affinity_key(labels, "ns"),
            spec.has_other_inter_pod_rules(labels, "ns"),
        );
    }
}

/// Reads an object as every kind of workload, and assembles a gang from it.
fn assemble_from_everything(object: &Value, terms: &Terms, labels: &BTreeMap<String, String>) {
    let gpus = GpuNames::default();
    for (kind, served) in kinds() {
        let version = served.versions[0];
        let api = if served.group.is_empty() {
            version.to_owned()
        } else {
            format!("{}/{version}", served.group)
        };
        let whole = serde_json::json!({"apiVersion": api, "kind": served.kind, "metadata": object, "spec": object});
        let _ =
            (is_suspended(*kind, &whole), role_of_pod(*kind, labels), index_of_pod(*kind, labels));
        let Ok(roles) = roles(&whole) else { continue };
        let made = assemble("ns/g", terms, &[], Some(&roles), &gpus);
        for role in made.into_iter().flat_map(|made| made.spec.roles) {
            assert!(role.min >= 1 && role.min <= role.max, "{role:?}");
        }
        let owner = OwnerRef { api_version: api, kind: served.kind.into(), ..OwnerRef::default() };
        let _ = gang_owner(&[owner], labels);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn no_object_makes_a_reader_panic(object in object(), labels in texts(), annotations in texts()) {
        read_as_everything(&object, &labels, &annotations);
        read_as_everything(&serde_json::json!({"spec": object, "status": object}), &labels, &annotations);
    }

    #[test]
    fn no_workload_makes_assembling_panic(
        object in object(),
        min in prop::option::of(0u32..2_000_000),
        labels in texts(),
    ) {
        let terms = Terms { min, ..Terms::default() };
        assemble_from_everything(&object, &terms, &labels);
    }

    /// Every existing unfinished member has exactly one role, and no role is empty.
    #[test]
    fn every_member_has_one_role(
        members in prop::collection::vec((0u8..4, 0u8..3, any::<bool>()), 0..12),
        min in prop::option::of(0u32..20),
        by_role in prop::collection::vec((0u8..5, 0u32..9), 0..3),
        total in prop::option::of(0u32..20),
        resources in prop::option::of((0u64..40, 0u64..20)),
    ) {
        let names = ["a", "b", "c", "d", "e"];
        let shapes: Vec<_> = (0..3u64).map(shape).collect();
        let anywhere = Constraints::default();
        let list: Vec<Member<'_>> = members.iter().map(|(role, shape, done)| Member {
            name: "m",
            role: names.get(usize::from(*role)).copied().filter(|name| *name != "d"),
            index: None,
            request: &shapes[usize::from(*shape)],
            constraints: &anywhere,
            done: *done,
        }).collect();
        let resources = resources.map(|(cpu, gpus)| muster_api::pod::Totals {
            amounts: [("cpu".into(), cpu * 500)].into(),
            gpus: [("nvidia.com/gpu".into(), gpus * 500)].into(),
        });
        let terms = Terms {
            min,
            total,
            min_by_role: by_role.iter().map(|(role, min)| (names[usize::from(*role)].into(), *min)).collect(),
            min_resources: resources,
            ..Terms::default()
        };
        if let Ok(made) = assemble("ns/g", &terms, &list, None, &GpuNames::default()) {
            let mut seen: Vec<usize> = made.roles.iter().flatten().copied().collect();
            seen.sort_unstable();
            let alive: Vec<usize> = (0..list.len()).filter(|at| !list[*at].done).collect();
            prop_assert_eq!(seen, alive);
            for (role, who) in made.spec.roles.iter().zip(&made.roles) {
                prop_assert!(role.min >= 1 && role.min <= role.max && who.len() <= role.max as usize);
            }
            let done = list.len() - made.roles.iter().map(Vec::len).sum::<usize>();
            let least = made.spec.min_members() as usize + done;
            prop_assert!(least >= min.unwrap_or(0) as usize, "{least} of {min:?}");
        }
    }
}

fn shape(cpus: u64) -> muster_core::gang::Request {
    let amounts = [("cpu".into(), cpus * 1_000), ("pods".into(), 1)].into();
    muster_core::gang::Request { amounts, gpu: None }
}
