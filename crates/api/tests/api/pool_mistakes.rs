//! Errors in pools.

use crate::mistakes::check;

/// A pool with one valid offering and these further fields of its spec, on line 6.
fn check_pool(cases: &[(&str, &[&str])]) {
    for (fields, expected) in cases {
        let text = format!(
            "kind: Pool\nmetadata: {{name: p}}\nspec:\n  tier: spot\n  offerings: [{{instanceType: m, zone: z, allocatable: {{cpu: 1}}}}]\n{fields}\n"
        );
        check(&[(&text, expected)]);
    }
}

/// A pool with one offering of these fields, on line 6.
fn check_offering(cases: &[(&str, &[&str])]) {
    for (fields, expected) in cases {
        let text = format!(
            "kind: Pool\nmetadata: {{name: p}}\nspec:\n  tier: spot\n  offerings:\n  - {{instanceType: m, zone: z, {fields}}}\n"
        );
        check(&[(&text, expected)]);
    }
}

#[test]
fn pools() {
    check_pool(&[
        ("  provider: simulated", &["6:13: spec.provider: must be a mapping, not `simulated`"]),
        (
            "  provider: {simulatd: {}}",
            &["6:14: spec.provider.simulatd: unknown provider; did you mean `simulated`?"],
        ),
        (
            "  provider: {local: {}, simulated: {}}",
            &[
                "6:3: spec.provider: must have exactly one of `simulated`, `karpenter`, `provisioningRequest`, `local`",
            ],
        ),
        ("  provider: {local: {gpus: 1}}", &["6:22: spec.provider.local.gpus: unknown field"]),
        (
            "  provider: {karpenter: {nodeClassRef: {group: g, kind: k}}}",
            &["6:26: spec.provider.karpenter.nodeClassRef.name: is missing"],
        ),
        (
            "  provider: {karpenter: {nodeClassRef: {group: g, kind: k, name: n}, resourcesNotRequested: [rdma/]}}",
            &[
                "6:94: spec.provider.karpenter.resourcesNotRequested[0]: `rdma/` must be letters, digits, `-`, `_` and `.`, at most 63 long, with an optional `domain/` before it",
            ],
        ),
        (
            "  provider: {provisioningRequest: {className: gang.muster.sh}}",
            &[
                "6:47: spec.provider.provisioningRequest.className: is the class that Muster itself serves: it would ask itself",
            ],
        ),
        (
            "  provider: {provisioningRequest: {className: Big, parameters: {a: 1}}}",
            &[
                "6:47: spec.provider.provisioningRequest.className: `Big` must be lower-case letters, digits, `-` and `.`, begin and end with a letter or digit, and be at most 253 long",
                "6:68: spec.provider.provisioningRequest.parameters.a: must be text, and YAML reads `1` as a number: write \"1\"",
            ],
        ),
        (
            "  provider: {provisioningRequest: {classname: a}}",
            &[
                "6:36: spec.provider.provisioningRequest.classname: unknown field; did you mean `className`?",
            ],
        ),
        (
            "  provider: {simulated: {failures: {bootFailed: 1.5}}}",
            &["6:49: spec.provider.simulated.failures.bootFailed: must be from 0 to 1, not 1.5"],
        ),
        (
            "  provider: {simulated: {failures: {gpusMissing: -0.1}}}",
            &["6:50: spec.provider.simulated.failures.gpusMissing: must be from 0 to 1, not -0.1"],
        ),
        (
            "  provider: {simulated: {boot: {sigma: .nan}}}",
            &["6:40: spec.provider.simulated.boot.sigma: must be a finite number, not `.nan`"],
        ),
        (
            "  provider: {simulated: {boot: {lunch: 1m}}}",
            &["6:33: spec.provider.simulated.boot.lunch: unknown field; did you mean `launch`?"],
        ),
        (
            "  provider: {simulated: {stockOut: {meanUp: 0}}}",
            &["6:45: spec.provider.simulated.stockOut.meanUp: must be longer than 0"],
        ),
        (
            "  provider: {simulated: {script: [{zone: z, claim: 0, fails: Fire}]}}",
            &[
                "6:52: spec.provider.simulated.script[0].claim: must be at least 1, not 0",
                "6:62: spec.provider.simulated.script[0].fails: `Fire` is none of `StockOut`, `BootFailed`, `GpusMissing`",
            ],
        ),
        (
            "  provider: {simulated: {script: [{zone: y, claim: 1, fails: StockOut}]}}",
            &["6:35: spec.provider.simulated.script[0]: no offering is in zone `y`"],
        ),
        (
            "  buyForGrowth: sometimes",
            &["6:17: spec.buyForGrowth: must be true or false, not `sometimes`"],
        ),
        ("  grow: true", &["6:3: spec.grow: unknown field"]),
        (
            "  limits: {nodes: -1, gpus: x, hourlySpend: -5}",
            &[
                "6:19: spec.limits.nodes: must be at least 0, not -1",
                "6:29: spec.limits.gpus: must be a whole number, not `x`",
                "6:45: spec.limits.hourlySpend: must be at least 0, not -5",
            ],
        ),
        (
            "  idleAfter: ten",
            &[
                "6:14: spec.idleAfter: `ten` is not a duration: write numbers with units w, d, h, m, s or ms, such as 90s, 15m or 1h30m",
            ],
        ),
        ("  warm: {nodes: -4}", &["6:17: spec.warm.nodes: must be at least 0, not -4"]),
        (
            "  buffer: {percent: 150}",
            &["6:21: spec.buffer.percent: must be from 0 to 100, not 150"],
        ),
        (
            "  forecast: {serviceLevel: 95}",
            &["6:28: spec.forecast.serviceLevel: must be from 0 to 1, not 95"],
        ),
        (
            "  consolidate: Always",
            &["6:16: spec.consolidate: `Always` is none of `Never`, `WhenEmpty`, `WhenUnderused`"],
        ),
        (
            "  schedules: [{cron: daily, timezone: Mars/Phobos, duration: 0, nodes: 0}]",
            &[
                "6:22: spec.schedules[0].cron: `daily` is not a schedule: write minute, hour, day, month and weekday, such as `0 8 * * 1-5`",
                "6:39: spec.schedules[0].timezone: `Mars/Phobos` is not a time zone: write one such as `Europe/Berlin` or `UTC`",
                "6:62: spec.schedules[0].duration: must be longer than 0",
                "6:72: spec.schedules[0].nodes: must be at least 1, not 0",
            ],
        ),
    ]);
    check(&[
        (
            "kind: Pool\nmetadata: {name: p}\nspec: {tier: spot, offerings: []}\n",
            &["3:20: spec.offerings: must name at least one offering"],
        ),
        (
            "kind: Pool\nmetadata: {name: p}\nspec: {}\n",
            &["3:1: spec.tier: is missing", "3:1: spec.offerings: is missing"],
        ),
    ]);
}

#[test]
fn offerings() {
    check_offering(&[
        (
            "allocatable: {cpu: 1}, price: -3",
            &["6:62: spec.offerings[0].price: must be at least 0, not -3"],
        ),
        (
            "allocatable: {cpu: 1}, price: .nan",
            &["6:62: spec.offerings[0].price: must be a finite number, not `.nan`"],
        ),
        (
            "allocatable: {cpu: 1}, price: cheap",
            &["6:62: spec.offerings[0].price: must be a number, not `cheap`"],
        ),
        (
            "allocatable: {cpu: 1}, price: 1e300",
            &["6:62: spec.offerings[0].price: is too large an amount"],
        ),
        (
            "allocatable: {cpu: 1}, max: 0",
            &["6:60: spec.offerings[0].max: must be at least 1, not 0"],
        ),
        ("gpu: {model: H100, count: 8}", &["6:5: spec.offerings[0].allocatable: is missing"]),
        (
            "allocatable: {cpu: 1}, gpu: {model: H100, count: 65}",
            &["6:81: spec.offerings[0].gpu.count: must be at most 64, not 65"],
        ),
        (
            "allocatable: {cpu: 1}, gpu: {model: H100}",
            &["6:55: spec.offerings[0].gpu.count: is missing"],
        ),
        (
            "allocatable: {cpu: 1}, gpu: {count: 8, resource: nvidia}",
            &[
                "6:81: spec.offerings[0].gpu.resource: `nvidia` must be the name of a GPU resource, such as `nvidia.com/gpu`",
            ],
        ),
        (
            "allocatable: {nvidia.com/gpu: 4}, gpu: {count: 8}",
            &[
                "6:62: spec.offerings[0].allocatable[nvidia.com/gpu]: does not agree with `gpu`: leave one of the two out",
            ],
        ),
        (
            "allocatable: {nvidia.com/gpu: 500m}",
            &[
                "6:62: spec.offerings[0].allocatable[nvidia.com/gpu]: must be a whole number of GPUs, at most 64",
            ],
        ),
        (
            "allocatable: {cpu: 1}, taints: [{key: k}]",
            &["6:64: spec.offerings[0].taints[0].effect: is missing"],
        ),
        (
            "allocatable: {cpu: 1}, instancetype: x",
            &["6:55: spec.offerings[0].instancetype: unknown field; did you mean `instanceType`?"],
        ),
    ]);
}

#[test]
fn offering_listed_twice_is_reported() {
    let offering = "allocatable: {cpu: 1}}\n  - {instanceType: m, zone: z";
    check_offering(&[
        (
            &format!("{offering}, price: 2, allocatable: {{cpu: 2}}"),
            &[
                "7:5: spec.offerings[1]: is of the same instance type, zone and capacity type as offerings[0]",
            ],
        ),
        // With another capacity type it is another offering.
        (&format!("{offering}, capacityType: reserved, allocatable: {{cpu: 1}}"), &[]),
    ]);
}
