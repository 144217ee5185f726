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

/// Beginnings of the variables that cargo sets for what it runs.
const TOLD: [&str; 5] =
    ["CARGO_MANIFEST_", "CARGO_PKG_", "CARGO_CRATE_", "CARGO_BIN_", "CARGO_PRIMARY_"];

fn build() -> anyhow::Result<PathBuf> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // What cargo tells a test of its package would be another environment to build scripts, and build them anew.
    for (name, _) in std::env::vars_os() {
        let told = name.to_string_lossy();
        if TOLD.iter().any(|start| told.starts_with(start)) {
            command.env_remove(&name);
        }
    }
    let status = command
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
