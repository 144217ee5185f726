//! `muster cancel`.

use clap::Args as ClapArgs;

use crate::client::change::named_gangs::Gangs;

/// Cancel gangs: those that wait leave their queue, those that run are stopped, all members together.
///
/// Members are told to end, and ended after their grace. What is known about a gang stays; `muster delete` forgets it as
/// well.
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
