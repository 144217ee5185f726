//! Builds the setup of a simulation from manifests.

use std::path::PathBuf;

use muster_api::{GangManifest, Manifests};
use muster_core::queue::parents_first;
use muster_core::time::{Span, Time};
use muster_local::cloud_of;
use muster_sim::{Job, Setup};

use crate::exit::BadInput;
use crate::simulation::start_time::StartTime;

/// The run time of a gang whose manifest gives none, in a simulation.
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
pub(crate) fn setup(manifests: Manifests, begin: &StartTime) -> Setup {
    let Manifests { levels, queues, pools, nodes, mut gangs, warnings: _ } = manifests;
    let epoch = begin.resolve_dates(&mut gangs, &pools);
    Setup {
        levels,
        queues: parents_first(queues, |queue| queue),
        pools: pools.into_iter().map(cloud_of).collect(),
        nodes,
        jobs: gangs.into_iter().map(job).collect(),
        epoch,
        ..Setup::default()
    }
}

fn job(manifest: GangManifest) -> Job {
    let GangManifest { spec, submit_after, run_time, runs: _, templates: _, run_policy: _ } =
        manifest;
    let run = run_time.or(spec.expected_duration).unwrap_or(RUN_TIME);
    Job::new(spec, Time::ZERO + submit_after, run)
}
