//! The example of the design page is read into the expected core types.

use muster_api::{Karpenter, NodeClassRef, Provider, RunSpec};
use muster_core::device::{GpuKind, GpuRequest, WHOLE};
use muster_core::gang::{Checkpoint, Closeness, Disruption, ProvisioningMode, Signal};
use muster_core::money::Money;
use muster_core::progress::Scaling;
use muster_core::queue::Quota;
use muster_core::time::{Span, Time};

const GIB: u64 = 1 << 30;

#[test]
fn gang_of_the_design_page() {
    let manifests = crate::good(include_str!("design.yaml"));
    let [gang] = manifests.gangs.as_slice() else { panic!("{:?}", manifests.gangs) };
    assert_eq!(&*gang.spec.name, "research/llama-ddp");
    assert_eq!(&*gang.spec.queue, "research");
    assert_eq!(gang.spec.priority, 100);
    assert_eq!(gang.spec.closeness, Some(Closeness::Required("rack".into())));
    assert_eq!(gang.spec.provisioning.mode, ProvisioningMode::Proactive);
    assert_eq!(gang.spec.provisioning.timeout, Span::mins(15));
    assert_eq!(gang.spec.expected_duration, Some(Span::hours(4)));
    assert_eq!(gang.spec.deadline, Some(Time(1_796_112_000_000)));
    assert_eq!(gang.spec.cost_of_waiting, Money::from_units(40.0));
    assert_eq!((gang.submit_after, gang.run_time), (Span::mins(2), Some(Span::mins(6))));
    let [role] = gang.spec.roles.as_slice() else { panic!("{:?}", gang.spec.roles) };
    assert_eq!((&*role.name, role.min, role.max), ("worker", 8, 16));
    let gpu = GpuRequest { resource: "nvidia.com/gpu".into(), count: 8, share: WHOLE };
    assert_eq!(role.request.gpu, Some(gpu));
    assert_eq!(role.request.amounts["cpu"], 96_000);
    assert_eq!(role.request.amounts["memory"], 1000 * GIB);
    assert_eq!(role.request.amounts.len(), 2);
    assert_eq!(role.constraints.gpu_models, ["H100".into(), "H200".into()]);
    assert_eq!(role.constraints.gpu_memory, 80 * GIB);
    let command = vec!["python".into(), "train.py".into()];
    assert_eq!(
        gang.runs,
        [Some(RunSpec { command, env: [("A".into(), "1".into())].into(), directory: None })]
    );
}

#[test]
fn disruption_of_the_gang_of_the_design_page() {
    let manifests = crate::good(include_str!("design.yaml"));
    let spec = &manifests.gangs[0].spec;
    let checkpoint = Checkpoint {
        signal: Some(Signal::SigUsr1),
        every: Some(Span::mins(10)),
        restart: Span::mins(1),
    };
    let disruption = Disruption {
        preemptible: true,
        min_runtime: Span::mins(30),
        grace: Span::mins(2),
        checkpoint: Some(checkpoint),
        never_preempts: false,
    };
    assert_eq!(spec.disruption, disruption);
    assert_eq!(spec.scaling, Scaling { efficiency: 900, resize: Span::secs(45) });
}

#[test]
fn queues_of_the_design_page() {
    let manifests = crate::good(include_str!("design.yaml"));
    let names: Vec<&str> = manifests.queues.iter().map(|queue| &*queue.name).collect();
    assert_eq!(names, ["org", "research", "default"]);
    let org = &manifests.queues[0];
    assert_eq!(org.user_limit.gpu_milli, Some(32_000));
    assert_eq!(org.user_limit.amounts["cpu"], 512_000);
    assert_eq!((org.weight, org.half_life), (1, Some(Span::hours(12))));
    let queue = &manifests.queues[1];
    assert_eq!((queue.parent.as_deref(), queue.weight), (Some("org"), 3));
    assert_eq!(queue.guaranteed.gpu_milli, Some(64_000));
    assert_eq!(queue.limit.gpu_milli, Some(256_000));
    assert_eq!((&queue.user_limit, queue.half_life), (&Quota::default(), None));
    assert_eq!(queue.tiers, ["reserved".into(), "on-demand".into()]);
    assert_eq!((org.time_slice, org.reclaim_within, org.evictions_per_hour), (None, None, None));
    assert_eq!(queue.time_slice, Some(Span::hours(1)));
    assert_eq!((queue.reclaim_within, queue.evictions_per_hour), (Some(Span::mins(5)), Some(4)));
}

#[test]
fn pool_of_the_design_page() {
    let manifests = crate::good(include_str!("design.yaml"));
    let [pool] = manifests.pools.as_slice() else { panic!("{:?}", manifests.pools) };
    let node_class_ref = NodeClassRef {
        group: "karpenter.k8s.aws".into(),
        kind: "EC2NodeClass".into(),
        name: "gpu".into(),
    };
    let karpenter = Karpenter { node_class_ref, ..Karpenter::default() };
    assert_eq!(pool.provider, Provider::Karpenter(karpenter));
    assert_eq!((&*pool.spec.name, &*pool.spec.tier), ("p5", "on-demand"));
    assert_eq!((pool.spec.limits.nodes, pool.spec.limits.gpus), (Some(64), Some(512)));
    assert_eq!(pool.spec.limits.hourly_spend, Money::from_units(5000.0));
    assert_eq!(pool.spec.idle_after, Span::mins(10));
    assert!(pool.spec.grow);
    let [offering] = pool.spec.offerings.as_slice() else { panic!("{:?}", pool.spec.offerings) };
    assert_eq!((&*offering.instance_type, &*offering.zone), ("p5.48xlarge", "us-east-1a"));
    assert_eq!(offering.price, Money(98_320_000));
    assert_eq!((offering.gpus, offering.max, offering.boot_time), (8, Some(16), Span::mins(3)));
    let kind =
        GpuKind { resource: "nvidia.com/gpu".into(), model: "H100".into(), memory: 80 * GIB };
    assert_eq!(offering.gpu, Some(kind));
    let labels: Vec<String> = offering.labels.iter().map(|(k, v)| format!("{k}={v}")).collect();
    insta::assert_snapshot!(labels.join("\n"), @r"
    muster.sh/capacity-type=reserved
    node.kubernetes.io/instance-type=p5.48xlarge
    topology.kubernetes.io/region=us-east-1
    topology.kubernetes.io/zone=us-east-1a
    ");
}

#[test]
fn warnings_of_the_design_page() {
    let manifests = crate::good(include_str!("design.yaml"));
    let warnings: Vec<String> = manifests.warnings.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(warnings.join("\n"), @"a.yaml:37:104: spec.tiers[0]: no Pool is of tier `reserved`");
}
