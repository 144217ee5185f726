//! Changes gangs by their names. A gang that cannot be changed does not keep the others from being changed.

use clap::Args;
use hyper::Method;
use muster_server::Kind;

use crate::client::connection::address::gang_path;
use crate::client::connection::api::Payload;
use crate::client::connection::connect::ConnectOptions;
use crate::client::output::columns::phase;
use crate::client::output::kinds::{full_name, with_other_namespaces};
use crate::stdout;

/// Names and namespace of the gangs.
#[derive(Args)]
pub(crate) struct Gangs {
    /// The gangs
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// The namespace of the gangs
    #[arg(short, long)]
    namespace: Option<String>,
    #[command(flatten)]
    connect: ConnectOptions,
}

impl Gangs {
    /// Posts one change to each of the gangs.
    pub(crate) async fn each(&self, verb: &str, done: &str) -> anyhow::Result<()> {
        let api = self.connect.api()?;
        let mut failed = None;
        for name in &self.names {
            let name = full_name(&api, Kind::Gang, self.namespace.as_deref(), name);
            match api.change(Method::POST, &gang_path(&name, verb), Payload::default()).await {
                Ok(gang) => {
                    let phase = gang.map(|gang| phase(&gang).to_lowercase()).unwrap_or_default();
                    let now = match &*phase {
                        "cancelled" | "held" | "" => String::new(),
                        phase => format!(" ({phase} now)"),
                    };
                    stdout::line(format_args!("gang {name} {done}{now}"));
                }
                Err(error) => {
                    let error = with_other_namespaces(&api, &name, error).await;
                    if let Some(before) = failed.replace(error) {
                        eprintln!("error: {before:#}");
                    }
                }
            }
        }
        failed.map_or(Ok(()), Err)
    }
}
