//! Gangs that something is done to, by their names: one that cannot be changed does not keep the others from it.

use clap::Args;
use hyper::Method;
use muster_server::Kind;

use crate::client::connection::address::gang_path;
use crate::client::connection::api::Sent;
use crate::client::connection::connect::Reach;
use crate::client::output::columns::phase;
use crate::client::output::kinds::{elsewhere, full};
use crate::stdout;

/// Which gangs, and where they are.
#[derive(Args)]
pub(crate) struct Gangs {
    /// The gangs
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// Where they are
    #[arg(short, long)]
    namespace: Option<String>,
    #[command(flatten)]
    reach: Reach,
}

impl Gangs {
    /// Does one thing to each of them.
    pub(crate) async fn each(&self, verb: &str, done: &str) -> anyhow::Result<()> {
        let api = self.reach.api()?;
        let mut failed = None;
        for name in &self.names {
            let name = full(&api, Kind::Gang, self.namespace.as_deref(), name);
            match api.change(Method::POST, &gang_path(&name, verb), Sent::default()).await {
                Ok(gang) => {
                    let phase = gang.map(|gang| phase(&gang).to_lowercase()).unwrap_or_default();
                    let now = match &*phase {
                        "cancelled" | "held" | "" => String::new(),
                        phase => format!(" ({phase} now)"),
                    };
                    stdout::line(format_args!("gang {name} {done}{now}"));
                }
                Err(error) => {
                    let error = elsewhere(&api, &name, error).await;
                    if let Some(before) = failed.replace(error) {
                        eprintln!("error: {before:#}");
                    }
                }
            }
        }
        failed.map_or(Ok(()), Err)
    }
}
