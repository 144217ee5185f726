//! `muster replay`.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args as ClapArgs;
use muster_sim::record::replay;

/// Take every decision of a recording again and see that it is the same, byte for byte.
///
/// Make a recording with `muster simulate ... --record FILE`.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// A recording
    file: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    replay_file(&args.file, args.json)
}

/// Replays one recording and says what was found.
pub(crate) fn replay_file(path: &Path, json: bool) -> anyhow::Result<()> {
    let file = File::open(path).with_context(|| path.display().to_string())?;
    let found = replay(BufReader::new(file)).with_context(|| path.display().to_string())?;
    if json {
        println!("{}", serde_json::to_string(&found)?);
    } else if found.difference.is_none() {
        println!(
            "{} events, {} plans made again: every one the same, byte for byte",
            found.events, found.plans
        );
    }
    if let Some(difference) = found.difference {
        bail!(
            "line {}: the plan at {:.3}s is not the one recorded\n  recorded: {}\n  planned:  {}",
            difference.line,
            difference.at.as_secs_f64(),
            difference.recorded,
            difference.planned
        );
    }
    Ok(())
}
