//! Parses and runs the commands of the client.

use clap::Subcommand;

use crate::client::change::{cancel, delete, hold, scale, submit};
use crate::client::show::{audit, describe, get, logs, shorthand, usage, what_if, whoami};
use crate::client::{context, top};

// The help of a command is on its `Args`: a doc comment here would hide the longer one there.
#[derive(Subcommand)]
pub(crate) enum Command {
    Submit(submit::Args),
    Get(get::Args),
    Describe(describe::Args),
    WhatIf(what_if::Args),
    Logs(logs::Args),
    Cancel(cancel::Args),
    Hold(hold::HoldArgs),
    Release(hold::ReleaseArgs),
    Scale(scale::Args),
    Delete(delete::Args),
    Queues(shorthand::QueuesArgs),
    Pools(shorthand::PoolsArgs),
    Nodes(shorthand::NodesArgs),
    Usage(usage::Args),
    Audit(audit::Args),
    Top(top::Args),
    Context(context::Args),
    Whoami(whoami::Args),
}

/// Runs a command.
pub(crate) fn run(command: &Command) -> anyhow::Result<()> {
    if let Command::Context(args) = command {
        return context::run(args);
    }
    wait_for(async {
        match command {
            Command::Submit(args) => submit::run(args).await,
            Command::Get(args) => get::run(args).await,
            Command::Describe(args) => describe::run(args).await,
            Command::WhatIf(args) => what_if::run(args).await,
            Command::Logs(args) => logs::run(args).await,
            Command::Cancel(args) => cancel::run(args).await,
            Command::Hold(args) => hold::hold(args).await,
            Command::Release(args) => hold::release(args).await,
            Command::Scale(args) => scale::run(args).await,
            Command::Delete(args) => delete::run(args).await,
            Command::Queues(args) => get::run(&args.get()).await,
            Command::Pools(args) => get::run(&args.get()).await,
            Command::Nodes(args) => get::run(&args.get()).await,
            Command::Usage(args) => usage::run(args).await,
            Command::Audit(args) => audit::run(args).await,
            Command::Top(args) => top::run(args).await,
            Command::Whoami(args) => whoami::run(args).await,
            Command::Context(_) => Ok(()),
        }
    })
}

/// Runs a future to its end. One thread is enough: it waits for the network most of the time.
pub(crate) fn wait_for<T>(answer: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(answer)
}
