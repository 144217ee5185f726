//! `cargo xtask deny`: checks the dependency tree against `deny.toml` with cargo-deny.
//!
//! Bans, licences and sources are checked always and without a network. Advisories need RustSec's database, which is a git
//! repository: when it can be neither fetched nor found on this machine, that check alone is skipped with a warning.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};
use std::{env, fs};

use anyhow::{Context, bail};
use clap::Args as ClapArgs;
use muster_testkit::testbed;

use super::tool::Tool;

const CARGO_DENY: Tool = Tool { name: "cargo-deny", version: "0.20.2", features: "" };

/// An older copy of the database counts as none; this is cargo-deny's own limit.
const STALE: Duration = Duration::from_secs(90 * 24 * 3600);

/// Check advisories, licences, bans and sources of the dependency tree.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Without cargo-deny, which is installed from crates.io, print a warning and continue, unless `MUSTER_REQUIRE_TESTBED`
    /// is set
    #[arg(long)]
    may_skip: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let program = match CARGO_DENY.installed() {
        Ok(program) => program,
        Err(why) if args.may_skip && !testbed::is_required() => {
            skipped("the dependency tree is not checked at all", &format!("{why:#}"));
            return Ok(());
        }
        Err(why) => return Err(why),
    };
    check(&program, &["bans", "licenses", "sources"])?;
    match database(&program) {
        Ok(()) => check(&program, &["advisories"]),
        Err(why) => {
            skipped("advisories are not checked: RustSec's database is not there", &why);
            Ok(())
        }
    }
}

fn skipped(what: &str, why: &str) {
    eprintln!("\nSKIPPED: {what}.\n         {}\n", why.trim().replace('\n', "\n         "));
}

fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(testbed::workspace()).arg("--all-features");
    command
}

fn check(program: &Path, checks: &[&str]) -> anyhow::Result<()> {
    let status = command(program).args(["--offline", "check"]).args(checks).status();
    if !status.context("cargo-deny cannot be started")?.success() {
        bail!("cargo-deny found something in: {}", checks.join(", "));
    }
    Ok(())
}

/// Updates the database, or accepts a copy that is not stale yet.
fn database(program: &Path) -> Result<(), String> {
    let fetched = command(program)
        .args(["fetch", "db"])
        // Neither a prompt on the terminal nor a server that does not answer may block the check.
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_HTTP_LOW_SPEED_LIMIT", "1000")
        .env("GIT_HTTP_LOW_SPEED_TIME", "20")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    if fetched.status.success() {
        return Ok(());
    }
    let why = String::from_utf8_lossy(&fetched.stderr).into_owned();
    match age_of_copy() {
        Some(age) if age < STALE => {
            let days = age.as_secs() / (24 * 3600);
            eprintln!(
                "WARNING: RustSec's database cannot be fetched; the copy used is {days} days old.\n{why}"
            );
            Ok(())
        }
        Some(_) => Err(format!("The copy on this machine is older than 90 days.\n{why}")),
        None => Err(why),
    }
}

/// The age of the newest copy of the database on this machine.
fn age_of_copy() -> Option<Duration> {
    let copies = fs::read_dir(cargo_home()?.join("advisory-dbs")).ok()?;
    let fetched = copies.flatten().filter_map(|copy| fetched_at(&copy.path())).max()?;
    Some(SystemTime::now().duration_since(fetched).unwrap_or_default())
}

fn fetched_at(copy: &Path) -> Option<SystemTime> {
    let modified = |name: &str| fs::metadata(copy.join(".git").join(name)).ok()?.modified().ok();
    // A clone has no FETCH_HEAD before it is fetched into.
    modified("FETCH_HEAD").or_else(|| modified("HEAD"))
}

fn cargo_home() -> Option<PathBuf> {
    let set = env::var_os("CARGO_HOME").map(PathBuf::from);
    set.or_else(|| env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo")))
}
