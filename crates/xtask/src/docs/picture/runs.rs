//! Plays the quick start twice with the real command: as it is, and with every member as a gang of its own.
//!
//! The second way has a barrier too: a member that has started waits for the others of its job. It is played until no run
//! time changes any more: a member runs until all others have started, and then for as long as the job takes.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, bail};

use super::super::programs;
use super::draw::{Panel, picture};
use super::facts::{Facts, read};

const EXAMPLE: &str = "examples/quickstart.yaml";
const PICTURE: &str = "docs/images/quickstart.svg";
const RUN_TIME: &str = "sim.muster.sh/run-time: ";

/// Rounds after which run times are taken to never settle.
const ROUNDS: usize = 20;

/// Draws the picture.
pub(in super::super) fn write(workspace: &Path) -> anyhow::Result<()> {
    let path = workspace.join(PICTURE);
    fs::create_dir_all(path.parent().expect("a folder"))?;
    Ok(fs::write(path, drawn(workspace)?)?)
}

/// The picture as it is drawn now.
fn drawn(workspace: &Path) -> anyhow::Result<String> {
    let text = fs::read_to_string(workspace.join(EXAMPLE))?;
    let muster = programs::muster()?;
    let together = play(&muster, &text)?;
    let (apart, jobs) = play_apart(&muster, &text)?;
    let panels = [
        Panel::new(
            "Muster: all workers of a job start together, or none",
            &together,
            &BTreeMap::new(),
        ),
        Panel::new("One pod at a time: started workers wait for the others", &apart, &jobs),
    ];
    Ok(picture(&panels))
}

/// Every job by the names of its members, and when the last of them started.
pub(super) type Barriers = BTreeMap<String, f64>;

/// Plays the example with every member as a gang of its own.
fn play_apart(muster: &Path, text: &str) -> anyhow::Result<(Facts, Barriers)> {
    let mut run_times: BTreeMap<String, u64> = BTreeMap::new();
    for _ in 0..ROUNDS {
        let facts = play(muster, &taken_apart(text, &run_times)?)?;
        let mut barriers = Barriers::new();
        for (member, start) in &facts.starts {
            let latest = barriers.entry(job_of(member).to_owned()).or_default();
            *latest = start.max(*latest);
        }
        let next = facts.starts.iter().map(|(member, start)| {
            let job = job_of(member);
            let all = length(text, job)? + barriers[job] - start;
            Ok((member.clone(), (all * 1e3).round() as u64))
        });
        let next = next.collect::<anyhow::Result<BTreeMap<_, _>>>()?;
        if next == run_times {
            return Ok((facts, barriers));
        }
        run_times = next;
    }
    bail!("run times did not settle in {ROUNDS} rounds")
}

/// The job of a member: its name up to the number.
pub(super) fn job_of(member: &str) -> &str {
    member.rsplit_once('-').map_or(member, |(job, _)| job)
}

/// Runs `muster rehearse` on a manifest, and reads what happened.
fn play(muster: &Path, text: &str) -> anyhow::Result<Facts> {
    let file = env::temp_dir().join(format!("muster-picture-{}.yaml", std::process::id()));
    fs::write(&file, text)?;
    let output = Command::new(muster)
        .args(["rehearse", "--json", "--no-compare", "--speed", "1e9"])
        .arg(&file)
        .output()
        .context("muster cannot be started")?;
    fs::remove_file(&file)?;
    if !output.status.success() {
        bail!("`muster rehearse` failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    read(&String::from_utf8(output.stdout)?)
}

fn documents(text: &str) -> impl Iterator<Item = &str> {
    text.split("---\n")
}

fn is_gang(document: &str) -> bool {
    document.lines().any(|line| line == "kind: Gang")
}

/// How long a job of the example runs, in seconds.
fn length(text: &str, job: &str) -> anyhow::Result<f64> {
    let named =
        |document: &&str| document.lines().any(|line| line.trim() == format!("name: {job}"));
    let document = documents(text)
        .filter(|one| is_gang(one))
        .find(named)
        .with_context(|| format!("no gang {job}"))?;
    let (_, rest) = document.split_once(RUN_TIME).context("a gang without a run time")?;
    let minutes = rest.split('m').next().unwrap_or_default();
    Ok(minutes.parse::<f64>().context("a run time in minutes")? * 60.0)
}

/// The example with each gang as gangs of one member. A member that has started before runs as long as it is told, another
/// one for hours.
fn taken_apart(text: &str, run_times: &BTreeMap<String, u64>) -> anyhow::Result<String> {
    let mut out: Vec<String> = Vec::new();
    for document in documents(text) {
        if !is_gang(document) {
            out.push(document.to_owned());
            continue;
        }
        let count = document.lines().find_map(|line| line.trim().strip_prefix("min: "));
        let count: usize = count.context("a gang without a size")?.parse()?;
        for number in 0..count {
            out.push(member(document, number, run_times)?);
        }
    }
    Ok(out.join("---\n"))
}

/// One member of a gang as a gang.
fn member(
    document: &str,
    number: usize,
    run_times: &BTreeMap<String, u64>,
) -> anyhow::Result<String> {
    let mut name = String::new();
    let mut out = String::new();
    for line in document.lines().filter(|line| !line.starts_with("  topology:")) {
        let line = match line.strip_prefix("  name: ") {
            Some(gang) => {
                name = format!("{gang}-{number}");
                format!("  name: {name}")
            }
            None if line.starts_with("    min: ") => "    min: 1".to_owned(),
            None => match line.split_once(RUN_TIME) {
                Some((before, rest)) => {
                    let after = rest
                        .find([',', '}'])
                        .map(|at| &rest[at..])
                        .context("a run time within braces")?;
                    let length = run_times.get(&name).copied().unwrap_or(36_000_000);
                    format!("{before}{RUN_TIME}{length}ms{after}")
                }
                None => line.to_owned(),
            },
        };
        out.push_str(&line);
        out.push('\n');
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_testkit::testbed;

    #[test]
    fn picture_is_that_of_the_quick_start() {
        let workspace = testbed::workspace();
        let shown = fs::read_to_string(workspace.join(PICTURE)).expect(PICTURE);
        assert!(shown.len() < 100_000, "{PICTURE} has {} bytes", shown.len());
        assert!(
            shown == drawn(workspace).expect("a picture"),
            "{PICTURE} is out of date: run `make picture`"
        );
    }

    #[test]
    fn members_are_gangs_without_the_topology_of_theirs() {
        let gang = "kind: Gang\nmetadata:\n  name: a\n  annotations: {sim.muster.sh/run-time: 4m}\nspec:\n  roles:\n  - name: w\n    min: 2\n  topology: {required: zone}\n";
        let run_times = BTreeMap::from([("a-1".to_owned(), 5)]);
        let apart = taken_apart(gang, &run_times).expect("two gangs");
        assert_eq!(apart.matches("    min: 1\n").count(), 2);
        assert!(
            apart.contains("name: a-0\n") && apart.contains("run-time: 36000000ms}"),
            "{apart}"
        );
        assert!(apart.contains("name: a-1\n") && apart.contains("run-time: 5ms}"), "{apart}");
        assert!(!apart.contains("topology"), "{apart}");
    }
}
