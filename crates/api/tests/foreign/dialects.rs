//! The groups of pods, and the terms of groups.

use muster_api::dialects::{
    Dialect, GroupRef, QUEUES, Terms, group_of, kinds, pod_terms, queue, role_of, terms, terms_of,
};
use muster_api::pod::{GpuNames, PodSpec};
use serde_json::Value;

use crate::{or_findings, table, texts, yaml};

fn group(pod: &Value) -> String {
    let spec = PodSpec::read(&pod["spec"], "spec").unwrap_or_default();
    let (labels, annotations) = (texts(pod, "labels"), texts(pod, "annotations"));
    let group = group_of(&labels, &annotations, &spec, "ns");
    let role = role_of(&labels, &annotations).map_or(String::new(), |role| format!(" as {role}"));
    group.map_or("none".into(), |group| {
        format!("{:?} {}/{}{role}", group.dialect, group.namespace, group.name)
    })
}

/// The terms that are given, in one line.
fn line(terms: &Terms) -> String {
    let json = serde_json::to_value(terms).unwrap();
    let is_given = |value: &Value| match value {
        Value::Null | Value::Bool(false) => false,
        Value::Array(items) => !items.is_empty(),
        _ => true,
    };
    // `preemptible: false` is a given value.
    let keep = |(_, value): &(&String, &Value)| is_given(value) || value.is_boolean();
    let parts: Vec<String> = json
        .as_object()
        .unwrap()
        .iter()
        .filter(keep)
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    if parts.is_empty() { "nothing".into() } else { parts.join(" ") }
}

fn read(dialect: Dialect) -> impl Fn(&Value) -> String {
    move |object| {
        or_findings(terms(dialect, object, &GpuNames::default()).map(|terms| line(&terms)))
    }
}

#[test]
fn pod_belongs_to_the_group_it_names() {
    let cases = [
        ("none", "{}"),
        (
            "muster by annotation",
            "{metadata: {annotations: {muster.sh/gang: g, muster.sh/role: worker}}}",
        ),
        ("muster by label", "{metadata: {labels: {muster.sh/gang: g}}}"),
        ("native", "{spec: {schedulingGroup: {podGroupName: g}}}"),
        ("native, no name", "{spec: {schedulingGroup: {}}}"),
        ("a group in a workload", "{spec: {workloadRef: {name: w, podGroup: workers}}}"),
        (
            "a replica of it",
            "{spec: {workloadRef: {name: w, podGroup: workers, podGroupReplicaKey: '7'}}}",
        ),
        ("scheduler-plugins", "{metadata: {labels: {scheduling.x-k8s.io/pod-group: g}}}"),
        (
            "scheduler-plugins is a label only",
            "{metadata: {annotations: {scheduling.x-k8s.io/pod-group: g}}}",
        ),
        ("koordinator", "{metadata: {labels: {pod-group.scheduling.sigs.k8s.io: g}}}"),
        (
            "koordinator, deprecated",
            "{metadata: {labels: {pod-group.scheduling.sigs.k8s.io/name: g}}}",
        ),
        (
            "koordinator by annotation",
            "{metadata: {annotations: {gang.scheduling.koordinator.sh/name: g}}}",
        ),
        (
            "volcano",
            "{metadata: {annotations: {scheduling.k8s.io/group-name: g, volcano.sh/task-spec: ps}}, spec: {schedulerName: volcano}}",
        ),
        (
            "volcano's role as a label",
            "{metadata: {annotations: {scheduling.k8s.io/group-name: g}, labels: {volcano.sh/task-spec: ps}}}",
        ),
        (
            "volcano's other annotation is not for groups",
            "{metadata: {annotations: {scheduling.volcano.sh/group-name: g}}}",
        ),
        (
            "kube-batch",
            "{metadata: {annotations: {scheduling.k8s.io/group-name: g}}, spec: {schedulerName: kube-batch}}",
        ),
        (
            "kai",
            "{metadata: {annotations: {pod-group-name: g}, labels: {kai.scheduler/subgroup-name: lead}}, spec: {schedulerName: kai-scheduler}}",
        ),
        ("a name as plain as KAI's, from others", "{metadata: {annotations: {pod-group-name: g}}}"),
        (
            "kai by its queue",
            "{metadata: {annotations: {pod-group-name: g}, labels: {kai.scheduler/queue: q}}}",
        ),
        (
            "several: muster first",
            "{metadata: {labels: {muster.sh/gang: mine, scheduling.x-k8s.io/pod-group: p}}, spec: {schedulingGroup: {podGroupName: n}}}",
        ),
        (
            "several: the pod's own field before labels",
            "{metadata: {labels: {scheduling.x-k8s.io/pod-group: p}}, spec: {schedulingGroup: {podGroupName: n}}}",
        ),
        (
            "several: labels before annotations",
            "{metadata: {labels: {scheduling.x-k8s.io/pod-group: p}, annotations: {scheduling.k8s.io/group-name: v}}}",
        ),
        ("an empty name is none", "{metadata: {labels: {scheduling.x-k8s.io/pod-group: ''}}}"),
    ];
    insta::assert_snapshot!(table(&cases, group), @"
    none
        none
    muster by annotation
        Muster ns/g as worker
    muster by label
        Muster ns/g
    native
        Native ns/g
    native, no name
        none
    a group in a workload
        Workload ns/w/workers
    a replica of it
        Workload ns/w/workers/7
    scheduler-plugins
        SchedulerPlugins ns/g
    scheduler-plugins is a label only
        none
    koordinator
        Koordinator ns/g
    koordinator, deprecated
        Koordinator ns/g
    koordinator by annotation
        Koordinator ns/g
    volcano
        Volcano ns/g as ps
    volcano's role as a label
        Volcano ns/g as ps
    volcano's other annotation is not for groups
        none
    kube-batch
        KubeBatch ns/g
    kai
        Kai ns/g as lead
    a name as plain as KAI's, from others
        none
    kai by its queue
        Kai ns/g
    several: muster first
        Muster ns/mine
    several: the pod's own field before labels
        Native ns/n
    several: labels before annotations
        SchedulerPlugins ns/p
    an empty name is none
        none
    ");
}

#[test]
fn native_pod_groups() {
    let cases = [
        (
            "1.37",
            "{apiVersion: scheduling.k8s.io/v1beta1, spec: {schedulingPolicy: {gang: {minCount: 4}}, schedulingConstraints: {topology: [{key: rack}]}, disruptionMode: {all: {}}, priorityClassName: high, priority: 7}}",
        ),
        (
            "1.36",
            "{apiVersion: scheduling.k8s.io/v1alpha2, spec: {schedulingPolicy: {gang: {minCount: 4}}, disruptionMode: PodGroup}}",
        ),
        (
            "one by one",
            "{spec: {schedulingPolicy: {gang: {minCount: 2}}, disruptionMode: {single: {}}}}",
        ),
        (
            "one by one, 1.36",
            "{spec: {schedulingPolicy: {gang: {minCount: 2}}, disruptionMode: Pod}}",
        ),
        ("basic is no gang", "{spec: {schedulingPolicy: {basic: {}}}}"),
        ("no policy", "{spec: {}}"),
        ("a policy of neither", "{spec: {schedulingPolicy: {}}}"),
        ("no minimum", "{spec: {schedulingPolicy: {gang: {}}}}"),
        ("a minimum in words", "{spec: {schedulingPolicy: {gang: {minCount: four}}}}"),
        (
            "an unknown mode",
            "{spec: {schedulingPolicy: {gang: {minCount: 2}}, disruptionMode: Never}}",
        ),
        ("no spec", "{}"),
    ];
    insta::assert_snapshot!(table(&cases, read(Dialect::Native)), @r#"
    1.37
        min=4 priority=7 priority_class="high" required={"Key":"rack"}
    1.36
        min=4
    one by one
        min=2
    one by one, 1.36
        min=2
    basic is no gang
        min=1
    no policy
        ! spec.schedulingPolicy: is missing
    a policy of neither
        ! spec.schedulingPolicy: must say `gang` or `basic`
    no minimum
        ! spec.schedulingPolicy.gang.minCount: is missing
    a minimum in words
        ! spec.schedulingPolicy.gang.minCount: must be a whole number from 0 to 1000000, not "four"
    an unknown mode
        ! spec.disruptionMode: `Never` is neither Pod nor PodGroup
    no spec
        ! spec: is missing
    "#);
}

#[test]
fn groups_inside_a_workload() {
    let workload = yaml(
        "{spec: {podGroups: [{name: a, policy: {gang: {minCount: 3}}}, {name: b, policy: {basic: {}}}]}}",
    );
    let of = |name: &str, object: &Value| {
        let group =
            GroupRef { dialect: Dialect::Workload, namespace: "ns".into(), name: name.into() };
        assert_eq!(group.object(), "w");
        or_findings(terms_of(&group, object, &GpuNames::default()).map(|terms| line(&terms)))
    };
    insta::assert_snapshot!(of("w/a", &workload), @"min=3");
    insta::assert_snapshot!(of("w/b/2", &workload), @"min=1");
    insta::assert_snapshot!(of("w/c", &workload), @"! spec.podGroups: must hold exactly one group called `c`");
    insta::assert_snapshot!(read(Dialect::Workload)(&workload), @"! spec.podGroups: must hold exactly one group");
    let single = yaml("{spec: {podGroups: [{name: a, policy: {gang: {minCount: 3}}}]}}");
    insta::assert_snapshot!(read(Dialect::Workload)(&single), @"min=3");
}

#[test]
fn volcano_pod_groups() {
    let cases = [
        (
            "as the training operator makes it",
            "{spec: {minMember: 9, queue: research, priorityClassName: high, minResources: {cpu: 72, memory: 1Ti, nvidia.com/gpu: 64}}}",
        ),
        ("minima by task", "{spec: {minMember: 5, minTaskMember: {ps: 1, worker: 4}}}"),
        (
            "within a tier",
            "{spec: {minMember: 2, networkTopology: {mode: hard, highestTierAllowed: 2}}}",
        ),
        ("hard is the default", "{spec: {networkTopology: {highestTierAllowed: 1}}}"),
        ("softly, by name", "{spec: {networkTopology: {mode: soft, highestTierName: rack}}}"),
        ("an unknown mode", "{spec: {networkTopology: {mode: firm, highestTierAllowed: 1}}}"),
        (
            "what a quota would count",
            "{spec: {minMember: 2, minResources: {cpu: 4, requests.cpu: 4, limits.cpu: 8, count/pods: 2, pods: 2, requests.nvidia.com/gpu: 2}}}",
        ),
        (
            "by annotations",
            "{metadata: {annotations: {volcano.sh/preemptable: 'false', scheduling.volcano.sh/queue-name: q}}, spec: {minMember: 2}}",
        ),
        (
            "an annotation that is no flag",
            "{metadata: {annotations: {volcano.sh/preemptable: maybe}}, spec: {}}",
        ),
        ("below zero", "{spec: {minMember: -1}}"),
        ("too many", "{spec: {minMember: 1000001}}"),
        ("a bad amount", "{spec: {minResources: {cpu: lots, memory: [1]}}}"),
        ("a bad task", "{spec: {minTaskMember: {ps: x}}}"),
        ("a spec that is a list", "{spec: []}"),
        ("an empty spec", "{spec: {}}"),
    ];
    insta::assert_snapshot!(table(&cases, read(Dialect::Volcano)), @r#"
    as the training operator makes it
        min=9 min_resources={"amounts":{"cpu":72000,"memory":1099511627776},"gpus":{"nvidia.com/gpu":64000}} priority_class="high" queue="research"
    minima by task
        min=5 min_by_role=[["ps",1],["worker",4]]
    within a tier
        min=2 required={"Tier":2}
    hard is the default
        required={"Tier":1}
    softly, by name
        preferred={"Key":"rack"}
    an unknown mode
        ! spec.networkTopology: the mode `firm` is neither hard nor soft
    what a quota would count
        min=2 min_resources={"amounts":{"cpu":4000,"pods":2},"gpus":{"nvidia.com/gpu":2000}}
    by annotations
        min=2 preemptible=false queue="q"
    an annotation that is no flag
        ! metadata.annotations[volcano.sh/preemptable]: must be `true` or `false`, not `maybe`
    below zero
        ! spec.minMember: must be a whole number from 0 to 1000000, not -1
    too many
        ! spec.minMember: must be a whole number from 0 to 1000000, not 1000001
    a bad amount
        ! spec.minResources.memory: must be a quantity such as 8, 500m or 80Gi
        ! spec.minResources.cpu: `lots` is not a quantity: write a number with an optional suffix m, k, M, G, T, Ki, Mi, Gi or Ti, such as 8, 500m or 80Gi
    a bad task
        ! spec.minTaskMember.ps: must be a whole number from 0 to 1000000, not "x"
    a spec that is a list
        ! spec: must be a mapping, not []
    an empty spec
        nothing
    "#);
}

#[test]
fn koordinator_scheduler_plugins_kube_batch_and_kai() {
    let koordinator = [
        (
            "a PodGroup",
            "{spec: {minMember: 3, scheduleTimeoutSeconds: 120, minResources: {cpu: 3}}}",
        ),
        (
            "annotations win",
            "{metadata: {annotations: {gang.scheduling.koordinator.sh/min-available: '2', gang.scheduling.koordinator.sh/total-number: '4', gang.scheduling.koordinator.sh/waiting-time: 1m30s}}, spec: {minMember: 3, scheduleTimeoutSeconds: 9}}",
        ),
        (
            "gathered",
            r#"{metadata: {annotations: {gang.scheduling.koordinator.sh/network-topology-spec: '{"gatherStrategy":[{"layer":"spine","strategy":"MustGather"},{"layer":"leaf","strategy":"PreferGather"}]}'}}, spec: {minMember: 3}}"#,
        ),
        (
            "gathered in no JSON",
            "{metadata: {annotations: {gang.scheduling.koordinator.sh/network-topology-spec: spine}}, spec: {}}",
        ),
        (
            "a bad duration",
            "{metadata: {annotations: {gang.scheduling.koordinator.sh/waiting-time: soon}}, spec: {}}",
        ),
        (
            "gangs that start together",
            r#"{metadata: {annotations: {gang.scheduling.koordinator.sh/groups: '["ns/a", "ns/b"]'}}, spec: {}}"#,
        ),
        (
            "together with no list",
            "{metadata: {annotations: {gang.scheduling.koordinator.sh/groups: ns/a}}, spec: {}}",
        ),
        (
            "together with what is no name",
            r#"{metadata: {annotations: {gang.scheduling.koordinator.sh/groups: '["ns/a", "ns/b/c"]'}}, spec: {}}"#,
        ),
        (
            "Go's fractions",
            "{metadata: {annotations: {gang.scheduling.koordinator.sh/waiting-time: 1.5h}}, spec: {}}",
        ),
    ];
    insta::assert_snapshot!(table(&koordinator, read(Dialect::Koordinator)), @r#"
    a PodGroup
        min=3 min_resources={"amounts":{"cpu":3000},"gpus":{}}
    annotations win
        min=2 total=4
    gathered
        min=3 preferred={"Key":"leaf"} required={"Key":"spine"}
    gathered in no JSON
        ! metadata.annotations[gang.scheduling.koordinator.sh/network-topology-spec]: is not JSON: expected value at line 1 column 1
    a bad duration
        ! metadata.annotations[gang.scheduling.koordinator.sh/waiting-time]: `soon` is not a duration such as 90s or 1h30m
    gangs that start together
        merged_with=["ns/a","ns/b"]
    together with no list
        ! metadata.annotations[gang.scheduling.koordinator.sh/groups]: is not a JSON list of names: expected ident at line 1 column 2
    together with what is no name
        ! metadata.annotations[gang.scheduling.koordinator.sh/groups]: `ns/b/c` is not a name such as namespace/name
    Go's fractions
        nothing
    "#);
    let plugins = [
        (
            "as MPI makes it",
            "{spec: {minMember: 5, minResources: {cpu: 5}, scheduleTimeoutSeconds: 60}}",
        ),
        ("a timeout below zero", "{spec: {minMember: 5, scheduleTimeoutSeconds: -1}}"),
    ];
    insta::assert_snapshot!(table(&plugins, read(Dialect::SchedulerPlugins)), @r#"
    as MPI makes it
        min=5 min_resources={"amounts":{"cpu":5000},"gpus":{}}
    a timeout below zero
        ! spec.scheduleTimeoutSeconds: must be a whole number in range, not -1
    "#);
    let batch = [("either group", "{spec: {minMember: 5, queue: q, priorityClassName: p}}")];
    insta::assert_snapshot!(table(&batch, read(Dialect::KubeBatch)), @r#"
    either group
        min=5 priority_class="p" queue="q"
    "#);
    let kai = [
        (
            "a flat group",
            "{spec: {minMember: 5, queue: q, preemptibility: non-preemptible, topologyConstraint: {topology: t, requiredTopologyLevel: rack, preferredTopologyLevel: nvlink}}}",
        ),
        (
            "groups inside",
            "{spec: {minSubGroup: 2, subGroups: [{name: lead, minMember: 1}, {name: work, minMember: 4}, {name: both, minSubGroup: 2}]}}",
        ),
        ("an unknown word", "{spec: {preemptibility: sometimes}}"),
    ];
    insta::assert_snapshot!(table(&kai, read(Dialect::Kai)), @r#"
    a flat group
        min=5 preemptible=false preferred={"Key":"nvlink"} queue="q" required={"Key":"rack"}
    groups inside
        min_by_role=[["lead",1],["work",4]]
    an unknown word
        ! spec.preemptibility: `sometimes` is neither preemptible nor non-preemptible
    "#);
    let muster = [(
        "a Gang",
        "{spec: {queue: q, priority: 5, topology: {required: rack}, disruption: {preemptible: false}, roles: [{name: a, min: 2}, {name: b, min: 1}]}}",
    )];
    insta::assert_snapshot!(table(&muster, read(Dialect::Muster)), @r#"
    a Gang
        min_by_role=[["a",2],["b",1]] preemptible=false priority=5 queue="q" required={"Key":"rack"}
    "#);
}

#[test]
fn terms_declared_by_a_pod_itself() {
    let of = |dialect| {
        move |pod: &Value| {
            or_findings(
                pod_terms(dialect, &texts(pod, "labels"), &texts(pod, "annotations"))
                    .map(|terms| line(&terms)),
            )
        }
    };
    let muster = [
        (
            "no Gang object",
            "{metadata: {annotations: {muster.sh/gang-size: '8', muster.sh/topology-required: rack}, labels: {muster.sh/queue: q}}}",
        ),
        ("a size in words", "{metadata: {annotations: {muster.sh/gang-size: eight}}}"),
    ];
    insta::assert_snapshot!(table(&muster, of(Dialect::Muster)), @r#"
    no Gang object
        min=8 queue="q" required={"Key":"rack"}
    a size in words
        ! metadata.annotations[muster.sh/gang-size]: must be a whole number from 0 to 1000000, not `eight`
    "#);
    let koordinator = [
        (
            "annotations alone",
            "{metadata: {annotations: {gang.scheduling.koordinator.sh/min-available: '2'}, labels: {quota.scheduling.koordinator.sh/name: q}}}",
        ),
        (
            "the label of old",
            "{metadata: {labels: {pod-group.scheduling.sigs.k8s.io/min-available: '2'}}}",
        ),
    ];
    insta::assert_snapshot!(table(&koordinator, of(Dialect::Koordinator)), @r#"
    annotations alone
        min=2 queue="q"
    the label of old
        min=2
    "#);
    let others = "{metadata: {annotations: {scheduling.k8s.io/group-min-member: '3', kai.scheduler/batch-min-member: '4', scheduling.volcano.sh/group-min-member: '5'}}}";
    for (dialect, min) in [
        (Dialect::KubeBatch, Some(3)),
        (Dialect::Kai, Some(4)),
        (Dialect::Volcano, Some(5)),
        (Dialect::Native, None),
    ] {
        let pod = yaml(others);
        let terms =
            pod_terms(dialect, &texts(&pod, "labels"), &texts(&pod, "annotations")).unwrap();
        assert_eq!(terms.min, min, "{dialect:?}");
    }
}

#[test]
fn terms_over_terms() {
    let low =
        Terms { min: Some(1), queue: Some("a".into()), never_preempts: true, ..Terms::default() };
    let high = Terms { min: Some(2), total: Some(3), ..Terms::default() };
    let both = high.over(low);
    assert_eq!(
        (both.min, both.queue.as_deref(), both.total, both.never_preempts),
        (Some(2), Some("a"), Some(3), true)
    );
}

#[test]
fn every_dialect_has_its_kinds() {
    let mut lines = String::new();
    for dialect in Dialect::ALL {
        for kind in kinds(dialect) {
            lines.push_str(&format!(
                "{dialect:?}: {} {} {} {}\n",
                kind.group,
                kind.versions.join(","),
                kind.kind,
                kind.plural
            ));
        }
    }
    insta::assert_snapshot!(lines, @"
    Muster: muster.sh v1alpha1 Gang gangs
    Native: scheduling.k8s.io v1beta1,v1alpha3,v1alpha2 PodGroup podgroups
    Workload: scheduling.k8s.io v1alpha1 Workload workloads
    SchedulerPlugins: scheduling.x-k8s.io v1alpha1 PodGroup podgroups
    Koordinator: scheduling.sigs.k8s.io v1alpha1 PodGroup podgroups
    Volcano: scheduling.volcano.sh v1beta1 PodGroup podgroups
    KubeBatch: scheduling.sigs.dev v1alpha2 PodGroup podgroups
    KubeBatch: scheduling.incubator.k8s.io v1alpha1 PodGroup podgroups
    Kai: scheduling.run.ai v2alpha2 PodGroup podgroups
    ");
    assert!(QUEUES.iter().all(|kind| !kind.namespaced));
}

#[test]
fn queues() {
    let cases = [
        (
            "of volcano",
            "{spec: {parent: root, weight: 3, guarantee: {resource: {nvidia.com/gpu: 8}}, deserved: {nvidia.com/gpu: 16}, capability: {cpu: 100}, reclaimable: false}, status: {state: Open}}",
        ),
        (
            "of kai",
            "{spec: {parentQueue: department, resources: {gpu: {quota: 7.5, overQuotaWeight: 2, limit: -1}, cpu: {quota: -1, limit: 4000}, memory: {quota: 64000}}}}",
        ),
        ("closed", "{spec: {weight: 1}, status: {state: Closing}}"),
        ("says nothing", "{}"),
        ("a bad weight", "{spec: {weight: heavy, capability: {cpu: x}}}"),
    ];
    let line = |object: &Value| {
        or_findings(
            queue(object, &GpuNames::default()).map(|queue| serde_json::to_string(&queue).unwrap()),
        )
    };
    insta::assert_snapshot!(table(&cases, line), @r#"
    of volcano
        {"parent":"root","weight":3,"guaranteed":{"amounts":{},"gpus":{"nvidia.com/gpu":8000}},"deserved":{"amounts":{},"gpus":{"nvidia.com/gpu":16000}},"limit":{"amounts":{"cpu":100000},"gpus":{}},"reclaimable":false,"closed":false}
    of kai
        {"parent":"department","weight":2,"guaranteed":null,"deserved":{"amounts":{"memory":64000000000},"gpus":{"nvidia.com/gpu":7500}},"limit":{"amounts":{"cpu":4000},"gpus":{}},"reclaimable":null,"closed":false}
    closed
        {"parent":null,"weight":1,"guaranteed":null,"deserved":null,"limit":null,"reclaimable":null,"closed":true}
    says nothing
        {"parent":null,"weight":null,"guaranteed":null,"deserved":null,"limit":null,"reclaimable":null,"closed":false}
    a bad weight
        ! spec.weight: must be a whole number from 0 to 1000000, not "heavy"
        ! spec.capability.cpu: `x` is not a quantity: write a number with an optional suffix m, k, M, G, T, Ki, Mi, Gi or Ti, such as 8, 500m or 80Gi
    "#);
}

#[test]
fn native_group_gives_its_preemption_policy() {
    for (declared, never_preempts) in [
        ("", false),
        (", preemptionPolicy: PreemptLowerPriority", false),
        (", preemptionPolicy: Never", true),
    ] {
        let object =
            yaml(&format!("{{spec: {{schedulingPolicy: {{gang: {{minCount: 2}}}}{declared}}}}}"));
        let terms =
            terms(Dialect::Native, &object, &GpuNames::default()).expect("it is understood");
        assert_eq!(
            (terms.never_preempts, terms.ignored),
            (never_preempts, Vec::new()),
            "{declared}"
        );
    }
}

#[test]
fn unsupported_and_ignored_settings_are_reported() {
    let gpus = GpuNames::default();
    let read = |dialect, spec: &str, marks: &str| {
        let object = yaml(&format!("{{metadata: {{annotations: {{{marks}}}}}, spec: {{{spec}}}}}"));
        let terms = terms(dialect, &object, &gpus).expect("it is understood");
        let reported = terms.unsupported.iter().map(|one| format!("waits: {one}"));
        reported
            .chain(terms.ignored.iter().map(|one| format!("ignored: {one}")))
            .collect::<Vec<_>>()
    };
    let native = "schedulingPolicy: {gang: {minCount: 2}}";
    let composite = format!("{native}, parentCompositePodGroupName: tree");
    assert_eq!(
        read(Dialect::Native, &composite, ""),
        ["waits: it is part of the composite group tree, which is not supported"]
    );
    assert!(read(Dialect::Native, native, "").is_empty());
    assert_eq!(
        read(Dialect::Volcano, "minMember: 4, subGroupPolicy: [{name: tp, subGroupSize: 2}]", ""),
        ["waits: it has subgroups (`subGroupPolicy`), which are not supported"]
    );
    let koordinator = |name: &str, value: &str| {
        read(Dialect::Koordinator, "minMember: 2", &format!("{name}: {value}"))
    };
    let of = "gang.scheduling.koordinator.sh";
    assert_eq!(
        koordinator(&format!("{of}/mode"), "NonStrict"),
        ["ignored: `mode: NonStrict`: its members start together nevertheless"]
    );
    assert_eq!(
        koordinator(&format!("{of}/match-policy"), "only-waiting"),
        ["ignored: `match-policy: only-waiting`: members created later join those that run"]
    );
    assert!(koordinator(&format!("{of}/match-policy"), "once-satisfied").is_empty());
    assert!(koordinator(&format!("{of}/mode"), "Strict").is_empty());
}
