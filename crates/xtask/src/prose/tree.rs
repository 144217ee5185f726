//! The sources of a tree, by crate.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

/// A file or folder below the root, with its path relative to it.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) path: PathBuf,
    pub(super) is_folder: bool,
}

/// The folders of `crates/`, in order of their names.
pub(super) fn crates(root: &Path) -> anyhow::Result<Vec<String>> {
    let folder = root.join("crates");
    let below = sorted(&folder)?;
    let names = below.iter().filter(|path| path.is_dir()).filter_map(|path| path.file_name());
    Ok(names.map(|name| name.to_string_lossy().into_owned()).collect())
}

/// Everything below `folder`, except hidden entries and what builds leave there.
pub(super) fn entries(root: &Path, folder: &Path) -> anyhow::Result<Vec<Entry>> {
    let mut found = Vec::new();
    let mut open = vec![root.join(folder)];
    while let Some(folder) = open.pop() {
        for path in sorted(&folder)? {
            let is_folder = path.is_dir();
            if is_folder {
                open.push(path.clone());
            }
            let path = path.strip_prefix(root)?.to_path_buf();
            found.push(Entry { path, is_folder });
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

fn sorted(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let listed =
        fs::read_dir(folder).with_context(|| format!("{} cannot be listed", folder.display()))?;
    let mut paths = Vec::new();
    for entry in listed {
        let entry = entry?;
        let name = entry.file_name();
        let skipped =
            name.to_string_lossy().starts_with('.') || name == "target" || name == "node_modules";
        if !skipped && !entry.file_type()?.is_symlink() {
            paths.push(entry.path());
        }
    }
    paths.sort();
    Ok(paths)
}
