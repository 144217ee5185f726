//! Third-party packages that are linked into the shipped binaries, from `cargo metadata`.
//!
//! The crate `cargo_metadata` is not used: it turns on `serde_json/unbounded_depth` for the whole workspace.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, bail};
use muster_testkit::testbed;
use serde::Deserialize;

/// The platform that binaries and images are built for. Crates for other platforms are in `Cargo.lock` and in no build.
pub(super) const PLATFORM: &str = "x86_64-unknown-linux-gnu";

/// Packages of the workspace whose binaries are shipped.
const SHIPPED: [&str; 2] = ["muster-cli", "muster-kube"];

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
}

/// A package of the dependency tree.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Package {
    pub(super) name: String,
    pub(super) version: String,
    id: String,
    /// An SPDX expression.
    pub(super) license: Option<String>,
    pub(super) repository: Option<String>,
    /// Its registry; none for packages of the workspace.
    source: Option<String>,
    pub(super) manifest_path: PathBuf,
    targets: Vec<Target>,
}

#[derive(Clone, Debug, Deserialize)]
struct Target {
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    pkg: String,
    dep_kinds: Vec<DependencyKind>,
}

/// Normal dependencies have no kind; the others are `dev` and `build`.
#[derive(Deserialize)]
struct DependencyKind {
    kind: Option<String>,
}

impl Package {
    /// Procedural macros run in the compiler; no part of them is in a binary.
    fn is_linked(&self) -> bool {
        !self.targets.iter().any(|target| target.kind.iter().any(|kind| kind == "proc-macro"))
    }
}

/// All third-party packages that a shipped binary contains, by name and version.
pub(super) fn linked() -> anyhow::Result<Vec<Package>> {
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .current_dir(testbed::workspace())
        .args(["metadata", "--format-version", "1", "--locked", "--filter-platform", PLATFORM])
        .output()
        .context("cargo cannot be started")?;
    if !output.status.success() {
        bail!("`cargo metadata` failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    let metadata = serde_json::from_slice(&output.stdout);
    Ok(reached(&metadata.context("`cargo metadata` printed what is not understood")?))
}

fn reached(metadata: &Metadata) -> Vec<Package> {
    let packages: BTreeMap<&str, &Package> =
        metadata.packages.iter().map(|package| (package.id.as_str(), package)).collect();
    let nodes: BTreeMap<&str, &Node> =
        metadata.resolve.nodes.iter().map(|node| (node.id.as_str(), node)).collect();
    let is_shipped =
        |package: &&Package| package.source.is_none() && SHIPPED.contains(&package.name.as_str());
    let mut open: Vec<&str> =
        metadata.packages.iter().filter(is_shipped).map(|package| package.id.as_str()).collect();
    let mut seen: BTreeSet<&str> = open.iter().copied().collect();
    while let Some(id) = open.pop() {
        let normal = nodes[id].deps.iter().filter(|dependency| {
            dependency.dep_kinds.iter().any(|kind| kind.kind.is_none())
                && packages[dependency.pkg.as_str()].is_linked()
        });
        open.extend(normal.map(|dependency| dependency.pkg.as_str()).filter(|id| seen.insert(id)));
    }
    let from_elsewhere = seen.iter().map(|id| packages[id]).filter(|one| one.source.is_some());
    let mut linked: Vec<Package> = from_elsewhere.cloned().collect();
    linked.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
    linked
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn package(name: &str, from_elsewhere: bool, kind: &str) -> Value {
        let source = from_elsewhere.then_some("registry");
        json!({"name": name, "version": "1.0.0", "id": name, "license": "MIT", "repository": null, "source": source,
            "manifest_path": "/x/Cargo.toml", "targets": [{"kind": [kind]}]})
    }

    fn dependency(on: &str, kind: Option<&str>) -> Value {
        json!({"pkg": on, "dep_kinds": [{"kind": kind}]})
    }

    #[test]
    fn tests_builds_and_macros_are_not_linked() {
        let metadata = json!({
            "packages": [
                package("muster-cli", false, "bin"), package("muster-xtask", false, "bin"),
                package("used", true, "lib"), package("below", true, "lib"), package("tested-with", true, "lib"),
                package("built-with", true, "lib"), package("derive", true, "proc-macro"),
                package("parser-of-derive", true, "lib"), package("chores", true, "lib"),
            ],
            "resolve": {"nodes": [
                {"id": "muster-cli", "deps": [dependency("used", None), dependency("derive", None),
                    dependency("tested-with", Some("dev")), dependency("built-with", Some("build"))]},
                {"id": "muster-xtask", "deps": [dependency("chores", None)]},
                {"id": "used", "deps": [dependency("below", None)]},
                {"id": "derive", "deps": [dependency("parser-of-derive", None)]},
                {"id": "below", "deps": []}, {"id": "tested-with", "deps": []}, {"id": "built-with", "deps": []},
                {"id": "parser-of-derive", "deps": []}, {"id": "chores", "deps": []},
            ]},
        });
        let linked = reached(&serde_json::from_value(metadata).expect("metadata"));
        let names: Vec<&str> = linked.iter().map(|package| package.name.as_str()).collect();
        assert_eq!(names, ["below", "used"]);
    }
}
