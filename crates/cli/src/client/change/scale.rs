//! `muster scale`.

use clap::Args as ClapArgs;
use hyper::Method;
use muster_server::Kind;
use serde_json::{Value, json};

use crate::client::connection::address::gang_path;
use crate::client::connection::api::Payload;
use crate::client::connection::connect::ConnectOptions;
use crate::client::output::columns::text;
use crate::client::output::kinds::{full_name, with_other_namespaces};
use crate::stdout;

/// Change the bounds of a role of a gang: its minimum and maximum number of members.
///
/// A running gang with more members than the new maximum gives up the surplus at once: it continues with the remaining
/// members, or saves, stops and restarts with fewer. It grows when there is room.
#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
#[command(group = clap::ArgGroup::new("bounds").args(["min", "max"]).required(true).multiple(true))]
pub(crate) struct Args {
    /// The gang
    name: String,
    /// The namespace of the gang
    #[arg(short, long)]
    namespace: Option<String>,
    /// The role; may be omitted where the gang has only one
    #[arg(long)]
    role: Option<String>,
    /// The minimum number of members
    #[arg(long, value_name = "N")]
    min: Option<u32>,
    /// The maximum number of members
    #[arg(long, value_name = "N")]
    max: Option<u32>,
    #[command(flatten)]
    connect: ConnectOptions,
}

const EXAMPLES: &str = "\
Examples:
  muster scale train --max 16
  muster scale train --role worker --min 4 --max 4";

pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    let api = args.connect.api()?;
    let name = full_name(&api, Kind::Gang, args.namespace.as_deref(), &args.name);
    let body = body(args).to_string();
    let sent = Payload { body: Some(("application/json", &body)), ..Payload::default() };
    let gang = match api.change(Method::POST, &gang_path(&name, "scale"), sent).await {
        Ok(gang) => gang.unwrap_or_default(),
        Err(error) => return Err(with_other_namespaces(&api, &name, error).await),
    };
    stdout::line(format_args!("gang {name} is scaled{}{}", bounds(&gang), members(&gang)));
    Ok(())
}

/// Only the given bounds are sent: the others stay as they are.
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

/// The number of members while the gang resizes.
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
