//! `cargo xtask notices`: writes `THIRD-PARTY-NOTICES`, the licences of everything that is linked into a shipped binary.
//!
//! A package that is available under Apache-2.0 is passed on under it. The texts are those of the packages themselves; the same
//! text in several packages is written once.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args as ClapArgs;
use muster_testkit::testbed;

use super::packages::{self, Package};

const FILE: &str = "THIRD-PARTY-NOTICES";
const RULE: &str =
    "--------------------------------------------------------------------------------\n";

/// Write THIRD-PARTY-NOTICES from the packages that are linked into the shipped binaries.
#[derive(ClapArgs)]
pub(crate) struct Args {}

pub(crate) fn run(_: &Args) -> anyhow::Result<()> {
    fs::write(path(), generate()?).with_context(|| format!("cannot write {FILE}"))
}

fn path() -> PathBuf {
    testbed::workspace().join(FILE)
}

fn generate() -> anyhow::Result<String> {
    let linked = packages::linked()?;
    // Keyed by words, since copies of one licence differ in indentation.
    let mut texts: BTreeMap<String, (String, Vec<String>)> = BTreeMap::new();
    for package in &linked {
        let name = format!("{} {}", package.name, package.version);
        let folder = package.manifest_path.parent().context("a manifest lies in a folder")?;
        for text in licence_texts(folder, package)? {
            let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
            texts.entry(words).or_insert_with(|| (text, Vec::new())).1.push(name.clone());
        }
    }
    let mut out = String::from(
        "Muster is licensed under Apache-2.0, see LICENSE. Its binaries contain the packages below, each under its own licence.\n\
         A package that offers a choice with Apache-2.0 in it is passed on under Apache-2.0.\n\
         This file is generated: `make notices`.\n\n",
    );
    for package in &linked {
        let licence = package.license.as_deref().unwrap_or("see its text");
        let from = package.repository.as_deref().unwrap_or("crates.io");
        writeln!(out, "{} {} ({licence}), {from}", package.name, package.version)?;
    }
    let mut by_package: Vec<(Vec<String>, String)> =
        texts.into_values().map(|(text, of)| (of, text)).collect();
    by_package.sort();
    for (of, text) in by_package {
        write!(out, "\n{RULE}{}\n{RULE}\n{text}", of.join(", "))?;
    }
    Ok(out)
}

/// The licence files of a package that apply, their text without trailing blanks.
fn licence_texts(folder: &Path, package: &Package) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("no {}", folder.display()))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type()?.is_file() && is_licence(&name) {
            names.push(name);
        }
    }
    names.sort();
    let applying = applying(&names, package.license.as_deref().unwrap_or_default());
    if package.license.is_none() && applying.is_empty() {
        bail!("{} names no licence and brings no text of one", package.name);
    }
    let read = |name: &&str| -> anyhow::Result<String> {
        let bytes = fs::read(folder.join(name))?;
        let text = String::from_utf8_lossy(&bytes);
        let mut lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        while lines.last().is_some_and(|line| line.is_empty()) {
            lines.pop();
        }
        let first = lines.iter().position(|line| !line.is_empty()).unwrap_or(lines.len());
        Ok(without_appendix(&lines[first..]).join("\n") + "\n")
    };
    applying.iter().map(read).collect()
}

/// Apache-2.0 ends with an appendix on how to apply it. It is left out where the form is not filled in, since most copies
/// differ only there.
fn without_appendix<'a>(lines: &'a [&'a str]) -> &'a [&'a str] {
    let end = lines.iter().position(|line| line.trim() == "END OF TERMS AND CONDITIONS");
    let Some(end) = end else { return lines };
    let is_form =
        |line: &&str| ["[yyyy] [name of", "{yyyy} {name of"].iter().any(|form| line.contains(form));
    let nothing_follows = lines[end + 1..].iter().all(|line| line.is_empty());
    let is_blank = nothing_follows || lines[end..].iter().any(is_form);
    if is_blank { &lines[..=end] } else { lines }
}

fn is_licence(name: &str) -> bool {
    let upper = name.to_uppercase();
    // Scripts and sources with such names are not texts.
    let stem = upper.trim_end_matches(".TXT").trim_end_matches(".MD");
    let starts = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"];
    starts.iter().any(|start| stem.starts_with(start)) && !upper.ends_with(".RS")
}

/// The licence files that apply, where a package offers a choice.
fn applying<'a>(names: &'a [String], expression: &str) -> Vec<&'a str> {
    let offers_apache = !expression.contains("AND")
        && expression.split([' ', '/', '(', ')']).any(|word| word == "Apache-2.0")
        && (expression.contains(" OR ") || expression.contains('/'));
    let is_apache = |name: &str| name.to_uppercase().contains("APACHE");
    let is_notice = |name: &str| {
        ["NOTICE", "COPYRIGHT"].iter().any(|start| name.to_uppercase().starts_with(start))
    };
    let all = names.iter().map(String::as_str);
    if offers_apache && names.iter().any(|name| is_apache(name)) {
        return all.filter(|name| is_apache(name) || is_notice(name)).collect();
    }
    all.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notices_are_those_of_the_lock_file() {
        let expected = generate().expect("notices");
        let written = fs::read_to_string(path()).unwrap_or_default();
        assert!(
            written == expected,
            "{FILE} does not belong to Cargo.lock any more: run `make notices`"
        );
    }

    #[test]
    fn apache_is_taken_where_it_is_offered_with_its_notice() {
        let names = ["COPYRIGHT", "LICENSE-APACHE", "LICENSE-MIT"].map(str::to_owned);
        assert_eq!(applying(&names, "MIT OR Apache-2.0"), ["COPYRIGHT", "LICENSE-APACHE"]);
        assert_eq!(applying(&names, "MIT/Apache-2.0"), ["COPYRIGHT", "LICENSE-APACHE"]);
        assert_eq!(applying(&names, "Apache-2.0 AND MIT"), names.each_ref().map(String::as_str));
        assert_eq!(applying(&names[2..], "MIT OR Apache-2.0"), ["LICENSE-MIT"]);
    }

    #[test]
    fn appendix_is_kept_where_it_is_filled_in() {
        let filled = ["text", "END OF TERMS AND CONDITIONS", "", "Copyright 2020 A. Author"];
        assert_eq!(without_appendix(&filled), filled);
        let blank = ["text", "END OF TERMS AND CONDITIONS", "", "Copyright [yyyy] [name of owner]"];
        assert_eq!(without_appendix(&blank), &blank[..2]);
    }

    #[test]
    fn sources_named_like_a_licence_are_no_texts() {
        for (name, is) in
            [("LICENSE", true), ("license.md", true), ("UNLICENSE", true), ("licence.rs", false)]
        {
            assert_eq!(is_licence(name), is, "{name}");
        }
        assert!(!is_licence("README.md"));
    }
}
