//! Quoted commands: parsed by the program that they name, and run where their block says so.
//!
//! A block marked `sh` holds commands, one a line; a block marked `console` holds them after `$ `, with what they print
//! between. A block marked `sh run` is run as a whole, in a copy of the examples. What a line says after ` #` is for the
//! reader.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

use muster_testkit::testbed;

use super::super::help::subcommands;
use super::super::programs;
use super::reading::Block;
use super::{kubectl, pages};

/// What a block may be marked as; what an unmarked one holds, no test would know.
const MARKS: [&str; 9] =
    ["sh", "sh run", "console", "text", "yaml", "yaml part", "json", "rust", "css"];

/// A command line of a page, and where it is.
struct Quoted {
    at: String,
    words: Vec<String>,
}

#[test]
fn every_quoted_command_is_understood() {
    let programs = Programs::built();
    let mut wrong = Vec::new();
    let mut count = 0;
    for page in pages() {
        for block in page.blocks() {
            for quoted in quoted(&page.path, &block) {
                count += 1;
                if let Err(why) = programs.check(&quoted.words) {
                    wrong.push(format!("{}: {}: {why}", quoted.at, quoted.words.join(" ")));
                }
            }
        }
    }
    assert!(count > 100, "only {count} commands were found");
    assert!(wrong.is_empty(), "quoted commands that do not work:\n{}", wrong.join("\n"));
}

#[test]
fn every_block_of_the_documentation_is_marked() {
    const FOLDERS: [&str; 4] = ["README.md", "docs/tasks/", "docs/reference/", "docs/design/"];
    let of_users = |path: &str| FOLDERS.iter().any(|folder| path.starts_with(folder));
    let mut wrong = Vec::new();
    for page in pages().into_iter().filter(|page| of_users(&page.path)) {
        for block in page.blocks().into_iter().filter(|block| !MARKS.contains(&block.mark.as_str()))
        {
            wrong.push(format!("{}:{}: `{}`", page.path, block.line, block.mark));
        }
    }
    let known = MARKS.join(", ");
    assert!(wrong.is_empty(), "blocks must be marked as one of {known}:\n{}", wrong.join("\n"));
}

#[test]
fn blocks_marked_to_run_do_run() {
    let muster = programs::muster().expect("the command");
    let mut count = 0;
    for page in pages() {
        for block in page.blocks().into_iter().filter(|block| block.mark == "sh run") {
            count += 1;
            let folder =
                env::temp_dir().join(format!("muster-docs-{}-{count}", std::process::id()));
            fs::create_dir_all(&folder).expect("a folder");
            let examples = testbed::workspace().join("examples");
            std::os::unix::fs::symlink(examples, folder.join("examples"))
                .expect("a link to the examples");
            let path = format!(
                "{}:{}",
                muster.parent().expect("a folder").display(),
                env::var("PATH").unwrap_or_default()
            );
            let output = Command::new("bash")
                .args(["-e", "-o", "pipefail", "-c", &block.text])
                .current_dir(&folder)
                .env("PATH", path)
                .env("XDG_DATA_HOME", folder.join("data"))
                .output()
                .expect("bash");
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{}:{} failed: {said}", page.path, block.line);
            fs::remove_dir_all(&folder).expect("the folder is there");
        }
    }
    assert!(count >= 2, "only {count} blocks are run");
}

#[test]
fn wrong_commands_are_found() {
    let programs = Programs::built();
    let check = |line: &str| programs.check(&words(line));
    assert_eq!(check("muster check examples/quickstart.yaml"), Ok(()));
    assert_eq!(check("cargo xtask faults --seed 7"), Ok(()));
    assert_eq!(check("make run"), Ok(()));
    assert_eq!(check("helm install muster charts/muster --set features.gates=false"), Ok(()));
    assert_eq!(check("kubectl get gg -A -o wide"), Ok(()));
    for wrong in [
        "muster chek examples/quickstart.yaml",
        "muster check --no-such-flag examples/quickstart.yaml",
        "muster check examples/no-such-file.yaml",
        "muster-controller --no-such-flag",
        "cargo xtask no-such-chore",
        "make no-such-target",
        "helm install muster charts/muster --set features.magic=true",
        "helm install muster charts/other",
        "kubectl get gangz",
        "kubectl conjure gangs",
        "teleport --now",
    ] {
        assert!(check(wrong).is_err(), "{wrong} was taken for right");
    }
}

/// The programs that pages quote.
struct Programs {
    muster: std::path::PathBuf,
    controller: std::path::PathBuf,
    xtask: std::path::PathBuf,
    targets: Vec<String>,
    values: serde_json::Value,
}

/// Programs of others that pages quote and nothing here can parse.
const OTHERS: [&str; 14] = [
    "apt-get",
    "cd",
    "curl",
    "docker",
    "export",
    "git",
    "jq",
    "pip",
    "python3",
    "sh",
    "source",
    "systemctl",
    "systemd-run",
    "alias",
];

impl Programs {
    fn built() -> Self {
        let workspace = testbed::workspace();
        let makefile = fs::read_to_string(workspace.join("Makefile")).expect("Makefile");
        let target = |line: &str| {
            let (name, _) = line.split_once(':')?;
            let is_name = !name.is_empty()
                && name.chars().all(|one| one.is_ascii_alphanumeric() || one == '-');
            is_name.then(|| name.to_owned())
        };
        let schema = fs::read_to_string(workspace.join("charts/muster/values.schema.json"))
            .expect("a schema");
        Self {
            muster: programs::muster().expect("the command"),
            controller: programs::controller().expect("the controller"),
            xtask: programs::xtask().expect("xtask"),
            targets: makefile.lines().filter_map(target).collect(),
            values: serde_json::from_str(&schema).expect("JSON"),
        }
    }

    /// Whether the program that a command names would take it.
    fn check(&self, words: &[String]) -> Result<(), String> {
        // Settings before the name of the program.
        let first = words.iter().position(|word| !is_setting(word)).unwrap_or(words.len());
        let Some((program, args)) = words[first..].split_first() else { return Ok(()) };
        match program.as_str() {
            "muster" => parsed(&self.muster, args).and_then(|()| files(args)),
            "muster-controller" => parsed(&self.controller, args),
            "cargo" if args.first().is_some_and(|word| word == "xtask") => {
                parsed(&self.xtask, &args[1..])
            }
            "cargo" => Ok(()),
            "make" => self.make(args),
            "helm" => self.helm(args),
            "kubectl" => kubectl::check(args),
            program if OTHERS.contains(&program) || program.starts_with("./") => Ok(()),
            program => Err(format!("no program {program} is known here")),
        }
    }

    fn make(&self, args: &[String]) -> Result<(), String> {
        for arg in args.iter().filter(|arg| !is_setting(arg) && !arg.starts_with('-')) {
            if !self.targets.contains(arg) {
                return Err(format!("the Makefile has no {arg}"));
            }
        }
        Ok(())
    }

    /// The chart and the names of values; helm itself is not asked.
    fn helm(&self, args: &[String]) -> Result<(), String> {
        const VERBS: [&str; 8] =
            ["install", "upgrade", "uninstall", "template", "get", "list", "rollback", "history"];
        let verb = args.first().map(String::as_str).unwrap_or_default();
        if !VERBS.contains(&verb) {
            return Err(format!("helm has no {verb} here"));
        }
        files(args)?;
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            if arg != "--set" && arg != "--set-string" && arg != "--set-json" {
                continue;
            }
            let value = args.next().ok_or("--set without a value")?;
            let path = value.split('=').next().unwrap_or_default();
            let mut at = &self.values;
            for name in path.split('.') {
                let name = name.split('[').next().unwrap_or_default();
                at = at["properties"]
                    .get(name)
                    .ok_or_else(|| format!("the chart has no value {path}"))?;
            }
        }
        Ok(())
    }
}

/// Whether the program's own parser takes these arguments: asked for help at their end, it reads all of them first.
fn parsed(program: &Path, args: &[String]) -> Result<(), String> {
    // What comes after `--` is not the program's to read.
    let own: Vec<&String> = args.iter().take_while(|arg| *arg != "--").collect();
    let output = Command::new(program)
        .args(own)
        .arg("--help")
        .output()
        .map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or_default().to_owned())
}

/// Files of this repository that a command names are there.
fn files(args: &[String]) -> Result<(), String> {
    for arg in args {
        let is_ours = ["examples/", "charts/", "docs/", "crates/"]
            .iter()
            .any(|folder| arg.starts_with(folder));
        if is_ours && !arg.contains('*') && !testbed::workspace().join(arg).exists() {
            return Err(format!("{arg} is not there"));
        }
    }
    Ok(())
}

/// `NAME=value` before a command, or after `make`.
fn is_setting(word: &str) -> bool {
    let name = word.split_once('=').map(|(name, _)| name);
    name.is_some_and(|name| {
        !name.is_empty()
            && name
                .chars()
                .all(|one| one.is_ascii_uppercase() || one == '_' || one.is_ascii_digit())
    })
}

/// Commands of a block; none of blocks that hold something else.
fn quoted(page: &str, block: &Block) -> Vec<Quoted> {
    let is_console = block.mark == "console";
    if !(is_console || matches!(block.mark.as_str(), "sh" | "sh run")) {
        return Vec::new();
    }
    let text = block.text.replace("\\\n", " ");
    let mut out = Vec::new();
    let mut document: Option<String> = None;
    for (at, line) in text.lines().enumerate() {
        // The text of a document within a command is no command.
        if let Some(end) = &document {
            if line.trim() == end {
                document = None;
            }
            continue;
        }
        let line = match (is_console, line.strip_prefix("$ ")) {
            (true, None) => continue,
            (true, Some(command)) => command,
            (false, _) => line,
        };
        document = line.split_once("<<").map(|(_, end)| end.trim().trim_matches('\'').to_owned());
        let line = line.split("<<").next().unwrap_or_default();
        for part in commands(line) {
            let words = words(&part);
            if !words.is_empty() {
                out.push(Quoted { at: format!("{page}:{}", block.line + 1 + at), words });
            }
        }
    }
    out
}

/// The parts of a line between pipes, `;`, `&&` and `&`, without its comment.
fn commands(line: &str) -> Vec<String> {
    let (mut parts, mut part, mut quote) = (Vec::new(), String::new(), None);
    let mut previous = ' ';
    for one in line.chars() {
        match (quote, one) {
            (None, '#') if previous.is_whitespace() => break,
            (None, '\'' | '"') => quote = Some(one),
            (Some(open), _) if open == one => quote = None,
            (None, '|' | ';' | '&') => {
                parts.push(std::mem::take(&mut part));
                previous = one;
                continue;
            }
            _ => {}
        }
        part.push(one);
        previous = one;
    }
    parts.push(part);
    parts
}

/// Words of a command, without redirections. Quoted words are one.
fn words(command: &str) -> Vec<String> {
    let (mut words, mut word, mut quote, mut begun) = (Vec::new(), String::new(), None, false);
    for one in command.chars().chain([' ']) {
        match (quote, one) {
            (None, '\'' | '"') => (quote, begun) = (Some(one), true),
            (Some(open), _) if open == one => quote = None,
            (None, one) if one.is_whitespace() => {
                if begun {
                    words.push(std::mem::take(&mut word));
                }
                begun = false;
            }
            (_, one) => {
                word.push(one);
                begun = true;
            }
        }
    }
    if let Some(at) = words.iter().position(|word| word.starts_with(['>', '<'])) {
        words.truncate(at);
    }
    words
}

#[test]
fn commands_are_split_as_a_shell_does() {
    assert_eq!(commands("a --b 'x; y' | c # d").len(), 2);
    assert_eq!(words("a --b='x y' \"z\" > out"), ["a", "--b=x y", "z"]);
    let block = Block {
        line: 7,
        mark: "console".into(),
        text: "$ muster get gangs \\\n  -A\nNAME\n$ make run\n".into(),
    };
    let found: Vec<String> = quoted("p", &block)
        .iter()
        .map(|one| format!("{} {}", one.at, one.words.join(" ")))
        .collect();
    assert_eq!(found, ["p:8 muster get gangs -A", "p:10 make run"]);
}

#[test]
fn subcommands_are_read_from_help() {
    let help = "Usage: x\n\nCommands:\n  a   One\n      more\n  b   Two\n  help  Print\n\nOptions:\n  -h\n";
    assert_eq!(subcommands(help), ["a", "b"]);
}
