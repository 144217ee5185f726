//! `muster delete`.

use clap::Args as ClapArgs;
use hyper::Method;
use muster_server::Kind;

use crate::client::connection::api::{Payload, object_path};
use crate::client::connection::connect::ConnectOptions;
use crate::client::output::kinds::{KindArg, full_name, with_other_namespaces, word};
use crate::stdout;

/// Remove objects. A running gang is stopped first, and only its usage is kept.
#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The kind of the objects
    kind: KindArg,
    /// The names of the objects
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// The namespace of the gangs
    #[arg(short, long)]
    namespace: Option<String>,
    #[command(flatten)]
    connect: ConnectOptions,
}

const EXAMPLES: &str = "\
Examples:
  muster delete gang train
  muster delete pools spot on-demand";

pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    let api = args.connect.api()?;
    let kind = args.kind.kind();
    for name in &args.names {
        let name = full_name(&api, kind, args.namespace.as_deref(), name);
        let path = object_path(kind, &name);
        if let Err(error) = api.change(Method::DELETE, &path, Payload::default()).await {
            return Err(match kind {
                Kind::Gang => with_other_namespaces(&api, &name, error).await,
                _ => error.into(),
            });
        }
        stdout::line(format_args!("{} {name} is removed", word(kind)));
    }
    Ok(())
}
