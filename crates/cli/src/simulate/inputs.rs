//! Where supply and demand come from.

use std::collections::BTreeMap;
use std::sync::Arc;

use muster_core::constraint::Labels;
use muster_core::device::GpuKind;
use muster_core::node::NodeSpec;
use muster_core::queue::QueueSpec;
use muster_core::resource::{CPU, MEMORY};
use muster_sim::trace::swf::{Estimates, SwfOptions};
use muster_sim::trace::{swf, table};
use muster_sim::{Job, Setup};

use super::Args;
use crate::exit::Misused;
use crate::figures::count;
use crate::load;

/// Nodes per rack when nobody describes racks.
const RACK: u32 = 16;

/// Everything the command line and its files say.
pub(super) fn setup(args: &Args) -> anyhow::Result<Setup> {
    let mut setup = if args.files.is_empty() {
        Setup { queues: vec![QueueSpec::open("default")], ..Setup::default() }
    } else {
        load::setup(load::manifests(&args.files)?, &args.begin)
    };
    if let Some(file) = &args.swf {
        let trace = swf::read(file).map_err(|error| Misused(error.to_string()))?;
        if !trace.skipped.is_empty() {
            let first = &trace.skipped[0];
            let (skipped, file) = (count(trace.skipped.len(), "record"), file.display());
            let (line, reason) = (first.line, first.reason);
            eprintln!("warning: {file}:{line}: {skipped} skipped, this the first: {reason}");
        }
        if args.nodes.is_none() && setup.nodes.is_empty() && setup.pools.is_empty() {
            let procs = args.procs.or_else(|| trace.header.max_procs());
            let procs = procs.ok_or_else(|| {
                let file = file.display();
                Misused(format!(
                    "{file}: the header names no MaxProcs: say with --procs how large the machine is, \
                     or give --nodes or manifests"
                ))
            })?;
            setup.nodes.push(machine(procs));
        }
        setup.jobs.extend(
            trace.jobs(&SwfOptions { estimates: estimates(args), ..SwfOptions::default() }),
        );
    }
    if let Some(file) = &args.csv {
        setup.jobs.extend(table::read(file).map_err(|error| Misused(error.to_string()))?);
    }
    if let Some(preset) = args.workload {
        let mut spec = preset.spec();
        (spec.jobs, spec.gpus_per_member) = (args.jobs as usize, args.gpus_per_node.max(1));
        setup.jobs.extend(spec.generate(args.seed).map_err(|error| Misused(error.to_string()))?);
    }
    setup.nodes.extend((0..args.nodes.unwrap_or(0)).map(|i| node(i, args.gpus_per_node)));
    if setup.jobs.is_empty() {
        return Err(Misused(
            "nothing to run: give manifests with gangs, or a trace with --swf or --csv, or --workload"
                .into(),
        )
        .into());
    }
    if setup.nodes.is_empty() && setup.pools.is_empty() {
        return Err(Misused(
            "nowhere to run: give manifests with nodes or pools, or --nodes, or --swf with --procs"
                .into(),
        )
        .into());
    }
    declare_queues(&mut setup);
    Ok(setup)
}

fn estimates(args: &Args) -> Estimates {
    match args.estimates {
        super::WhoseEstimates::Requested => Estimates::Requested,
        super::WhoseEstimates::True => Estimates::True,
    }
}

/// Traces name queues that nobody declared; they are open ones.
fn declare_queues(setup: &mut Setup) {
    let queues = &mut setup.queues;
    for Job { gang, .. } in &setup.jobs {
        if !queues.iter().any(|queue| queue.name == gang.queue) {
            queues.push(QueueSpec::open(&gang.queue));
        }
    }
}

/// A machine of which only the number of processors counts.
fn machine(procs: u32) -> NodeSpec {
    NodeSpec {
        name: "machine".into(),
        labels: Labels::new(),
        taints: Vec::new(),
        allocatable: BTreeMap::from([(CPU.into(), u64::from(procs) * 1_000)]),
        gpu: None,
        gpus: 0,
        ready: true,
        claim: None,
    }
}

fn node(i: u32, gpus: u16) -> NodeSpec {
    let rack: Arc<str> = format!("rack-{}", i / RACK).into();
    NodeSpec {
        name: format!("node-{i}").into(),
        labels: Labels::from([("topology.muster.sh/rack".into(), rack)]),
        taints: Vec::new(),
        allocatable: BTreeMap::from([(CPU.into(), 192_000), (MEMORY.into(), 2048 << 30)]),
        gpu: (gpus > 0).then(|| GpuKind {
            resource: "nvidia.com/gpu".into(),
            model: "".into(),
            memory: 0,
        }),
        gpus,
        ready: true,
        claim: None,
    }
}
