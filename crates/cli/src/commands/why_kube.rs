//! `muster why`.

use anyhow::Context;
use clap::Args as ClapArgs;
use muster_kube::why;

use crate::client::{self, Answer, Reach};
use crate::stdout;

/// Say why a gang waits, for how long it has, and when it is expected to start.
///
/// The cluster of your kubeconfig is asked with --kube, with -n where there is a kubeconfig, and when no control plane is
/// known; the control plane that is known (see `muster context`) otherwise, and always with --server, --context or their
/// variables. In a cluster the name may also be that of the job or the group that the gang was made of, or of a pod that
/// is by itself.
#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The gang; in a cluster also the job, group or pod
    name: String,
    /// Where it is
    #[arg(short, long)]
    namespace: Option<String>,
    /// What to print
    #[arg(short, long, value_enum, default_value_t = Answer::Text)]
    output: Answer,
    /// Ask the cluster of your kubeconfig
    #[arg(long)]
    kube: bool,
    /// Ask the cluster of this context of your kubeconfig
    #[arg(long, value_name = "NAME")]
    kube_context: Option<String>,
    #[command(flatten)]
    reach: Reach,
}

const EXAMPLES: &str = "\
Examples:
  muster why train
  muster why research/train -o json | jq .expectedStart
  muster why -n team-a train                in a cluster: a Job, a PyTorchJob, a PodGroup, ... of that name
  muster why -n team-a train.job            the gang that was made of a Job
  muster why --context lab -n research train   at a control plane, although there is a kubeconfig";

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let Args { name, namespace, output, kube, kube_context, reach } = args;
    client::wait_for(async {
        let in_cluster = namespace.is_some() && !reach.is_named() && has_kubeconfig();
        if *kube || kube_context.is_some() || in_cluster || !reach.is_known() {
            return ask_cluster(args).await;
        }
        client::ask_why(reach, namespace.as_deref(), name, *output).await
    })
}

/// Whether there is a kubeconfig, or this runs in a cluster. Whether somebody answers there is seen when asked.
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
    let config = config.context(NOBODY)?;
    let namespace = args.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
    let client = kube::Client::try_from(config).context(NOBODY)?;
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

const NOBODY: &str =
    "no control plane is known (start one with `muster up`), and no cluster either";
