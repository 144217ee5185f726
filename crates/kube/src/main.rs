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
/// Pods whose schedulerName is Muster's are bound gang by gang: all members together, or none. Pods of other schedulers
/// that have Muster's scheduling gate are ungated in the same way. Where Pools allow it, Muster requests the nodes that a
/// gang lacks from Karpenter or from an autoscaler, all together, and uses them only when every one of them is ready.
#[derive(Parser)]
#[command(version, max_term_width = 120)]
struct Args {
    /// Bind pods with this schedulerName; may be repeated, and replaces the default
    #[arg(long, value_name = "NAME", default_values_t = ["muster".to_owned()])]
    scheduler_name: Vec<String>,
    /// Count this resource as GPUs although its name does not end in /gpu; may be repeated
    #[arg(long, value_name = "NAME")]
    gpu_resource: Vec<String>,
    /// The order of waiting gangs: muster, fifo, easy, fair and others (see `muster simulate --help`)
    #[arg(long, value_name = "NAME", default_value = "muster")]
    policy: String,
    #[arg(long, value_name = "NAME=VALUE", help = settings())]
    set: Vec<String>,
    /// The namespace of the leader election Lease and of Muster's ProvisioningRequests
    #[arg(long, value_name = "NAME", env = "POD_NAMESPACE", default_value = "muster-system")]
    namespace: String,
    /// The holder identity of this replica in the Lease; a random part is appended
    #[arg(long, value_name = "NAME", env = "POD_NAME")]
    identity: Option<String>,
    /// Elect one leader among the replicas by a Lease; if false, there must be only one replica
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
    /// Another replica becomes the leader when the Lease was not renewed for this long
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = at_least::<2>)]
    lease_duration: Span,
    /// The leader exits and lets the Lease expire when its decision loop has made no progress for this long
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
    /// Trust the annotation muster.sh/user: an admission policy sets it to the user that creates an object, and keeps
    /// others from writing it. Without this, `userLimit` counts a gang for its namespace
    #[arg(long)]
    trust_user_annotation: bool,
    /// The most members that one gang may have; a larger gang is not planned, and its status says so
    #[arg(long, value_name = "COUNT", default_value_t = MAX_GANG_MEMBERS, value_parser = clap::value_parser!(u32).range(1..))]
    max_gang_members: u32,
    /// The most gangs of one namespace that are planned at one time; the others wait for them, the oldest first
    #[arg(long, value_name = "COUNT", default_value_t = MAX_GANGS_PER_NAMESPACE, value_parser = clap::value_parser!(u32).range(1..))]
    max_gangs_per_namespace: u32,
    /// Leave out an object, with an Event on it, when the fields that Muster reads are larger than this
    #[arg(long, value_name = "SIZE", default_value = "128Ki", value_parser = size)]
    max_object_size: usize,
    /// Leave out the newest objects of a namespace, with Events on them, when its objects take more memory than this
    #[arg(long, value_name = "SIZE", default_value = "64Mi", value_parser = size)]
    max_namespace_memory: usize,
    /// Disable a feature that this controller has no rights for; may be repeated
    #[arg(long, value_name = "FEATURE")]
    disable: Vec<Feature>,
    /// A fault to inject, for tests
    #[cfg(feature = "cluster")]
    #[arg(long, hide = true)]
    fault: Vec<muster_kube::Fault>,
}

/// A size in bytes, at least one kibibyte.
fn size(text: &str) -> Result<usize, String> {
    let size: Quantity = text.parse().map_err(|why: QuantityError| why.to_string())?;
    let bytes = size.ceil_units().and_then(|bytes| usize::try_from(bytes).ok());
    bytes.filter(|bytes| *bytes >= 1_024).ok_or_else(|| "must be 1Ki at least".to_owned())
}

/// A duration such as `90s` or `2m`, of at least `SECONDS`. No timeout needs more than a year.
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
    format!("Change a setting of the policy; may be repeated:\n{}", Policy::settings())
}

/// The server ends a watch after 290 seconds at most; a connection that is silent for longer is broken.
const READ_TIMEOUT: Duration = Duration::from_secs(330);

/// The log filter from `MUSTER_LOG`. The client logs whole answers that it cannot read, which contain tenants' environment
/// variables: of the client only errors are logged, whatever `MUSTER_LOG` says.
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
            tracing::error!(%error, "cannot start threads");
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

/// One thread for the decision loop, and at least one for requests to the API server meanwhile.
fn threads() -> usize {
    std::thread::available_parallelism().map_or(2, |cores| cores.get().max(2))
}

/// Why the controller exits with a failure.
#[derive(Debug, thiserror::Error)]
enum ControllerError {
    #[error("no cluster configuration was found: {}", with_causes(.0))]
    NoConfig(kube::config::InferConfigError),
    #[error("--policy {0}: {1}")]
    Policy(String, String),
    #[error("--set: {0}")]
    Setting(String),
    #[error(transparent)]
    Host(#[from] HostError),
    #[error("cannot listen for signals: {0}")]
    Signals(std::io::Error),
}

async fn serve(args: Args) -> Result<(), ControllerError> {
    let config = config(&args)?;
    let mut cluster = kube::Config::infer().await.map_err(ControllerError::NoConfig)?;
    // Callers retry at their own pace and only while they lead; the client must not retry for them.
    cluster.default_retry = false;
    cluster.read_timeout = Some(READ_TIMEOUT);
    let mut terminate = signal(SignalKind::terminate()).map_err(ControllerError::Signals)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(ControllerError::Signals)?;
    let shutdown = async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("shutting down");
    };
    run(cluster, config, shutdown).await?;
    Ok(())
}

fn config(args: &Args) -> Result<Config, ControllerError> {
    let order: Result<QueueOrder, String> = args.policy.parse();
    let order = order.map_err(|error| ControllerError::Policy(args.policy.clone(), error))?;
    let mut policy = Policy { order, ..Config::policy() };
    args.set
        .iter()
        .try_for_each(|setting| policy.set(setting))
        .map_err(ControllerError::Setting)?;
    let identity = lease::unique_identity(args.identity.as_deref());
    let mut lease = lease::LeaseConfig::new(&args.namespace, identity);
    lease.stall_timeout = Duration::from_millis(args.stall_timeout.0);
    lease.duration = Duration::from_millis(args.lease_duration.0);
    lease.retry_period = lease.duration / 5;
    Ok(Config {
        scheduler_names: args.scheduler_name.clone(),
        gpus: GpuNames { others: args.gpu_resource.iter().cloned().collect() },
        policy,
        namespace: args.namespace.clone(),
        lease: args.leader_elect.then_some(lease),
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
