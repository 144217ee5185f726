//! Files of this repository that pages name in their text.

use muster_testkit::testbed;

use super::super::page::Page;
use super::pages;

/// Folders whose files are named from the root.
const ROOTS: [&str; 8] =
    ["crates/", "examples/", "charts/", "docs/", "bench/", "testbed/", "fuzz/", "image/"];

#[test]
fn every_file_that_a_page_names_is_there() {
    // Decisions say what was there when they were taken.
    let is_dated = |page: &Page| page.path.starts_with("docs/adr/");
    let (mut count, mut missing) = (0, Vec::new());
    for page in pages().into_iter().filter(|page| !is_dated(page)) {
        for (line, path) in paths(&page) {
            count += 1;
            if !testbed::workspace().join(&path).exists() {
                missing.push(format!("{}:{line}: {path}", page.path));
            }
        }
    }
    assert!(count > 20, "only {count} files are named");
    assert!(missing.is_empty(), "files that are not there:\n{}", missing.join("\n"));
}

/// Paths in code spans, but for those with a placeholder or a pattern in them.
fn paths(page: &Page) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (line, text) in page.prose() {
        for span in text.split('`').skip(1).step_by(2) {
            let is_path = ROOTS.iter().any(|root| span.starts_with(root))
                && span.chars().all(|one| one.is_ascii_alphanumeric() || "/._-".contains(one))
                && !span.split('/').any(|part| {
                    !part.is_empty() && part.chars().all(|one| one.is_ascii_uppercase())
                });
            if is_path {
                found.push((line, span.to_owned()));
            }
        }
    }
    found
}

#[test]
fn paths_are_told_from_other_code() {
    let page = Page {
        path: "docs/x.md".into(),
        text: "`crates/plan/src/cycle.rs` `examples/*.yaml` `cargo run` `bench/NAME/x`\n```sh\n`crates/none`\n```\n`charts/muster`\n".into(),
    };
    let found: Vec<String> = paths(&page).into_iter().map(|(_, path)| path).collect();
    assert_eq!(found, ["crates/plan/src/cycle.rs", "charts/muster"]);
}
