//! Errors in gangs.

use crate::mistakes::check;

/// A gang with one role of these fields; the fields begin on line 6.
fn check_role(cases: &[(&str, &[&str])]) {
    for (fields, expected) in cases {
        let text =
            format!("kind: Gang\nmetadata: {{name: g}}\nspec:\n  roles:\n  - name: r\n{fields}\n");
        check(&[(&text, expected)]);
    }
}

/// A gang with one valid role and these further fields of its spec, on line 5.
pub(crate) fn check_gang(cases: &[(&str, &[&str])]) {
    for (fields, expected) in cases {
        let text = format!(
            "kind: Gang\nmetadata: {{name: g}}\nspec:\n  roles: [{{name: r, min: 1}}]\n{fields}\n"
        );
        check(&[(&text, expected)]);
    }
}

#[test]
fn members() {
    check_role(&[
        ("    min: -3", &["6:10: spec.roles[0].min: must be at least 1, not -3"]),
        ("    min: 0", &["6:10: spec.roles[0].min: must be at least 1, not 0"]),
        ("    min: 1.5", &["6:10: spec.roles[0].min: must be a whole number, not `1.5`"]),
        (
            "    min: \"4\"",
            &["6:10: spec.roles[0].min: must be a whole number, not the text \"4\""],
        ),
        ("    min: many", &["6:10: spec.roles[0].min: must be a whole number, not `many`"]),
        (
            "    min: 99999999999999999999",
            &["6:10: spec.roles[0].min: must be at most 1000000, not 99999999999999999999"],
        ),
        ("    min:", &["6:5: spec.roles[0].min: is missing"]),
        ("    max: 4", &["5:5: spec.roles[0].min: is missing"]),
        ("    min: 8\n    max: 4", &["6:10: spec.roles[0].min: min 8 is above max 4"]),
        ("    min: 1\n    max: -1", &["7:10: spec.roles[0].max: must be at least 1, not -1"]),
        ("    min: 1\n    mxa: 2", &["7:5: spec.roles[0].mxa: unknown field; did you mean `max`?"]),
        (
            "    min: 1\n  - name: r\n    min: 1",
            &["7:11: spec.roles[1].name: `r` is already the name of roles[0]"],
        ),
        ("    min: 1\n  - min: 1", &["7:5: spec.roles[1].name: is missing"]),
        ("    min: 1\n  - worker", &["7:5: spec.roles[1]: must be a mapping, not `worker`"]),
    ]);
    check(&[
        ("kind: Gang\nmetadata: {name: g}\nspec: {}\n", &["3:1: spec.roles: is missing"]),
        (
            "kind: Gang\nmetadata: {name: g}\nspec:\n  roles: []\n",
            &["4:3: spec.roles: must name at least one role"],
        ),
        (
            "kind: Gang\nmetadata: {name: g}\nspec:\n  roles: {}\n",
            &["4:3: spec.roles: must be a list, not a mapping"],
        ),
    ]);
}

#[test]
fn resources() {
    check_role(&[
        (
            "    min: 1\n    resources: {cpu: 8cores}",
            &[
                "7:22: spec.roles[0].resources.cpu: `8cores` is not a quantity: write a number with an optional suffix m, k, M, G, T, Ki, Mi, Gi or Ti, such as 8, 500m or 80Gi",
            ],
        ),
        (
            "    min: 1\n    resources: {memory: -1Gi}",
            &["7:25: spec.roles[0].resources.memory: must not be negative, and is -1Gi"],
        ),
        (
            "    min: 1\n    resources: {memory: 2Ei}",
            &["7:25: spec.roles[0].resources.memory: is too large"],
        ),
        (
            "    min: 1000000\n    resources: {memory: 100Ti}",
            &[
                "7:5: spec.roles[0].resources: 1000000 members together request too much `memory` to count",
            ],
        ),
        (
            "    min: 1\n    resources: {requests: {cpu: 1}}",
            &[
                "7:17: spec.roles[0].resources.requests: must be a quantity such as 8, 500m or 80Gi, not a mapping",
            ],
        ),
        (
            "    min: 1\n    resources: {my gpu: 1}",
            &[
                "7:25: spec.roles[0].resources[my gpu]: a resource name must be letters, digits, `-`, `_` and `.`, at most 63 long, with an optional `domain/` before it",
            ],
        ),
        (
            "    min: 1\n    resources: {nvidia.com/gpu: 1500m}",
            &[
                "7:33: spec.roles[0].resources[nvidia.com/gpu]: must be a whole number of GPUs, or a part of one such as 500m",
            ],
        ),
        (
            "    min: 1\n    resources: {nvidia.com/gpu: 500u}",
            &[
                "7:33: spec.roles[0].resources[nvidia.com/gpu]: a GPU is divided into thousandths: write 500m or 0.5",
            ],
        ),
        (
            "    min: 1\n    resources: {nvidia.com/gpu: 100k}",
            &["7:33: spec.roles[0].resources[nvidia.com/gpu]: must be at most 65535"],
        ),
        (
            "    min: 1\n    resources: {nvidia.com/gpu: 1, amd.com/gpu: 1}",
            &["7:49: spec.roles[0].resources[amd.com/gpu]: a role asks for one kind of GPU only"],
        ),
        (
            "    min: 1\n    resources: {nvidia.com/gpu: 1}\n    gpu: {model: [H100]}",
            &["8:11: spec.roles[0].gpu.model: unknown field; did you mean `models`?"],
        ),
        (
            "    min: 1\n    resources: {nvidia.com/gpu: 1}\n    gpu: {models: H100, memory: 80GB}",
            &[
                "8:19: spec.roles[0].gpu.models: must be a list, not `H100`",
                "8:33: spec.roles[0].gpu.memory: `80GB` is not a quantity: write a number with an optional suffix m, k, M, G, T, Ki, Mi, Gi or Ti, such as 8, 500m or 80Gi",
            ],
        ),
    ]);
}

#[test]
fn constraints() {
    let affinity = |terms: &str| {
        format!(
            "    min: 1\n    affinity:\n      nodeAffinity:\n        requiredDuringSchedulingIgnoredDuringExecution:\n          nodeSelectorTerms: {terms}"
        )
    };
    let path = "spec.roles[0].affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";
    for (terms, place, rest) in [
        ("[]", "10:11", ": must name at least one term"),
        ("[{}]", "10:31", "[0].matchExpressions: is missing"),
        (
            "[{matchExpressions: []}]",
            "10:32",
            "[0].matchExpressions: must name at least one expression",
        ),
        (
            "[{matchExpressions: [{key: k, operator: Has}]}]",
            "10:70",
            "[0].matchExpressions[0].operator: `Has` is none of `In`, `NotIn`, `Exists`, `DoesNotExist`, `Gt`, `Lt`",
        ),
        (
            "[{matchExpressions: [{key: k, operator: In}]}]",
            "10:51",
            "[0].matchExpressions[0].values: is missing",
        ),
        (
            "[{matchExpressions: [{key: k, operator: Exists, values: [a]}]}]",
            "10:78",
            "[0].matchExpressions[0].values: must be left out with `Exists` and `DoesNotExist`",
        ),
        (
            "[{matchExpressions: [{key: k, operator: Gt, values: [a]}]}]",
            "10:74",
            "[0].matchExpressions[0].values: must be one whole number in quotes, with `Gt` and `Lt`",
        ),
    ] {
        check_role(&[(&affinity(terms), &[&format!("{place}: {path}{rest}")])]);
    }
    check_role(&[
        (
            "    min: 1\n    nodeSelector: {a: 1}",
            &[
                "7:23: spec.roles[0].nodeSelector.a: must be text, and YAML reads `1` as a number: write \"1\"",
            ],
        ),
        (
            "    min: 1\n    nodeSelector: {a: true}",
            &[
                "7:23: spec.roles[0].nodeSelector.a: must be text, and YAML reads `true` as a boolean: write \"true\"",
            ],
        ),
        (
            "    min: 1\n    tolerations: [{value: x}]",
            &[
                "7:19: spec.roles[0].tolerations[0]: needs a `key`, or the operator `Exists` to tolerate every taint",
            ],
        ),
        (
            "    min: 1\n    tolerations: [{key: k, operator: Exists, value: x}]",
            &[
                "7:53: spec.roles[0].tolerations[0].value: must be left out with the operator `Exists`",
            ],
        ),
        (
            "    min: 1\n    tolerations: [{key: k, effect: NoScheduling}]",
            &[
                "7:36: spec.roles[0].tolerations[0].effect: `NoScheduling` is none of `NoSchedule`, `PreferNoSchedule`, `NoExecute`; did you mean `NoSchedule`?",
            ],
        ),
        (
            "    min: 1\n    affinity: {podAffinity: {}}",
            &[
                "7:16: spec.roles[0].affinity.podAffinity: unknown field; did you mean `nodeAffinity`?",
            ],
        ),
        (
            "    min: 1\n    affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 0, preference: {matchExpressions: [{key: k, operator: Exists}]}}]}}",
            &[
                "7:90: spec.roles[0].affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: must be at least 1, not 0",
            ],
        ),
    ]);
}

#[test]
fn gangs() {
    check_gang(&[
        ("  queue: reserch", &["5:10: spec.queue: there is no Queue named `reserch`"]),
        (
            "  queue: defualt",
            &["5:10: spec.queue: there is no Queue named `defualt`; did you mean `default`?"],
        ),
        (
            "  topology: {required: shelf}",
            &[
                "5:24: spec.topology.required: `shelf` is none of the levels `region`, `zone`, `block`, `rack`, `nvlink`, `node`",
            ],
        ),
        (
            "  topology: {preferred: rakc}",
            &[
                "5:25: spec.topology.preferred: `rakc` is none of the levels `region`, `zone`, `block`, `rack`, `nvlink`, `node`; did you mean `rack`?",
            ],
        ),
        (
            "  topology: {required: rack, preferred: zone}",
            &["5:24: spec.topology.required: give `required` or `preferred`, not both"],
        ),
        ("  topology: {}", &["5:3: spec.topology: must say `required` or `preferred`"]),
        ("  priority: high", &["5:13: spec.priority: must be a whole number, not `high`"]),
        (
            "  priority: 3000000000",
            &["5:13: spec.priority: must be at most 2147483647, not 3000000000"],
        ),
        (
            "  priority: 1\n  priorityClassName: high",
            &["6:22: spec.priorityClassName: give `priorityClassName` or `priority`, not both"],
        ),
        (
            "  provisioning: {mode: Eager}",
            &["5:24: spec.provisioning.mode: `Eager` is none of `Proactive`, `Reactive`, `Never`"],
        ),
        (
            "  provisioning: {timeout: 15}",
            &[
                "5:27: spec.provisioning.timeout: `15` is not a duration: write numbers with units w, d, h, m, s or ms, such as 90s, 15m or 1h30m",
            ],
        ),
        (
            "  provisioning: {timeout: 0}",
            &["5:27: spec.provisioning.timeout: must be longer than 0"],
        ),
        (
            "  provisioning: {attempts: 0}",
            &["5:28: spec.provisioning.attempts: must be at least 1, not 0"],
        ),
        (
            "  provisioning: {onFailure: GiveUp}",
            &["5:29: spec.provisioning.onFailure: `GiveUp` is none of `RollBack`"],
        ),
        (
            "  expectedDuration: soon",
            &[
                "5:21: spec.expectedDuration: `soon` is not a duration: write numbers with units w, d, h, m, s or ms, such as 90s, 15m or 1h30m",
            ],
        ),
        (
            "  deadline: tomorrow",
            &[
                "5:13: spec.deadline: must be a date and time with an offset, such as 2026-12-01T08:00:00Z",
            ],
        ),
        (
            "  deadline: 2026-02-30T08:00:00Z",
            &[
                "5:13: spec.deadline: must be a date and time with an offset, such as 2026-12-01T08:00:00Z",
            ],
        ),
        (
            "  deadline: 2026-12-01T08:00:00",
            &[
                "5:13: spec.deadline: has no offset from UTC: write 2026-12-01T08:00:00Z, or 2026-12-01T08:00:00+01:00 for an hour ahead of it",
            ],
        ),
        (
            "  deadline: 2026",
            &[
                "5:13: spec.deadline: must be text, and YAML reads `2026` as a number: write \"2026\"",
            ],
        ),
        ("  costOfWaiting: dear", &["5:18: spec.costOfWaiting: must be a number, not `dear`"]),
        ("  costOfWaiting: 1e300", &["5:18: spec.costOfWaiting: is too large an amount"]),
        ("  costOfWaiting: -1", &["5:18: spec.costOfWaiting: must be at least 0, not -1"]),
        ("  user: \"\"", &["5:9: spec.user: must not be empty"]),
    ]);
    check_role(&[
        ("    min: 1\n    run: {}", &["7:5: spec.roles[0].run.command: is missing"]),
        (
            "    min: 1\n    run: {command: [sleep, 5]}",
            &[
                "7:28: spec.roles[0].run.command[1]: must be text, and YAML reads `5` as a number: write \"5\"",
            ],
        ),
        (
            "    min: 1\n    run: {command: [x], env: {A: 1}}",
            &[
                "7:34: spec.roles[0].run.env.A: must be text, and YAML reads `1` as a number: write \"1\"",
            ],
        ),
    ]);
    check(&[
        (
            "kind: Gang\nmetadata:\n  name: g\n  annotations:\n    sim.muster.sh/run-time: ten minutes\n    sim.muster.sh/submit-afer: 1m\nspec: {roles: [{name: r, min: 1}]}\n",
            &[
                "5:29: metadata.annotations[sim.muster.sh/run-time]: `ten minutes` is not a duration: write numbers with units w, d, h, m, s or ms, such as 90s, 15m or 1h30m",
                "6:32: metadata.annotations[sim.muster.sh/submit-afer]: unknown annotation of `sim.muster.sh/`; did you mean `sim.muster.sh/submit-after`?",
            ],
        ),
        (
            "{kind: Gang, metadata: {name: g}, spec: {roles: [{name: r, min: 1}]}}\n---\n{kind: Gang, metadata: {name: g}, spec: {roles: [{name: r, min: 1}]}}\n",
            &["3:31: metadata.name: a Gang named `default/g` is already at a.yaml:1"],
        ),
    ]);
}

#[test]
fn gpu_kind_without_a_gpu_request_is_a_warning() {
    let manifests = crate::good(
        "kind: Gang\nmetadata: {name: g}\nspec: {roles: [{name: r, min: 1, gpu: {models: [H100]}}]}\n",
    );
    let warnings: Vec<String> = manifests.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        [
            "a.yaml:3:34: spec.roles[0].gpu: says what GPUs must be like, but `resources` asks for none"
        ]
    );
}

#[test]
fn deadline_without_a_duration_is_a_warning() {
    let warnings = |fields: &str| -> Vec<String> {
        let text = format!(
            "kind: Gang\nmetadata: {{name: g}}\nspec:\n  roles: [{{name: r, min: 1}}]\n{fields}\n"
        );
        crate::good(&text).warnings.iter().map(ToString::to_string).collect()
    };
    assert_eq!(
        warnings("  deadline: 2026-12-01T08:00:00Z"),
        ["a.yaml:5:13: spec.deadline: without `expectedDuration` it is taken to run for one hour"]
    );
    let both = "  deadline: 2026-12-01T08:00:00Z\n  expectedDuration: 4h\n  costOfWaiting: 0.5";
    assert_eq!(warnings(both), [""; 0]);
}
