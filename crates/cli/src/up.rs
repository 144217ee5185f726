//! `muster up`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use clap::Args as ClapArgs;
use muster_local::{Keep, Local, Options, this_machine};
use muster_plan::{Policy, QueueOrder};
use muster_server::{Caller, Config, Host, PORT, Tls, Tokens};

use crate::exit::{BadInput, Misused};
use crate::say;
use crate::signals::Signals;

/// Run a control plane on this machine, until it is told to stop.
///
/// Gangs that are submitted to it wait in their queues, and run as processes on this machine: on its own CPUs, memory and
/// GPUs, and on simulated nodes of pools that are applied. Everything is kept in one directory. When the control plane
/// ends, or is killed, gangs that run go on; started again, it finds them.
/// Others ask it over HTTP, only from this machine unless told otherwise. Without tokens, whoever can connect may do
/// everything.
#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Manifests to apply at the start
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Where everything is kept
    #[arg(long, value_name = "DIR", env = "MUSTER_DATA")]
    data: Option<PathBuf>,
    /// Where it listens; port 0 is one that is free
    #[arg(long, value_name = "ADDRESS", default_values_t = [SocketAddr::from(([127, 0, 0, 1], PORT))])]
    listen: Vec<SocketAddr>,
    /// Who may ask, and what they may do
    #[arg(long, value_name = "FILE")]
    tokens: Option<PathBuf>,
    /// The certificate of the server, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Its key, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// How long gangs are kept that are over, with what they printed; what they used is kept for good
    #[arg(long, value_name = "TIME", default_value = "7d", value_parser = time)]
    keep: std::time::Duration,
    /// How many gangs are kept that are over
    #[arg(long, value_name = "COUNT", default_value_t = 10_000)]
    keep_gangs: u64,
    /// Do not offer this machine as a node
    #[arg(long)]
    no_local: bool,
    /// Simulated seconds per second, for the nodes of simulated pools
    #[arg(long, default_value_t = 1.0, value_parser = crate::rehearse::speed, allow_negative_numbers = true)]
    speed: f64,
    #[arg(long, value_name = "NAME", default_value = "muster", help = crate::settings::orders())]
    policy: QueueOrder,
    #[arg(long, value_name = "NAME=VALUE", help = crate::settings::help())]
    set: Vec<String>,
    /// Where the randomness of simulated clouds starts
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

const EXAMPLES: &str = "\
Examples:
  muster up                                 this machine's GPUs, with everything in ~/.local/share/muster
  muster up --speed 30 pools.yaml           with simulated pools, whose nodes boot thirty times as fast
  muster up --listen 0.0.0.0:7480 --tokens tokens.yaml --tls-cert cert.pem --tls-key key.pem

Then, in another terminal: muster submit job.yaml; muster get gangs; muster logs -f job";

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
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

/// Where everything is kept when nobody says.
pub(crate) fn data_directory() -> anyhow::Result<PathBuf> {
    let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".local/share"));
    let base = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from).or_else(home);
    let base = base.ok_or_else(|| Misused("there is no HOME: give --data".to_owned()))?;
    Ok(base.join("muster"))
}

async fn serve(args: &Args) -> anyhow::Result<()> {
    let mut signals = Signals::heard()?;
    let intake = muster_local::read_files(&args.files).map_err(BadInput)?;
    let data = match &args.data {
        Some(data) => data.clone(),
        None => data_directory()?,
    };
    let tokens = match &args.tokens {
        Some(file) => Tokens::read(file).map_err(|error| Misused(error.to_string()))?,
        None => Tokens::none(),
    };
    let tls = args.tls_cert.clone().zip(args.tls_key.clone());
    let secure = tls.is_some();
    let node = (!args.no_local).then(this_machine);
    let keep = Keep { time: args.keep, gangs: args.keep_gangs };
    let mut policy = Policy { order: args.policy, ..Policy::default() };
    crate::settings::apply(&mut policy, &args.set)?;
    let (speed, seed) = (args.speed, args.seed);
    let options = Options { data: data.clone(), speed, seed, node, keep, policy };
    let local = Arc::new(Local::start(&options, Vec::new(), tokio::runtime::Handle::current())?);
    let config = Config {
        listen: args.listen.clone(),
        tokens,
        tls: tls.map(|(certificate, key)| Tls { certificate, key }),
        memory: local.clone(),
        ..Config::default()
    };
    let bound = muster_server::bind(config).await.map_err(|error| Misused(error.to_string()))?;
    let me = Caller::admin("up");
    let applied = local.take(me, intake, false).await;
    for one in applied.map_err(crate::run::refused)? {
        one.warnings.iter().for_each(|warning| eprintln!("warning: {warning}"));
    }
    let scheme = if secure { "https" } else { "http" };
    let address = bound.addresses().first().copied().context("no address")?;
    let url = format!("{scheme}://{address}");
    let note = Note::write(&data, &url)?;
    say::line(format_args!("muster listens on {url}, and keeps everything in {}", data.display()));
    let host: Arc<dyn Host> = local.clone();
    tokio::select! {
        () = bound.serve(host, async move { signals.next().await }) => {}
        () = ended(local.clone()) => {}
    }
    drop(note);
    local.quit().await;
    local.join()?;
    say::line("muster has stopped; gangs that run go on");
    Ok(())
}

/// Waits until the control plane has ended by itself: its database cannot be written any more.
async fn ended(local: Arc<Local>) {
    while local.is_alive() {
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
}

/// Where others find the server. Removed when it ends.
struct Note(PathBuf);

impl Note {
    fn write(data: &Path, url: &str) -> anyhow::Result<Self> {
        let path = data.join("server.json");
        let text = serde_json::json!({"url": url, "pid": std::process::id()}).to_string();
        let part = data.join("server.json.part");
        std::fs::write(&part, text).and_then(|()| std::fs::rename(&part, &path))?;
        Ok(Self(path))
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
