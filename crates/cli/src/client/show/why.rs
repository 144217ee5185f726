//! Why a gang of a control plane waits.

use muster_server::Why;

use crate::client::connection::address::gang_path;
use crate::client::connection::connect::Reach;
use crate::client::output::age;
use crate::client::output::kinds::{elsewhere, full};
use crate::client::output::printer::Answer;
use crate::stdout;

/// Asks the control plane, and prints its answer.
pub(crate) async fn ask(
    reach: &Reach,
    namespace: Option<&str>,
    name: &str,
    output: Answer,
) -> anyhow::Result<()> {
    let api = reach.api()?;
    let name = full(&api, muster_server::Kind::Gang, namespace, name);
    let why: Why = match api.get(&gang_path(&name, "why")).await {
        Ok(why) => why,
        Err(error) => return Err(elsewhere(&api, &name, error).await),
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
