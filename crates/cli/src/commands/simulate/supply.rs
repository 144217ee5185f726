//! Nodes and records of availability from the command line.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use muster_core::constraint::Labels;
use muster_core::device::GpuKind;
use muster_core::node::NodeSpec;
use muster_core::resource::{CPU, MEMORY};
use muster_sim::Setup;
use muster_sim::trace::{availability, openb};

use crate::commands::simulate::command::Args;
use crate::exit::UsageError;

/// Nodes per rack where no manifest describes racks.
const RACK: u32 = 16;
/// The most nodes that are accepted; more are a typing error.
const MOST: u32 = 1_000_000;

/// Nodes to add: a number of equal ones, or those of a list.
#[derive(Clone)]
pub(crate) enum Nodes {
    Count(u32),
    List(PathBuf),
}

impl FromStr for Nodes {
    type Err = String;

    /// A number is always a count; a file of such a name can be given as `./8`.
    fn from_str(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("neither a number nor a file".to_owned());
        }
        if !text.trim_start_matches('-').bytes().all(|byte| byte.is_ascii_digit()) {
            return Ok(Self::List(text.into()));
        }
        let count = text.parse().ok().filter(|count| *count <= MOST);
        count.map(Self::Count).ok_or_else(|| format!("{text} is not in 0..={MOST}"))
    }
}

/// A record of the available nodes of a zone.
#[derive(Clone)]
pub(crate) struct Recorded {
    zone: Arc<str>,
    file: PathBuf,
}

impl FromStr for Recorded {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        match text.split_once('=') {
            Some((zone, file)) if !zone.is_empty() && !file.is_empty() => {
                Ok(Self { zone: zone.into(), file: file.into() })
            }
            _ => Err("a zone and a file belong here, such as us-east-1a=record.json"),
        }
    }
}

/// Adds the nodes of `--nodes`.
pub(crate) fn add_nodes(args: &Args, setup: &mut Setup) -> Result<(), UsageError> {
    match &args.nodes {
        None => {}
        Some(Nodes::Count(count)) => {
            setup.nodes.extend((0..*count).map(|i| node(i, args.gpus_per_node)));
        }
        Some(Nodes::List(file)) => {
            let nodes = openb::read_nodes(file).map_err(|error| UsageError(error.to_string()))?;
            setup.nodes.extend(nodes);
        }
    }
    Ok(())
}

/// Makes every pool with offerings in a recorded zone follow the record there.
pub(crate) fn record(records: &[Recorded], setup: &mut Setup) -> Result<(), UsageError> {
    for Recorded { zone, file } in records {
        let record = availability::read(file).map_err(|error| UsageError(error.to_string()))?;
        let record = Arc::new(record);
        let mut known = false;
        for (pool, model) in &mut setup.pools {
            if pool.offerings.iter().any(|offering| offering.zone == *zone) {
                known = true;
                model.recorded.insert(zone.clone(), record.clone());
            }
        }
        if !known {
            let file = file.display();
            return Err(UsageError(format!(
                "--availability {zone}={file}: no pool has an offering in zone {zone}"
            )));
        }
    }
    Ok(())
}

/// A machine of which only the number of processors counts.
pub(crate) fn machine(procs: u32) -> NodeSpec {
    NodeSpec {
        name: "machine".into(),
        labels: Labels::new(),
        taints: Vec::new(),
        allocatable: BTreeMap::from([(CPU.into(), u64::from(procs) * 1_000)]),
        gpu: None,
        gpus: 0,
        ready: true,
        claim: None,
        others: false,
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
        others: false,
    }
}
