//! `cargo xtask attempts`: writes the list of attack attempts into `docs/reference/security-tests.md`, from the tests that
//! make them.
//!
//! A row is a test; the words beside it are the first paragraph of its doc comment. Where one test makes several attempts, a
//! comment `// Attempt: WHAT` before each of them puts it into the list.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::Context;
use clap::Args as ClapArgs;
use muster_testkit::testbed;

const PAGE: &str = "docs/reference/security-tests.md";
const BEGIN: &str = "<!-- attempts: written by `make attempts` -->\n";
const END: &str = "<!-- end of attempts -->\n";

/// A folder of tests, and the heading of its attempts.
const FOLDERS: [(&str, &str); 2] = [
    (
        "crates/kube/tests/cluster/tenants",
        "By a tenant of a cluster, with the chart's role `edit` in one namespace",
    ),
    (
        "crates/cli/tests/it/local/hostile",
        "On one machine: another account, a viewer, a user, a job, an accident",
    ),
];

/// Write the list of attempts in docs/reference/security-tests.md from the tests that make them.
#[derive(ClapArgs)]
pub(crate) struct Args {}

pub(crate) fn run(_: &Args) -> anyhow::Result<()> {
    let path = testbed::workspace().join(PAGE);
    let page = fs::read_to_string(&path).with_context(|| format!("no {PAGE}"))?;
    Ok(fs::write(path, with_list(&page, &list()?)?)?)
}

/// The page with this list of attempts.
fn with_list(page: &str, list: &str) -> anyhow::Result<String> {
    let (before, rest) = page.split_once(BEGIN).context("the list has no beginning")?;
    let (_, after) = rest.split_once(END).context("the list has no end")?;
    Ok(format!("{before}{BEGIN}{list}{END}{after}"))
}

fn list() -> anyhow::Result<String> {
    let mut out = String::new();
    for (folder, whose) in FOLDERS {
        let Ok(files) = fs::read_dir(testbed::workspace().join(folder)) else { continue };
        let mut paths: Vec<_> =
            files.map(|file| Ok(file?.path())).collect::<std::io::Result<_>>()?;
        paths.sort();
        let mut rows = String::new();
        for path in paths.iter().filter(|path| path.extension().is_some_and(|end| end == "rs")) {
            rows += &rows_of(path, &fs::read_to_string(path)?)?;
        }
        if !rows.is_empty() {
            write!(out, "\n### {whose}\n\n| in | test | attempt |\n|---|---|---|\n{rows}\n")?;
        }
    }
    Ok(out)
}

/// The rows of a file: every test with its first words, and every attempt that a comment names.
fn rows_of(path: &Path, source: &str) -> anyhow::Result<String> {
    let file = path.file_stem().unwrap_or_default().to_string_lossy();
    let (mut rows, mut said, mut is_test, mut test) =
        (String::new(), String::new(), false, String::new());
    for line in source.lines().map(str::trim) {
        if let Some(words) = line.strip_prefix("///") {
            // The first paragraph alone.
            let ended = said.ends_with('\n');
            match words.trim() {
                "" => said.push('\n'),
                words if !ended => {
                    write!(said, "{}{words}", if said.is_empty() { "" } else { " " })?;
                }
                _ => {}
            }
        } else if line.starts_with("#[test") || line.starts_with("#[tokio::test") {
            is_test = true;
        } else if line.starts_with("#[") {
            // Other attributes come between the doc comment and the name.
        } else if let Some(name) = function(line).filter(|_| is_test) {
            name.clone_into(&mut test);
            writeln!(rows, "| `{file}` | `{name}` | {} |", cell(&said))?;
            (is_test, said) = (false, String::new());
        } else if let Some(attempt) = line.strip_prefix("// Attempt: ") {
            writeln!(rows, "| `{file}` | `{test}` | {} |", cell(attempt))?;
        } else {
            (is_test, said) = (false, String::new());
        }
    }
    Ok(rows)
}

fn function(line: &str) -> Option<&str> {
    let line = line.strip_prefix("async ").unwrap_or(line);
    line.strip_prefix("fn ")?.split(['(', '<']).next()
}

fn cell(text: &str) -> String {
    text.trim().replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_of_attempts_is_that_of_the_tests() {
        let page = fs::read_to_string(testbed::workspace().join(PAGE)).expect("the page");
        let expected = with_list(&page, &list().expect("tests")).expect("a list in the page");
        assert!(
            page == expected,
            "{PAGE} does not list the attempts of the tests: run `make attempts`"
        );
        assert!(page.contains("`tenant_with_edit_writes_only_gangs_of_its_own_namespace`"));
    }

    #[test]
    fn rows_are_tests_and_named_attempts() {
        let source = "/// Not a test.\nfn helper() {}\n\n/// First words,\n/// on two lines.\n///\n/// More.\n\
            #[tokio::test(flavor = \"multi_thread\")]\nasync fn one() {\n    // Attempt: a|b\n    try_it();\n}\n\n#[test]\nfn two() {}\n";
        let rows = rows_of(Path::new("x/deep.rs"), source).expect("rows");
        assert_eq!(
            rows,
            "| `deep` | `one` | First words, on two lines. |\n| `deep` | `one` | a\\|b |\n| `deep` | `two` |  |\n"
        );
    }
}
