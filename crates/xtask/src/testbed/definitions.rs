//! Definitions of other systems' kinds, taken from their Go modules as `testbed/definitions.txt` lists them.
//!
//! Nothing is compiled: a module is loaded, its hash compared, and a few of its files are written down.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use muster_testkit::testbed;
use serde::Deserialize;

use super::build::Failure;

/// A system, where its definitions are from, and which files they are.
#[derive(Debug, PartialEq, Eq)]
struct Source<'a> {
    system: &'a str,
    module: &'a str,
    version: &'a str,
    sum: &'a str,
    files: Vec<&'a str>,
}

fn read(list: &str) -> Result<Vec<Source<'_>>, String> {
    let mut sources: Vec<Source<'_>> = Vec::new();
    for line in list.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match (words[..].as_ref(), sources.last_mut()) {
            ([file], Some(source)) if line.starts_with(' ') => source.files.push(file),
            ([system, module, version, sum], _) => {
                sources.push(Source { system, module, version, sum, files: Vec::new() });
            }
            _ => return Err(format!("definitions.txt has a line that is neither: {line}")),
        }
    }
    Ok(sources)
}

fn list() -> std::io::Result<String> {
    fs::read_to_string(testbed::workspace().join("testbed/definitions.txt"))
}

fn recipe_file() -> PathBuf {
    testbed::folder().join("definitions.recipe")
}

/// Whether all files of the present list were written.
pub(super) fn is_current() -> bool {
    let wanted = list().ok();
    wanted.is_some() && fs::read_to_string(recipe_file()).ok() == wanted
}

/// Writes the missing files. One that is not available does not keep the others from being written.
pub(super) fn bring_up_to_date() -> Result<(), Failure> {
    if is_current() {
        eprintln!("testbed: definitions: there already");
        return Ok(());
    }
    let list = list()?;
    let sources = read(&list).map_err(Failure::Broken)?;
    eprintln!("testbed: definitions: fetching {} modules", sources.len());
    let modules = download(&sources)?;
    let mut missing = Vec::new();
    for source in &sources {
        let module = modules.iter().find(|module| module.path == source.module);
        match module.map(|module| module.checked(source)) {
            Some(Ok(folder)) => keep(source, &folder)?,
            Some(Err(failure @ Failure::Broken(_))) => return Err(failure),
            Some(Err(Failure::Unavailable(why))) => missing.push(why),
            None => missing.push(format!("{} was not answered for", source.module)),
        }
    }
    if missing.is_empty() {
        return Ok(fs::write(recipe_file(), list)?);
    }
    Err(Failure::Unavailable(format!("definitions cannot be had:\n{}", missing.join("\n"))))
}

/// What Go says of a module that it loaded, or could not load.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Downloaded {
    path: String,
    dir: Option<PathBuf>,
    sum: Option<String>,
    error: Option<String>,
}

impl Downloaded {
    /// Its folder, if it holds what it held when it was listed.
    fn checked(&self, source: &Source<'_>) -> Result<PathBuf, Failure> {
        let why = || self.error.clone().unwrap_or_else(|| format!("{} has no files", self.path));
        let dir = self.dir.clone().ok_or_else(|| Failure::Unavailable(why()))?;
        let sum = self.sum.as_deref().unwrap_or("nothing");
        if sum == source.sum {
            return Ok(dir);
        }
        let (module, version) = (source.module, source.version);
        Err(Failure::Broken(format!("{module} {version} is {sum} and not {}", source.sum)))
    }
}

fn download(sources: &[Source<'_>]) -> Result<Vec<Downloaded>, Failure> {
    let folder = testbed::folder();
    fs::create_dir_all(&folder)?;
    let modules = sources.iter().map(|source| format!("{}@{}", source.module, source.version));
    let output = Command::new("go")
        .args(["mod", "download", "-json"])
        .args(modules)
        .env("GOWORK", "off")
        .current_dir(folder)
        .output()
        .map_err(|error| Failure::Unavailable(format!("`go` cannot be started ({error})")))?;
    // It fails if one of them is not available, and says so in the answer for that one.
    let answers = serde_json::Deserializer::from_slice(&output.stdout).into_iter();
    let answers: Result<Vec<Downloaded>, _> = answers.collect();
    let answers = answers.map_err(|error| Failure::Broken(format!("go mod download: {error}")))?;
    if answers.is_empty() {
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(Failure::Unavailable(why));
    }
    Ok(answers)
}

fn keep(source: &Source<'_>, folder: &Path) -> Result<(), Failure> {
    for file in &source.files {
        let from = folder.join(file);
        let text = fs::read(&from)
            .map_err(|error| Failure::Broken(format!("{}: {error}", from.display())))?;
        let name = from.file_name().expect("a file's path");
        let to = testbed::definitions().join(source.system);
        fs::create_dir_all(&to)?;
        fs::write(to.join(name), text)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_list_is_systems_with_files_and_nothing_else() {
        let text = "# why\n\nred a.io/red v1.0.0 h1:x=\n  crds/one.yaml\n  crds/two.yaml\n";
        let red = Source {
            system: "red",
            module: "a.io/red",
            version: "v1.0.0",
            sum: "h1:x=",
            files: vec!["crds/one.yaml", "crds/two.yaml"],
        };
        assert_eq!(read(text), Ok(vec![red]));
        assert!(read("  crds/one.yaml\n").is_err(), "a file without a system");
        assert!(read("red a.io/red v1.0.0\n").is_err(), "no hash");
    }

    #[test]
    fn the_list_can_be_read_and_no_file_takes_the_place_of_another() {
        let list = list().expect("a list");
        let sources = read(&list).expect("it can be read");
        let mut seen = BTreeSet::new();
        for source in &sources {
            assert!(!source.files.is_empty(), "{} has no files", source.system);
            for file in &source.files {
                let name = Path::new(file).file_name();
                assert!(seen.insert((source.system, name)), "{} {file}", source.system);
            }
        }
    }

    #[test]
    fn a_module_that_is_not_what_was_listed_is_refused() {
        let list = "red a.io/red v1.0.0 h1:x=\n  crds/one.yaml\n";
        let sources = read(list).expect("a list");
        let answer = |json: &str| serde_json::from_str::<Downloaded>(json).expect("an answer");
        let same = answer(r#"{"Path": "a.io/red", "Dir": "/red", "Sum": "h1:x="}"#);
        assert_eq!(same.checked(&sources[0]).expect("the same"), PathBuf::from("/red"));
        let other = answer(r#"{"Path": "a.io/red", "Dir": "/red", "Sum": "h1:y="}"#);
        assert!(matches!(other.checked(&sources[0]), Err(Failure::Broken(_))));
        let none = answer(r#"{"Path": "a.io/red", "Error": "gone"}"#);
        assert!(matches!(none.checked(&sources[0]), Err(Failure::Unavailable(_))));
    }
}
