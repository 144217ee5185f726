//! A process that cleans up after a cluster, however its test ends.

use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

/// When set, the folder with its logs is kept.
const KEEP_VARIABLE: &str = "MUSTER_KEEP_CLUSTER";

/// Waits until the other end of its input is closed, which the system ensures even after a `kill -9`. Then kills the
/// group and removes the folder; processes just killed may still be writing, hence the retries.
const SCRIPT: &str = r#"
read -r group
while read -r _; do :; done
[ -z "$group" ] || kill -s KILL -- "-$group"
[ -n "$1" ] || exit 0
for _ in 1 2 3 4 5 6 7 8 9 10; do rm -rf -- "$1" && exit 0; sleep 0.2; done
"#;

#[derive(Debug)]
pub(crate) struct Reaper {
    process: Child,
    lifeline: Option<ChildStdin>,
}

impl Reaper {
    pub(crate) fn watch(folder: &Path) -> io::Result<Self> {
        let keep = std::env::var_os(KEEP_VARIABLE).is_some();
        let mut process = Command::new("/bin/sh")
            .args(["-c", SCRIPT, "reaper"])
            .arg(if keep { Path::new("") } else { folder })
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // A Ctrl-C or a time limit ends the test's group; this one has to outlive it.
            .process_group(0)
            .spawn()?;
        let lifeline = process.stdin.take();
        Ok(Self { process, lifeline })
    }

    /// The process group to end.
    pub(crate) fn adopt(&mut self, group: u32) -> io::Result<()> {
        let lifeline = self.lifeline.as_mut().expect("it is cut only by the drop");
        writeln!(lifeline, "{group}")
    }
}

/// The same path as after a crash, so that every test exercises it.
impl Drop for Reaper {
    fn drop(&mut self) {
        drop(self.lifeline.take());
        let _ = self.process.wait();
    }
}
