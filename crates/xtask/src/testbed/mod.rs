//! `cargo xtask testbed`: the real Kubernetes that tests run against, built from Go modules and kept under `target`.

mod build;
mod definitions;
mod module;
mod progress;

use std::fs::{self, File, TryLockError};
use std::path::Path;

use anyhow::{Context, bail};
use clap::Args as ClapArgs;
use muster_testkit::testbed::{self, Tool};

use build::Failure;
use module::{MODULES, Module};

/// Build etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kwok, Karpenter and helm, those that are missing.
///
/// Needs Go and a Go module proxy. Of etcd and Kubernetes, what is found in the folder `KUBEBUILDER_ASSETS` is used
/// as it is.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Only say what is there; fails if something is missing
    #[arg(long)]
    check: bool,
    /// Without Go or its modules print a warning and continue, unless `MUSTER_REQUIRE_TESTBED` is set
    #[arg(long, conflicts_with = "check")]
    may_skip: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let folder = testbed::folder();
    if args.check {
        return check();
    }
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let _lock = lock(&folder.join("lock"))?;
    for module in MODULES {
        settle(args, module.name, build::bring_up_to_date(module))?;
    }
    settle(args, "a definition", definitions::bring_up_to_date())
}

/// Continues without a tool that is not available, where that is allowed.
fn settle(args: &Args, name: &str, outcome: Result<(), Failure>) -> anyhow::Result<()> {
    match outcome {
        Err(Failure::Unavailable(why)) if args.may_skip && !testbed::is_required() => {
            eprintln!(
                "\nSKIPPED: {name} is not there, so no test runs that needs it.\n         {why}\n"
            );
            Ok(())
        }
        outcome => Ok(outcome?),
    }
}

/// Locks out other builds; the lock ends with the process.
fn lock(path: &Path) -> anyhow::Result<File> {
    let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => return Ok(file),
        Err(TryLockError::WouldBlock) => {
            eprintln!("testbed: another process is building it, waiting");
        }
        Err(TryLockError::Error(error)) => return Err(error).context("cannot lock the test bed"),
    }
    file.lock().context("cannot lock the test bed")?;
    Ok(file)
}

fn check() -> anyhow::Result<()> {
    let mut missing = 0;
    for module in MODULES {
        let stale = !module.is_current();
        for program in module.programs {
            let line = describe(module, program.tool, stale);
            missing += usize::from(line.is_err());
            let (Ok(text) | Err(text)) = line;
            println!("{:<24} {text}", program.tool.name());
        }
    }
    let defined = definitions::is_current();
    println!("{:<24} {}", "definitions", if defined { "all there" } else { "missing" });
    if missing > 0 || !defined {
        bail!(
            "{missing} of {} programs are missing; `cargo xtask testbed` builds them",
            Tool::ALL.len()
        );
    }
    Ok(())
}

fn describe(module: &Module, tool: Tool, stale: bool) -> Result<String, String> {
    if let Some(path) = tool.supplied() {
        return Ok(format!("supplied  {}", path.display()));
    }
    let path = tool.built();
    let Ok(file) = fs::metadata(&path) else { return Err("missing".to_owned()) };
    if stale {
        return Err("stale     testbed/ has changed since it was built".to_owned());
    }
    Ok(format!("{:<9} {} MB  {}", module.version(), file.len() / 1_000_000, path.display()))
}
