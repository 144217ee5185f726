//! The bounds on sizes and names: long files, long test names, crowded folders, and names that say nothing.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;

use super::tree::Entry;

/// Lines of a source file.
const MAX_LINES: usize = 600;
/// Characters in the name of a function. Tests have the longest names, so the bound is on all functions.
const MAX_NAME: usize = 70;
/// Entries of a folder under `src`. The house rule is about a dozen; a natural list may have a few more.
const MAX_ENTRIES: usize = 16;
/// The Kubernetes host has a dozen folders, and beside them the files of its loop: each has its own word.
const MAX_ENTRIES_OF_KUBE: usize = 22;

/// Names of files and folders that do not say what is inside.
const VAGUE: [&str; 8] =
    ["util", "utils", "common", "helper", "helpers", "manager", "managers", "misc"];

/// Extensions of files that are written by hand, and so bounded in length.
const SOURCES: [&str; 6] = ["rs", "js", "css", "html", "sh", "sql"];

/// Whether the file is one that is written by hand.
pub(super) fn is_source(path: &Path) -> bool {
    path.extension().and_then(OsStr::to_str).is_some_and(|end| SOURCES.contains(&end))
}

/// What breaks a bound in the names and numbers of entries, one sentence each.
pub(super) fn of_entries(entries: &[Entry]) -> Vec<String> {
    let mut broken = Vec::new();
    let mut sizes: BTreeMap<&Path, usize> = BTreeMap::new();
    for entry in entries {
        let name = entry.path.file_stem().and_then(OsStr::to_str).unwrap_or_default();
        if VAGUE.contains(&name) {
            broken.push(format!("{}: the name does not say what is inside", entry.path.display()));
        }
        if let Some(folder) = entry.path.parent().filter(|folder| is_in_src(folder)) {
            *sizes.entry(folder).or_default() += 1;
        }
    }
    for (folder, entries) in sizes {
        let is_kube = folder == Path::new("crates/kube/src");
        let most = if is_kube { MAX_ENTRIES_OF_KUBE } else { MAX_ENTRIES };
        if entries > most {
            let folder = folder.display();
            broken.push(format!("{folder}: {entries} entries, more than {most}"));
        }
    }
    broken
}

/// Whether the folder is the `src` of a crate or below it.
fn is_in_src(folder: &Path) -> bool {
    let mut parts = folder.iter();
    parts.next() == Some(OsStr::new("crates"))
        && parts.next().is_some()
        && parts.next() == Some(OsStr::new("src"))
}

/// What breaks a bound inside a file, one sentence each.
pub(super) fn of_file(path: &Path, source: &str) -> Vec<String> {
    let path = path.display();
    let mut broken = Vec::new();
    let lines = source.lines().count();
    if lines > MAX_LINES {
        broken.push(format!("{path}: {lines} lines, more than {MAX_LINES}"));
    }
    for (at, line) in source.lines().enumerate() {
        if let Some(name) = function(line).filter(|name| name.chars().count() > MAX_NAME) {
            let length = name.chars().count();
            let at = at + 1;
            broken.push(format!(
                "{path}:{at}: a name of {length} characters, more than {MAX_NAME}: {name}"
            ));
        }
    }
    broken
}

/// The name of the function that a line declares.
fn function(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let (before, after) = line.split_once("fn ")?;
    let is_declaration = before.chars().all(|c| c.is_alphanumeric() || " ()_:\"".contains(c))
        && (before.is_empty() || before.ends_with(' '));
    is_declaration.then(|| after.split(['(', '<']).next()).flatten()
}
