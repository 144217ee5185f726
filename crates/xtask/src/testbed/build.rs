//! Building one module with Go, as `GOFLAGS`, `GOPROXY`, `GOCACHE` and the rest of its environment say.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use muster_testkit::testbed;

use super::module::{Module, Program};
use super::progress::Progress;

#[derive(Debug)]
pub(super) enum Failure {
    /// Go or a module is not available: not a fault of this repository.
    Unavailable(String),
    /// The build failed although everything was available.
    Broken(String),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (Self::Unavailable(why) | Self::Broken(why)) = self;
        write!(f, "the test bed cannot be built: {why}")
    }
}

impl std::error::Error for Failure {}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::Broken(error.to_string())
    }
}

/// Builds the module's programs unless what is there was built by the very same recipe.
pub(super) fn bring_up_to_date(module: &Module) -> Result<(), Failure> {
    let wanted = module.wanted();
    let title = format!("{} {}", module.name, module.version());
    if wanted.is_empty() {
        eprintln!("testbed: {title}: all supplied by {}", testbed::ASSETS_VARIABLE);
        return Ok(());
    }
    if module.is_current() {
        eprintln!("testbed: {title}: there already");
        return Ok(());
    }
    let mut progress = Progress::new(title);
    progress.step("fetching modules");
    progress.expect(fetch(module, &wanted)?);
    let fresh = testbed::folder().join("new");
    fs::create_dir_all(&fresh)?;
    progress.step("compiling");
    compile(module, &wanted, &fresh, &mut progress)?;
    keep_programs(&wanted, &fresh)?;
    keep_manifests(module)?;
    module.mark_current()?;
    progress.done();
    Ok(())
}

fn go(module: &Module) -> Command {
    let mut command = Command::new("go");
    // Without C the programs are static and no compiler but Go's is needed. A Go workspace around this one would
    // make it another build.
    command.current_dir(module.folder()).env("CGO_ENABLED", "0").env("GOWORK", "off");
    command
}

fn packages<'a>(wanted: &[&'a Program]) -> impl Iterator<Item = &'a str> {
    wanted.iter().map(|program| program.package)
}

/// Loads every module that is needed and says how many packages there are to compile.
fn fetch(module: &Module, wanted: &[&Program]) -> Result<u64, Failure> {
    let output = go(module).args(["list", "-deps"]).args(packages(wanted)).output();
    let output = output.map_err(|error| {
        Failure::Unavailable(format!("`go` cannot be started ({error}); is Go installed?"))
    })?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        return Err(Failure::Unavailable(format!(
            "Go modules of {} cannot be had:\n{why}",
            module.name
        )));
    }
    Ok(output.stdout.iter().filter(|&&byte| byte == b'\n').count() as u64)
}

fn compile(
    module: &Module,
    wanted: &[&Program],
    fresh: &Path,
    progress: &mut Progress,
) -> Result<(), Failure> {
    // A package's last word is not always the program's name, so a lone program is named.
    let output = match wanted {
        [one] => fresh.join(one.tool.name()),
        _ => fresh.join(""),
    };
    let mut child = go(module)
        .args(["build", "-v", "-trimpath", "-ldflags", &module.link_flags(), "-o"])
        .arg(output)
        .args(packages(wanted))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let stderr = child.stderr.take().expect("it is piped");
    let (send, lines) = mpsc::channel();
    let reader = std::thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            if send.send(line).is_err() {
                break;
            }
        }
    });
    let mut complaints = Vec::new();
    loop {
        match lines.recv_timeout(Duration::from_secs(1)) {
            // `-v` prints a package a line; a complaint has blanks in it.
            Ok(line) if !line.contains(' ') => progress.compiled_one(),
            Ok(line) => complaints.push(line),
            Err(RecvTimeoutError::Timeout) => progress.alive(),
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    reader.join().expect("the reader does not panic");
    if child.wait()?.success() {
        return Ok(());
    }
    Err(Failure::Broken(format!("{} does not compile:\n{}", module.name, complaints.join("\n"))))
}

/// Renames, so that running processes keep the old program and no process finds half of the new one.
fn keep_programs(wanted: &[&Program], fresh: &Path) -> std::io::Result<()> {
    fs::create_dir_all(testbed::programs())?;
    for program in wanted {
        fs::rename(fresh.join(program.tool.name()), program.tool.built())?;
    }
    Ok(())
}

/// Copies, so that running needs neither Go nor its module cache.
fn keep_manifests(module: &Module) -> Result<(), Failure> {
    if module.manifests.is_empty() {
        return Ok(());
    }
    let output = go(module).args(["list", "-m", "-f", "{{.Dir}}", module.main]).output()?;
    let source = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    for (tool, path) in module.manifests {
        let from = source.join(path);
        let text = fs::read(&from)
            .map_err(|error| Failure::Broken(format!("{}: {error}", from.display())))?;
        let to = testbed::manifests(*tool);
        fs::create_dir_all(&to)?;
        // Written, not copied: files of the module cache are read-only, and a copy would stay so.
        fs::write(to.join(from.file_name().expect("a file's path")), text)?;
    }
    Ok(())
}
