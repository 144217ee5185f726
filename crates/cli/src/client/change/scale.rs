//! `muster scale`.

use clap::Args as ClapArgs;
use hyper::Method;
use muster_server::Kind;
use serde_json::{Value, json};

use crate::client::connection::address::gang_path;
use crate::client::connection::api::Sent;
use crate::client::connection::connect::Reach;
use crate::client::output::columns::text;
use crate::client::output::kinds::{elsewhere, full};
use crate::stdout;

/// Give a role of a gang other bounds: at least so many members, at most so many.
///
/// A gang that runs with more members than it may have from now on gives up the surplus at once: it goes on with those that
/// stay, or saves, stops and starts again as so many. It grows when there is room.
#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
#[command(group = clap::ArgGroup::new("bounds").args(["min", "max"]).required(true).multiple(true))]
pub(crate) struct Args {
    /// The gang
    name: String,
    /// Where it is
    #[arg(short, long)]
    namespace: Option<String>,
    /// Its role; may be left out where there is only one
    #[arg(long)]
    role: Option<String>,
    /// At least so many members
    #[arg(long, value_name = "N")]
    min: Option<u32>,
    /// At most so many members
    #[arg(long, value_name = "N")]
    max: Option<u32>,
    #[command(flatten)]
    reach: Reach,
}

const EXAMPLES: &str = "\
Examples:
  muster scale train --max 16
  muster scale train --role worker --min 4 --max 4";

pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    let api = args.reach.api()?;
    let name = full(&api, Kind::Gang, args.namespace.as_deref(), &args.name);
    let body = body(args).to_string();
    let sent = Sent { body: Some(("application/json", &body)), ..Sent::default() };
    let gang = match api.change(Method::POST, &gang_path(&name, "scale"), sent).await {
        Ok(gang) => gang.unwrap_or_default(),
        Err(error) => return Err(elsewhere(&api, &name, error).await),
    };
    stdout::line(format_args!("gang {name} is scaled{}{}", bounds(&gang), members(&gang)));
    Ok(())
}

/// Only what was given is sent: the rest stays as it is.
fn body(args: &Args) -> Value {
    let mut body = json!({});
    if let Some(role) = &args.role {
        body["role"] = json!(role);
    }
    for (bound, given) in [("min", args.min), ("max", args.max)] {
        if let Some(given) = given {
            body[bound] = json!(given);
        }
    }
    body
}

/// How many members it has while it changes.
fn members(gang: &Value) -> String {
    let has = gang.pointer("/status/members/ready").and_then(Value::as_u64).unwrap_or_default();
    let roles = gang.pointer("/spec/roles").and_then(Value::as_array);
    let sum = |bound: &str| -> u64 {
        let of = |role: &Value| role.get(bound).and_then(Value::as_u64).unwrap_or_default();
        roles.into_iter().flatten().map(of).sum()
    };
    match has {
        0 => String::new(),
        has if has > sum("max") => format!("; it has {has} members now and gives some up"),
        has if has < sum("min") => {
            format!("; it has {has} members now and grows when there is room")
        }
        _ => String::new(),
    }
}

fn bounds(gang: &Value) -> String {
    let roles = gang.pointer("/spec/roles").and_then(Value::as_array);
    let roles = roles.into_iter().flatten().map(|role| {
        let [name, min, max] = ["/name", "/min", "/max"].map(|field| text(role, field));
        format!("{name} {min}..{max}")
    });
    let roles: Vec<_> = roles.collect();
    if roles.is_empty() { String::new() } else { format!(": {}", roles.join(", ")) }
}
