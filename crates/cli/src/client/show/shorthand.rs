//! `muster queues`, `muster pools` and `muster nodes`.

use clap::Args;

use crate::client::connection::connect::ConnectOptions;
use crate::client::output::kinds::KindArg;
use crate::client::show::get;
use crate::client::show::get::Show;

/// List queues: their shares, and what they use, wait for and run.
///
/// The same as `muster get queues`.
#[derive(Args)]
#[command(after_help = QUEUES)]
pub(crate) struct QueuesArgs {
    /// The name of one queue
    name: Option<String>,
    #[command(flatten)]
    show: Show,
    #[command(flatten)]
    connect: ConnectOptions,
}

/// List pools: their nodes, what they cost, and how many free nodes are wanted.
///
/// The same as `muster get pools`.
#[derive(Args)]
#[command(after_help = POOLS)]
pub(crate) struct PoolsArgs {
    /// The name of one pool
    name: Option<String>,
    #[command(flatten)]
    show: Show,
    #[command(flatten)]
    connect: ConnectOptions,
}

/// List nodes: their GPUs, and the gangs on them.
///
/// The same as `muster get nodes`.
#[derive(Args)]
#[command(after_help = NODES)]
pub(crate) struct NodesArgs {
    /// The name of one node
    name: Option<String>,
    #[command(flatten)]
    show: Show,
    #[command(flatten)]
    connect: ConnectOptions,
}

const QUEUES: &str = "\
Examples:
  muster queues
  muster queues --watch
  muster queues research -o yaml";

const POOLS: &str = "\
Examples:
  muster pools
  muster pools -o wide          with limits and offerings";

const NODES: &str = "\
Examples:
  muster nodes
  muster nodes --watch          as they come and go";

impl QueuesArgs {
    pub(crate) fn get(&self) -> get::Args {
        get::Args::all(KindArg::Queues, self.name.clone(), self.show.clone(), self.connect.clone())
    }
}

impl PoolsArgs {
    pub(crate) fn get(&self) -> get::Args {
        get::Args::all(KindArg::Pools, self.name.clone(), self.show.clone(), self.connect.clone())
    }
}

impl NodesArgs {
    pub(crate) fn get(&self) -> get::Args {
        get::Args::all(KindArg::Nodes, self.name.clone(), self.show.clone(), self.connect.clone())
    }
}
