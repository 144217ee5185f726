//! `muster delete`.

use clap::Args as ClapArgs;
use hyper::Method;
use muster_server::Kind;

use crate::client::connection::api::{Sent, object_path};
use crate::client::connection::connect::Reach;
use crate::client::output::kinds::{KindArg, elsewhere, full, word};
use crate::stdout;

/// Remove objects. A gang that runs is stopped first, and nothing is remembered of it but its usage.
#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// What they are
    kind: KindArg,
    /// What they are called
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// Where the gangs are
    #[arg(short, long)]
    namespace: Option<String>,
    #[command(flatten)]
    reach: Reach,
}

const EXAMPLES: &str = "\
Examples:
  muster delete gang train
  muster delete pools spot on-demand";

pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    let api = args.reach.api()?;
    let kind = args.kind.kind();
    for name in &args.names {
        let name = full(&api, kind, args.namespace.as_deref(), name);
        let path = object_path(kind, &name);
        if let Err(error) = api.change(Method::DELETE, &path, Sent::default()).await {
            return Err(match kind {
                Kind::Gang => elsewhere(&api, &name, error).await,
                _ => error.into(),
            });
        }
        stdout::line(format_args!("{} {name} is removed", word(kind)));
    }
    Ok(())
}
