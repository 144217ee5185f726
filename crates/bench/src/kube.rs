//! `cargo xtask bench kube`: pods bound per second on a real API server, beside kube-scheduler and beside the bare loop.
//!
//! The Kubernetes client is the largest dependency, so the measuring program is an example of `muster-kube` that is built
//! only for this.

use std::process::Command;

use anyhow::{Context, ensure};
use clap::Args as ClapArgs;

/// Create gangs at once on many nodes, and time them until the last pod is bound.
///
/// The same pods for Muster, for kube-scheduler with native gangs, for kube-scheduler without gangs, and for a bare loop
/// of creates and binds. One JSON object; `muster`, `kube_gang`, `kube_plain` and `limit` are pods per second.
#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// Print JSON; nothing else is printed on stdout anyway
    #[arg(long)]
    json: bool,
    /// Nodes with 8 GPUs
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    nodes: u32,
    /// Gangs
    #[arg(long, value_name = "N", default_value_t = 250)]
    gangs: u32,
    /// Pods of each gang, with one GPU each
    #[arg(long, value_name = "N", default_value_t = 16)]
    members: u32,
    /// What is measured, in this order
    #[arg(long, value_name = "KINDS", default_value = "limit,kube_plain,kube_gang,muster")]
    kinds: String,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let build = ["build", "--release", "--package", "muster-kube", "--features", "cluster"];
    let what = ["--bin", "muster-controller", "--example", "throughput"];
    let built = Command::new(&cargo).args(build).args(what).status().context("cargo build")?;
    ensure!(built.success(), "the benchmark could not be built");
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| "target".into(), std::path::PathBuf::from);
    let release = target.join("release");
    let measured = Command::new(release.join("examples/throughput"))
        .args([args.nodes, args.gangs, args.members].map(|number| number.to_string()))
        .arg(release.join("muster-controller"))
        .arg(&args.kinds)
        .status()
        .context("the benchmark could not be started")?;
    ensure!(measured.success(), "the benchmark failed");
    let _ = args.json;
    Ok(())
}
