//! `muster hold` and `muster release`.

use clap::Args;

use crate::client::change::named_gangs::Gangs;

/// Keep gangs from starting until they are released.
///
/// Held gangs stay in their queue and hold no resources. A gang that has started, or whose nodes are booting, goes on.
#[derive(Args)]
#[command(after_help = HOLD)]
pub(crate) struct HoldArgs {
    #[command(flatten)]
    gangs: Gangs,
}

/// Release held gangs, so that they can start.
#[derive(Args)]
#[command(after_help = RELEASE)]
pub(crate) struct ReleaseArgs {
    #[command(flatten)]
    gangs: Gangs,
}

const HOLD: &str = "\
Examples:
  muster hold train
  muster hold -n research train-1 train-2";

const RELEASE: &str = "\
Examples:
  muster release train
  muster release -n research train-1 train-2";

pub(crate) async fn hold(args: &HoldArgs) -> anyhow::Result<()> {
    args.gangs.each("hold", "is held").await
}

pub(crate) async fn release(args: &ReleaseArgs) -> anyhow::Result<()> {
    args.gangs.each("release", "is released").await
}
