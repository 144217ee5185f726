//! The programs that the documentation is held against, built as `make built` builds them.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, bail};
use muster_testkit::testbed;

/// The `muster` command.
pub(super) fn muster() -> anyhow::Result<PathBuf> {
    built("muster")
}

/// The controller.
pub(super) fn controller() -> anyhow::Result<PathBuf> {
    built("muster-controller")
}

/// This program: a test runs as another file than it.
#[cfg(test)]
pub(super) fn xtask() -> anyhow::Result<PathBuf> {
    built("xtask")
}

/// Where cargo builds.
pub(super) fn target() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    testbed::workspace().join(target)
}

/// A program of the workspace. All of them are built first; with nothing to do that takes a second.
fn built(name: &str) -> anyhow::Result<PathBuf> {
    static FOLDER: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| build().map_err(|error| format!("{error:#}")));
    let folder = folder.as_ref().map_err(|why| anyhow::anyhow!("{why}"))?;
    let path = folder.join(name);
    if !path.is_file() {
        bail!("{} was not built", path.display());
    }
    Ok(path)
}

fn build() -> anyhow::Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .current_dir(testbed::workspace())
        // The same selection as `make built`: another one would build everything below it again.
        .args(["build", "--quiet", "--workspace", "--all-features", "--bins", "--profile", "test"])
        .status()
        .context("cargo cannot be started")?;
    if !status.success() {
        bail!("the programs cannot be built");
    }
    Ok(target().join("debug"))
}
