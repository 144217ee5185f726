//! The site: mdBook over the pages and over the files that they link to, static and without any other origin.
//!
//! Pages lie in the site as they lie in the repository, so that a link that works in one works in the other. mdBook is given
//! a copy of them, since its sources must lie below one folder and would otherwise be the whole repository.

use std::path::{Component, Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use anyhow::{Context, bail};

use super::{page, programs};
use crate::supply_chain::tool::Tool;

const MDBOOK: Tool = Tool { name: "mdbook", version: "0.5.4", features: "search" };

/// Builds the site into `target/book`.
pub(super) fn build(workspace: &Path) -> anyhow::Result<()> {
    let program = MDBOOK.installed()?;
    let (sources, site) =
        (programs::target().join("book-sources"), programs::target().join("book"));
    if sources.exists() {
        fs::remove_dir_all(&sources)?;
    }
    stage(workspace, &sources)?;
    let status =
        Command::new(program).arg("build").arg("--dest-dir").arg(&site).arg(&sources).status();
    if !status.context("mdbook cannot be started")?.success() {
        bail!("the site cannot be built");
    }
    // mdBook's own first page is a copy of the first chapter, whose links lead from `docs/`.
    fs::write(site.join("index.html"), FIRST)?;
    println!("{}", site.join("index.html").display());
    Ok(())
}

const FIRST: &str = "<!doctype html>\n<meta charset=\"utf-8\">\n<title>Muster</title>\n\
    <meta http-equiv=\"refresh\" content=\"0; url=docs/index.html\">\n<a href=\"docs/index.html\">Muster</a>\n";

/// Copies the pages, everything they link to, and mdBook's settings. The README is left out: `docs/README.md` is the site's.
fn stage(workspace: &Path, sources: &Path) -> anyhow::Result<()> {
    let below = sources.join("src");
    for page in page::all(workspace)?.into_iter().filter(|page| page.path != "README.md") {
        let mut text = page.text.clone();
        for link in page.links() {
            let Some(file) = file_of(&page.path, &link.target) else { continue };
            if let Some(target) = served_as(&link.target, workspace.join(&file).is_dir()) {
                text = text.replace(&format!("]({})", link.target), &format!("]({target})"));
            } else if !is_page(&file) && workspace.join(&file).is_file() {
                copy(workspace, &below, &file)?;
            }
        }
        let to = below.join(page.path.replace("README.md", "index.md"));
        fs::create_dir_all(to.parent().expect("a file in a folder"))?;
        fs::write(to, text)?;
    }
    let contents = fs::read_to_string(workspace.join("docs/SUMMARY.md"))?;
    fs::write(below.join("SUMMARY.md"), summary(&contents))?;
    fs::copy(workspace.join("docs/book.toml"), sources.join("book.toml"))?;
    fs::copy(workspace.join("docs/site.css"), sources.join("site.css"))?;
    Ok(())
}

/// What a link to a README, or to the folder that has one, reads on the site.
fn served_as(target: &str, is_folder: bool) -> Option<String> {
    let (path, anchor) = target.split_at(target.find('#').unwrap_or(target.len()));
    if is_folder {
        return Some(format!("{}/index.md{anchor}", path.trim_end_matches('/')));
    }
    path.ends_with("README.md")
        .then(|| format!("{}{anchor}", path.replace("README.md", "index.md")))
}

fn copy(workspace: &Path, below: &Path, file: &Path) -> io::Result<()> {
    let to = below.join(file);
    fs::create_dir_all(to.parent().expect("a file in a folder"))?;
    fs::copy(workspace.join(file), to).map(drop)
}

fn is_page(file: &Path) -> bool {
    file.extension().is_some_and(|end| end == "md")
}

/// The table of contents as it reads from the root: that of `docs/` names files from there.
fn summary(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        match line.split_once("](") {
            Some((before, rest)) => {
                let (target, after) = rest.split_once(')').unwrap_or((rest, ""));
                let file = file_of("docs/SUMMARY.md", target).unwrap_or_default();
                let file = file.display().to_string().replace("README.md", "index.md");
                out.push_str(&format!("{before}]({file}){after}"));
            }
            None => out.push_str(line),
        }
        out.push('\n');
    }
    out
}

/// The file that a link of a page names, below the workspace. None for other sites and for the page itself.
pub(super) fn file_of(page: &str, target: &str) -> Option<PathBuf> {
    let target = target.split('#').next().unwrap_or_default();
    if target.is_empty() || target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let mut path = Path::new(page).parent().unwrap_or(Path::new("")).to_path_buf();
    for part in Path::new(target).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            Component::Normal(name) => path.push(name),
            _ => {}
        }
    }
    Some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_followed_from_the_page() {
        let file = |target| {
            file_of("docs/tasks/install.md", target).map(|file| file.display().to_string())
        };
        assert_eq!(file("upgrade.md#x").as_deref(), Some("docs/tasks/upgrade.md"));
        assert_eq!(file("../../SECURITY.md").as_deref(), Some("SECURITY.md"));
        assert_eq!(file("#here"), None);
        assert_eq!(file("https://example.com/x.md"), None);
    }

    #[test]
    fn contents_name_files_from_the_root() {
        let text = summary("# Contents\n\n- [A](tasks/a.md)\n  - [B](../bench/README.md)\n");
        assert_eq!(text, "# Contents\n\n- [A](docs/tasks/a.md)\n  - [B](bench/index.md)\n");
    }

    #[test]
    fn links_to_a_readme_lead_to_the_index_of_its_folder() {
        assert_eq!(
            served_as("../bench/README.md#one", false).as_deref(),
            Some("../bench/index.md#one")
        );
        assert_eq!(served_as("adr/", true).as_deref(), Some("adr/index.md"));
        assert_eq!(served_as("supply.md", false), None);
    }
}
