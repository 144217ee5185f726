//! Help texts of the programs, as sections of pages.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

use super::programs;

/// Columns of a help text in a page.
const COLUMNS: &str = "100";

/// The help of `muster` and of every subcommand, each under a heading.
pub(super) fn commands() -> anyhow::Result<String> {
    let muster = programs::muster()?;
    let mut out = String::new();
    write_help(&mut out, &muster, &mut vec!["muster".into()])?;
    Ok(out.trim_end().to_owned() + "\n")
}

/// The help of `muster-controller`.
pub(super) fn controller() -> anyhow::Result<String> {
    let text = help(&programs::controller()?, &[])?;
    Ok(format!("```text\n{}\n```\n", text.trim_end()))
}

fn write_help(out: &mut String, program: &Path, words: &mut Vec<String>) -> anyhow::Result<()> {
    let text = help(program, &words[1..])?;
    writeln!(out, "## {}\n\n```text\n{}\n```\n", words.join(" "), text.trim_end())?;
    for name in subcommands(&text) {
        words.push(name.to_owned());
        write_help(out, program, words)?;
        words.pop();
    }
    Ok(())
}

/// The long help of a subcommand.
fn help(program: &Path, words: &[String]) -> anyhow::Result<String> {
    let output = Command::new(program)
        .args(words)
        .arg("--help")
        // Defaults that come from the environment would be those of one machine.
        .env_clear()
        .env("COLUMNS", COLUMNS)
        .output()
        .with_context(|| format!("{} cannot be started", program.display()))?;
    if !output.status.success() {
        bail!("`{} --help` failed: {}", words.join(" "), String::from_utf8_lossy(&output.stderr));
    }
    let text = String::from_utf8(output.stdout)?;
    Ok(text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n"))
}

/// Names under `Commands:` in a help text, but for `help` itself.
pub(super) fn subcommands(help: &str) -> Vec<&str> {
    let rest = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let lines = rest.take_while(|line| !line.is_empty());
    lines
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect()
}
