//! `muster whoami`.

use clap::Args as ClapArgs;
use serde::{Deserialize, Serialize};

use crate::client::connection::connect::ConnectOptions;
use crate::client::output::printer::Answer;
use crate::stdout;

/// Show your name and your rights at the control plane.
#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Answer::Text)]
    output: Answer,
    #[command(flatten)]
    connect: ConnectOptions,
}

const EXAMPLES: &str = "\
Examples:
  muster whoami
  muster whoami --context lab -o json";

#[derive(Serialize, Deserialize)]
struct Me {
    name: String,
    role: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    queues: Vec<String>,
}

pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    let api = args.connect.api()?;
    let me: Me = api.get("/v1/whoami").await?;
    if args.output == Answer::Json {
        stdout::line(format_args!("{:#}", serde_json::to_value(&me)?));
        return Ok(());
    }
    let may = match &*me.role {
        "admin" => "may do everything".to_owned(),
        "viewer" => "may look".to_owned(),
        _ => format!("may look, and use {}", me.queues.join(", ")),
    };
    stdout::line(format_args!("{} ({}) {may}, at {}", me.name, me.role, api.url()));
    Ok(())
}
