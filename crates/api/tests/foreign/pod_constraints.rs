//! The scheduling constraints of a pod.

use muster_api::pod::PodSpec;
use serde_json::Value;

use crate::{constraints_line, or_findings, table};

fn constraints(spec: &Value) -> String {
    let read = PodSpec::read(spec, "spec").and_then(|spec| spec.constraints());
    or_findings(read.map(|constraints| constraints_line(&constraints)))
}

#[test]
fn selectors_and_affinity() {
    let required = |terms: &str| {
        format!(
            "{{affinity: {{nodeAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: {{nodeSelectorTerms: {terms}}}}}}}}}"
        )
    };
    let cases = [
        ("nothing", "{}".to_owned()),
        ("a node selector", "{nodeSelector: {zone: a, 'kubernetes.io/arch': arm64}}".into()),
        ("every operator", required("[{matchExpressions: [{key: a, operator: In, values: [x, y]}, {key: b, operator: NotIn, values: [z]}, {key: c, operator: Exists}, {key: d, operator: DoesNotExist}, {key: e, operator: Gt, values: ['4']}, {key: f, operator: Lt, values: ['-2']}]}]")),
        ("one of two terms", required("[{matchExpressions: [{key: a, operator: Exists}]}, {matchExpressions: [{key: b, operator: Exists}]}]")),
        ("no terms match nothing", required("[]")),
        ("null terms match nothing", required("null")),
        ("an empty term matches nothing", required("[{}]")),
        ("an empty term beside another adds nothing", required("[{}, {matchExpressions: [{key: b, operator: Exists}]}]")),
        ("a node by name", required("[{matchFields: [{key: metadata.name, operator: In, values: [node-7]}]}]")),
        ("any node but one", required("[{matchFields: [{key: metadata.name, operator: NotIn, values: [node-7]}], matchExpressions: [{key: a, operator: Exists}]}]")),
        ("wishes", "{affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 7, preference: {matchExpressions: [{key: a, operator: Exists}]}}, {weight: 1, preference: {}}, {weight: 0, preference: {matchExpressions: [{key: b, operator: Exists}]}}]}}}".into()),
        ("In without values", required("[{matchExpressions: [{key: a, operator: In}]}]")),
        ("Exists with values", required("[{matchExpressions: [{key: a, operator: Exists, values: [x]}]}]")),
        ("Gt of a word", required("[{matchExpressions: [{key: a, operator: Gt, values: [ten]}]}]")),
        ("an unknown operator", required("[{matchExpressions: [{key: a, operator: Like, values: [x]}]}]")),
        ("another field", required("[{matchFields: [{key: spec.unschedulable, operator: In, values: ['true']}]}]")),
        ("two names", required("[{matchFields: [{key: metadata.name, operator: In, values: [a, b]}]}]")),
        ("a weight of 101", "{affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 101, preference: {matchExpressions: [{key: a, operator: Exists}]}}]}}}".into()),
        ("affinity of the wrong type", "{affinity: near}".into()),
    ];
    let cases: Vec<(&str, &str)> =
        cases.iter().map(|(name, text)| (*name, text.as_str())).collect();
    insta::assert_snapshot!(table(&cases, constraints), @r#"
    nothing
        anywhere
    a node selector
        all(kubernetes.io/arch in arm64 & zone in a)
    every operator
        any(a in x|y & b not in z & c & no d & e>4 & f<-2)
    one of two terms
        any(a / b)
    no terms match nothing
        any(muster.sh/nowhere in )
    null terms match nothing
        any(muster.sh/nowhere in )
    an empty term matches nothing
        any(muster.sh/nowhere in )
    an empty term beside another adds nothing
        any(b)
    a node by name
        any(kubernetes.io/hostname in node-7)
    any node but one
        any(a & kubernetes.io/hostname not in node-7)
    wishes
        prefer 7(a)
    In without values
        ! affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0]: the operator `In` needs at least one value
    Exists with values
        ! affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0]: the operator `Exists` takes no values
    Gt of a word
        ! affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0]: the operator `Gt` takes one whole number in quotes
    an unknown operator
        ! affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0]: the operator `Like` is none of In, NotIn, Exists, DoesNotExist, Gt and Lt
    another field
        ! affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields[0]: `spec.unschedulable` cannot be matched, only `metadata.name`
    two names
        ! affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields[0]: needs exactly one value
    a weight of 101
        ! affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: must be 1 to 100, not 101
    affinity of the wrong type
        ! spec.affinity: invalid type: string "near", expected a mapping
    "#);
}

#[test]
fn tolerations() {
    let cases = [
        ("Equal is the default", "{tolerations: [{key: gpu, value: h100, effect: NoSchedule}]}"),
        ("Equal to nothing", "{tolerations: [{key: gpu, operator: Equal}]}"),
        ("Exists", "{tolerations: [{key: nvidia.com/gpu, operator: Exists}]}"),
        ("Exists without a key tolerates everything", "{tolerations: [{operator: Exists}]}"),
        (
            "every key of one effect",
            "{tolerations: [{operator: Exists, effect: NoExecute, tolerationSeconds: 300}]}",
        ),
        ("Equal without a key", "{tolerations: [{value: x}]}"),
        ("Exists with a value", "{tolerations: [{key: a, operator: Exists, value: x}]}"),
        ("an unknown effect", "{tolerations: [{key: a, effect: NoThanks}]}"),
        ("an unsupported operator", "{tolerations: [{key: a, operator: Gt, value: '5'}]}"),
    ];
    insta::assert_snapshot!(table(&cases, constraints), @"
    Equal is the default
        tolerates gpu=h100:NoSchedule
    Equal to nothing
        tolerates gpu=:*
    Exists
        tolerates nvidia.com/gpu=*:*
    Exists without a key tolerates everything
        tolerates *=*:*
    every key of one effect
        tolerates *=*:NoExecute
    Equal without a key
        ! tolerations[0].key: is missing; only `Exists` tolerates every key
    Exists with a value
        ! tolerations[0].value: must be left out with `Exists`
    an unknown effect
        ! tolerations[0].effect: `NoThanks` is none of NoSchedule, PreferNoSchedule and NoExecute
    an unsupported operator
        ! tolerations[0].operator: `Gt` is neither Equal nor Exists, and nothing else is acted on
    ");
}

/// A selector that matches nothing in Kubernetes matches no node in core either.
#[test]
fn selector_that_matches_nothing_matches_no_node() {
    let spec = crate::yaml(
        "{affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{}]}}}}",
    );
    let constraints = PodSpec::read(&spec, "spec").unwrap().constraints().unwrap();
    let requirement = &constraints.any[0][0];
    for value in [None, Some(""), Some("x")] {
        assert!(!requirement.holds(value), "{value:?}");
    }
}
