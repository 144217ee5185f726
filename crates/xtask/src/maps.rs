//! Compares `docs/ARCHITECTURE.md` with the tree, so that the map cannot name a room that is gone or miss a new one.
//!
//! Three rules: every folder below `crates/*/src` is named in the code map; every answer in the table "Where do I
//! change ...?" is one or two paths that exist; the walk from a Job to its bindings names functions that its files define.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use muster_testkit::testbed::workspace;

const MAP: &str = "docs/ARCHITECTURE.md";
const QUESTIONS: &str = "## Where do I change ...?";
const WALK: &str = "## A walk: from a Job to its bindings";

fn map() -> String {
    fs::read_to_string(workspace().join(MAP)).expect("the architecture page")
}

/// The text of one section, without its heading.
fn section<'a>(page: &'a str, heading: &str) -> &'a str {
    let start = page.find(heading).unwrap_or_else(|| panic!("{MAP} has no `{heading}`"));
    let text = &page[start + heading.len()..];
    text.find("\n## ").map_or(text, |end| &text[..end])
}

/// What stands between backticks in a text.
fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// Rows of the first table of a section, as their cells.
fn rows(section: &str) -> Vec<Vec<&str>> {
    let lines = section.lines().filter(|line| line.starts_with('|'));
    let cells = |line: &str| line.trim_matches('|').matches('|').count() > 0;
    lines
        .filter(|line| cells(line))
        .skip(2)
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect()
}

fn folders(below: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = fs::read_dir(below)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    entries.sort();
    for path in entries.into_iter().filter(|path| path.is_dir()) {
        let has_code = fs::read_dir(&path).expect("a folder").any(|entry| {
            entry.expect("an entry").path().extension().is_some_and(|end| end == "rs")
        });
        if has_code {
            found.push(path.clone());
        }
        folders(&path, found);
    }
}

#[test]
fn every_module_folder_is_on_the_map() {
    let page = map();
    let named: BTreeSet<&str> =
        quoted(&page).into_iter().map(|path| path.trim_end_matches('/')).collect();
    let mut missing = Vec::new();
    let crates = fs::read_dir(workspace().join("crates")).expect("crates");
    for krate in crates.map(|entry| entry.expect("an entry").path()) {
        let mut all = Vec::new();
        folders(&krate.join("src"), &mut all);
        for folder in all {
            let path = folder
                .strip_prefix(workspace())
                .expect("below the root")
                .to_string_lossy()
                .into_owned();
            let short = path.trim_start_matches("crates/").replace("/src/", "/");
            if !named.contains(&*path) && !named.contains(&*short) {
                missing.push(short);
            }
        }
    }
    missing.sort();
    assert!(missing.is_empty(), "{MAP} does not name these folders: {missing:#?}");
}

#[test]
fn every_folder_that_the_map_names_exists() {
    let page = map();
    let gone: Vec<&str> = quoted(&page)
        .into_iter()
        .filter(|path| path.ends_with('/') && !path.contains(['{', '*', ' ', '<']))
        .filter(|path| {
            let (krate, rest) = path.split_once('/').unwrap_or((path, ""));
            let root = workspace();
            !root.join(path).exists()
                && !root.join("crates").join(krate).join("src").join(rest).exists()
        })
        .collect();
    assert!(gone.is_empty(), "{MAP} names folders that are not there: {gone:#?}");
}

#[test]
fn every_question_is_answered_by_one_or_two_paths_that_exist() {
    let page = map();
    let rows = rows(section(&page, QUESTIONS));
    assert!(rows.len() >= 30, "{} questions, of at least 30", rows.len());
    let mut wrong = Vec::new();
    for row in &rows {
        let paths = quoted(row.get(1).copied().unwrap_or_default());
        if !(1..=2).contains(&paths.len()) {
            wrong.push(format!("{}: {} paths", row[0], paths.len()));
        }
        wrong.extend(
            paths
                .iter()
                .filter(|path| !workspace().join(path).exists())
                .map(|path| format!("{}: there is no {path}", row[0])),
        );
    }
    assert!(wrong.is_empty(), "{MAP}, `{QUESTIONS}`: {wrong:#?}");
}

#[test]
fn every_hop_of_the_walk_is_a_function_of_its_file() {
    let page = map();
    let rows = rows(section(&page, WALK));
    assert!(rows.len() >= 20, "{} hops, of at least 20", rows.len());
    let mut wrong = Vec::new();
    for row in &rows {
        let (hop, file) = (quoted(row[1]), quoted(row[2]));
        let (Some(hop), Some(file)) = (hop.first(), file.first()) else {
            wrong.push(format!("{row:?}: a function and a file are needed"));
            continue;
        };
        let name = hop.rsplit("::").next().unwrap_or(hop);
        let text = fs::read_to_string(workspace().join(file)).unwrap_or_default();
        if !text.contains(&format!("fn {name}(")) && !text.contains(&format!("fn {name}<")) {
            wrong.push(format!("{file} defines no fn {name}"));
        }
    }
    assert!(wrong.is_empty(), "{MAP}, `{WALK}`: {wrong:#?}");
}
