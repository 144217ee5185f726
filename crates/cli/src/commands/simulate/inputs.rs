//! Combines supply and demand from manifests, traces and generators into one setup.

use muster_core::queue::QueueSpec;
use muster_sim::{Job, Setup};

use crate::commands::simulate::command::Args;
use crate::commands::simulate::{supply, traces};
use crate::exit::UsageError;
use crate::simulation::setup;

/// The setup that the command line and its files describe.
pub(crate) fn setup(args: &Args) -> anyhow::Result<Setup> {
    let mut setup = if args.files.is_empty() {
        Setup { queues: vec![QueueSpec::open("default")], ..Setup::default() }
    } else {
        setup::setup(setup::manifests(&args.files)?, &args.begin)
    };
    supply::add_nodes(args, &mut setup)?;
    supply::record(&args.availability, &mut setup)?;
    traces::add(args, &mut setup)?;
    if let Some(preset) = args.workload {
        let mut spec = preset.spec();
        (spec.jobs, spec.gpus_per_member) = (args.jobs as usize, args.gpus_per_node.max(1));
        setup.jobs.extend(spec.generate(args.seed).map_err(|error| UsageError(error.to_string()))?);
    }
    if setup.jobs.is_empty() {
        return Err(UsageError(
            "nothing to run: give manifests with gangs, or a trace with --trace, --swf or --csv, or --workload"
                .into(),
        )
        .into());
    }
    if setup.nodes.is_empty() && setup.pools.is_empty() {
        return Err(UsageError(
            "nowhere to run: give manifests with nodes or pools, or --nodes, or an SWF trace with --procs"
                .into(),
        )
        .into());
    }
    declare_queues(&mut setup);
    Ok(setup)
}

/// Declares the queues that traces name and no manifest describes, without limits.
fn declare_queues(setup: &mut Setup) {
    let queues = &mut setup.queues;
    for Job { gang, .. } in &setup.jobs {
        if !queues.iter().any(|queue| queue.name == gang.queue) {
            queues.push(QueueSpec::open(&gang.queue));
        }
    }
}
