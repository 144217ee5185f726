//! `muster logs`.

use std::sync::Arc;

use clap::Args as ClapArgs;
use muster_server::Kind;
use serde_json::Value;

use crate::client::connection::connect::ConnectOptions;
use crate::client::follow::wait::{Printing, wait_for_gangs};
use crate::client::output::kinds::{full_name, with_other_namespaces};
use crate::client::output::output_prefix::{LogSelection, Prefix, print};

/// Print the output of the members of a gang.
///
/// Where there are several members, each line has a prefix that names its member. Standard error is printed to standard
/// error. With --follow the command waits for a gang that has not started, and continues through restarts until the
/// gang is over.
#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The gang
    name: String,
    /// The namespace of the gang
    #[arg(short, long)]
    namespace: Option<String>,
    /// Continue until the gang is over
    #[arg(short, long)]
    follow: bool,
    /// Only of the member with this rank
    #[arg(short, long, value_name = "RANK")]
    member: Option<u32>,
    /// Only the last lines of each member
    #[arg(long, value_name = "LINES")]
    tail: Option<u32>,
    /// Of this attempt, 1 for the first; of the latest when absent
    #[arg(long, value_name = "N")]
    attempt: Option<u32>,
    /// Of the run with this number, also of an earlier gang of the same name: `muster describe` shows the numbers
    #[arg(long, value_name = "NUMBER", conflicts_with = "attempt")]
    run: Option<u64>,
    #[command(flatten)]
    connect: ConnectOptions,
}

const EXAMPLES: &str = "\
Examples:
  muster logs train
  muster logs -f --tail 10 train       the last lines of each member, and all that come
  muster logs train --member 0
  muster logs train --attempt 1        before it was restarted
  muster logs train --run 17           of a gang that had this name before";

pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    let api = Arc::new(args.connect.api()?);
    let name = full_name(&api, Kind::Gang, args.namespace.as_deref(), &args.name);
    let gang = match api.one(Kind::Gang, &name).await {
        Ok(gang) => gang,
        Err(error) => return Err(with_other_namespaces(&api, &name, error).await),
    };
    let &Args { member, attempt, run, tail, follow, .. } = args;
    let which = LogSelection { member, attempt, run, tail, follow };
    let prefix = Prefix { gang: false, member: member.is_none() && has_several(&gang) };
    if follow && attempt.is_none() && run.is_none() {
        let printing = Printing { phases: false, logs: Some((which, prefix)) };
        wait_for_gangs(&api, &[name], &printing).await?;
        return Ok(());
    }
    Ok(print(api, name, which, prefix).await?)
}

/// Whether a gang has, or may have, more than one member.
fn has_several(gang: &Value) -> bool {
    let total = gang.pointer("/status/members/total").and_then(Value::as_u64);
    let roles = gang.pointer("/spec/roles").and_then(Value::as_array);
    let most = |role: &Value| {
        let bound = role.get("max").or_else(|| role.get("min")).and_then(Value::as_u64);
        bound.unwrap_or(1)
    };
    let written: u64 = roles.into_iter().flatten().map(most).sum();
    total.unwrap_or(0).max(written) > 1
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn gangs_with_several_members_get_prefixes() {
        assert!(!has_several(&json!({"spec": {"roles": [{"min": 1}]}})));
        assert!(has_several(&json!({"spec": {"roles": [{"min": 1, "max": 4}]}})));
        assert!(has_several(&json!({"spec": {"roles": [{}, {}]}})));
        assert!(has_several(&json!({"status": {"members": {"total": 2}}})));
    }
}
