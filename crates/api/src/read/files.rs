//! Reads files into manifests or findings.
//!
//! A file that is too large, is not text, or contains no object is rejected as a whole. Otherwise every document is
//! read, valid or not, and then all objects are checked against each other.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use muster_core::node::NodeSpec;
use muster_core::queue::QueueSpec;
use muster_core::topology::Levels;

use crate::manifest::gang::gang_spec::GangManifest;
use crate::manifest::pool::pool_spec::PoolManifest;
use crate::read::cross_check::assemble;
use crate::read::finding::{Finding, Position, Severity, Sink, sort};
use crate::read::object::Declared;
use crate::yaml::tree::{Content, Documents};
use crate::yaml::value::Value;

/// The largest file that is read: a hundred thousand gangs fit.
pub const MAX_FILE_BYTES: u64 = 16 << 20;

/// All objects of all files, in the order they were given.
#[derive(Clone, PartialEq, Debug)]
pub struct Manifests {
    /// The levels of the topology, declared or default.
    pub levels: Levels,
    /// The queues, which always include one named `default`.
    pub queues: Vec<QueueSpec>,
    /// The pools.
    pub pools: Vec<PoolManifest>,
    /// Nodes that exist from the start.
    pub nodes: Vec<NodeSpec>,
    /// The gangs.
    pub gangs: Vec<GangManifest>,
    /// Findings that do not prevent the use of the manifests.
    pub warnings: Vec<Finding>,
}

/// Why a file cannot be read as text.
#[derive(Debug, thiserror::Error)]
enum FileError {
    #[error("is a directory: name the files in it")]
    Directory,
    #[error("there is no such file")]
    Missing,
    #[error("is {0} bytes, and at most {MAX_FILE_BYTES} bytes (16 MiB) are read")]
    TooLarge(u64),
    #[error("is longer than {MAX_FILE_BYTES} bytes (16 MiB), and no more are read")]
    Endless,
    #[error("cannot be read: {0}")]
    Io(io::Error),
}

impl From<io::Error> for FileError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::Missing,
            io::ErrorKind::IsADirectory => Self::Directory,
            _ => Self::Io(error),
        }
    }
}

/// Reads manifests from files. The error has every problem of every file, by file and line; nothing is returned if one
/// of them is an error.
pub fn read_files(paths: &[PathBuf]) -> Result<Manifests, Vec<Finding>> {
    let mut reading = Reading::default();
    for path in paths {
        let sink = Sink::new(&path.display().to_string());
        match load(path) {
            Ok(bytes) => reading.file(&bytes, sink),
            Err(error) => {
                sink.file_error(Position::START, error.to_string());
                reading.give_up(sink);
            }
        }
    }
    reading.finish()
}

/// The same for texts in memory, each with the name that its findings carry.
pub fn read_texts<N: AsRef<str>, T: AsRef<[u8]>>(
    texts: &[(N, T)],
) -> Result<Manifests, Vec<Finding>> {
    let mut reading = Reading::default();
    for (name, text) in texts {
        reading.file(text.as_ref(), Sink::new(name.as_ref()));
    }
    reading.finish()
}

/// The same for a single object: what it refers to may be declared elsewhere.
pub fn read_alone(name: &str, text: &str) -> Result<Manifests, Vec<Finding>> {
    let declared = Declared { incomplete: true, ..Declared::default() };
    let mut reading = Reading { declared, findings: Vec::new() };
    reading.file(text.as_bytes(), Sink::new(name));
    reading.finish()
}

fn load(path: &Path) -> Result<Vec<u8>, FileError> {
    let file = File::open(path)?;
    let about = file.metadata()?;
    if about.is_dir() {
        return Err(FileError::Directory);
    }
    if about.len() > MAX_FILE_BYTES {
        return Err(FileError::TooLarge(about.len()));
    }
    // Pipes have no size, and files can grow: the limit holds for the bytes read, too.
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(FileError::Endless);
    }
    Ok(bytes)
}

/// What has been read from the files so far.
#[derive(Default)]
struct Reading {
    declared: Declared,
    findings: Vec<Finding>,
}

impl Reading {
    fn file(&mut self, bytes: &[u8], sink: Sink) {
        match text(bytes) {
            Ok(text) => self.documents(text, &sink),
            Err((at, reason)) => {
                sink.file_error(at, reason);
                return self.give_up(sink);
            }
        }
        self.findings.extend(sink.into_findings());
    }

    fn documents(&mut self, text: &str, sink: &Sink) {
        let mut empty = true;
        for document in Documents::new(text) {
            match document {
                // Templates leave empty documents behind.
                Ok(node) if matches!(node.content, Content::Null) => continue,
                Ok(node) => self.declared.read(&Value::root(&node, sink)),
                Err((at, error)) => {
                    self.declared.incomplete = true;
                    sink.file_error(at, error.to_string());
                }
            }
            empty = false;
        }
        if empty {
            sink.file_error(
                Position::START,
                "no objects: the file is empty or holds only comments",
            );
        }
    }

    fn give_up(&mut self, sink: Sink) {
        self.declared.incomplete = true;
        self.findings.extend(sink.into_findings());
    }

    fn finish(mut self) -> Result<Manifests, Vec<Finding>> {
        let mut manifests = assemble(self.declared, &mut self.findings);
        sort(&mut self.findings);
        if self.findings.iter().any(|finding| finding.severity == Severity::Error) {
            return Err(self.findings);
        }
        manifests.warnings = self.findings;
        Ok(manifests)
    }
}

/// The bytes as text, without a byte order mark, or where and why they are not text.
fn text(bytes: &[u8]) -> Result<&str, (Position, &'static str)> {
    if let Some(nul) = bytes.iter().position(|byte| *byte == 0) {
        return Err((position(bytes, nul), "is a binary file, not YAML: there is a NUL byte here"));
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|error| (position(bytes, error.valid_up_to()), "is not UTF-8 text"))?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

fn position(bytes: &[u8], offset: usize) -> Position {
    let before = &bytes[..offset];
    let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    Position { line, column: String::from_utf8_lossy(&before[line_start..]).chars().count() + 1 }
}
