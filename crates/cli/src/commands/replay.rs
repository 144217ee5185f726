//! `muster replay`.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::Args as ClapArgs;
use muster_sim::record::{Difference, replay};

use crate::exit::UsageError;
use crate::figures::count;
use crate::stdout;

/// Repeat every decision of a recording and check that it is the same, byte for byte.
///
/// A recording holds every event that the planner received and every plan it made. The planner receives the same events
/// again; exit code 0 when every plan is the same, 1 at the first that is not, 2 when the file is not a recording.
#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// A recording
    file: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  muster simulate examples/quickstart.yaml --record run.jsonl
  muster replay run.jsonl";

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    replay_file(&args.file, args.json)
}

/// Replays one recording and prints the result.
pub(crate) fn replay_file(path: &Path, json: bool) -> anyhow::Result<()> {
    let unusable = |why: String| UsageError(format!("{}: {why}", path.display()));
    let file = File::open(path).map_err(|error| unusable(format!("cannot be opened: {error}")))?;
    let found = replay(BufReader::new(file)).map_err(|error| unusable(error.to_string()))?;
    if json {
        stdout::line(serde_json::to_string(&found)?);
    } else if found.difference.is_none() {
        let (events, plans) = (found.events as usize, found.plans as usize);
        let (events, plans) = (count(events, "event"), count(plans, "plan"));
        stdout::line(format_args!(
            "{events}, {plans} repeated: every plan is the same, byte for byte"
        ));
    }
    if let Some(Difference { line, at, recorded, planned }) = found.difference {
        let (recorded, planned) = excerpts(&recorded, &planned);
        bail!(
            "{}:{line}: the plan at {:.3}s is not the one recorded\n  recorded: {recorded}\n  planned:  {planned}",
            path.display(),
            at.as_secs_f64(),
        );
    }
    Ok(())
}

/// The length of the excerpt before and after the first difference: plans of large clusters are long.
const BEFORE: usize = 120;
const AFTER: usize = 240;

/// Both lines around their first difference.
fn excerpts(recorded: &str, planned: &str) -> (String, String) {
    let same = recorded.chars().zip(planned.chars()).take_while(|(a, b)| a == b).count();
    let skip = same.saturating_sub(BEFORE);
    let cut = |text: &str| {
        let shown: String = text.chars().skip(skip).take(BEFORE + AFTER).collect();
        let before = if skip > 0 { "..." } else { "" };
        let after = if text.chars().nth(skip + BEFORE + AFTER).is_some() { "..." } else { "" };
        format!("{before}{shown}{after}")
    };
    (cut(recorded), cut(planned))
}

#[cfg(test)]
mod tests {
    use super::excerpts;

    #[test]
    fn long_plans_are_cut_around_the_first_difference() {
        let same = "s".repeat(1_000);
        let (recorded, planned) = excerpts(&format!("{same}1{same}"), &format!("{same}2{same}"));
        assert_eq!(recorded, format!("...{}1{}...", &same[..120], &same[..239]));
        assert_eq!(planned, recorded.replace('1', "2"));
        assert_eq!(excerpts("short 1", "short 2"), ("short 1".into(), "short 2".into()));
    }
}
