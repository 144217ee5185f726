//! `muster why`: asks a Kubernetes cluster or a control plane why a gang waits.

use anyhow::Context;
use clap::Args as ClapArgs;
use muster_kube::why;

use crate::client::{self, Answer, ConnectOptions};
use crate::stdout;

/// Say why a gang waits, since when, and when it is expected to start.
///
/// The query goes to the cluster of your kubeconfig with --kube, with -n where there is a kubeconfig, and when no
/// control plane is known; otherwise, and always with --server, --context or their variables, to the control plane (see
/// `muster context`). In a cluster the name may also be that of the job or the group that the gang was made of, or of a
/// single pod.
#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The gang; in a cluster also the job, group or pod
    name: String,
    /// The namespace
    #[arg(short, long)]
    namespace: Option<String>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Answer::Text)]
    output: Answer,
    /// Ask the cluster of your kubeconfig
    #[arg(long)]
    kube: bool,
    /// Ask the cluster of this context of your kubeconfig
    #[arg(long, value_name = "NAME")]
    kube_context: Option<String>,
    #[command(flatten)]
    connect: ConnectOptions,
}

const EXAMPLES: &str = "\
Examples:
  muster why train
  muster why research/train -o json | jq .expectedStart
  muster why -n team-a train                in a cluster: a Job, a PyTorchJob, a PodGroup, ... of that name
  muster why -n team-a train.job            the gang that was made of a Job
  muster why --context lab -n research train   at a control plane, although there is a kubeconfig";

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let Args { name, namespace, output, kube, kube_context, connect } = args;
    client::wait_for(async {
        let in_cluster = namespace.is_some() && !connect.is_named() && has_kubeconfig();
        if *kube || kube_context.is_some() || in_cluster || !connect.is_known() {
            return ask_cluster(args).await;
        }
        client::ask_why(connect, namespace.as_deref(), name, *output).await
    })
}

/// Whether there is a kubeconfig, or this runs in a cluster. Whether the API server answers shows later.
fn has_kubeconfig() -> bool {
    kube::config::Kubeconfig::read().is_ok_and(|config| !config.clusters.is_empty())
        || std::env::var_os("KUBERNETES_SERVICE_HOST").is_some()
}

async fn ask_cluster(args: &Args) -> anyhow::Result<()> {
    let context = &args.kube_context;
    let chosen = kube::config::KubeConfigOptions { context: context.clone(), ..Default::default() };
    let config = match context {
        Some(_) => kube::Config::from_kubeconfig(&chosen).await.map_err(anyhow::Error::from),
        None => kube::Config::infer().await.map_err(anyhow::Error::from),
    };
    let config = config.context(NO_CLUSTER)?;
    let namespace = args.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
    let client = kube::Client::try_from(config).context(NO_CLUSTER)?;
    let known = why::why(client, &namespace, &args.name).await?;
    match args.output {
        Answer::Text => known.iter().flat_map(|gang| &gang.lines).for_each(stdout::line),
        Answer::Json => {
            let all: Vec<_> = known
                .iter()
                .map(|gang| serde_json::json!({"name": gang.name, "status": gang.status}))
                .collect();
            stdout::line(format_args!("{:#}", serde_json::Value::Array(all)));
        }
    }
    Ok(())
}

const NO_CLUSTER: &str =
    "no control plane is known (start one with `muster up`), and no cluster either";
