//! `muster context`.

use std::io::Read;
use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};

use crate::client::connection::contexts::{Context, Contexts, path};
use crate::client::connection::wire::Wire;
use crate::client::output::table::plain;
use crate::exit::UsageError;
use crate::stdout;

/// Store control planes under names, with address, credential and default namespace.
///
/// They are stored in `muster/config.yaml` below $XDG_CONFIG_HOME (or ~/.config), or in the file that MUSTER_CONFIG
/// names. Only you can read it.
#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List the contexts; the current one has a star
    List,
    /// Make a context the current one
    Use {
        /// The context
        name: String,
    },
    /// Create a context, or change the given fields of one; the first context becomes the current one
    Set(SetArgs),
    /// Remove a context
    Remove {
        /// The context
        name: String,
    },
}

#[derive(ClapArgs)]
struct SetArgs {
    /// The name of the context
    name: String,
    /// The address, such as https://muster.lab.example:7480
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// A file with your token, read again for every command
    #[arg(long, value_name = "FILE", conflicts_with = "token_stdin")]
    token_file: Option<PathBuf>,
    /// Read your token from standard input, and store it
    #[arg(long)]
    token_stdin: bool,
    /// The CA of the server's certificate, in PEM
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// The namespace of gangs that are given without one
    #[arg(short, long)]
    namespace: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  muster context set lab --server https://muster.lab.example:7480 --token-file ~/.lab-token --ca-file lab.pem
  muster context set lab --namespace research
  muster context use lab
  muster context list";

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let path = path().ok_or_else(|| {
        UsageError(
            "there is no HOME: give the path of the context file with MUSTER_CONFIG".to_owned(),
        )
    })?;
    let mut contexts = Contexts::read(&path)?;
    match &args.command {
        Command::List => return list(&contexts),
        Command::Use { name } => {
            contexts.named(name).ok_or_else(|| contexts.missing(name))?;
            contexts.current = Some(name.clone());
            stdout::line(format_args!("context {name} is now the current one"));
        }
        Command::Set(set) => change(&mut contexts, set)?,
        Command::Remove { name } => {
            contexts.named(name).ok_or_else(|| contexts.missing(name))?;
            contexts.contexts.retain(|context| context.name != *name);
            contexts.current = contexts.current.filter(|current| current != name);
            stdout::line(format_args!("context {name} is removed"));
        }
    }
    contexts.write(&path)
}

fn list(contexts: &Contexts) -> anyhow::Result<()> {
    if contexts.contexts.is_empty() {
        eprintln!("there are no contexts: create one with `muster context set NAME --server URL`");
        return Ok(());
    }
    let row = |context: &Context| {
        let used = contexts.current.as_ref() == Some(&context.name);
        let token = match (&context.token, &context.token_file) {
            (_, Some(file)) => file.display().to_string(),
            (Some(_), None) => "stored".to_owned(),
            (None, None) => "-".to_owned(),
        };
        let namespace = context.namespace.clone().unwrap_or_else(|| "-".to_owned());
        let star = if used { "*" } else { "" };
        vec![star.to_owned(), context.name.clone(), context.server.clone(), namespace, token]
    };
    let rows: Vec<_> = contexts.contexts.iter().map(row).collect();
    plain(&["", "NAME", "SERVER", "NAMESPACE", "TOKEN"], 0, &rows).iter().for_each(stdout::line);
    Ok(())
}

fn change(contexts: &mut Contexts, set: &SetArgs) -> anyhow::Result<()> {
    let name = &set.name;
    if contexts.named(name).is_none() && set.server.is_none() {
        return Err(UsageError(format!("context {name} is new: give its --server")).into());
    }
    let context = contexts.entry(name);
    if let Some(server) = &set.server {
        Wire::new(server, set.ca_file.as_deref(), "")?;
        context.server.clone_from(server);
    }
    if set.token_stdin {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text)?;
        (context.token, context.token_file) = (Some(text.trim().to_owned()), None);
    }
    if let Some(file) = &set.token_file {
        (context.token, context.token_file) = (None, Some(std::path::absolute(file)?));
    }
    if let Some(file) = &set.ca_file {
        context.ca_file = Some(std::path::absolute(file)?);
    }
    if let Some(namespace) = &set.namespace {
        context.namespace = Some(namespace.clone());
    }
    if contexts.current.is_none() && contexts.contexts.len() == 1 {
        contexts.current = Some(name.clone());
    }
    let used =
        if contexts.current.as_ref() == Some(name) { ", and is the current one" } else { "" };
    stdout::line(format_args!("context {name} is set{used}"));
    Ok(())
}
