//! From manifests to a simulation's setup.

use std::collections::BTreeMap;
use std::path::PathBuf;

use muster_api::{Fault, GangManifest, Manifests, PoolManifest, Provider, SimulatedCloud};
use muster_core::order::ClaimFailure;
use muster_core::pool::PoolSpec;
use muster_core::queue::QueueSpec;
use muster_core::time::{Span, Time};
use muster_sim::cloud::{CloudModel, Scripted, StockModel};
use muster_sim::{Job, Setup};

use crate::begin::Begin;
use crate::exit::BadInput;

/// What a gang that says nothing about it runs for, in a simulation.
const RUN_TIME: Span = Span::mins(10);

/// Reads manifests; warnings go to standard error.
pub(crate) fn manifests(files: &[PathBuf]) -> anyhow::Result<Manifests> {
    let manifests = muster_api::read_files(files).map_err(BadInput)?;
    for warning in &manifests.warnings {
        eprintln!("warning: {warning}");
    }
    Ok(manifests)
}

/// Everything a simulation starts from.
pub(crate) fn setup(manifests: Manifests, begin: &Begin) -> Setup {
    let Manifests { levels, queues, pools, nodes, mut gangs, warnings: _ } = manifests;
    let epoch = begin.count_from(&mut gangs, &pools);
    Setup {
        levels,
        queues: parents_first(queues),
        pools: pools.into_iter().map(pool).collect(),
        nodes,
        outages: Vec::new(),
        jobs: gangs.into_iter().map(job).collect(),
        epoch,
    }
}

fn job(manifest: GangManifest) -> Job {
    let GangManifest { spec, submit_after, run_time, runs: _, templates: _ } = manifest;
    let run = run_time.or(spec.expected_duration).unwrap_or(RUN_TIME);
    Job::new(spec, Time::ZERO + submit_after, run)
}

/// Pools of providers that are not simulated get the default cloud: the question is what they would do.
fn pool(manifest: PoolManifest) -> (PoolSpec, CloudModel) {
    let model = match manifest.provider {
        Provider::Simulated(cloud) => model(cloud),
        Provider::Karpenter { .. } | Provider::ProvisioningRequest | Provider::Local => {
            CloudModel::default()
        }
    };
    (manifest.spec, model)
}

fn model(cloud: SimulatedCloud) -> CloudModel {
    let SimulatedCloud { boot, failures, stock_out, in_service, script } = cloud;
    CloudModel {
        launch: boot.launch,
        register: boot.register,
        gpus: boot.gpus,
        sigma: boot.sigma,
        boot_failed: failures.boot_failed,
        gpus_missing: failures.gpus_missing,
        throttled: failures.throttled,
        stock: stock_out
            .map(|stock| StockModel { mean_up: stock.mean_up, mean_down: stock.mean_down }),
        recorded: BTreeMap::new(),
        mean_time_to_failure: in_service.map(|service| service.mean_time_to_failure),
        notice: Span::ZERO,
        script: script
            .into_iter()
            .map(|line| Scripted {
                zone: line.zone,
                claim: line.claim,
                fails: match line.fails {
                    Fault::StockOut => ClaimFailure::StockOut,
                    Fault::BootFailed => ClaimFailure::BootFailed,
                    Fault::GpusMissing => ClaimFailure::GpusMissing,
                },
            })
            .collect(),
    }
}

/// The World wants to know a queue's parent before the queue; manifests may say it in any order.
fn parents_first(queues: Vec<QueueSpec>) -> Vec<QueueSpec> {
    let mut sorted: Vec<QueueSpec> = Vec::with_capacity(queues.len());
    let mut rest = queues;
    while !rest.is_empty() {
        let known = |queue: &QueueSpec| {
            queue.parent.as_ref().is_none_or(|parent| sorted.iter().any(|q| q.name == *parent))
        };
        let (ready, later): (Vec<_>, Vec<_>) = rest.into_iter().partition(known);
        assert!(!ready.is_empty(), "manifests are checked for cycles");
        sorted.extend(ready);
        rest = later;
    }
    sorted
}
