//! `cargo xtask sbom`: a CycloneDX 1.5 bill of materials for each shipped binary, by cargo-cyclonedx.
//!
//! The bill is compared with the linked packages of `cargo metadata`: a package that is missing, or has no hash, is an error.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail, ensure};
use clap::Args as ClapArgs;
use muster_testkit::testbed;
use serde::Deserialize;

use super::packages::{self, PLATFORM, Package};
use super::tool::Tool;

const CARGO_CYCLONEDX: Tool = Tool { name: "cargo-cyclonedx", version: "0.5.9", features: "" };

/// The files that cargo-cyclonedx writes, and their binaries.
const BILLS: [(&str, &str); 2] = [
    ("crates/cli/muster_bin.cdx.json", "muster"),
    ("crates/kube/muster-controller_bin.cdx.json", "muster-controller"),
];
/// Files that it also writes, of binaries that are not shipped.
const NOT_SHIPPED: [&str; 2] =
    ["crates/bench/muster-bench_bin.cdx.json", "crates/xtask/xtask_bin.cdx.json"];

/// Write a CycloneDX bill of materials for each shipped binary to target/sbom.
#[derive(ClapArgs)]
pub(crate) struct Args {}

#[derive(Deserialize)]
struct Bill {
    components: Vec<Component>,
}

#[derive(Deserialize)]
struct Component {
    name: String,
    version: String,
    #[serde(default)]
    hashes: Vec<serde_json::Value>,
}

pub(crate) fn run(_: &Args) -> anyhow::Result<()> {
    let root = testbed::workspace();
    let status = Command::new(CARGO_CYCLONEDX.installed()?)
        .current_dir(root)
        .args(["cyclonedx", "--quiet", "--format", "json", "--spec-version", "1.5"])
        .args(["--describe", "binaries", "--no-build-deps", "--target", PLATFORM])
        .status()
        .context("cargo-cyclonedx cannot be started")?;
    ensure!(status.success(), "cargo-cyclonedx failed");
    for file in NOT_SHIPPED {
        let _ = fs::remove_file(root.join(file));
    }
    let folder = testbed::target().join("sbom");
    fs::create_dir_all(&folder)?;
    let mut told = Vec::new();
    for (written, binary) in BILLS {
        let text = without_folder(&fs::read_to_string(root.join(written))?, root);
        fs::remove_file(root.join(written))?;
        told.extend(serde_json::from_str::<Bill>(&text)?.components);
        let path = folder.join(format!("{binary}.cdx.json"));
        fs::write(&path, text)?;
        println!("{}", path.display());
    }
    complete(&told, &packages::linked()?)
}

/// Replaces the folder of the build, which does not belong in a bill.
fn without_folder(text: &str, root: &Path) -> String {
    text.replace(&format!("file://{}/", root.display()), "file:///muster/")
}

fn complete(told: &[Component], linked: &[Package]) -> anyhow::Result<()> {
    for package in linked {
        let of = |one: &&Component| one.name == package.name && one.version == package.version;
        let Some(component) = told.iter().find(of) else {
            bail!("{} {} is linked and not in a bill", package.name, package.version);
        };
        ensure!(!component.hashes.is_empty(), "{} has no hash in its bill", package.name);
    }
    Ok(())
}
