//! Markdown pages and their links, as the site and the tests read them.

use std::path::{Path, PathBuf};
use std::{fs, io};

/// One Markdown page.
#[derive(Debug)]
pub(super) struct Page {
    /// Its path below the workspace.
    pub(super) path: String,
    pub(super) text: String,
}

/// A link, and the line it is on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Link {
    pub(super) line: usize,
    pub(super) target: String,
}

/// Pages beside those in `docs/`.
const OTHERS: [&str; 6] = [
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "bench/README.md",
    "testbed/README.md",
];

/// Every page of the workspace, by path.
pub(super) fn all(workspace: &Path) -> io::Result<Vec<Page>> {
    let mut paths: Vec<PathBuf> = OTHERS.iter().map(PathBuf::from).collect();
    below(workspace, Path::new("docs"), &mut paths)?;
    paths.retain(|path| path.extension().is_some_and(|end| end == "md"));
    paths.sort();
    let read = |path: PathBuf| {
        let text = fs::read_to_string(workspace.join(&path))?;
        Ok(Page { path: path.to_string_lossy().into_owned(), text })
    };
    paths.into_iter().map(read).collect()
}

/// Every file below a folder.
pub(super) fn below(workspace: &Path, folder: &Path, out: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(workspace.join(folder))? {
        let entry = entry?;
        let path = folder.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            below(workspace, &path, out)?;
        } else {
            out.push(path);
        }
    }
    Ok(())
}

impl Page {
    /// Lines outside fenced blocks, numbered from 1.
    pub(super) fn prose(&self) -> impl Iterator<Item = (usize, &str)> {
        let mut fence: Option<usize> = None;
        self.text.lines().enumerate().filter_map(move |(at, line)| {
            match (fence, ticks(line)) {
                (None, Some(ticks)) => fence = Some(ticks),
                (Some(open), Some(ticks)) if ticks >= open => fence = None,
                (None, None) => return Some((at + 1, line)),
                _ => {}
            }
            None
        })
    }

    /// Every link and picture.
    pub(super) fn links(&self) -> Vec<Link> {
        let mut links = Vec::new();
        for (line, text) in self.prose() {
            let text = without_code(text);
            for (at, _) in text.match_indices("](") {
                let target = text[at + 2..].split([')', ' ']).next().unwrap_or_default();
                links.push(Link { line, target: target.to_owned() });
            }
            for mark in ["src=\"", "srcset=\"", "href=\""] {
                for (at, _) in text.match_indices(mark) {
                    let target = text[at + mark.len()..].split('"').next().unwrap_or_default();
                    links.push(Link { line, target: target.to_owned() });
                }
            }
        }
        links
    }
}

/// How many backticks a fence has.
pub(super) fn ticks(line: &str) -> Option<usize> {
    let line = line.trim_start();
    let ticks = line.len() - line.trim_start_matches('`').len();
    (ticks >= 3).then_some(ticks)
}

/// A line with blanks in place of its code spans.
fn without_code(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    for (at, part) in line.split('`').enumerate() {
        if at % 2 == 0 { out.push_str(part) } else { out.push(' ') }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(text: &str) -> Page {
        Page { path: "docs/x.md".into(), text: text.into() }
    }

    #[test]
    fn links_in_code_are_not_links() {
        let page = page(
            "[a](b.md#c) `[x](y.md)` ![p](q.svg)\n```sh\n[n](o.md)\n```\n<img src=\"i.svg\">\n",
        );
        let targets: Vec<String> = page.links().into_iter().map(|link| link.target).collect();
        assert_eq!(targets, ["b.md#c", "q.svg", "i.svg"]);
    }
}
