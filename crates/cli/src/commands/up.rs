//! `muster up`.

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use clap::Args as ClapArgs;
use muster_local::{Keep, Local, Options, may_change_user, this_machine};
use muster_plan::{Policy, QueueOrder};
use muster_server::{AuditLog, Caller, Config, Host, Limits, PORT, Role, Tls, TokenFile, Tokens};

use crate::commands::{rehearse, run};
use crate::exit::{BadInput, UsageError};
use crate::owner_credential::{self, EndpointFile};
use crate::signals::Signals;
use crate::{policy_options, stdout};

/// Run a control plane on this machine, until it is told to stop.
///
/// Submitted gangs wait in their queues and run as processes on this machine: on its own CPUs, memory and GPUs, and on
/// simulated nodes of applied pools. All state is stored in one directory. When the control plane ends, or is killed,
/// running gangs go on; after a restart it finds them again. It serves HTTP, only to this machine unless configured
/// otherwise. Every request needs a credential: that of the owner of the directory, which the command finds by itself,
/// or with `--tokens` a token of that file. Workers run as the user that runs the control plane, or as the `runAs` of
/// the token that submitted them; so it refuses by default to run workers of others as root.
#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Manifests to apply at the start
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The data directory
    #[arg(long, value_name = "DIR", env = "MUSTER_DATA")]
    data: Option<PathBuf>,
    /// The address to listen on; port 0 selects a free port
    #[arg(long, value_name = "ADDRESS", default_values_t = [SocketAddr::from(([127, 0, 0, 1], PORT))])]
    listen: Vec<SocketAddr>,
    /// The file of tokens with their roles; read again when it changes (`muster token`)
    #[arg(long, value_name = "FILE")]
    tokens: Option<PathBuf>,
    /// Require no credential: every user and every container of this machine can then run commands as you
    #[arg(long, conflicts_with = "tokens")]
    no_credentials: bool,
    /// Run as root even where others can then run commands as root
    #[arg(long)]
    allow_root: bool,
    /// A variable of this environment that is passed on to workers
    #[arg(long, value_name = "NAME")]
    pass_env: Vec<String>,
    /// The certificate of the server, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The key of the certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// How long finished gangs are kept, with their output; their usage is kept for good
    #[arg(long, value_name = "TIME", default_value = "7d", value_parser = time)]
    keep: std::time::Duration,
    /// The number of finished gangs that are kept
    #[arg(long, value_name = "COUNT", default_value_t = 10_000)]
    keep_gangs: u64,
    /// Do not offer this machine as a node
    #[arg(long)]
    no_local: bool,
    /// Simulated seconds per second, for the nodes of simulated pools
    #[arg(long, default_value_t = 1.0, value_parser = rehearse::speed, allow_negative_numbers = true)]
    speed: f64,
    #[arg(long, value_name = "NAME", default_value = "muster", help = policy_options::orders_help())]
    policy: QueueOrder,
    #[arg(long, value_name = "NAME=VALUE", help = policy_options::settings_help())]
    set: Vec<String>,
    /// The random seed of simulated clouds
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

const EXAMPLES: &str = "\
Examples:
  muster up                                 this machine's GPUs, with all data in ~/.local/share/muster
  muster up --speed 30 pools.yaml           with simulated pools, whose nodes boot thirty times as fast
  muster up --listen 0.0.0.0:7480 --tokens tokens.yaml --tls-cert cert.pem --tls-key key.pem

Then, in another terminal: muster submit job.yaml; muster get gangs; muster logs -f job";

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    // Before other threads exist, and before anything is written.
    muster_local::keep_private();
    let filter = tracing_subscriber::EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve(args))
}

fn time(text: &str) -> Result<std::time::Duration, String> {
    let span: jiff::Span = text.parse().map_err(|_| "a time is like 7d, 12h or 90s".to_owned())?;
    let time = span.to_duration(jiff::SpanRelativeTo::days_are_24_hours());
    let time = time.ok().and_then(|time| std::time::Duration::try_from(time).ok());
    time.ok_or_else(|| "a time is in days, hours, minutes or seconds, and not negative".to_owned())
}

/// The default data directory.
pub(crate) fn data_directory() -> anyhow::Result<PathBuf> {
    let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".local/share"));
    let base = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from).or_else(home);
    let base = base.ok_or_else(|| UsageError("there is no HOME: give --data".to_owned()))?;
    Ok(base.join("muster"))
}

/// File handles reserved for workers, logs and the database when all connections are taken.
const RESERVED_FILES: usize = 256;

/// Raises the limit on open files as far as possible, and returns it.
fn raise_files() -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    let now = getrlimit(Resource::Nofile).current;
    now.map_or(usize::MAX, |now| usize::try_from(now).unwrap_or(usize::MAX))
}

/// The accepted tokens: those of a file, or the token of the data directory's owner, which is returned as well.
fn credentials(args: &Args, data: &Path) -> anyhow::Result<(Tokens, Option<String>)> {
    if let Some(file) = &args.tokens {
        let tokens = Tokens::read(file).map_err(|error| UsageError(error.to_string()))?;
        check_users(args, file)?;
        return Ok((tokens, None));
    }
    check_root(args, args.no_credentials)?;
    if args.no_credentials {
        eprintln!(
            "warning: no credential is required: every user, every process and every container that reaches {} \
             can run commands as this user",
            args.listen.first().map(ToString::to_string).unwrap_or_default()
        );
        return Ok((Tokens::none(), None));
    }
    let token = owner_credential::owner_token(data)?;
    Ok((Tokens::owner(&token), Some(token)))
}

/// Refuses to run as root where others could run commands as root.
fn check_root(args: &Args, open: bool) -> anyhow::Result<()> {
    let far = args.listen.iter().any(|address| !address.ip().is_loopback());
    if may_change_user() && (open || far) && !args.allow_root {
        let why = if open { "without credentials" } else { "for other machines" };
        let why = format!(
            "this would run commands as root {why}: run it as another user, or give --allow-root"
        );
        return Err(UsageError(why).into());
    }
    Ok(())
}

/// Checks that workers of every token in a file can run as the user that the token names.
fn check_users(args: &Args, file: &Path) -> anyhow::Result<()> {
    let known = TokenFile::read(file).map_err(|error| UsageError(error.to_string()))?;
    let mut as_root = false;
    for one in &known.tokens {
        match &one.run_as {
            Some(user) => muster_local::check_user(user).map_err(|why| {
                UsageError(format!("{}: runAs of {}: {why}", file.display(), one.name))
            })?,
            None => as_root |= one.role != Role::Viewer,
        }
        if one.run_as.is_some() && !may_change_user() {
            eprintln!(
                "warning: workers of {} run as this user: only root can run them as other users",
                one.name
            );
        }
    }
    if may_change_user() && as_root && !args.allow_root {
        let why = "workers of some tokens would run as root: give each of them `runAs: USER`, run this as another user, \
                   or give --allow-root";
        return Err(UsageError(format!("{}: {why}", file.display())).into());
    }
    Ok(())
}

async fn serve(args: &Args) -> anyhow::Result<()> {
    let mut signals = Signals::listen()?;
    let files = raise_files();
    let intake = muster_local::read_files(&args.files).map_err(BadInput)?;
    let data = match &args.data {
        Some(data) => data.clone(),
        None => data_directory()?,
    };
    let (tokens, token) = credentials(args, &data)?;
    let tls = args.tls_cert.clone().zip(args.tls_key.clone());
    let scheme = if tls.is_some() { "https" } else { "http" };
    let config = Config {
        listen: args.listen.clone(),
        tokens,
        tls: tls.map(|(certificate, key)| Tls { certificate, key }),
        limits: Limits::default().within_files(files, RESERVED_FILES),
        ..Config::default()
    };
    // Before anything is started: a port that is taken ends the command here.
    let bound = muster_server::bind(config).await.map_err(|error| UsageError(error.to_string()))?;
    let options = options(args, data.clone())?;
    let local = Arc::new(Local::start(&options, Vec::new(), tokio::runtime::Handle::current())?);
    let audit = Arc::new(AuditLog::open(&data.join(AUDIT)).context("the audit log")?);
    let bound = bound.with_memory(local.clone()).with_audit(audit.clone());
    let applied = local.take(Caller::admin("up"), intake, false).await;
    for one in applied.map_err(run::refused)? {
        one.warnings.iter().for_each(|warning| eprintln!("warning: {warning}"));
    }
    let address = bound.addresses().first().copied().context("no address")?;
    let url = format!("{scheme}://{address}");
    let endpoint = EndpointFile::write(&data, &url, token.as_deref())?;
    greet(&url, &data, token.as_deref());
    let host: Arc<dyn Host> = local.clone();
    // The endpoint file is removed before the port is closed: no client is sent to the next process on that port.
    let stopped = async move {
        signals.next().await;
        drop(endpoint);
    };
    tokio::select! {
        () = bound.serve(host, stopped) => {}
        () = ended(local.clone()) => {}
    }
    local.quit().await;
    audit.flush();
    local.join()?;
    stdout::line("muster has stopped; running gangs go on");
    Ok(())
}

/// The audit log, in the data directory.
const AUDIT: &str = "audit.jsonl";

fn options(args: &Args, data: PathBuf) -> anyhow::Result<Options> {
    let node = (!args.no_local).then(this_machine);
    let keep = Keep { time: args.keep, gangs: args.keep_gangs };
    let mut policy = Policy { order: args.policy, ..Policy::default() };
    policy_options::apply(&mut policy, &args.set)?;
    let (speed, seed, pass_env) = (args.speed, args.seed, args.pass_env.clone());
    // Without a file of tokens all workers belong to the owner of the directory, which is this user.
    let may_run_as_root = args.tokens.is_none() || args.allow_root;
    Ok(Options { data, speed, seed, node, keep, policy, pass_env, may_run_as_root })
}

/// Prints the address, and how to sign in with a browser. The link is printed to terminals only, not to logs: it
/// contains the token.
fn greet(url: &str, data: &Path, token: Option<&str>) {
    stdout::line(format_args!(
        "muster listens on {url}, and stores its data in {}",
        data.display()
    ));
    match token {
        Some(token) if std::io::stdout().is_terminal() => {
            stdout::line(format_args!("sign in with a browser: {url}/login?token={token}"));
        }
        Some(_) => stdout::line(format_args!(
            "sign in with a browser: {url}/login?token=TOKEN, with the token in {}",
            data.join("token").display()
        )),
        None => {}
    }
}

/// Waits until the control plane has ended by itself, because its database cannot be written any more.
async fn ended(local: Arc<Local>) {
    while local.is_alive() {
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
}
