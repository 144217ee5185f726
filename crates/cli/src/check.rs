//! `muster check`.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use crate::exit::BadInput;

/// Read manifests and report everything that is wrong with them, with file, line, field and reason.
///
/// Exit code 0 when all of it can be run, 2 when something is wrong. Warnings do not change the exit code.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Manifests (YAML, any number of documents each)
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print one JSON object with all findings
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let read = muster_api::read_files(&args.files);
    if args.json {
        let (valid, findings) = match &read {
            Ok(manifests) => (true, &manifests.warnings),
            Err(findings) => (false, findings),
        };
        println!("{}", serde_json::json!({ "valid": valid, "findings": findings }));
        if !valid {
            std::process::exit(2);
        }
        return Ok(());
    }
    let manifests = read.map_err(BadInput)?;
    for warning in &manifests.warnings {
        eprintln!("warning: {warning}");
    }
    println!(
        "ok: {} gangs, {} queues, {} pools, {} nodes",
        manifests.gangs.len(),
        manifests.queues.len(),
        manifests.pools.len(),
        manifests.nodes.len()
    );
    Ok(())
}
