//! The architecture invariants of `core` and `plan`, read off their sources: no clock, no file, no socket, no
//! runtime, no random source, and no hash order that could reach a decision.

use std::path::{Path, PathBuf};

/// Crates that bring a clock, randomness or the outside world.
const OUTSIDE: [&str; 9] =
    ["tokio", "kube", "rand", "chrono", "time", "reqwest", "rusqlite", "getrandom", "futures"];

/// Words that do the same without a crate.
const FORBIDDEN: [&str; 20] = [
    "Instant",
    "Timestamp::now",
    "Zoned::now",
    "TimeZone::system",
    "SystemTime",
    "std::fs",
    "std::net",
    "std::env",
    "std::process",
    "std::thread",
    "std::io",
    "thread_rng",
    "RandomState",
    "collections::HashMap",
    "collections::HashSet",
    "HashMap::new",
    "static mut",
    "todo!",
    "unimplemented!",
    "#[ignore",
];

/// Files that may look things up by hash, each read through once for order that leaks out.
const HASHED: [&str; 8] = [
    "core/src/history/baseline.rs",
    "core/src/capacity/state.rs",
    "core/src/hardware/topology.rs",
    "core/src/world/state.rs",
    "core/src/world/nodes.rs",
    "plan/src/place/fits.rs",
    "plan/src/place/fragments.rs",
    "plan/src/scratch.rs",
];

/// Ways to see a map in hash order.
const ORDERED: [&str; 8] = [
    ".iter()",
    ".iter_mut()",
    ".keys()",
    ".values()",
    ".values_mut()",
    ".drain(",
    ".retain(",
    ".into_iter()",
];

/// Lines a file may have; a longer one wants to be two.
const MOST_LINES: usize = 600;

struct Source {
    name: String,
    text: String,
}

impl Source {
    /// Lines of code, numbered; comments are not code.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.text.lines().enumerate().map(|(i, line)| (i + 1, line));
        lines.filter(|(_, line)| !line.trim_start().starts_with("//"))
    }
}

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("crates/").to_owned()
}

fn sources() -> Vec<Source> {
    let mut sources = Vec::new();
    for member in ["core", "plan"] {
        let mut folders = vec![crates().join(member).join("src")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("a folder of sources") {
                let path = entry.expect("readable").path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|ext| ext == "rs") {
                    let name = path.strip_prefix(crates()).expect("below it").display().to_string();
                    let text = std::fs::read_to_string(&path).expect("UTF-8");
                    sources.push(Source { name, text });
                }
            }
        }
    }
    sources.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(sources.len() > 30, "the sources are found");
    sources
}

/// Fails with every line that breaks a rule.
fn check(rule: &str, broken: impl Fn(&Source) -> Vec<String>) {
    let broken: Vec<String> = sources().iter().flat_map(broken).collect();
    assert!(broken.is_empty(), "{rule}:\n{}", broken.join("\n"));
}

fn lines_with<'a>(source: &'a Source, words: &'a [&str]) -> Vec<String> {
    let hits = source.code().filter(|(_, line)| words.iter().any(|word| line.contains(word)));
    hits.map(|(at, line)| format!("{}:{at}: {}", source.name, line.trim())).collect()
}

#[test]
fn no_dependency_knows_a_clock_or_the_outside() {
    for member in ["core", "plan"] {
        let manifest = std::fs::read_to_string(crates().join(member).join("Cargo.toml"));
        let manifest = manifest.expect("a manifest");
        let section = manifest.split("[dependencies]").nth(1).expect("dependencies");
        let section = section.split("\n[").next().expect("something before the next section");
        let names: Vec<&str> =
            section.lines().filter_map(|line| line.split(['.', ' ', '=']).next()).collect();
        assert!(names.contains(&"serde"), "the dependencies are found: {names:?}");
        let outside =
            |name: &&str| OUTSIDE.iter().any(|bad| name.split('-').any(|part| part == *bad));
        assert_eq!(names.iter().find(|name| outside(name)), None, "{member} stays pure");
    }
}

#[test]
fn no_source_knows_a_clock_or_the_outside() {
    check("core and plan are pure, and finished", |source| lines_with(source, &FORBIDDEN));
}

#[test]
fn hash_maps_are_only_where_they_were_reviewed() {
    check("FxHashMap outside the reviewed files", |source| match HASHED.contains(&&*source.name) {
        true => Vec::new(),
        false => lines_with(source, &["FxHashMap", "FxHashSet", "hash_map"]),
    });
    let stale =
        |name: &&&str| !sources().iter().any(|s| s.name == **name && s.text.contains("FxHash"));
    assert_eq!(HASHED.iter().find(stale), None, "reviewed files that need no review any more");
}

#[test]
fn no_hash_map_is_ever_walked_through() {
    let all = sources();
    check("hash order must not reach a decision", |source| {
        // Its own maps, and those that other files of its folder let it reach.
        let near = all.iter().filter(|other| folder(&other.name) == folder(&source.name));
        let maps = near.flat_map(|other| {
            let own = other.name == source.name;
            other.code().filter(move |(_, line)| own || line.trim_start().starts_with("pub"))
        });
        let maps = maps.filter(|(_, line)| line.contains(": FxHash"));
        let maps: Vec<&str> = maps.filter_map(|(_, line)| declared(line)).collect();
        let walks = |line: &str, map: &str| {
            line.match_indices(map).any(|(at, _)| {
                let word = |c: char| c.is_alphanumeric() || c == '_';
                let (before, after) = (&line[..at], &line[at + map.len()..]);
                let whole = !before.ends_with(word) && !after.starts_with(word);
                let looped = after.trim_end().ends_with('{')
                    && (before.ends_with("in &self.")
                        || before.ends_with("in &")
                        || before.ends_with("in "));
                whole && (looped || ORDERED.iter().any(|way| after.starts_with(way)))
            })
        };
        let hits = source.code().filter(|(_, line)| maps.iter().any(|map| walks(line, map)));
        hits.map(|(at, line)| format!("{}:{at}: {}", source.name, line.trim())).collect()
    });
}

/// The folder of a source.
fn folder(name: &str) -> Option<&str> {
    name.rsplit_once('/').map(|(folder, _)| folder)
}

/// The name before `: FxHashMap<..>`.
fn declared(line: &str) -> Option<&str> {
    line.split(": FxHash").next()?.rsplit([' ', '(']).next()
}

#[test]
fn every_file_is_small_and_says_what_it_is_for() {
    check("files say what they are for and keep it short", |source| {
        let mut broken = Vec::new();
        if !source.text.starts_with("//! ") {
            broken.push(format!("{}: begins without a module comment", source.name));
        }
        if source.text.lines().count() > MOST_LINES {
            broken.push(format!("{}: longer than {MOST_LINES} lines", source.name));
        }
        broken
    });
}
