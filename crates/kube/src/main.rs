//! `muster-controller`: the Kubernetes host as a program.

use std::process::ExitCode;
use std::time::Duration;

use clap::{ArgAction, Parser};
use muster_api::pod::GpuNames;
use muster_core::quantity::{Quantity, QuantityError};
use muster_core::time::{Span, SpanError};
use muster_kube::features::Feature;
use muster_kube::{
    Bounds, Config, HostError, MAX_GANG_MEMBERS, MAX_GANGS_PER_NAMESPACE, lease, run, with_causes,
};
use muster_plan::{Policy, QueueOrder};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

/// Schedule and provision gangs on Kubernetes.
///
/// Pods that name Muster as their scheduler are bound gang by gang: all members together, or none. Pods of other
/// schedulers that have its gate are let go in the same way. Where Pools allow, the nodes a gang lacks are asked of
/// Karpenter or of an autoscaler, all together, and used only when every one of them is ready.
#[derive(Parser)]
#[command(version, max_term_width = 120)]
struct Args {
    /// Bind pods that ask for this scheduler; may be repeated. Who names others and wants muster too names it as well
    #[arg(long, value_name = "NAME", default_values_t = ["muster".to_owned()])]
    scheduler_name: Vec<String>,
    /// A resource that is GPUs although its name does not end in /gpu; may be repeated
    #[arg(long, value_name = "NAME")]
    gpu_resource: Vec<String>,
    /// How gangs are ordered: muster, fifo, easy, fair and others (see `muster simulate --help`)
    #[arg(long, value_name = "NAME", default_value = "muster")]
    policy: String,
    #[arg(long, value_name = "NAME=VALUE", help = settings())]
    set: Vec<String>,
    /// Muster's own namespace: of the lease that says which replica acts, and of requests to autoscalers
    #[arg(long, value_name = "NAME", env = "POD_NAMESPACE", default_value = "muster-system")]
    namespace: String,
    /// What this replica is called in the lease, with a random part behind it that no other process has
    #[arg(long, value_name = "NAME", env = "POD_NAME")]
    identity: Option<String>,
    /// Elect one leader among the replicas by a Lease; without it there must be one replica only
    #[arg(
        long,
        value_name = "BOOL",
        default_value_t = true,
        default_missing_value = "true",
        num_args = 0..=1,
        require_equals = true,
        action = ArgAction::Set
    )]
    leader_elect: bool,
    /// Another replica takes over when the leader has not renewed the lease for this long
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = at_least::<2>)]
    lease_duration: Span,
    /// The leader resigns and exits when its decision loop has made no progress for this long
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = at_least::<15>)]
    stall_timeout: Span,
    /// A gang starts over when its volumes are not bound within this time
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = at_least::<1>)]
    volume_binding_timeout: Span,
    /// A gang starts over when only some of its pods could be bound within this time
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = at_least::<1>)]
    bind_timeout: Span,
    /// A gang starts over when another scheduler has not bound all of its pods this long after their scheduling gates
    /// were removed
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = at_least::<1>)]
    handover_timeout: Span,
    /// Capacity booked by a ProvisioningRequest is kept for its pods for this long
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = at_least::<1>)]
    booking_ttl: Span,
    /// Believe the annotation muster.sh/user: an admission policy stamps it with the user that creates an object, and
    /// keeps others from writing it. Without this a gang counts for its namespace in `userLimit`
    #[arg(long)]
    trust_user_annotation: bool,
    /// The most members that one gang may have; a gang of more is told so and not planned
    #[arg(long, value_name = "COUNT", default_value_t = MAX_GANG_MEMBERS, value_parser = clap::value_parser!(u32).range(1..))]
    max_gang_members: u32,
    /// The most gangs of one namespace that are planned at one time; the others wait for them, the oldest first
    #[arg(long, value_name = "COUNT", default_value_t = MAX_GANGS_PER_NAMESPACE, value_parser = clap::value_parser!(u32).range(1..))]
    max_gangs_per_namespace: u32,
    /// An object is left out, with an Event that says so, when the fields that Muster reads of it are larger than this
    #[arg(long, value_name = "SIZE", default_value = "128Ki", value_parser = size)]
    max_object_size: usize,
    /// The newest objects of a namespace are left out, with Events that say so, when what Muster keeps of all of them takes
    /// more memory than this
    #[arg(long, value_name = "SIZE", default_value = "64Mi", value_parser = size)]
    max_namespace_memory: usize,
    /// A feature that is off, because this controller has no rights for it; may be repeated
    #[arg(long, value_name = "FEATURE")]
    disable: Vec<Feature>,
    /// A fault to inject, for tests
    #[cfg(feature = "cluster")]
    #[arg(long, hide = true)]
    fault: Vec<muster_kube::Fault>,
}

/// Bytes, at least a kilobyte of them.
fn size(text: &str) -> Result<usize, String> {
    let size: Quantity = text.parse().map_err(|why: QuantityError| why.to_string())?;
    let bytes = size.ceil_units().and_then(|bytes| usize::try_from(bytes).ok());
    bytes.filter(|bytes| *bytes >= 1_024).ok_or_else(|| "must be 1Ki at least".to_owned())
}

/// A duration such as `90s` or `2m`, of at least so many seconds. No timeout needs more than a year.
fn at_least<const SECONDS: u64>(text: &str) -> Result<Span, String> {
    let span: Span = text.parse().map_err(|why: SpanError| why.to_string())?;
    match span {
        span if span < Span::secs(SECONDS) => Err(format!("must be {SECONDS}s at least")),
        span if span > YEAR => Err("must be 365d at most".to_owned()),
        span => Ok(span),
    }
}

const YEAR: Span = Span::mins(365 * 24 * 60);

fn settings() -> String {
    format!("A setting of the policy; may be repeated:\n{}", Policy::settings())
}

/// The server ends a watch after 290 seconds at most; who is silent for longer is not there any more.
const SILENT: Duration = Duration::from_secs(330);

/// What is logged by whom, as `MUSTER_LOG` says. The client logs whole answers that it cannot read, in which tenants' environment
/// variables stand: never below an error, whatever is asked for.
fn filter() -> EnvFilter {
    let filter = EnvFilter::try_from_env("MUSTER_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    filter.add_directive("kube_client::client=error".parse().expect("a directive"))
}

fn main() -> ExitCode {
    let args = Args::parse();
    tracing_subscriber::fmt().with_env_filter(filter()).with_writer(std::io::stderr).init();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(threads()).enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            tracing::error!(%error, "no threads can be started");
            return ExitCode::FAILURE;
        }
    };
    let ended = runtime.block_on(serve(args));
    // A decision loop that hangs is not waited for.
    runtime.shutdown_background();
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// One for the decision loop, and at least one for all that is asked of the API server meanwhile.
fn threads() -> usize {
    std::thread::available_parallelism().map_or(2, |cores| cores.get().max(2))
}

/// Why there is nothing to run.
#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error("the cluster cannot be found: {}", with_causes(.0))]
    NoConfig(kube::config::InferConfigError),
    #[error("--policy {0}: {1}")]
    Policy(String, String),
    #[error("--set: {0}")]
    Setting(String),
    #[error(transparent)]
    Host(#[from] HostError),
    #[error("signals cannot be listened to: {0}")]
    Signals(std::io::Error),
}

async fn serve(args: Args) -> Result<(), Failed> {
    let config = config(&args)?;
    let mut cluster = kube::Config::infer().await.map_err(Failed::NoConfig)?;
    // Whoever asks asks again, at its own pace and only as long as it may: not whoever carries the question.
    cluster.default_retry = false;
    cluster.read_timeout = Some(SILENT);
    let mut end = signal(SignalKind::terminate()).map_err(Failed::Signals)?;
    let mut stop = signal(SignalKind::interrupt()).map_err(Failed::Signals)?;
    let shutdown = async move {
        tokio::select! {
            _ = end.recv() => {}
            _ = stop.recv() => {}
        }
        tracing::info!("told to end");
    };
    run(cluster, config, shutdown).await?;
    Ok(())
}

fn config(args: &Args) -> Result<Config, Failed> {
    let order: Result<QueueOrder, String> = args.policy.parse();
    let order = order.map_err(|error| Failed::Policy(args.policy.clone(), error))?;
    let mut policy = Policy { order, ..Config::policy() };
    args.set.iter().try_for_each(|setting| policy.set(setting)).map_err(Failed::Setting)?;
    let identity = lease::unique(args.identity.as_deref());
    let mut terms = lease::LeaseConfig::new(&args.namespace, identity);
    terms.stall = Duration::from_millis(args.stall_timeout.0);
    terms.duration = Duration::from_millis(args.lease_duration.0);
    terms.every = terms.duration / 5;
    Ok(Config {
        scheduler_names: args.scheduler_name.clone(),
        gpus: GpuNames { others: args.gpu_resource.iter().cloned().collect() },
        policy,
        namespace: args.namespace.clone(),
        lease: args.leader_elect.then_some(terms),
        volume_binding_timeout: args.volume_binding_timeout,
        bind_timeout: args.bind_timeout,
        handover_timeout: args.handover_timeout,
        booking_ttl: args.booking_ttl,
        trust_users: args.trust_user_annotation,
        disabled: args.disable.iter().copied().collect(),
        #[cfg(feature = "cluster")]
        faults: args.fault.clone(),
        max_gang_members: args.max_gang_members,
        max_gangs_per_namespace: args.max_gangs_per_namespace,
        bounds: Bounds { object: args.max_object_size, namespace: args.max_namespace_memory },
        ..Config::default()
    })
}
