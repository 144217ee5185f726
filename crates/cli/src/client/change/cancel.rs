//! `muster cancel`.

use clap::Args as ClapArgs;

use crate::client::change::named_gangs::Gangs;

/// Cancel gangs: waiting gangs leave their queue, running gangs are stopped, all members together.
///
/// Members are told to end, and are killed after their grace period. The record of a gang stays; `muster delete`
/// removes it as well.
#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    gangs: Gangs,
}

const EXAMPLES: &str = "\
Examples:
  muster cancel train
  muster cancel -n research train-1 train-2
  muster cancel research/train-1 sales/train-2";

pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    args.gangs.each("cancel", "is cancelled").await
}
