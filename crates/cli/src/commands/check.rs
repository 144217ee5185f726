//! `muster check`.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use crate::exit::BadInput;
use crate::figures::count;
use crate::stdout;

/// Read manifests and report all errors in them, with file, line, field and reason.
///
/// All files are read together: a gang in one may name a queue in another. Kubernetes workloads (Job, JobSet,
/// PyTorchJob, MPIJob, ...) are checked as the gangs they become here. Exit code 0 when everything can be run, 2 when
/// there is an error. Warnings do not change the exit code.
#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Manifests (YAML, any number of documents each)
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print one JSON object with all findings
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  muster check examples/quickstart.yaml
  muster check queues.yaml pools.yaml jobs/*.yaml
  muster check --json job.yaml | jq '.findings[] | {line, field, reason}'";

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let read = muster_local::check_files(&args.files);
    let (read, workloads) = match read {
        Ok((manifests, workloads)) => (Ok(manifests), workloads),
        Err(findings) => (Err(findings), 0),
    };
    if args.json {
        let (valid, findings) = match &read {
            Ok(manifests) => (true, &manifests.warnings),
            Err(findings) => (false, findings),
        };
        stdout::line(serde_json::json!({ "valid": valid, "findings": findings }));
        if !valid {
            std::process::exit(2);
        }
        return Ok(());
    }
    let manifests = read.map_err(BadInput)?;
    for warning in &manifests.warnings {
        eprintln!("warning: {warning}");
    }
    // There is always a queue named `default`, whether or not a manifest describes it.
    stdout::line(format_args!(
        "ok: {}, {} (with the default one), {}, {}",
        count(manifests.gangs.len() + workloads, "gang"),
        count(manifests.queues.len(), "queue"),
        count(manifests.pools.len(), "pool"),
        count(manifests.nodes.len(), "node")
    ));
    Ok(())
}
