//! One running program and its log.

use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::testbed::Tool;

/// Enough to see why a program exited: Kubernetes prints the reason last, below a page of flags.
const TAIL_LINES: usize = 30;

#[derive(Debug)]
pub(crate) struct Component {
    pub(crate) tool: Tool,
    process: Child,
    log: PathBuf,
}

impl Component {
    /// Starts it in a process group: an existing one, or (0) a new one that it leads.
    pub(crate) fn spawn(
        tool: Tool,
        mut command: Command,
        group: u32,
        folder: &Path,
    ) -> io::Result<Self> {
        let log = folder.join(format!("{tool}.log"));
        let file = File::create(&log)?;
        let group = i32::try_from(group).map_err(io::Error::other)?;
        let process = command
            // Some programs read a configuration from the home folder of the user.
            .env("HOME", folder)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .process_group(group)
            .spawn()?;
        Ok(Self { tool, process, log })
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.process.try_wait(), Ok(None))
    }

    /// The last lines of the log under a heading.
    pub(crate) fn tail(&self) -> String {
        let text = fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        let last = &lines[lines.len().saturating_sub(TAIL_LINES)..];
        format!("--- {} ({} lines in all) ---\n{}\n", self.tool, lines.len(), last.join("\n"))
    }

    /// Waits for a process that the reaper has killed.
    pub(crate) fn wait(&mut self) {
        let _ = self.process.wait();
    }
}
