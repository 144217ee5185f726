//! Pages held against the repository and the programs: links, contents, quoted commands, quoted manifests.

mod commands;
mod kubectl;
mod links;
mod manifests;
mod paths;
mod reading;

use muster_testkit::testbed;

use super::page::{self, Page};

/// Every page but the changelog, which quotes words and commands of earlier versions.
fn pages() -> Vec<Page> {
    let mut pages = page::all(testbed::workspace()).expect("pages");
    pages.retain(|page| page.path != "CHANGELOG.md");
    assert!(pages.len() > 40, "only {} pages", pages.len());
    pages
}
