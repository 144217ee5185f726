//! The table, the lists and the check of `cargo xtask prose`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args as ClapArgs;
use muster_testkit::testbed;

use super::{layout, subject, tree};

/// A crate fails the check when it has this share of hits, in percent of its comment lines, or more.
const BOUND_PERCENT: f64 = 2.0;

/// Count comment lines whose subject is an indefinite person (`who`, `somebody`, `nobody`), by crate.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// The tree to read
    #[arg(long, value_name = "DIR", default_value_os_t = testbed::workspace().to_path_buf())]
    root: PathBuf,
    /// Fail when a crate has 2% hits or more, or when a size or a name breaks the house rules
    #[arg(long)]
    check: bool,
    /// Print the hits of one crate, and what breaks the house rules there
    #[arg(long, value_name = "CRATE", conflicts_with = "check")]
    list: Option<String>,
}

/// What is found in one crate.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) name: String,
    pub(super) lines: usize,
    /// `path:line: text` of every hit.
    pub(super) hits: Vec<String>,
    /// What breaks a bound on sizes and names.
    pub(super) broken: Vec<String>,
}

impl Found {
    #[expect(clippy::cast_precision_loss, reason = "counts of lines are small")]
    fn percent(&self) -> f64 {
        100.0 * self.hits.len() as f64 / self.lines.max(1) as f64
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let root = &args.root;
    if let Some(name) = &args.list {
        let found = of_crate(root, name)?;
        for line in found.hits.iter().chain(&found.broken) {
            println!("{line}");
        }
        return Ok(());
    }
    let found = of_tree(root)?;
    println!("{:<12} {:>13} {:>6} {:>8}", "crate", "comment lines", "hits", "percent");
    for one in &found {
        let (name, lines, hits, percent) = (&one.name, one.lines, one.hits.len(), one.percent());
        println!("{name:<12} {lines:>13} {hits:>6} {percent:>7.1}%");
    }
    let broken = broken(&found);
    if args.check && !broken.is_empty() {
        bail!("{}", broken.join("\n"));
    }
    Ok(())
}

/// What is found in every crate of the tree at `root`.
pub(super) fn of_tree(root: &Path) -> anyhow::Result<Vec<Found>> {
    tree::crates(root)?.iter().map(|name| of_crate(root, name)).collect()
}

fn of_crate(root: &Path, name: &str) -> anyhow::Result<Found> {
    let entries = tree::entries(root, &Path::new("crates").join(name))?;
    let mut found = Found { name: name.to_owned(), ..Found::default() };
    found.broken = layout::of_entries(&entries);
    for entry in entries.iter().filter(|entry| !entry.is_folder && layout::is_source(&entry.path)) {
        let path = &entry.path;
        let source = fs::read_to_string(root.join(path))
            .with_context(|| format!("{} cannot be read", path.display()))?;
        found.broken.extend(layout::of_file(path, &source));
        if path.extension().is_some_and(|end| end == "rs") {
            let counted = subject::count(&source);
            found.lines += counted.lines;
            let hits = counted.hits.into_iter();
            found.hits.extend(hits.map(|(at, text)| format!("{}:{at}: {text}", path.display())));
        }
    }
    Ok(found)
}

/// What fails the check, one sentence each.
pub(super) fn broken(found: &[Found]) -> Vec<String> {
    let mut broken = Vec::new();
    for one in found {
        broken.extend(one.broken.iter().cloned());
        if one.percent() >= BOUND_PERCENT {
            let (name, hits, lines, percent) =
                (&one.name, one.hits.len(), one.lines, one.percent());
            broken.push(format!(
                "crates/{name}: {hits} of {lines} comment lines ({percent:.1}%) have an indefinite person as subject, not \
                 under {BOUND_PERCENT}%: see `cargo xtask prose --list {name}`"
            ));
        }
    }
    broken
}
