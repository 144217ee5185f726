//! Help texts, version and completions.

use crate::muster::{command, finish, muster};

const COMMANDS: [&str; 8] =
    ["run", "up", "rehearse", "simulate", "replay", "check", "crds", "completions"];

/// The widest line of a help text, however wide the terminal is.
const WIDEST: usize = 110;

fn help(args: &[&str]) -> String {
    finish(command().args(args).env("COLUMNS", "300")).exits(0).out
}

#[test]
fn help_has_examples_and_fits_the_screen() {
    for name in COMMANDS {
        let text = help(&[name, "--help"]);
        assert!(text.contains(&format!("Usage: muster {name}")), "{text}");
        let (_, examples) = text.split_once("Examples:\n").expect("examples");
        assert!(examples.contains(&format!("muster {name} ")), "{text}");
        for text in [text, help(&[name, "-h"])] {
            let widest = text.lines().max_by_key(|line| line.chars().count()).expect("lines");
            assert!(widest.chars().count() <= WIDEST, "{name}: {widest}");
        }
    }
}

#[test]
fn long_help_has_more_paragraphs_than_short_help() {
    for name in ["run", "up", "rehearse", "simulate", "replay", "check", "crds"] {
        let (long, short) = (help(&[name, "--help"]), help(&[name, "-h"]));
        let paragraphs = |text: &str| {
            let (about, _) = text.split_once("Usage:").expect("a usage line");
            about.trim().split("\n\n").count()
        };
        assert_eq!((paragraphs(&long), paragraphs(&short)), (2, 1), "{name}");
    }
}

#[test]
fn main_help_lists_subcommands_and_exit_codes() {
    let text = help(&["--help"]);
    for name in COMMANDS {
        assert!(text.lines().any(|line| line.trim().starts_with(name)), "{name}\n{text}");
    }
    assert!(text.contains("Try it:") && text.contains("Exit codes: 0 done; 1 "), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= WIDEST), "{text}");
    let bare = muster(&[]).exits(2);
    assert!(bare.out.is_empty() && bare.err.contains("Usage: muster <COMMAND>"), "{}", bare.err);
}

#[test]
fn examples_of_the_help_run() {
    // The examples that need no file of the reader.
    muster(&["check", "examples/quickstart.yaml"]).exits(0);
    muster(&["simulate", "--workload", "training", "--nodes", "512", "--jobs", "20"]).exits(0);
}

#[test]
fn version_is_that_of_the_package() {
    let expected = format!("muster {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(muster(&["--version"]).exits(0).out, expected);
}

#[test]
fn completions_include_every_subcommand() {
    for shell in ["bash", "zsh", "fish"] {
        let script = muster(&["completions", shell]).exits(0).out;
        for name in COMMANDS {
            assert!(script.contains(name), "{name} in the completions for {shell}");
        }
    }
    let unknown = muster(&["completions", "tea"]).exits(2);
    assert!(unknown.err.contains("[possible values: bash, "), "{}", unknown.err);
}
