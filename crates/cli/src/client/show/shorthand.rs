//! `muster queues`, `muster pools` and `muster nodes`.

use clap::Args;

use crate::client::connection::connect::Reach;
use crate::client::output::kinds::KindArg;
use crate::client::show::get;
use crate::client::show::get::Show;

/// Show queues: their share, and what they use, wait for and run.
///
/// The same as `muster get queues`.
#[derive(Args)]
#[command(after_help = QUEUES)]
pub(crate) struct QueuesArgs {
    /// Only this one
    name: Option<String>,
    #[command(flatten)]
    show: Show,
    #[command(flatten)]
    reach: Reach,
}

/// Show pools: what they have, what that costs, and what they should have.
///
/// The same as `muster get pools`.
#[derive(Args)]
#[command(after_help = POOLS)]
pub(crate) struct PoolsArgs {
    /// Only this one
    name: Option<String>,
    #[command(flatten)]
    show: Show,
    #[command(flatten)]
    reach: Reach,
}

/// Show nodes: their GPUs, and who is on them.
///
/// The same as `muster get nodes`.
#[derive(Args)]
#[command(after_help = NODES)]
pub(crate) struct NodesArgs {
    /// Only this one
    name: Option<String>,
    #[command(flatten)]
    show: Show,
    #[command(flatten)]
    reach: Reach,
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
        get::Args::all(KindArg::Queues, self.name.clone(), self.show.clone(), self.reach.clone())
    }
}

impl PoolsArgs {
    pub(crate) fn get(&self) -> get::Args {
        get::Args::all(KindArg::Pools, self.name.clone(), self.show.clone(), self.reach.clone())
    }
}

impl NodesArgs {
    pub(crate) fn get(&self) -> get::Args {
        get::Args::all(KindArg::Nodes, self.name.clone(), self.show.clone(), self.reach.clone())
    }
}
