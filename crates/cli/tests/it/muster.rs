//! Runs the binary and captures its result.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// The result of one call.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Outcome {
    /// Fails with the whole output if the exit code differs.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "exit code; {self:#?}");
        self
    }

    /// Every line of standard output as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Vec<Value> {
        let read = |line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        self.out.lines().map(read).collect()
    }
}

/// The binary, in the root of the repository, without variables that change its output.
pub(crate) fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_muster"));
    command.current_dir(root()).stdin(Stdio::null());
    command.env_remove("CLICOLOR_FORCE").env_remove("RUST_BACKTRACE").env_remove("COLUMNS");
    command
}

/// Calls the binary in the root of the repository.
pub(crate) fn muster(args: &[&str]) -> Outcome {
    finish(command().args(args))
}

/// Calls the binary in a directory.
pub(crate) fn muster_in(dir: &Path, args: &[&str]) -> Outcome {
    finish(command().current_dir(dir).args(args))
}

pub(crate) fn finish(command: &mut Command) -> Outcome {
    let output = command.output().expect("the binary starts");
    Outcome {
        code: output.status.code().expect("it was not killed"),
        out: String::from_utf8(output.stdout).expect("text"),
        err: String::from_utf8(output.stderr).expect("text"),
    }
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("it is there")
}

/// An empty directory that only this test uses.
pub(crate) fn empty_dir(test: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).expect("it can be made");
    dir
}

/// Writes a file into a directory.
pub(crate) fn write(dir: &Path, name: &str, content: impl AsRef<[u8]>) {
    std::fs::write(dir.join(name), content).expect("it can be written");
}

/// Writes a file that only its owner can read.
pub(crate) fn write_private(dir: &Path, name: &str, content: impl AsRef<[u8]>) {
    use std::os::unix::fs::PermissionsExt;
    write(dir, name, content);
    let mode = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(dir.join(name), mode).expect("it is ours");
}
