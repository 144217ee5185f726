//! Asks a control plane why a gang waits.

use muster_server::Why;

use crate::client::connection::address::gang_path;
use crate::client::connection::connect::ConnectOptions;
use crate::client::output::age;
use crate::client::output::kinds::{full_name, with_other_namespaces};
use crate::client::output::printer::Answer;
use crate::stdout;

/// Sends the query, and prints the answer.
pub(crate) async fn ask(
    connect: &ConnectOptions,
    namespace: Option<&str>,
    name: &str,
    output: Answer,
) -> anyhow::Result<()> {
    let api = connect.api()?;
    let name = full_name(&api, muster_server::Kind::Gang, namespace, name);
    let why: Why = match api.get(&gang_path(&name, "why")).await {
        Ok(why) => why,
        Err(error) => return Err(with_other_namespaces(&api, &name, error).await),
    };
    match output {
        Answer::Json => stdout::line(format_args!("{:#}", serde_json::to_value(&why)?)),
        Answer::Text => {
            why.lines.iter().for_each(stdout::line);
            if let Some(start) = why.expected_start {
                let (at, far) = (age::clock(start.0), age::until(start.0, age::now()));
                stdout::line(format_args!("expected to start {far}, at {at}"));
            }
        }
    }
    Ok(())
}
