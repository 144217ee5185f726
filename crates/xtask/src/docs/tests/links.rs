//! Links, anchors, and the table of contents.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use muster_testkit::testbed;

use super::super::page::{self, Page};
use super::super::site::file_of;

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let workspace = testbed::workspace();
    let pages = page::all(workspace).expect("pages");
    let broken = broken(&pages, |file| {
        let path = workspace.join(file);
        // The site shows the README of a folder in its place.
        path.is_file() || path.join("README.md").is_file()
    });
    assert!(broken.is_empty(), "links that lead nowhere:\n{}", broken.join("\n"));
}

#[test]
fn every_page_is_in_the_contents_once() {
    let workspace = testbed::workspace();
    let mut pages: Vec<PathBuf> = Vec::new();
    page::below(workspace, Path::new("docs"), &mut pages).expect("docs");
    pages.retain(|path| {
        path.extension().is_some_and(|end| end == "md") && !path.ends_with("SUMMARY.md")
    });
    let text = std::fs::read_to_string(workspace.join("docs/SUMMARY.md")).expect("docs/SUMMARY.md");
    let summary = Page { path: "docs/SUMMARY.md".into(), text };
    let mut listed: BTreeMap<PathBuf, usize> = BTreeMap::new();
    for link in summary.links() {
        *listed.entry(file_of(&summary.path, &link.target).expect("a file")).or_default() += 1;
    }
    let missing: Vec<_> = pages.iter().filter(|page| !listed.contains_key(*page)).collect();
    assert!(missing.is_empty(), "pages that docs/SUMMARY.md lacks: {missing:?}");
    let twice: Vec<_> = listed.iter().filter(|(_, times)| **times > 1).collect();
    assert!(twice.is_empty(), "pages that docs/SUMMARY.md lists twice: {twice:?}");
}

#[test]
fn broken_links_and_anchors_are_found() {
    let page = |path: &str, text: &str| Page { path: path.into(), text: text.into() };
    let pages = [
        page(
            "docs/a.md",
            "# A\n[1](b.md#two) [2](b.md#three) [3](c.md) [4](#a) [5](#b) [6](https://example.com)\n",
        ),
        page("docs/b.md", "# Two\n"),
    ];
    let found = broken(&pages, |file| file == Path::new("docs/b.md"));
    assert_eq!(found, ["docs/a.md:2: b.md#three", "docs/a.md:2: c.md", "docs/a.md:2: #b"]);
}

/// Links that name no file, or a heading that its page lacks.
fn broken(pages: &[Page], exists: impl Fn(&Path) -> bool) -> Vec<String> {
    let anchors: BTreeMap<&str, BTreeSet<String>> = pages
        .iter()
        .map(|page| (page.path.as_str(), page.anchors().into_iter().collect()))
        .collect();
    let mut broken = Vec::new();
    for page in pages {
        for link in page.links() {
            let is_elsewhere = link.target.contains("://") || link.target.starts_with("mailto:");
            if is_elsewhere {
                continue;
            }
            let file = file_of(&page.path, &link.target);
            let path =
                file.as_ref().map_or(page.path.as_str(), |file| file.to_str().expect("UTF-8"));
            let anchor = link.target.split_once('#').map(|(_, anchor)| anchor);
            let known = match (anchor, anchors.get(path)) {
                (Some(anchor), Some(anchors)) => anchors.contains(anchor),
                (Some(_), None) => false,
                (None, _) => file.is_none() || exists(Path::new(path)),
            };
            if !known {
                broken.push(format!("{}:{}: {}", page.path, link.line, link.target));
            }
        }
    }
    broken
}
